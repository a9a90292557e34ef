"""The welcome page, the tour of the window, and what dropped files will do."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from app.domain.translation import tr, trn
from ui.widgets.controls import button, column_in, filled, row_of, stack_if_narrow
from ui.widgets.on_screen import ReportsShown, announce
from ui.widgets.plain_label import PlainLabel, plain_label

_NEWCOMER_TEXT = tr(
    "Your conversations with models are stored on your own disk, and you can find them again by what "
    "they were about. Start by importing the ones you already have."
)
_NO_MODEL_TEXT = tr(
    "Or just type below. Without a model, Recall answers with linked quotes from your own "
    "conversations. Nothing leaves this computer unless you choose a provider."
)
_MODEL_TEXT = tr(
    "Or just type below. Messages, and what memory adds to them, go to the model that you chose."
)
_LATER_TEXT = tr("Write a message below, or search your conversations at the left.")
_EXPORTS = frozenset((".zip", ".json", ".jsonl", ""))  # "" is a folder's
_MARGIN_PX = 6
_WIDTH_PX, _GAP_PX, _FRAME_PX = 320, 12, 3


class Welcome(ReportsShown, QScrollArea):
    """The welcome page; it scrolls in a small window.

    Signals:
        import_requested: Choose a file.
        sample_requested: Import the sample archive.
        model_requested: Show the providers page.
        server_requested: Set up the local server that is offered.
        found_requested: Import the exports that are offered.

    Attributes:
        drop_zone: What takes files. is_newcomer: Whether it greets somebody without conversations.
    """

    import_requested = Signal()
    sample_requested = Signal()
    model_requested = Signal()
    server_requested = Signal()
    found_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = plain_label(self, "title", selectable=False)
        self._text = plain_label(self, "muted", selectable=False)
        zone = DropZone(self)
        zone.choose_requested.connect(self.import_requested)
        self.drop_zone = zone
        self.sample = button(self, tr("Open a sample archive"), self.sample_requested)
        self.more = button(self, tr("Import conversations\u2026"), self.import_requested)
        self.model = button(self, tr("Set up a model"), self.model_requested)
        self._others = row_of(self.more, self.sample, self.model, None)
        self._hint = plain_label(self, "small", selectable=False)
        self.show_setup(has_model=False)
        self.server = button(self, "", self.server_requested)
        self.sessions = button(self, "", self._on_sessions_clicked, kind="quiet")
        offers = QWidget(self)
        offers.setMinimumHeight(2 * self.server.sizeHint().height())  # nothing moves when one comes
        column = column_in(
            offers, self.server, self.sessions, None, margins=(0, 0, 0, 0), spacing=6
        )
        for each in (self.server, self.sessions):
            column.setAlignment(each, Qt.AlignmentFlag.AlignLeft)
            each.hide()
        self._show_offer: Callable[[], object] = lambda: None
        self.found = button(zone, "", self.found_requested)
        self.found.hide()
        zone.row.insertWidget(1, self.found)
        parts = (self._title, self._text, zone, self._others, self._hint, offers)
        self._page = page = QWidget(self)
        card = filled(QVBoxLayout(), *parts, spacing=16)
        filled(QVBoxLayout(page), None, card, margins=(0, 8, 0, 8)).addStretch(2)
        self.setWidget(page)
        page.setAutoFillBackground(False)  # it has the window's background
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.greet(is_newcomer=True)
        page.hide()  # until it is known whom it greets

    def greet(self, *, is_newcomer: bool) -> None:
        """Show the page: explain the program to a newcomer, else be brief."""
        self._page.show()
        self.is_newcomer = is_newcomer
        if not is_newcomer:
            self.offer_exports("")
        self._title.setText(
            tr("A chat that remembers") if is_newcomer else tr("What is on your mind?")
        )
        self._text.setText(_NEWCOMER_TEXT if is_newcomer else _LATER_TEXT)
        for part in (self.drop_zone, self.sample, self._hint):
            part.setVisible(is_newcomer)
        self.more.setVisible(not is_newcomer)

    def show_setup(self, *, has_model: bool) -> None:
        """Offer to set up a model, or say that there is one."""
        self.model.setVisible(not has_model)
        self._hint.setText(_MODEL_TEXT if has_model else _NO_MODEL_TEXT)

    def offer_server(self, text: str) -> None:
        """Offer a model server that runs on this computer; "" offers none."""
        self.server.setText(text)
        self.server.setVisible(bool(text))

    def offer_sessions(
        self, text: str, show: Callable[[], object], _dismiss: Callable[[], object]
    ) -> bool:
        """Offer what `show` explains, unless the page is hidden; return whether it was offered."""
        if self.isVisible():
            self._show_offer = show
            self.sessions.setText(text)
            self.sessions.show()
        return self.isVisible()

    def offer_exports(self, text: str, files: str = "") -> None:
        """Offer to import exports that were found, `files`; "" offers none."""
        self.found.setText(text)
        self.found.setToolTip(files)
        self.found.setAccessibleDescription(files)
        self.found.setVisible(bool(text))

    def set_side(self, side_px: int) -> None:
        """Leave this much free at the left and the right."""
        self.setViewportMargins(side_px, 0, side_px, 0)

    def _on_sessions_clicked(self) -> None:
        self.sessions.hide()
        self._show_offer()

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Stack the buttons in a narrow window."""
        super().resizeEvent(event)
        stack_if_narrow(self._others, event.size().width())


