"""A card to choose a model or an embedder from a box; nothing changes before its button is clicked."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QWidget

from ui.widgets.cards import Card
from ui.widgets.controls import button, combo_box


class ChooserCard(Card):
    """A box, what the choice would mean or why it is impossible, and the button that makes it.

    A subclass lays out `box`, the lines of `add_lines`, and `use`.

    Attributes:
        in_force: The choice in use.

    Signals:
        picked: A choice, by its value. requested: The choice to use from now on.
    """

    picked = Signal(str)
    requested = Signal(str)

    def __init__(
        self, name: str, parent: QWidget, box_name: str, use_text: str, title: str | None = None
    ) -> None:
        super().__init__(name, parent, title)
        self.in_force = ""
        self.box: QComboBox = combo_box(
            self, box_name, min_chars=12, on_activated=self._on_box_activated
        )
        self.use = button(self, use_text, lambda: self.requested.emit(self.value), kind="primary")

    @property
    def value(self) -> str:
        """The choice that is picked."""
        return str(self.box.currentData() or "")

    def show_text(self, text: str) -> None:
        """Show what the choice would mean, in place of an error; "" hides it."""
        self.error.hide()
        self.text.show_text(text)

    def show_error(self, text: str) -> None:
        """Show why a choice cannot be used; "" hides that."""
        self.error.show_text(text)
        self.text.setVisible(False)

    def add_lines(self) -> None:
        """Add the lines `text` and `error`."""
        self.text, self.error = self.line("muted"), self.line("error")
        self.show_error("")

    def _on_box_activated(self) -> None:
        self.show_error("")
        self.update_button()
        self.picked.emit(self.value)

    def update_button(self) -> None:
        """Enable the button for a choice that is not in use."""
        self.use.setEnabled(self.value != self.in_force)
