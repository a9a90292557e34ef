"""How a row of the sidebar is drawn: headings, titles, and results with their marks."""

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QPainter,
    QTextCharFormat,
    QTextLayout,
    QTextOption,
)
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.domain.conversations import Conversation
from app.domain.passages import SearchResult
from ui.models.conversations import ListRole, aside_of
from ui.models.results import origin_words, relevance_words, title_words
from ui.theme import Theme

Index = QModelIndex | QPersistentModelIndex
_AT_TOP_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop
_AT_TOP_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop
_AT_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_AT_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_AT_FOOT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom
_PAD_PX = 10
_GAP_PX = 3
_SNIPPET_LINES = 2
_FILLED_SHARE = 0.9  # of the lines, since words are not broken
_BEFORE_MARK_CHARS = 12  # shown where a snippet is cut


class _Look:
    """Fonts, measures and colours of a theme, made once: a row is drawn in 0.1 ms, not in 0.4.

    Each call into Qt may hand the interpreter's lock to another thread, so a row makes few of them.
    """

    def __init__(self, theme: Theme) -> None:
        self.font, self.small = theme.ui_font(), theme.small_font()
        self.heading = theme.small_font()
        self.heading.setWeight(QFont.Weight.DemiBold)
        self.strong = theme.ui_font()
        self.strong.setWeight(QFont.Weight.DemiBold)
        self.metrics, self.small_metrics = QFontMetricsF(self.font), QFontMetricsF(self.small)
        self.strong_metrics = QFontMetricsF(self.strong)
        self.line_px = self.metrics.height()
        colours = theme.colours
        self.text, self.muted = QColor(colours.text), QColor(colours.muted)
        self.accent, self.chosen = QColor(colours.accent), QColor(colours.accent_soft)
        self.hovered = QColor(colours.code_background)
        self.row_size = QSize(0, round(self.line_px + 1.5 * _PAD_PX))


