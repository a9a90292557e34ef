"""A notice in place of the conversation: a title, a text and buttons."""

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from ui.widgets.controls import button, filled, row_of
from ui.widgets.plain_label import plain_label

_WIDEST_EM = 46

NoticeAction = tuple[str, Callable[[], object]]


class Notice(QWidget):
    """Says what happened and offers what can be done about it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title, self._text = plain_label(self, "heading"), plain_label(self, "muted")
        self._row = row_of(None)
        self._buttons: list[QPushButton] = []
        holder = QWidget(self)
        filled(QVBoxLayout(holder), self._title, self._text, self._row, spacing=12)
        holder.setMaximumWidth(self.fontMetrics().averageCharWidth() * _WIDEST_EM * 2)
        outer = filled(QVBoxLayout(self), None, row_of(None, (holder, 8), None))
        outer.setContentsMargins(24, 24, 24, 24)
        outer.addStretch(2)

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing."""
        return not self._title.text()

    def show_text(self, title: str, text: str = "", actions: Sequence[NoticeAction] = ()) -> None:
        """Show a title, a text under it and a button per action."""
        self._title.setText(title)
        self._text.show_text(text)
        for each in self._buttons:
            each.deleteLater()
        self._buttons = []
        for place, (name, act) in enumerate(actions):
            self._buttons.append(button(self, name, lambda _checked=False, act=act: act()))
            self._row.insertWidget(place, self._buttons[-1])
