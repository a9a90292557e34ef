"""The window that shows the text of a manual page or document, beside a page of a PDF its image."""

from bisect import bisect_right
from functools import partial
from pathlib import PurePath

from PySide6.QtCore import QPoint, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QGuiApplication,
    QImage,
    QKeySequence,
    QResizeEvent,
    QShortcut,
    QTextCursor,
)
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QSplitter, QTextEdit, QWidget

from app.domain.errors import KnownError
from app.domain.records.documents import FileState, StoredDocument
from app.domain.translation import format_number, tr
from ui.theme import current_theme
from ui.views.dialogs.image_viewer import ImageView
from ui.widgets.controls import closing_buttons, column_in, row_of, tool_button
from ui.widgets.dialog import Dialog
from ui.widgets.plain_label import PlainLabel, plain_label

_SIZE_PX = (760, 700)  # narrow: the conversation beside it stays in view
_FOLLOW_MS = 150
_DOT = " \N{MIDDLE DOT} "
# Others are code or formatted for a terminal, as manual pages are.
_PROSE = frozenset(
    (".pdf", ".md", ".markdown", ".mdx", ".rst", ".txt", ".htm", ".html", ".xhtml", ".docx", ".docm", ".pptx",
     ".pptm", ".odt", ".odp", ".rtf", ".epub", ".eml", "")
)  # fmt: skip
_NOTICES = {
    FileState.SAME: "",
    FileState.CHANGED: tr(
        "The file has changed since it was read. This is the text that was read."
    ),
    FileState.GONE: tr("The file is gone. This is the text that was read."),
}
_FORMER = tr("The file has changed since it was quoted. What stands in that place now is marked.")


