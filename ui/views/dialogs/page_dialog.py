"""The dialog that shows the text of a manual page or document."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontDatabase, QFontMetrics
from PySide6.QtWidgets import QApplication, QWidget

from app.domain.documents import StoredDocument
from app.domain.errors import KnownError
from app.domain.translation import tr
from ui.widgets.controls import closing_buttons, column_in, text_edit
from ui.widgets.dialog import Dialog
from ui.widgets.plain_label import plain_label

_COLUMNS = 84
_LINES = 30


class PageDialog(Dialog):
    """A title above a read-only text."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        # Manual pages are formatted for a terminal.
        font = QFont(QApplication.font())
        font.setFamily(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family())
        metrics = QFontMetrics(font)
        width = metrics.averageCharWidth() * _COLUMNS + 48
        super().__init__(title, (width, metrics.lineSpacing() * _LINES), parent, tone="error")
        self.status.hide()
        self.text = text_edit(self, title)
        self.text.setReadOnly(True)
        self.text.setPlaceholderText(tr("Reading\u2026"))
        self.text.setFont(font)
        self.text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        heading = plain_label(self, "heading", text=title)
        column_in(self, heading, self.status, (self.text, 1), closing_buttons(self)[0])
        self.text.setFocus()

    def show_document(self, document: StoredDocument) -> None:
        """Show a document from its beginning, or at its passage, which is selected."""
        self.text.setPlainText(document.text)
        if document.place is None:
            return
        found = document.chunks[document.place]
        cursor = self.text.textCursor()
        cursor.setPosition(_offset(document.text, found.start + len(found.text.rstrip())))
        self.text.setTextCursor(cursor)  # so that all of it is in view
        cursor.setPosition(_offset(document.text, found.start), cursor.MoveMode.KeepAnchor)
        self.text.setTextCursor(cursor)

    def show_error(self, error: KnownError) -> None:
        """Show why there is no text."""
        super().show_error(error)
        self.text.setPlaceholderText("")


def _offset(text: str, characters: int) -> int:
    """Return the place of a character as Qt counts, in UTF-16 units."""
    return len(text[:characters].encode("utf-16-le", "replace")) // 2