class DropZone(QFrame):
    """Accepts dropped files, and has a button to choose them.

    Signals:
        files_dropped: list of `Path`. choose_requested: The button was pressed.
    """

    files_dropped = Signal(list)
    choose_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("panel", "card")
        self.setAcceptDrops(True)
        self.setAccessibleName(tr("Import conversations"))
        heading = plain_label(self, "heading", tr("Import your conversations"), selectable=False)
        words = plain_label(self, "muted", selectable=False)
        words.setText(
            tr(
                "Drop an export of ChatGPT, Claude, Gemini or another program here: the zip as you "
                "received it, its folder, or a file of it."
            )
        )
        self.choose = button(self, tr("Choose a file\u2026"), self.choose_requested, kind="primary")
        column = column_in(self, heading, words, margins=(20, 18, 20, 18))
        self.row = row_of(self.choose, None)
        column.addLayout(self.row)

    # Qt overrides

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept files only."""
        if local_files(event):
            event.acceptProposedAction()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        """Accept that nothing was dropped."""
        event.accept()

    def dropEvent(self, event: QDropEvent) -> None:
        if files := local_files(event):
            event.acceptProposedAction()
            self.files_dropped.emit(files)


def local_files(event: QDropEvent) -> list[Path]:
    return [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]


def looks_like_export(path: Path) -> bool:
    return path.suffix.casefold() in _EXPORTS


def drop_text(paths: Sequence[Path], *, can_attach: bool = True) -> str:
    """Return what dropping files will do, by their names; the content decides once they are dropped."""
    exports = sum(map(looks_like_export, paths))
    if exports == len(paths):
        return tr(
            "Drop to import conversations, to attach files, or to add a folder to your documents"
        )
    if not can_attach:
        return tr("Files cannot be attached to a conversation in the trash.")
    files = trn("{count} file", "{count} files", len(paths) - exports)
    return tr("Drop to attach {files}").format(files=files) + (
        tr(" and to import the export") if exports else ""
    )


class DropHint(QFrame):
    """Covers a widget while files are dragged over the window."""

    def __init__(self, covered: QWidget) -> None:
        super().__init__(covered)
        self.setProperty("panel", "drop")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._text = PlainLabel("", self, tone="heading")
        self._text.setAlignment(Qt.AlignmentFlag.AlignCenter)
        QVBoxLayout(self).addWidget(self._text)
        covered.installEventFilter(self)
        self._covered = covered
        self.hide()

    @property
    def text(self) -> str:
        return self._text.text()

    def show_for(self, paths: Sequence[Path], *, can_attach: bool) -> None:
        """Say what dropping files will do."""
        self._text.setText(drop_text(paths, can_attach=can_attach))
        self._cover()
        self.show()
        self.raise_()

    def _cover(self) -> None:
        margin = _MARGIN_PX
        self.setGeometry(self._covered.rect().adjusted(margin, margin, -margin, -margin))

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the size of what it covers."""
        if event.type() == QEvent.Type.Resize:
            self._cover()
        return super().eventFilter(watched, event)


