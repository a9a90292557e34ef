"""The files of an unsent message: a row of chips with thumbnail, name, size and a button to remove each."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QScrollArea,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.domain.attachments import TEXT_MAX_CHARS, hashes_of
from app.domain.conversations import File, Image
from app.domain.formatting import format_size
from app.domain.translation import format_number, tr
from ui.icons import set_icon
from ui.widgets.plain_label import PlainLabel
from ui.widgets.thumbnails import Thumbnails

_ICON_PX = 36
_NAME_PX = 180


class FileChip(QFrame):
    """One file; `file` is None while it is being read.

    Signals:
        remove_requested: Its button was pressed.
    """

    remove_requested = Signal()

    def __init__(self, name: str, thumbnails: Thumbnails, parent: QWidget) -> None:
        super().__init__(parent)
        self.file: File | None = None
        self._thumbnails = thumbnails
        self.setProperty("panel", "card")
        self._icon = PlainLabel("", self)
        self._icon.setFixedSize(_ICON_PX, _ICON_PX)
        self._icon.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._name = PlainLabel("", self)
        shown = self._name.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, _NAME_PX)
        self._name.setText(shown)
        self._detail = PlainLabel(tr("Reading\u2026"), self, tone="small")
        self.button = QToolButton(self)
        set_icon(self.button, "x")
        self.button.setAutoRaise(True)
        self.button.setToolTip(tr("Remove this file from the message"))
        self.button.setAccessibleName(tr("Remove {name}").format(name=name))
        self.button.clicked.connect(self.remove_requested)
        texts = QVBoxLayout()
        texts.setSpacing(0)
        texts.addWidget(self._name)
        texts.addWidget(self._detail)
        line = QHBoxLayout(self)
        line.setContentsMargins(6, 4, 4, 4)
        line.setSpacing(8)
        for part in (self._icon, texts, self.button):
            line.addLayout(part) if isinstance(part, QVBoxLayout) else line.addWidget(part)
        self.setAccessibleName(tr("Attached file {name}, being read").format(name=name))
        thumbnails.loaded.connect(self._on_thumbnails_loaded)
        self._icon.hide()

    def show_file(self, file: File) -> None:
        """Show a file that was read."""
        self.file = file
        detail = detail_of(file)
        self._detail.setText(detail)
        is_image = isinstance(file, Image)
        said = (
            tr("Attached image {name}, {detail}")
            if is_image
            else tr("Attached file {name}, {detail}")
        )
        self.setAccessibleName(said.format(name=file.name, detail=detail))
        self._show_thumbnail()

    def _show_thumbnail(self) -> None:
        if isinstance(self.file, Image) and self.file.content_hash is not None:
            self._icon.show()
            image = self._thumbnails.image(self.file.content_hash)
            if image is not None:
                smooth = Qt.TransformationMode.SmoothTransformation
                keep = Qt.AspectRatioMode.KeepAspectRatio
                small = image.scaled(QSize(_ICON_PX, _ICON_PX), keep, smooth)
                self._icon.setPixmap(QPixmap.fromImage(small))

    def _on_thumbnails_loaded(self, content_hash: str) -> None:
        if self.file is not None and content_hash in hashes_of([self.file]):
            self._show_thumbnail()


def detail_of(file: File) -> str:
    """Return the size of a file in pixels and bytes, and what models do not get of it."""
    parts = [] if file.size_bytes is None else [format_size(file.size_bytes)]
    if isinstance(file, Image):
        if file.width_px:
            parts.insert(0, f"{file.width_px} \N{MULTIPLICATION SIGN} {file.height_px}")
    elif not file.text.strip():
        parts.append(tr("no text: only its name is sent"))
    elif len(file.text) >= TEXT_MAX_CHARS:
        parts.append(
            tr("the first {count} characters are sent").format(count=format_number(TEXT_MAX_CHARS))
        )
    return "  \N{MIDDLE DOT}  ".join(parts)


class FileRow(QScrollArea):
    """Chips side by side, which scroll when there are many; hidden without any.

    Signals:
        changed: A file was added or removed, or is ready.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.thumbnails = Thumbnails(self)
        self._chips: dict[int, FileChip] = {}
        self._last_key = 0
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(tr("Attached files"))
        holder = QWidget(self)
        holder.setAutoFillBackground(False)
        self._line = QHBoxLayout(holder)
        self._line.setContentsMargins(0, 0, 0, 0)
        self._line.addStretch(1)
        self.setWidget(holder)
        self.viewport().setAutoFillBackground(False)
        self.hide()

    @property
    def files(self) -> tuple[File, ...]:
        """The files that are ready, in order."""
        return tuple(chip.file for chip in self._chips.values() if chip.file is not None)

    @property
    def is_reading(self) -> bool:
        """Whether a file is not ready yet."""
        return any(chip.file is None for chip in self._chips.values())

    @property
    def count(self) -> int:
        """The number of files, with those being read."""
        return len(self._chips)

    def add(self, name: str, file: File | None = None) -> int:
        """Add a file that is being read, or is ready; return the key of its chip."""
        self._last_key += 1
        key = self._last_key
        chip = FileChip(name, self.thumbnails, self)
        chip.remove_requested.connect(lambda: self._on_chip_remove_requested(key))
        last = next(reversed(self._chips.values()), None)
        if (before := self.focusProxy() if last is None else last.button) is not None:
            QWidget.setTabOrder(before, chip.button)
        self._chips[key] = chip
        self._line.insertWidget(self._line.count() - 1, chip)
        if file is not None:
            chip.show_file(file)
        self.setVisible(True)
        self.updateGeometry()
        self.changed.emit()
        return key

    def show_file(self, key: int, file: File) -> bool:
        """Show that a file is ready; return False when it was removed meanwhile."""
        chip = self._chips.get(key)
        if chip is not None:
            chip.show_file(file)
            self.changed.emit()
        return chip is not None

    def remove(self, key: int) -> None:
        """Remove a file."""
        chip = self._chips.pop(key, None)
        if chip is not None:
            self._line.removeWidget(chip)
            chip.hide()
            chip.deleteLater()
            self.setVisible(bool(self._chips))
            self.changed.emit()

    def show_files(self, files: tuple[File, ...]) -> None:
        """Replace all files."""
        for key in tuple(self._chips):
            self.remove(key)
        for file in files:
            self.add(file.name, file)

    def _on_chip_remove_requested(self, key: int) -> None:
        keys = list(self._chips)
        following = keys[keys.index(key) + 1 :] or keys[: keys.index(key)][-1:]
        self.remove(key)
        target = self._chips[following[0]].button if following else self.focusProxy()
        if target is not None:
            target.setFocus(Qt.FocusReason.OtherFocusReason)

    # Qt overrides

    def sizeHint(self) -> QSize:
        """Return the height of a chip, with room for the scroll bar."""
        inner = self.widget()
        height = inner.sizeHint().height() if inner is not None else _ICON_PX
        bar = self.horizontalScrollBar().sizeHint().height()
        return QSize(super().sizeHint().width(), height + bar)

    def minimumSizeHint(self) -> QSize:
        """Return the height of a chip; any width will do."""
        return QSize(80, self.sizeHint().height())
