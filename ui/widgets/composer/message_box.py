"""Message box: the text box of the composer, which grows with its text and reports what is not text."""

import re
from collections.abc import Iterable
from math import ceil
from pathlib import Path

from PySide6.QtCore import QMimeData, QSize, Qt, Signal
from PySide6.QtGui import QImage, QKeyEvent, QPalette, QResizeEvent, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy, QTextEdit, QWidget

_MAX_LINES = 10
_CURSOR_PX = 2
_PNG = "image/png"
_MENTION = re.compile(r"(?<!\w)@([^@\n]{0,60})\Z")
ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
NEW_LINE = Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.AltModifier


class MessageBox(QPlainTextEdit):
    """Grows with its text up to a limit; Enter submits, Shift+Enter begins a new line.

    Signals:
        submitted: Enter. escaped: Esc. recall_requested: Up, while it is empty.
        files_pasted: list of `Path`. image_pasted: A `QImage`, or `bytes` of a PNG.
    """

    submitted = Signal()
    escaped = Signal()
    recall_requested = Signal()
    files_pasted = Signal(list)
    image_pasted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._invitation = ""
        self.setProperty("kind", "message")
        # Wrapped text counts as up to 3 px wider than its room. A bar for them would take a line,
        # for which the other bar comes, beside which none is needed: they would alternate forever.
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(2)
        layout = self.document().documentLayout()
        layout.documentSizeChanged.connect(lambda _: self.updateGeometry())  # also after wrapping

    def typed_mention(self) -> str | None:
        """Return what follows an @ up to the cursor, None if there is no @ there."""
        cursor = self.textCursor()
        before = cursor.block().text()[: cursor.positionInBlock()]
        found = _MENTION.search(before)
        return None if found is None or cursor.hasSelection() else found[1]

    def complete_mention(self, title: str) -> None:
        """Replace what was typed after the @ by a title."""
        cursor = self.textCursor()
        typed = self.typed_mention() or ""
        cursor.movePosition(
            QTextCursor.MoveOperation.Left, QTextCursor.MoveMode.KeepAnchor, len(typed)
        )
        cursor.insertText(f"{title} ")
        self.setTextCursor(cursor)

    def mark_mentions(self, places: Iterable[tuple[int, int]]) -> None:
        """Emphasize parts of the text, each from a character up to another one."""
        from ui.rendering.plain_text import positions_in

        marks, position = [], positions_in(self.toPlainText())
        for start, end in places:
            mark = QTextEdit.ExtraSelection()
            cursor: QTextCursor = self.textCursor()
            cursor.setPosition(position(start))
            cursor.setPosition(position(end), QTextCursor.MoveMode.KeepAnchor)
            mark.cursor = cursor
            mark.format.setForeground(self.palette().brush(QPalette.ColorRole.Link))
            marks.append(mark)
        self.setExtraSelections(marks)

    def show_invitation(self, text: str) -> None:
        """Show a text while the box is empty, cut to one line: Qt would wrap it into the next."""
        self._invitation = text
        room = (
            self.contentsRect().width() - 2 * round(self.document().documentMargin()) - _CURSOR_PX
        )
        shown = self.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, room)
        self.setPlaceholderText(shown)

    # Qt overrides

    def sizeHint(self) -> QSize:
        """Return the height of the text, between one and ten lines."""
        lines = min(_MAX_LINES, max(1, round(self.document().size().height())))
        return QSize(super().sizeHint().width(), self._height_px(lines))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self._height_px(1))

    def _height_px(self, lines: int) -> int:
        margins = self.contentsMargins()
        around = margins.top() + margins.bottom() + 2 * round(self.document().documentMargin())
        return lines * self._line_px() + around + 2

    def _line_px(self) -> int:
        """Return the height of a line as it is laid out, which font metrics round otherwise."""
        layout = self.document().firstBlock().layout()
        height = layout.lineAt(0).height() if layout.lineCount() else 0.0
        return max(ceil(height), self.fontMetrics().lineSpacing())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the height to the lines at the new width."""
        super().resizeEvent(event)
        self.show_invitation(self._invitation)
        if event.oldSize().width() != event.size().width():
            self.updateGeometry()

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        """Accept images and files besides text."""
        return _has_image(source) or source.hasUrls() or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Report pasted files and images; text is preferred, as of a copied table."""
        paths = [Path(url.toLocalFile()) for url in source.urls() if url.isLocalFile()]
        if paths:
            self.files_pasted.emit(paths)
        elif _has_image(source) and not source.text().strip():
            png = bytes(source.data(_PNG).data()) if source.hasFormat(_PNG) else b""
            image = png or source.imageData()
            if isinstance(image, bytes | QImage):
                self.image_pasted.emit(image)
        else:
            super().insertFromMimeData(source)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Submit on Enter; an input method's own Enter does not arrive here."""
        is_plain = event.modifiers() in (
            Qt.KeyboardModifier.NoModifier,
            Qt.KeyboardModifier.KeypadModifier,
        )
        if event.key() in ENTER and not event.modifiers() & NEW_LINE:
            self.submitted.emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.escaped.emit()
        elif event.key() == Qt.Key.Key_Up and is_plain and self.document().isEmpty():
            self.recall_requested.emit()
        else:
            super().keyPressEvent(event)


def _has_image(source: QMimeData) -> bool:
    return source.hasImage() or source.hasFormat(_PNG)