class RowDelegate(QStyledItemDelegate):
    """Draws the rows of `GroupedListModel`s in the theme it was given last."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Draw in another theme from now on."""
        self._theme, self._look = theme, _Look(theme)

    # Qt overrides

    def sizeHint(self, _option: QStyleOptionViewItem, index: Index) -> QSize:
        """Return a row's size: a result is as high as its lines, everything else is of one height."""
        value = index.data(ListRole.VALUE)
        if isinstance(value, SearchResult):
            lines = 1 + bool(value.user_question) + _SNIPPET_LINES
            return QSize(0, round(lines * self._look.line_px + 2 * _PAD_PX))
        return self._look.row_size

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a row: its ground, then its words."""
        area, value = QRectF(option.rect), index.data(ListRole.VALUE)
        if value is None:
            self._heading(painter, area, str(index.data()))
            return
        self._ground(painter, area, option)
        if isinstance(value, SearchResult):
            painter.save()
            self._result(painter, area, value)
            painter.restore()
        else:
            self._title(painter, area, value)

    def _heading(self, painter: QPainter, area: QRectF, words: str) -> None:
        painter.setFont(self._look.heading)
        painter.setPen(self._look.muted)
        painter.drawText(area.adjusted(_PAD_PX, 0, -_PAD_PX, -_GAP_PX), _AT_FOOT, words)

    def _ground(self, painter: QPainter, area: QRectF, option: QStyleOptionViewItem) -> None:
        state = option.state
        selected = bool(state & QStyle.StateFlag.State_Selected)
        if not (selected or state & QStyle.StateFlag.State_MouseOver):
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(self._look.accent)
        else:
            painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._look.chosen if selected else self._look.hovered)
        painter.drawRoundedRect(area.adjusted(2, 1, -2, -1), 6, 6)

    def _title(self, painter: QPainter, area: QRectF, conversation: Conversation) -> None:
        inner = area.adjusted(_PAD_PX, 0, -_PAD_PX, 0)
        metrics = self._look.metrics
        painter.setFont(self._look.font)
        if aside := aside_of(conversation):
            painter.setPen(self._look.muted)
            painter.drawText(inner, _AT_RIGHT, aside)
            inner.adjust(0, 0, -metrics.horizontalAdvance(aside) - _PAD_PX, 0)
        painter.setPen(self._look.text)
        self._line(painter, inner, conversation.title, metrics, _AT_LEFT)

    def _result(self, painter: QPainter, area: QRectF, result: SearchResult) -> None:
        look = self._look
        inner = area.adjusted(_PAD_PX, _PAD_PX, -_PAD_PX, -_PAD_PX)
        aside = relevance_words(result)
        painter.setFont(look.small)
        painter.setPen(look.muted if result.is_weak else look.accent)
        painter.drawText(inner, _AT_TOP_RIGHT, aside)
        width = look.small_metrics.horizontalAdvance(aside) + _PAD_PX
        painter.setFont(look.font if result.is_weak else look.strong)
        words = look.muted if result.is_weak else look.text
        painter.setPen(words)
        metrics = look.metrics if result.is_weak else look.strong_metrics
        self._line(painter, inner.adjusted(0, 0, -width, 0), title_words(result), metrics)
        inner.setTop(inner.top() + look.line_px + _GAP_PX)
        painter.setFont(look.small)
        if result.user_question:
            painter.setPen(words)
            self._line(painter, inner, result.user_question, look.small_metrics)
            inner.setTop(inner.top() + look.line_px)
        self._snippet(painter, inner, f"{origin_words(result)} \N{EN DASH} ", result)

    def _snippet(self, painter: QPainter, area: QRectF, lead: str, result: SearchResult) -> None:
        """Draw at most two lines of the snippet, with the matching words marked."""
        letter_px = self._look.small_metrics.averageCharWidth()
        room = _FILLED_SHARE * _SNIPPET_LINES * area.width() / letter_px
        snippet, marks = with_first_mark(result, round(room) - len(lead))
        text = lead + snippet
        layout = QTextLayout(text, self._look.small)
        layout.setTextOption(QTextOption(Qt.AlignmentFlag.AlignLeft))
        layout.setFormats(
            [_marked(text, len(lead) + start, len(lead) + end, self._theme) for start, end in marks]
        )
        layout.beginLayout()
        height = 0.0
        for _ in range(_SNIPPET_LINES):
            row = layout.createLine()
            if not row.isValid():
                break
            row.setLineWidth(area.width())
            row.setPosition(QPointF(0, height))
            height += row.height()
        layout.endLayout()
        painter.setPen(self._look.muted)
        painter.setClipRect(area)
        layout.draw(painter, area.topLeft())

    @staticmethod
    def _line(
        painter: QPainter,
        area: QRectF,
        text: str,
        metrics: QFontMetricsF | None = None,
        where: Qt.AlignmentFlag = _AT_TOP_LEFT,
    ) -> None:
        """Draw a line, elided; `metrics` are those of the painter's font, for who has them."""
        metrics = metrics or QFontMetricsF(painter.font())
        line = text.replace("\n", " ")
        words = metrics.elidedText(line, Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(area, where, words)


def with_first_mark(
    result: SearchResult, room_chars: int
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return a result's snippet with its marks, cut at its front if the first would not be seen."""
    text, marks = result.snippet.replace("\n", " "), result.marks
    if not marks or marks[0][1] <= room_chars:
        return text, marks
    start = text.rfind(" ", 0, max(0, marks[0][0] - _BEFORE_MARK_CHARS)) + 1
    if start == 0:
        start = text.rfind(" ", 0, marks[0][0]) + 1
    moved = tuple((1 + first - start, 1 + last - start) for first, last in marks)
    return f"\u2026{text[start:]}", moved


def _marked(text: str, start: int, end: int, theme: Theme) -> QTextLayout.FormatRange:
    """Return the format of a match; Qt counts UTF-16 units, Python characters."""
    mark = QTextLayout.FormatRange()
    mark.start = _utf16(text[:start])
    mark.length = _utf16(text[start:end])
    look = QTextCharFormat()
    look.setBackground(QColor(theme.colours.mark))
    look.setForeground(QColor(theme.colours.text))
    mark.format = look
    return mark


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