class PageDialog(Dialog):
    """A title above a read-only text, in which the passage that was asked for is marked.

    Signals:
        page_requested: The number, from 1, of the page of a PDF whose image is to be shown.
        folder_requested: Show the folder of the file.
        step_requested: Show the document before (-1) or after (1) this one.
    """

    page_requested = Signal(int)
    folder_requested = Signal()
    step_requested = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", _SIZE_PX, parent, tone="error")
        self._heading = plain_label(self, "heading")
        self._heading.setMinimumWidth(1)
        self.back, self.forward = (
            tool_button(self, "", partial(self.step_requested.emit, step), icon=shown, name=name)
            for step, shown, name in (
                (-1, "arrow-left", tr("Back (Alt+Left)")),
                (1, "arrow-right", tr("Forward (Alt+Right)")),
            )
        )
        self.place = plain_label(self, "small")
        self.place.setMinimumWidth(1)  # else its longest word is
        self.notice = plain_label(self, "warning")
        self.text = _PageText(self)
        self.text.setTabChangesFocus(True)
        self.text.setReadOnly(True)
        self.text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.image = ImageView(self)
        self._image_problem = plain_label(self, "muted")
        self.page = PlainLabel(self, tone="small")
        self._before, self._after = (
            tool_button(self, "", partial(self._turn, step), icon=shown, name=name)
            for step, shown, name in (
                (-1, "chevron-left", tr("Previous page (Ctrl+Page Up)")),
                (1, "chevron-right", tr("Next page (Ctrl+Page Down)")),
            )
        )
        self._beside = QWidget(self)
        self._split = QSplitter(Qt.Orientation.Horizontal, self)
        self._document = StoredDocument("", "", ())
        self._starts: list[int] = []  # of pages, in the units of Qt
        self._shown_page = 0
        self._follow = QTimer(self, singleShot=True, interval=_FOLLOW_MS)
        self._follow.timeout.connect(self._follow_text)
        self.text.verticalScrollBar().valueChanged.connect(lambda _: self._follow.start())
        self._lay_out()
        self._connect_keys()

    def _lay_out(self) -> None:
        turning = row_of(self._before, self.page, self._after, None)
        beside = (turning, self._image_problem, (self.image, 1))
        column_in(self._beside, *beside, margins=(0, 0, 0, 0), spacing=4)
        self._split.setChildrenCollapsible(False)
        for part in (self.text, self._beside):
            self._split.addWidget(part)
        buttons, (self.folder, self.copy, self.passage) = closing_buttons(
            self, tr("Show in folder"), tr("Copy the marked text"), tr("Show the marked text")
        )
        self.passage.clicked.connect(self._show_passage)
        self.copy.clicked.connect(self._copy_passage)
        self.folder.clicked.connect(self.folder_requested)
        head = row_of(self.back, self.forward, (self._heading, 1))
        column_in(self, head, self.place, self.notice, self.status, (self._split, 1), buttons)

    def begin(self, title: str, *, can_go_back: bool, can_go_on: bool) -> None:
        """Show a title until the document is read; whether there are others before and after it."""
        self._document, self._starts, self._shown_page = StoredDocument("", title, ()), [], 0
        self._show_title(title)
        self.text.setPlaceholderText(tr("Reading\u2026"))
        self.text.clear()
        self.text.setExtraSelections([])
        for each in (
            self.place, self.notice, self.status, self._beside, self.image, self._image_problem, self.passage,
            self.copy, self.folder,
        ):  # fmt: skip
            each.hide()
        for button, can_go in ((self.back, can_go_back), (self.forward, can_go_on)):
            button.setVisible(can_go_back or can_go_on)
            button.setEnabled(can_go)
        self._set_up_text(is_prose=False)
        self.text.setFocus()

    @property
    def position(self) -> int:
        """The place of the first character in view, in the units of Qt."""
        return self.text.cursorForPosition(QPoint(0, 0)).position()

    def show_document(
        self, document: StoredDocument, state: FileState | None, position: int | None = None
    ) -> None:
        """Show a document at a `position`, else at its passage, which is marked, or from its beginning.

        `state` is that of its file, None for a manual page, which has none.
        """
        self._document = document
        self._show_title(document.title)
        self._set_up_text(
            is_prose=state is not None and PurePath(document.source).suffix.lower() in _PROSE
        )
        is_pdf = PurePath(document.source).suffix.lower() == ".pdf"
        self.text.setPlainText(document.text)
        self._show_place(has_file=state is not None)
        notice = _FORMER if document.is_former else "" if state is None else _NOTICES[state]
        self.notice.setText(notice)
        self.notice.setVisible(bool(notice))
        self.folder.setVisible(state in (FileState.SAME, FileState.CHANGED))
        for each in (self.copy, self.passage):
            each.setVisible(document.place is not None)
        if state is FileState.SAME and is_pdf:
            self._begin_pages()  # before: it makes the text narrower
        self._show_passage()
        if position is not None:
            self._scroll_to(position)

    def show_image(self, image: QImage | None, problem: str) -> None:
        """Show the image of the page that was requested, and what is wrong with it or why there is none."""
        if image is not None:
            self.image.show_image(image)
        self._image_problem.setText(problem)
        self._image_problem.setVisible(bool(problem))
        self.image.setVisible(image is not None)

    def show_error(self, error: KnownError) -> None:
        """Show why there is no text."""
        super().show_error(error)
        self.text.setPlaceholderText("")

    # -- text

    def _show_title(self, title: str) -> None:
        self._heading.setText(title)
        self.setWindowTitle(title)
        self.text.setAccessibleName(title)

    def _set_up_text(self, *, is_prose: bool) -> None:
        font = QFont(QApplication.font())
        if not is_prose:
            font.setFamily(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family())
        self.text.setFont(font)

    def _show_place(self, *, has_file: bool) -> None:
        """Show headings and page of the passage, and the path of a file."""
        document, words = self._document, []
        if (found := document.passage) is not None:
            words += [found.heading] if found.heading else []
            words += [_page_text(found.page, document.pages)] if found.page else []
        words += [document.source] if has_file else []
        self.place.setText(_DOT.join(words))
        self.place.setVisible(bool(words))

    def _show_passage(self) -> None:
        """Mark the passage, and put the cursor at its beginning."""
        document = self._document
        if (found := document.passage) is None:
            return
        cursor = self.text.textCursor()
        cursor.setPosition(_offset(document.text, found.start + len(found.text.rstrip())))
        self.text.setTextCursor(cursor)  # so that all of it is in view
        mark = QTextEdit.ExtraSelection()
        mark.format.setBackground(QColor(current_theme().colors.highlight))
        start = _offset(document.text, found.start)
        cursor.setPosition(start, QTextCursor.MoveMode.KeepAnchor)
        mark.cursor = QTextCursor(cursor)
        self.text.setExtraSelections([mark])
        cursor.setPosition(start)
        self.text.setTextCursor(cursor)
        self.text.setFocus()
        self._show_page(found.page or self._shown_page)

    def _scroll_to(self, position: int) -> None:
        cursor = self.text.textCursor()
        cursor.movePosition(cursor.MoveOperation.End)
        self.text.setTextCursor(cursor)  # so that the position comes to the top
        cursor.setPosition(min(position, cursor.position()))
        self.text.setTextCursor(cursor)

    def _copy_passage(self) -> None:
        if (found := self._document.passage) is not None:
            QGuiApplication.clipboard().setText(found.text.strip())

    # -- pages

    def _begin_pages(self) -> None:
        """Show the image of the page that the text is at, and from now on that of the one it is moved to."""
        document = self._document
        at, page = 0, 0
        for each in document.chunks:
            while each.page is not None and page < each.page:
                self._starts.append(at)
                page += 1
            at += _offset(each.text, len(each.text))
        if not self._starts:
            return
        self._beside.show()
        self._split.setSizes([1, 1])
        self.image.setAccessibleName(tr("Image of the page"))
        found = document.passage
        self._show_page((found and found.page) or 1)

    def _turn(self, step: int) -> None:
        """Go to the next (1) or previous (-1) page."""
        page = self._shown_page + step
        if not 1 <= page <= len(self._starts):
            return
        self._scroll_to(self._starts[page - 1])
        self._show_page(page)

    def _follow_text(self) -> None:
        """Show the page in the middle of the text that is in view."""
        middle = self.text.cursorForPosition(QPoint(0, self.text.viewport().height() // 2))
        self._show_page(bisect_right(self._starts, middle.position()))

    def _show_page(self, page: int) -> None:
        self._follow.stop()
        if not self._starts:
            return
        self.page.setText(_page_text(page, self._document.pages))
        self._before.setEnabled(page > 1)
        self._after.setEnabled(page < len(self._starts))
        if page != self._shown_page:
            self._shown_page = page
            self.page_requested.emit(page)

    def _connect_keys(self) -> None:
        for key, slot in (
            (QKeySequence.StandardKey.Back, lambda: self.step_requested.emit(-1)),
            (QKeySequence.StandardKey.Forward, lambda: self.step_requested.emit(1)),
            ("Ctrl+PgUp", lambda: self._turn(-1)),
            ("Ctrl+PgDown", lambda: self._turn(1)),
        ):
            QShortcut(QKeySequence(key), self).activated.connect(slot)


class _PageText(QPlainTextEdit):
    """Text that stays where it is when its width changes, in which the base class moves it."""

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the paragraph at the top."""
        top = self.firstVisibleBlock()
        super().resizeEvent(event)
        self.verticalScrollBar().setValue(top.firstLineNumber())


def _page_text(page: int, pages: int | None) -> str:
    if pages is None:
        return tr("page {page}").format(page=format_number(page))
    return tr("page {page} of {pages}").format(page=format_number(page), pages=format_number(pages))


def _offset(text: str, characters: int) -> int:
    """Return the place of a character as Qt counts, in UTF-16 units."""
    return len(text[:characters].encode("utf-16-le", "replace")) // 2
