"""Thumbnails of images in messages, sent or not."""

from collections import OrderedDict

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QImage

THUMBNAIL_PX = 480
_KEPT = 60  # 0.7 MB each


class Thumbnails(QObject):
    """The thumbnails that were shown last.

    Signals:
        wanted: A content hash that `put` should be called for.
        loaded: A content hash whose thumbnail is here now.
    """

    wanted = Signal(str)
    loaded = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._images: OrderedDict[str, QImage] = OrderedDict()
        self._requested: set[str] = set()

    def image(self, content_hash: str) -> QImage | None:
        """Return a thumbnail; None while it is being loaded and for one that cannot be."""
        found = self._images.get(content_hash)
        if found is not None:
            self._images.move_to_end(content_hash)
            return None if found.isNull() else found
        if content_hash not in self._requested:
            self._requested.add(content_hash)
            self.wanted.emit(content_hash)
        return None

    def put(self, content_hash: str, image: QImage) -> None:
        """Keep a thumbnail; a null image is one that cannot be loaded."""
        self._requested.discard(content_hash)
        self._images[content_hash] = image
        while len(self._images) > _KEPT:
            self._images.popitem(last=False)
        self.loaded.emit(content_hash)
