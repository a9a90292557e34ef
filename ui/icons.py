"""Icons: Lucide's line drawings in the colors of the palette, at any size and resolution."""

from functools import cache
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QRect, QSize, Qt
from PySide6.QtGui import (
    QGuiApplication,
    QIcon,
    QIconEngine,
    QImageReader,
    QPainter,
    QPalette,
    QPixmap,
    QPixmapCache,
)
from PySide6.QtWidgets import QAbstractButton

RESOURCES = Path(__file__).resolve().parents[1] / "resources" / "icons"
_LUCIDE = RESOURCES / "lucide"
Ink = QPalette.ColorRole
_EM = 1.25  # an icon beside text, in multiples of the text size
FITTED = "fitted"  # the property of buttons whose icon has the size of their text
_GAP = 0.3  # between an icon and the text after it, in multiples of the icon's size


def icon(name: str, ink: Ink | str = Ink.ButtonText, *, filled: bool = False) -> QIcon:
    """Return an icon by its Lucide name; `ink` is the role of its color in the palette, or `#rrggbb`.

    It follows the theme without being set again, and is drawn in the disabled color where its
    button is disabled. A `filled` one is filled with its color.
    """
    return QIcon(_Engine(name, ink, filled=filled))


def set_icon(
    button: QAbstractButton, name: str, ink: Ink | str = Ink.ButtonText, *, filled: bool = False
) -> None:
    """Give a button an icon of the size of its text, apart from the text if there is one already."""
    fit_icon(button)
    button.setIcon(icon(name, ink, filled=filled))


def fit_icon(button: QAbstractButton) -> None:
    """Give the icon of a button the size of its text, and a gap before the text."""
    size = round(button.fontMetrics().height() * _EM / 1.2)
    gap = round(size * _GAP) if button.text() else 0
    button.setIconSize(QSize(size + gap, size))
    button.setProperty(FITTED, True)


def app_icon() -> QIcon:
    return QIcon(str(RESOURCES / "commonplace.svg"))


class _Engine(QIconEngine):
    """Draws an icon in the palette's current color, for the resolution of what it is drawn on."""

    def __init__(self, name: str, ink: Ink | str, *, filled: bool) -> None:
        super().__init__()
        self._name, self._ink, self._filled = name, ink, filled

    def _pixmap(self, size: QSize, mode: QIcon.Mode) -> QPixmap:
        disabled = mode is QIcon.Mode.Disabled
        group = QPalette.ColorGroup.Disabled if disabled else QPalette.ColorGroup.Normal
        ink = self._ink
        color = ink if isinstance(ink, str) else QGuiApplication.palette().color(group, ink).name()
        side = min(size.width(), size.height())
        key = f"icon {self._name} {color} {self._filled} {side}"
        pixmap = QPixmap()
        if not QPixmapCache.find(key, pixmap):
            pixmap = _drawn(self._name, color, side, filled=self._filled)
            QPixmapCache.insert(key, pixmap)
        return pixmap

    # Qt overrides

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, _state: QIcon.State) -> None:
        """Draw the icon in the middle of a rectangle."""
        ratio = painter.device().devicePixelRatio()
        side = min(rect.width(), rect.height())
        place = QRect(0, 0, side, side)
        place.moveCenter(rect.center())
        painter.drawPixmap(place, self._pixmap(QSize(side, side) * ratio, mode))

    def pixmap(self, size: QSize, mode: QIcon.Mode, _state: QIcon.State) -> QPixmap:
        """Return the icon in a size in device pixels, where text begins in a size wider than high."""
        drawn = self._pixmap(size, mode)
        if size.width() <= size.height():
            return drawn
        wide = QPixmap(size)
        wide.fill(Qt.GlobalColor.transparent)
        painter = QPainter(wide)
        rest = size.width() - drawn.width()
        painter.drawPixmap(rest if QGuiApplication.isRightToLeft() else 0, 0, drawn)
        painter.end()
        return wide

    def scaledPixmap(
        self, size: QSize, mode: QIcon.Mode, state: QIcon.State, scale: float
    ) -> QPixmap:
        """Return the icon in a size of the layout, whose units are `scale` device pixels."""
        pixmap = QPixmap(self.pixmap(size * scale, mode, state))
        pixmap.setDevicePixelRatio(scale)
        return pixmap

    def clone(self) -> QIconEngine:
        return _Engine(self._name, self._ink, filled=self._filled)


@cache
def _svg(name: str) -> str:
    return (_LUCIDE / f"{name}.svg").read_text(encoding="utf-8")


def _drawn(name: str, color: str, side_px: int, *, filled: bool) -> QPixmap:
    """Return a square pixmap of an icon; by an image reader, which saves importing QtSvg."""
    svg = _svg(name).replace("currentColor", color)
    if filled:
        svg = svg.replace('fill="none"', f'fill="{color}"', 1)
    buffer = QBuffer()
    buffer.setData(QByteArray(svg.encode()))
    buffer.open(QIODevice.OpenModeFlag.ReadOnly)
    reader = QImageReader(buffer, QByteArray(b"svg"))
    reader.setScaledSize(QSize(side_px, side_px))
    pixmap = QPixmap.fromImage(reader.read())
    if pixmap.isNull():
        pixmap = QPixmap(side_px, side_px)
        pixmap.fill(Qt.GlobalColor.transparent)
    return pixmap
