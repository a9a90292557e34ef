"""Program that prints a smaller copy of an image, run by its path in a process of its own.

Arguments: the file, the longest edge in pixels, the most bytes of the copy, the limit of its memory in
bytes. It imports nothing of this program: decoders run on files of others.
"""

import sys

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, Qt
from PySide6.QtGui import QImage, QImageReader, QPainter

_QUALITIES = (88, 75, 60, 40)


def main(path: str, most_px: int, most_bytes: int, memory_bytes: int) -> int:
    """Print the upright first frame as PNG or JPEG, whichever is smaller; return 1 if it is none.

    An image with transparency stays PNG where that is small enough.
    """
    try:
        import resource  # not on Windows

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    except (ImportError, ValueError, OSError):
        pass  # Qt has a limit of its own, and there is one of time
    reader = QImageReader(path)
    reader.setDecideFormatFromContent(True)
    reader.setAutoTransform(True)
    size = reader.size()
    if size.isValid() and max(size.width(), size.height()) > 2 * most_px:
        size.scale(2 * most_px, 2 * most_px, Qt.AspectRatioMode.KeepAspectRatio)
        reader.setScaledSize(size)  # JPEG decodes less then
    image = reader.read()
    if image.isNull():
        return 1
    if max(image.width(), image.height()) > most_px:
        smooth = Qt.TransformationMode.SmoothTransformation
        keep = Qt.AspectRatioMode.KeepAspectRatio
        image = image.scaled(most_px, most_px, keep, smooth)
    copy = _encoded(image, most_bytes)
    sys.stdout.buffer.write(copy)
    return 0 if copy else 1


def _encoded(image: QImage, most_bytes: int) -> bytes:
    """Return the image within a number of bytes; b"" when that is impossible."""
    png = _saved(image, "PNG", -1)
    if image.hasAlphaChannel() and len(png) <= most_bytes:
        return png
    flat = QImage(image.size(), QImage.Format.Format_RGB32)
    flat.fill(Qt.GlobalColor.white)
    painter = QPainter(flat)
    painter.drawImage(0, 0, image)
    painter.end()
    photos = (_saved(flat, "JPEG", quality) for quality in _QUALITIES)
    photo = next((each for each in photos if len(each) <= most_bytes), b"")
    return png if len(png) <= (len(photo) or most_bytes) else photo


def _saved(image: QImage, kind: str, quality: int) -> bytes:
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, kind, quality)  # type: ignore[call-overload]
    return bytes(data.data())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:5])))
