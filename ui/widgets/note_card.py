"""A card with a note and one action, above the composer: what a message there will do."""

from collections.abc import Callable

from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from ui.widgets.announce import announce
from ui.widgets.controls import button, filled
from ui.widgets.plain_label import PlainLabel


class NoteCard(QFrame):
    """A note that stays until it is replaced; hidden while there is none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("panel", "card")
        self._text = PlainLabel("", self, tone="small", wordWrap=True)
        self.action = button(self, "", self._on_clicked, kind="quiet")
        self._act: Callable[[], object] = lambda: None
        filled(QHBoxLayout(self), (self._text, 1), self.action, margins=(10, 2, 4, 2))
        self.hide()

    @property
    def text(self) -> str:
        """The note, "" for none."""
        return "" if self.isHidden() else self._text.text()

    def show_note(
        self, text: str, action: str = "", act: Callable[[], object] | None = None
    ) -> None:
        """Show a note and its action, and announce it; "" hides it."""
        is_new = bool(text) and text != self.text
        self._text.setText(text)
        self.action.setText(action)
        self.action.setVisible(bool(action))
        self._act = act or (lambda: None)
        self.setVisible(bool(text))
        if is_new:
            announce(self, text)

    def _on_clicked(self) -> None:
        self._act()
