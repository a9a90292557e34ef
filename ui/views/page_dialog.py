"""The text of a page that search found, to be read: a manual page's DESCRIPTION."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontDatabase, QFontMetrics
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import PlainLabel

_COLUMNS = 84
_LINES = 30


class PageDialog(QDialog):
    """A title above a text that can be selected but not changed."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self._title = PlainLabel(title, self, wordWrap=True)
        self._title.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._title.setProperty("tone", "heading")
        self._problem = PlainLabel(self, wordWrap=True)
        self._problem.setProperty("tone", "error")
        self._problem.hide()
        self.text = QPlainTextEdit(self)
        self.text.setReadOnly(True)
        self.text.setAccessibleName(title)
        self.text.setPlaceholderText("Reading\u2026")
        # The text is laid out for a terminal.
        font = QFont(self.font())
        font.setFamily(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family())
        self.text.setFont(font)
        self.text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 12)
        column.setSpacing(10)
        column.addWidget(self._title)
        column.addWidget(self._problem)
        column.addWidget(self.text, 1)
        column.addWidget(buttons)
        metrics = QFontMetrics(font)
        width = metrics.averageCharWidth() * _COLUMNS + 48
        resize_on_screen(self, width, metrics.lineSpacing() * _LINES)
        self.text.setFocus()

    def show_text(self, text: str) -> None:
        """Show the page from its beginning."""
        self.text.setPlainText(text)

    def show_error(self, title: str, hint: str) -> None:
        """Tell why there is nothing to read."""
        self.text.setPlaceholderText("")
        self._problem.setText(f"{title}. {hint}".strip())
        self._problem.show()
