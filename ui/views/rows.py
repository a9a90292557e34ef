"""Delegates that draw list rows: headings, conversations, facts and memories."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
)
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontInfo,
    QFontMetricsF,
    QIcon,
    QMouseEvent,
    QPainter,
    QPen,
    QTextLayout,
    QTextOption,
)
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.domain.conversations import Conversation
from app.storage.tables.facts import KnownFact
from app.storage.tables.memories import KnownMemory
from ui.icons import Ink, icon
from ui.models.conversations import ListRole
from ui.theme import Theme, current_theme

Index = QModelIndex | QPersistentModelIndex
AT_TOP_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop
_AT_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_AT_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_AT_FOOT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom
PAD_PX, MENU_PX = 10, 30
_DOT_PX = 2.5
GAP_PX = 3
_ICON_SHARE = 0.9  # of the height of a line
_LINES = 2  # of a snippet and of a fact
# Of lines below each other: letters of other fonts are higher than those of the text
_PITCH_EM = 1.4
_Known = KnownFact | KnownMemory


class _Style:
    """Fonts, metrics and colors of a theme, made once per theme: drawing a row takes 0.1 ms instead of 0.4.

    Each call into Qt may release the interpreter's lock to another thread, so a row makes few.
    """

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self.font, self.small = theme.ui_font(), theme.small_font()
        self.heading = theme.small_font()
        self.heading.setWeight(QFont.Weight.DemiBold)
        self.strong = theme.ui_font()
        self.strong.setWeight(QFont.Weight.DemiBold)
        self.metrics, self.small_metrics = QFontMetricsF(self.font), QFontMetricsF(self.small)
        self.strong_metrics = QFontMetricsF(self.strong)
        self.line_px = self.metrics.height()
        self.pitch_px, self.small_pitch_px = (
            _pitch(self.metrics, self.font),
            _pitch(self.small_metrics, self.small),
        )
        colors = theme.colors
        self.text, self.muted = QColor(colors.text), QColor(colors.muted)
        self.accent, self.chosen = QColor(colors.accent), QColor(colors.accent_soft)
        self.hovered = QColor(colors.code_background)
        self.row_size = QSize(0, round(self.line_px + 1.5 * PAD_PX))
        self.lock = icon("lock", Ink.PlaceholderText)


def _pitch(metrics: QFontMetricsF, font: QFont) -> float:
    return max(metrics.height(), _PITCH_EM * QFontInfo(font).pixelSize())


class RowDelegate(QStyledItemDelegate):
    """Draws conversations and headings of `GroupedListModel`s.

    Attributes:
        open_menu: Opens the menu of a row. A conversation under the mouse has a sign for it at its end.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._made = _Style(current_theme())
        self.open_menu: Callable[[Index], object] | None = None

    @property
    def _style(self) -> _Style:
        if self._made.theme is not current_theme():
            self._made = _Style(current_theme())
        return self._made

    # Qt overrides

    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        """Return a row's size, which is the same for all."""
        return self._style.row_size

    def updateEditorGeometry(
        self, editor: QWidget, option: QStyleOptionViewItem, _index: Index
    ) -> None:
        """Give the editor of a title the whole row."""
        editor.setGeometry(option.rect.adjusted(2, 1, -2, -1))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a row: its background, then its text."""
        area, value = QRectF(option.rect), index.data(ListRole.VALUE)
        if value is None:
            self._heading(painter, area, str(index.data()))
            return
        self._background(painter, area, option)
        if self.open_menu is not None and option.state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(QPen(self._style.muted, _DOT_PX, c=Qt.PenCapStyle.RoundCap))
            middle = QPointF(area.right() - MENU_PX / 2, area.center().y())
            painter.drawPoints([middle + QPointF(2 * at * _DOT_PX, 0) for at in (-1, 0, 1)])
            area.adjust(0, 0, PAD_PX - MENU_PX, 0)
        self._title(painter, area, value, str(index.data(ListRole.TRAILING) or ""))

    def editorEvent(
        self, event: QEvent, _model: object, option: QStyleOptionViewItem, index: Index
    ) -> bool:
        """Open the menu of a row whose sign for it is clicked."""
        is_click = event.type() is QEvent.Type.MouseButtonRelease
        x = event.position().x() if is_click and isinstance(event, QMouseEvent) else 0
        if self.open_menu is not None and x > option.rect.right() - MENU_PX:
            self.open_menu(index)
        return False

    def _heading(self, painter: QPainter, area: QRectF, words: str) -> None:
        painter.setFont(self._style.heading)
        painter.setPen(self._style.muted)
        painter.drawText(area.adjusted(PAD_PX, 0, -PAD_PX, -GAP_PX), _AT_FOOT, words)

    def _background(self, painter: QPainter, area: QRectF, option: QStyleOptionViewItem) -> None:
        state = option.state
        selected = bool(state & QStyle.StateFlag.State_Selected)
        if not (selected or state & QStyle.StateFlag.State_MouseOver):
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(self._style.accent)
        else:
            painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._style.chosen if selected else self._style.hovered)
        painter.drawRoundedRect(area.adjusted(2, 1, -2, -1), 6, 6)

    def _title(
        self, painter: QPainter, area: QRectF, conversation: Conversation, aside: str
    ) -> None:
        inner = area.adjusted(PAD_PX, 0, -PAD_PX, 0)
        metrics = self._style.metrics
        painter.setFont(self._style.font)
        if aside:
            painter.setPen(self._style.accent if len(aside) == 1 else self._style.muted)
            painter.drawText(inner, _AT_RIGHT, aside)
            inner.adjust(0, 0, -metrics.horizontalAdvance(aside) - PAD_PX, 0)
        if conversation.private:
            self._icon(painter, inner, self._style.lock)
        painter.setPen(self._style.text)
        self._line(painter, inner, conversation.title, metrics, _AT_LEFT)

    def _icon(self, painter: QPainter, area: QRectF, made: QIcon) -> None:
        """Draw an icon at the right end of an area, which gets narrower."""
        side = round(self._style.metrics.height() * _ICON_SHARE)
        area.adjust(0, 0, -side - PAD_PX, 0)
        at = QRect(round(area.right()) + PAD_PX, 0, side, side)
        at.moveTop(round(area.center().y() - side / 2))
        made.paint(painter, at)

    @staticmethod
    def _line(
        painter: QPainter,
        area: QRectF,
        text: str,
        metrics: QFontMetricsF | None = None,
        where: Qt.AlignmentFlag = AT_TOP_LEFT,
    ) -> None:
        """Draw a line, elided; `metrics` are those of the painter's font, if known."""
        metrics = metrics or QFontMetricsF(painter.font())
        line = text.replace("\n", " ")
        words = metrics.elidedText(line, Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(area, where, words)


class FactDelegate(RowDelegate):
    """Draws `KnownFact`s and `KnownMemory`s; headings as in the other lists."""

    # Qt overrides

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Return a row's size: the lines of a fact are counted, not measured."""
        if not isinstance(index.data(ListRole.VALUE), _Known):
            return super().sizeHint(option, index)
        return QSize(0, round((_LINES + 1) * self._style.pitch_px + 1.6 * PAD_PX))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a row: its background, its text, its second line."""
        known = index.data(ListRole.VALUE)
        if not isinstance(known, _Known):
            super().paint(painter, option, index)
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._background(painter, QRectF(option.rect), option)
        style, area = self._style, QRectF(option.rect).adjusted(PAD_PX, 0, -PAD_PX, 0)
        font, is_past = (
            QFont(style.font),
            isinstance(known, KnownFact) and bool(known.fact.valid_until),
        )
        font.setStrikeOut(is_past)
        lines = first_lines(str(index.data()), font, area.width())
        top = area.top() + (area.height() - (len(lines) + 1) * style.pitch_px) / 2
        painter.setFont(font)
        painter.setPen(style.muted if is_past else style.text)
        for number, line in enumerate((*lines, str(index.data(ListRole.SUBTITLE)))):
            if number == len(lines):
                painter.setFont(style.small)
                painter.setPen(style.muted)
            row = QRectF(area.left(), top + number * style.pitch_px, area.width(), style.pitch_px)
            self._line(painter, row, line)
        painter.restore()


def first_lines(text: str, font: QFont, width: float) -> list[str]:
    """Return the first lines of a text set in a width, the last one with all that follows."""
    layout, units = laid_out(text, font, width), text.encode("utf-16-le")  # as Qt counts
    starts = [2 * layout.lineAt(number).textStart() for number in range(layout.lineCount())]
    ends = [*starts[1:], len(units)]
    pairs = zip(starts, ends, strict=True)
    return [units[start:end].decode("utf-16-le").rstrip() for start, end in pairs]


def laid_out(
    text: str,
    font: QFont,
    width: float,
    formats: Sequence[QTextLayout.FormatRange] = (),
    lines: int = _LINES,
    pitch_px: float = 0.0,
) -> QTextLayout:
    """Return the first lines of a text, `pitch_px` below each other or, for 0, by their own heights."""
    layout = QTextLayout(text, font)
    layout.setTextOption(QTextOption(Qt.AlignmentFlag.AlignLeft))
    layout.setFormats(formats)
    layout.beginLayout()
    height = 0.0
    for _ in range(lines):
        row = layout.createLine()
        if not row.isValid():
            break
        row.setLineWidth(width)
        row.setPosition(QPointF(0, height))
        height += pitch_px or row.height()
    layout.endLayout()
    return layout
