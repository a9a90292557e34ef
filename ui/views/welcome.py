"""What a new user sees: bring your past, look at a sample, choose a model, or just start."""

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from ui.widgets.plain_label import PlainLabel

_FIRST_WORDS = (
    "All you say to a model is kept here, on your own disk, and can be found again by what it was "
    "about. Start by bringing what you already have."
)
_LATER_WORDS = "Write below, or press Ctrl+K to find what was said before."
_CARD_PX = 620
_ROW_PX = 480  # narrower than that the buttons stand below each other


class Welcome(QScrollArea):
    """The first screen; it scrolls where there is no room for all of it.

    Signals:
        import_requested: The user wants to choose a file.
        files_dropped: Paths that were dropped (list of `Path`).
        sample_requested: The sample archive is wanted.
        model_requested: The providers page is wanted.
    """

    import_requested = Signal()
    files_dropped = Signal(list)
    sample_requested = Signal()
    model_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = PlainLabel(self, wordWrap=True)
        self._title.setProperty("tone", "title")
        self._words = PlainLabel(self, wordWrap=True)
        self._words.setProperty("tone", "muted")
        zone = DropZone(self)
        zone.files_dropped.connect(self.files_dropped)
        zone.choose_requested.connect(self.import_requested)
        self.drop_zone = zone
        self.sample = QPushButton("Look at a sample archive", self)
        self.sample.clicked.connect(self.sample_requested)
        self.more = QPushButton("Import conversations\u2026", self)
        self.more.clicked.connect(self.import_requested)
        self.model = QPushButton("Set up a model", self)
        self.model.clicked.connect(self.model_requested)
        self._others = others = QHBoxLayout()
        others.addWidget(self.more)
        others.addWidget(self.sample)
        others.addWidget(self.model)
        others.addStretch(1)
        self._hint = PlainLabel(
            "Or just type below: without a model, Recall answers from your own conversations, "
            "quoted and linked. Nothing leaves this computer unless you choose a provider.",
            self,
            wordWrap=True,
        )
        self._hint.setProperty("tone", "small")
        card = QVBoxLayout()
        card.setSpacing(16)
        for part in (self._title, self._words, zone):
            card.addWidget(part)
        card.addLayout(others)
        card.addWidget(self._hint)
        self._center(card)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.greet(is_newcomer=True)

    def greet(self, *, is_newcomer: bool) -> None:
        """Explain the program to who has no conversations yet; else be brief."""
        self._title.setText("A chat that remembers" if is_newcomer else "What is on your mind?")
        self._words.setText(_FIRST_WORDS if is_newcomer else _LATER_WORDS)
        for part in (self.drop_zone, self.sample, self._hint):
            part.setVisible(is_newcomer)
        self.more.setVisible(not is_newcomer)

    def _center(self, card: QVBoxLayout) -> None:
        holder = QWidget(self)
        holder.setLayout(card)
        holder.setMaximumWidth(_CARD_PX)
        page = QWidget(self)
        outer = QVBoxLayout(page)
        outer.addStretch(1)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(holder, 8)
        row.addStretch(1)
        outer.addLayout(row)
        outer.addStretch(2)
        self.setWidget(page)
        page.setAutoFillBackground(False)  # it stands on the window's ground

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the buttons where all of their words can be read."""
        super().resizeEvent(event)
        way = QBoxLayout.Direction
        is_wide = event.size().width() >= _ROW_PX
        self._others.setDirection(way.LeftToRight if is_wide else way.TopToBottom)


class DropZone(QFrame):
    """Takes files by drag and drop, or asks for them by a button.

    Signals:
        files_dropped: list of `Path`. choose_requested: The button was pressed.
    """

    files_dropped = Signal(list)
    choose_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("panel", "card")
        self.setAcceptDrops(True)
        self.setAccessibleName("Import conversations")
        heading = PlainLabel("Import your conversations", self)
        heading.setProperty("tone", "heading")
        words = PlainLabel(
            "Drop the export of ChatGPT or Claude here: the zip as you received it, its folder, "
            "or conversations.json.",
            self,
            wordWrap=True,
        )
        words.setProperty("tone", "muted")
        self.choose = QPushButton("Choose a file\u2026", self)
        self.choose.setProperty("kind", "primary")
        self.choose.clicked.connect(self.choose_requested)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 18)
        column.setSpacing(10)
        column.addWidget(heading)
        column.addWidget(words)
        column.addWidget(self.choose, 0, Qt.AlignmentFlag.AlignLeft)

    # Qt overrides

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take files, nothing else."""
        if local_files(event):
            event.acceptProposedAction()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        """Nothing was dropped."""
        event.accept()

    def dropEvent(self, event: QDropEvent) -> None:
        """Hand the files on."""
        if files := local_files(event):
            event.acceptProposedAction()
            self.files_dropped.emit(files)


def local_files(event: QDropEvent) -> list[Path]:
    """Return the local files a drop carries."""
    return [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
