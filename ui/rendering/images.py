"""Loading of attached images for the screen; blocking, on a worker thread."""

from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QSize, Qt
from PySide6.QtGui import QImage, QImageReader

from app.domain.errors import InvalidInput

_PIXELS_MAX = 64_000_000  # 256 MB, Qt's own limit; larger ones are scaled while they are read


def load_image(path: Path, most_px: int | None = None) -> QImage:
    """Return the upright first frame of an image file, at most so large; raises InvalidInput."""
    reader = QImageReader(str(path))
    reader.setDecideFormatFromContent(True)
    reader.setAutoTransform(True)
    size = reader.size()
    if most_px is None and size.isValid() and size.width() * size.height() > _PIXELS_MAX:
        most_px = int(_PIXELS_MAX**0.5)
    if most_px is not None and size.isValid() and max(size.width(), size.height()) > most_px:
        reader.setScaledSize(_fitting(size, most_px))
    image = reader.read()
    if image.isNull():
        raise InvalidInput("The image cannot be shown", "It is damaged or too large.")
    if most_px is not None and max(image.width(), image.height()) > most_px:
        smooth = Qt.TransformationMode.SmoothTransformation
        image = image.scaled(_fitting(image.size(), most_px), mode=smooth)
    return image


def png_of(image: QImage) -> bytes:
    """Return an image as PNG; takes 0.1 s for a screen."""
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # type: ignore[call-overload]
    return bytes(data.data())


def _fitting(size: QSize, most_px: int) -> QSize:
    return size.scaled(most_px, most_px, Qt.AspectRatioMode.KeepAspectRatio)