class TourCard(QFrame):
    """Shows one stop at a time, inside a window; Esc skips the rest.

    Signals:
        next_requested: Show the next stop. skip_requested: End the tour.
    """

    next_requested = Signal()
    skip_requested = Signal()

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.setProperty("panel", "float")
        self.setAccessibleName(tr("Tour"))
        self._window = window
        self._target: QWidget | None = None
        self._settled = QTimer(self, singleShot=True, interval=0)
        self._settled.timeout.connect(self._place)
        self._frame = QFrame(window)
        self._frame.setProperty("panel", "frame")
        self._frame.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._title = plain_label(self, "heading", selectable=False)
        self._text = plain_label(self, selectable=False)
        self._count = plain_label(self, "small", selectable=False)
        self._skip = button(self, tr("Skip the tour"), self.skip_requested, kind="quiet")
        self.next = button(self, tr("Next"), self.next_requested, kind="primary")
        buttons = row_of((self._count, 1), self._skip, self.next)
        filled(QVBoxLayout(self), self._title, self._text, buttons, margins=(14, 12, 10, 10))
        self.setFixedWidth(_WIDTH_PX)
        window.installEventFilter(self)
        self.hide()
        self._frame.hide()

    def show_stop(self, target: QWidget, title: str, text: str, number: int, count: int) -> None:
        """Show stop `number`, from 1, of `count`, about a part of the window."""
        for each in self._parts():
            each.removeEventFilter(self)
        self._target = target
        for each in self._parts():
            each.installEventFilter(self)
        self._title.setText(title)
        self._text.setText(text)
        self._count.setText(tr("{number} of {count}").format(number=number, count=count))
        self.next.setText(tr("Done") if number == count else tr("Next"))
        self._skip.setVisible(number < count)
        self.show()
        self._frame.show()
        self._place()
        self._settled.start()
        self.next.setFocus()
        announce(self, f"{title}. {text}")

    def end(self) -> None:
        """Remove the card and the frame."""
        for each in (self, self._frame):
            each.hide()
            each.deleteLater()

    def _parts(self) -> Iterator[QWidget]:
        """Yield the part shown and what it is in, whose moves move it."""
        part = self._target
        while part is not None and part is not self._window:
            yield part
            part = part.parentWidget()

    def _place(self) -> None:
        """Stand beside the part: right, left, above or below it, where there is room."""
        if self._target is None:
            return
        window = self._window
        room = window.rect().adjusted(_GAP_PX, _GAP_PX, -_GAP_PX, -_GAP_PX)
        part = QRect(self._target.mapTo(window, QPoint(0, 0)), self._target.size())
        self._frame.setGeometry(part.adjusted(-_FRAME_PX, -_FRAME_PX, _FRAME_PX, _FRAME_PX))
        self.setFixedHeight(self.heightForWidth(_WIDTH_PX))
        own = QRect(QPoint(0, 0), self.size())
        level = min(max(part.top(), room.top()), room.bottom() - own.height())
        along = min(max(part.left(), room.left()), room.right() - own.width())
        places = (
            QPoint(part.right() + _GAP_PX, level),
            QPoint(part.left() - own.width() - _GAP_PX, level),
            QPoint(along, part.top() - own.height() - _GAP_PX),
            QPoint(along, part.bottom() + _GAP_PX),
        )
        fitting = (each for each in places if room.contains(own.translated(each)))
        self.move(next(fitting, room.center() - own.center()))
        self._frame.raise_()
        self.raise_()

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the part and the window once their layout has settled."""
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Move) and self.isVisible():
            self._settled.start()
        return super().eventFilter(watched, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Skip the rest on Esc."""
        if event.key() == Qt.Key.Key_Escape:
            self.skip_requested.emit()
        else:
            super().keyPressEvent(event)
