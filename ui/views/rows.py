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

from app.domain.passages import SearchResult
from ui.models.conversations import ListRole
from ui.models.results import origin_words, relevance_words, title_words
from ui.theme import Theme

Index = QModelIndex | QPersistentModelIndex
_PAD_PX = 10
_GAP_PX = 3
_SNIPPET_LINES = 2
_FILLED_SHARE = 0.9  # of the lines, since words are not broken
_BEFORE_MARK_CHARS = 12  # shown where a snippet is cut


class RowDelegate(QStyledItemDelegate):
    """Draws the rows of `GroupedListModel`s in the theme it was given last."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def set_theme(self, theme: Theme) -> None:
        """Draw in another theme from now on."""
        self._theme = theme

    # Qt overrides

    def sizeHint(self, _option: QStyleOptionViewItem, index: Index) -> QSize:
        """Return a row's size: a result is as high as its lines, everything else is of one height."""
        line = QFontMetricsF(self._theme.ui_font()).height()
        value = index.data(ListRole.VALUE)
        if isinstance(value, SearchResult):
            lines = 1 + bool(value.user_question) + _SNIPPET_LINES
            return QSize(0, round(lines * line + 2 * _PAD_PX))
        return QSize(0, round(line + 1.5 * _PAD_PX))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a row: its ground, then its words."""
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(option.rect)
        if index.data(ListRole.HEADING):
            self._heading(painter, area, index)
        else:
            self._ground(painter, area, option)
            value = index.data(ListRole.VALUE)
            if isinstance(value, SearchResult):
                self._result(painter, area, value)
            else:
                self._title(painter, area, index)
        painter.restore()

    def _heading(self, painter: QPainter, area: QRectF, index: Index) -> None:
        font = self._theme.small_font()
        font.setWeight(QFont.Weight.DemiBold)
        painter.setFont(font)
        painter.setPen(QColor(self._theme.colours.muted))
        inner = area.adjusted(_PAD_PX, 0, -_PAD_PX, -_GAP_PX)
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom
        painter.drawText(inner, flags, str(index.data()))

    def _ground(self, painter: QPainter, area: QRectF, option: QStyleOptionViewItem) -> None:
        colours = self._theme.colours
        state = option.state
        selected = bool(state & QStyle.StateFlag.State_Selected)
        focused = bool(state & QStyle.StateFlag.State_HasFocus)
        if selected or state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(QColor(colours.accent) if focused else Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colours.accent_soft if selected else colours.code_background))
            painter.drawRoundedRect(area.adjusted(2, 1, -2, -1), 6, 6)

    def _title(self, painter: QPainter, area: QRectF, index: Index) -> None:
        inner = area.adjusted(_PAD_PX, 0, -_PAD_PX, 0)
        painter.setFont(self._theme.ui_font())
        aside = str(index.data(ListRole.ASIDE) or "")
        if aside:
            painter.setPen(QColor(self._theme.colours.muted))
            flags = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(inner, flags, aside)
            inner.adjust(0, 0, -QFontMetricsF(painter.font()).horizontalAdvance(aside) - _PAD_PX, 0)
        painter.setPen(QColor(self._theme.colours.text))
        self._line(painter, inner, str(index.data()), Qt.AlignmentFlag.AlignVCenter)

    def _result(self, painter: QPainter, area: QRectF, result: SearchResult) -> None:
        colours = self._theme.colours
        inner = area.adjusted(_PAD_PX, _PAD_PX, -_PAD_PX, -_PAD_PX)
        line = QFontMetricsF(self._theme.ui_font()).height()
        aside = relevance_words(result)
        painter.setFont(self._theme.small_font())
        painter.setPen(QColor(colours.muted if result.is_weak else colours.accent))
        painter.drawText(inner, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop, aside)
        width = QFontMetricsF(painter.font()).horizontalAdvance(aside) + _PAD_PX
        title = self._theme.ui_font()
        title.setWeight(QFont.Weight.Normal if result.is_weak else QFont.Weight.DemiBold)
        painter.setFont(title)
        words = QColor(colours.muted if result.is_weak else colours.text)
        painter.setPen(words)
        self._line(painter, inner.adjusted(0, 0, -width, 0), title_words(result))
        inner.setTop(inner.top() + line + _GAP_PX)
        painter.setFont(self._theme.small_font())
        if result.user_question:
            painter.setPen(words)
            self._line(painter, inner, result.user_question)
            inner.setTop(inner.top() + line)
        self._snippet(painter, inner, f"{origin_words(result)} \N{EN DASH} ", result)

    def _snippet(self, painter: QPainter, area: QRectF, lead: str, result: SearchResult) -> None:
        """Draw at most two lines of the snippet, with the matching words marked."""
        font = self._theme.small_font()
        room = (
            _FILLED_SHARE * _SNIPPET_LINES * area.width() / QFontMetricsF(font).averageCharWidth()
        )
        snippet, marks = with_first_mark(result, round(room) - len(lead))
        text = lead + snippet
        layout = QTextLayout(text, font)
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
        painter.setPen(QColor(self._theme.colours.muted))
        painter.setClipRect(area)
        layout.draw(painter, area.topLeft())

    @staticmethod
    def _line(
        painter: QPainter,
        area: QRectF,
        text: str,
        vertical: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignTop,
    ) -> None:
        words = QFontMetricsF(painter.font()).elidedText(
            text.replace("\n", " "), Qt.TextElideMode.ElideRight, area.width()
        )
        painter.drawText(area, Qt.AlignmentFlag.AlignLeft | vertical, words)


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
