"""The chip of one file of an unsent message: thumbnail, name, size, and a button to remove it."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.domain.attachments import TEXT_MAX_CHARS, hashes_of
from app.domain.conversations import File, Image
from app.domain.translation import format_number, format_size, tr
from ui.widgets.controls import filled, tool_button
from ui.widgets.plain_label import PlainLabel
from ui.widgets.thumbnails import Thumbnails

ICON_PX = 36
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
        self._icon.setFixedSize(ICON_PX, ICON_PX)
        self._icon.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._name = PlainLabel("", self)
        shown = self._name.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, _NAME_PX)
        self._name.setText(shown)
        self._detail = PlainLabel(tr("Reading\u2026"), self, tone="small")
        self.button = tool_button(
            self, "", self.remove_requested, icon="x", tip=tr("Remove this file from the message"),
            name=tr("Remove {name}").format(name=name),
        )  # fmt: skip
        self.button.setAutoRaise(True)
        texts = filled(QVBoxLayout(), self._name, self._detail, spacing=0)
        parts = (self._icon, texts, self.button)
        filled(QHBoxLayout(self), *parts, margins=(6, 4, 4, 4), spacing=8)
        self.setAccessibleName(tr("Attached file {name}, being read").format(name=name))
        thumbnails.loaded.connect(self._on_thumbnails_loaded)
        self._icon.hide()

    def show_file(self, file: File) -> None:
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
                small = image.scaled(QSize(ICON_PX, ICON_PX), keep, smooth)
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
