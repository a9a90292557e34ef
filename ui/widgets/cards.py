"""Cards of the settings: a titled frame, one with a table, and one to choose a model or an embedder."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QFrame, QGridLayout, QLabel, QVBoxLayout, QWidget

from app.domain.translation import tr
from ui.widgets.controls import button, clear, combo_box
from ui.widgets.plain_label import PlainLabel


class Card(QFrame):
    """A frame with a title; its content is in `column`."""

    def __init__(self, name: str, parent: QWidget, title: str | None = None) -> None:
        """`name` is the accessible name, and the title unless another one is given."""
        super().__init__(parent)
        self.setProperty("panel", "card")
        self.setAccessibleName(name)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(14, 12, 14, 12)
        self.title = PlainLabel(name if title is None else title, self, tone="heading")
        self.column.addWidget(self.title)

    def line(self, tone: str = "", text: str = "") -> PlainLabel:
        """Add a label that wraps, and return it; `tone` is one of the style sheet's."""
        label = PlainLabel(text, self, tone=tone, wordWrap=True)
        self.column.addWidget(label)
        return label


class TableCard(Card):
    """A table with headings; the first `text_columns` are left-aligned, numbers right-aligned."""

    def __init__(
        self,
        title: str,
        columns: Sequence[str],
        parent: QWidget,
        *,
        text_columns: int = 1,
        about: str = "",
    ) -> None:
        super().__init__(title, parent)
        if about:
            self.line("small", about)
        self._columns, self._text_columns = columns, text_columns
        self.grid = QGridLayout()
        self.grid.setHorizontalSpacing(12)
        self.grid.setColumnStretch(0, 1)
        self.column.addLayout(self.grid)

    def begin(self, *, empty: str) -> None:
        """Remove all rows; show the headings, or the text `empty` if no rows will follow."""
        clear(self.grid)
        if empty:
            self.grid.addWidget(PlainLabel(empty, self), 0, 0)
            return
        for column, name in enumerate(self._columns):
            self.cell(0, column, name).setProperty("tone", "small")

    def cell(self, row: int, column: int, text: str) -> QLabel:
        """Add a label to a row, counted from 1, and return it."""
        label = PlainLabel(text, self, wordWrap=column == 0)
        is_number = column >= self._text_columns
        side = Qt.AlignmentFlag.AlignRight if is_number else Qt.AlignmentFlag.AlignLeft
        label.setAlignment(side | Qt.AlignmentFlag.AlignVCenter)
        self.grid.addWidget(label, row, column)
        return label

    def name_cell(self, cell: QLabel, column: int, of: str) -> None:
        """Set the accessible name of a cell to its column, its row and its value."""
        cell.setAccessibleName(
            tr("{columns} of {of}: {text}").format(
                columns=self._columns[column], of=of, text=cell.text()
            )
        )


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
