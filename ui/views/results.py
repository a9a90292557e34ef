"""Search results: the list, and how conversations, turns and folds are drawn in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QKeyEvent,
    QPainter,
    QTextCharFormat,
    QTextLayout,
)
from PySide6.QtWidgets import QListView, QStyleOptionViewItem, QWidget

from app.domain.results import SearchResponse, SearchResult
from app.domain.translation import tr
from ui.icons import Ink, icon
from ui.models.conversations import ListRole, source_icon
from ui.models.results import FoldRow, ResultGroup, ResultListModel, lead_text, origin_text
from ui.rendering.plain_text import slice_of
from ui.theme import current_theme
from ui.views.rows import GAP_PX, PAD_PX, Index, RowDelegate, laid_out
from ui.widgets.controls import set_up_list_view

_Marks = Sequence[tuple[int, int]]
_INDENT_PX = 8
_EDGE_PX = 6  # above and below a result
_LINES = 2  # of a snippet
_SHORT_CHARS = 28  # a snippet that fits into one line of any sidebar
_FILLED_SHARE = 0.9  # of the lines, since words are not broken
_BEFORE_MARK_CHARS = 12  # shown where a snippet is cut
_AT_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_AT_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class ResultDelegate(RowDelegate):
    """Draws the rows of a `ResultListModel`."""

    # Qt overrides

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Return a row's size: a result's depends on its lines, which are counted, not measured."""
        value = index.data(ListRole.VALUE)
        if not isinstance(value, SearchResult):
            return super().sizeHint(option, index)
        style = self._style
        small = (_snippet_lines(value) + 1) * style.small_pitch_px
        lead = style.pitch_px if lead_text(value)[0] else 0
        return QSize(0, round(lead + small + 2 * _EDGE_PX + GAP_PX))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a row: its background, then its text."""
        value = index.data(ListRole.VALUE)
        area, aside = QRectF(option.rect), str(index.data(ListRole.TRAILING) or "")
        if not isinstance(value, SearchResult | ResultGroup | FoldRow):
            super().paint(painter, option, index)
            return
        painter.save()
        painter.setClipRect(area)
        self._background(painter, area, option)
        if isinstance(value, SearchResult):
            self._result(painter, area, value, aside)
        else:
            self._name(painter, area, value, aside)
        painter.restore()

    def _name(
        self, painter: QPainter, area: QRectF, row: ResultGroup | FoldRow, aside: str
    ) -> None:
        """Draw the title of a conversation with where it is from, or the text of a fold."""
        style, inner = self._style, area.adjusted(PAD_PX, 0, -PAD_PX, 0)
        painter.setFont(style.small)
        if aside:
            painter.setPen(style.muted)
            painter.drawText(inner, _AT_RIGHT, aside)
            inner.adjust(0, 0, -style.small_metrics.horizontalAdvance(aside) - PAD_PX, 0)
        if isinstance(row, ResultGroup) and (name := source_icon(row.best.source)):
            self._icon(painter, inner, icon(name, Ink.PlaceholderText))
        if isinstance(row, FoldRow):
            painter.setPen(style.accent)
            inner.adjust(_INDENT_PX, 0, 0, 0)
            self._line(painter, inner, row.title, style.small_metrics, _AT_LEFT)
            return
        weak = row.best.is_weak
        painter.setPen(style.muted if weak else style.text)
        metrics = style.metrics if weak else style.strong_metrics
        font = style.font if weak else style.strong
        inner.setTop(inner.center().y() - metrics.height() / 2)
        self._marked_line(painter, inner, row.title, row.best.title_marks, font, metrics)

    def _result(self, painter: QPainter, area: QRectF, result: SearchResult, aside: str) -> None:
        style = self._style
        inner = area.adjusted(PAD_PX + _INDENT_PX, _EDGE_PX, -PAD_PX, -_EDGE_PX)
        lead, marks = lead_text(result)
        if lead:
            painter.setPen(style.muted if result.is_weak else style.text)
            self._marked_line(painter, inner, lead, marks, style.font, style.metrics)
            inner.setTop(inner.top() + style.pitch_px)
        lines = _snippet_lines(result)
        room = _FILLED_SHARE * lines * inner.width()
        measured = style.small_metrics.horizontalAdvance
        text, found = with_first_mark(result, lambda shown: measured(shown) <= room)
        painter.setPen(style.muted if lead or result.is_weak else style.text)
        self._draw(painter, inner, text, style.small, found, lines)
        inner.setTop(inner.top() + lines * style.small_pitch_px + GAP_PX)
        painter.setFont(style.small)
        painter.setPen(style.muted if result.is_weak else style.accent)
        painter.drawText(inner, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop, aside)
        painter.setPen(style.muted)
        width = style.small_metrics.horizontalAdvance(aside) + PAD_PX
        self._line(
            painter, inner.adjusted(0, 0, -width, 0), origin_text(result), style.small_metrics
        )

    def _marked_line(
        self,
        painter: QPainter,
        area: QRectF,
        text: str,
        marks: _Marks,
        font: QFont,
        metrics: QFontMetricsF,
    ) -> None:
        """Draw one line, elided, with marks."""
        line = metrics.elidedText(text, Qt.TextElideMode.ElideRight, area.width())
        kept = len(line) if line == text else len(line) - 1
        inside = [(start, min(end, kept)) for start, end in marks if start < kept]
        self._draw(painter, area, line, font, inside, 1)

    def _draw(
        self, painter: QPainter, area: QRectF, text: str, font: QFont, marks: _Marks, lines: int
    ) -> None:
        formats = [self._mark(text, start, end) for start, end in marks]
        text = fitted(text, font, area.width(), lines)
        layout = laid_out(text, font, area.width(), formats, lines, self._style.small_pitch_px)
        layout.draw(painter, QPointF(area.topLeft()))

    def _mark(self, text: str, start: int, end: int) -> QTextLayout.FormatRange:
        """Return the format of a match; Qt counts UTF-16 units, Python characters."""
        colors, mark = current_theme().colors, QTextLayout.FormatRange()
        mark.start, mark.length = _utf16(text[:start]), _utf16(text[start:end])
        text_format = QTextCharFormat()
        text_format.setBackground(QColor(colors.mark))
        text_format.setForeground(QColor(colors.text))
        mark.format = text_format
        return mark


def _snippet_lines(result: SearchResult) -> int:
    return 1 if len(result.snippet) <= _SHORT_CHARS else _LINES


def with_first_mark(result: SearchResult, fits: Callable[[str], bool]) -> tuple[str, _Marks]:
    """Return a result's snippet with its marks, cut at the front if the first mark would not be visible.

    Cut before a word, or anywhere in a script without spaces.
    """
    text, marks = result.snippet.replace("\n", " "), result.marks
    if not marks or fits(text[: marks[0][1]]):
        return text, marks
    first = marks[0][0]
    earliest = max(0, first - 2 * _BEFORE_MARK_CHARS)
    start = text.rfind(" ", earliest, max(earliest, first - _BEFORE_MARK_CHARS)) + 1
    start = start or text.rfind(" ", earliest, first) + 1 or max(0, first - _BEFORE_MARK_CHARS)
    moved = tuple((1 + first - start, 1 + last - start) for first, last in marks)
    return f"\u2026{text[start:]}", moved


def fitted(text: str, font: QFont, width: float, lines: int) -> str:
    """Return what of a text fits into lines of a width; a text that is cut ends in an ellipsis."""
    layout, units = laid_out(text, font, width, lines=lines), _utf16(text)
    start = layout.lineAt(layout.lineCount() - 1).textStart()
    rest = slice_of(text, start, units)
    elided = QFontMetricsF(font).elidedText(rest, Qt.TextElideMode.ElideRight, width)
    return slice_of(text, 0, start) + elided


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@dataclass(frozen=True, slots=True)
class ResultsPlace:
    """Where the results of a query stood: the selected row by its identity, and the scroll position."""

    query: str
    selected: object = None
    scroll_px: int = 0


class ResultList(QListView):
    """Shows the answer to a query.

    Right and Left expand and collapse a conversation; Enter or a click opens a result, or the best one
    of a conversation.

    Signals:
        result_chosen: A `SearchResult` to open.
        menu_requested: (SearchResult, global position) for a menu about a result.

    Attributes:
        results: The model.
        answered: The query of the answer that is shown.
    """

    result_chosen = Signal(object)
    menu_requested = Signal(object, QPoint)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.results = ResultListModel(self)
        self._delegate = ResultDelegate(self)
        set_up_list_view(self, self.results, self._delegate, tr("Search results"))
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._on_menu_requested)
        self.clicked.connect(self.choose)
        self.activated.connect(self.choose)
        self.answered = ""
        self._wanted: ResultsPlace | None = None

    @property
    def place(self) -> ResultsPlace:
        """What is shown, to return to."""
        selected = self.results.value_at(self.currentIndex())
        identity = None if selected is None else self.results.identity(selected)
        return ResultsPlace(self.answered, identity, self.verticalScrollBar().value())

    def show_answer(self, answer: SearchResponse) -> bool:
        """Show results; return whether any is more than just the nearest.

        Another answer to the same query keeps the selection and the scroll position.
        """
        is_same = answer.query == self.answered and self.results.rowCount() > 0
        wanted, place = self._wanted, self.place if is_same else ResultsPlace(answer.query)
        self.answered = answer.query
        if wanted is not None and wanted.query == answer.query:
            place = wanted
        is_found = self.results.show_results(
            answer.results, is_list=answer.is_list, is_same_query=is_same
        )
        self._go_to(place)
        return is_found

    def return_to(self, place: ResultsPlace) -> None:
        """Select and scroll as before, now or once the query of that place is answered."""
        self._wanted = place
        if place.query == self.answered:
            self._go_to(place)

    def choose(self, index: QModelIndex) -> None:
        """Open a result, the best one of a conversation, or a fold."""
        row = self.results.value_at(index)
        if isinstance(row, FoldRow):
            self._fold(row.conversation_id, expanded=row.hidden > 0)
        elif isinstance(row, ResultGroup):
            self.result_chosen.emit(row.best)
        elif isinstance(row, SearchResult):
            self.result_chosen.emit(row)

    def choose_best(self) -> None:
        for row in range(self.results.rowCount()):
            index = self.results.index(row)
            if isinstance(self.results.value_at(index), SearchResult):
                self.setCurrentIndex(index)
                self.choose(index)
                return

    def _go_to(self, place: ResultsPlace) -> None:
        row = self.results.row_of(place.selected) if place.selected is not None else QModelIndex()
        self.setCurrentIndex(row)
        self.doItemsLayout()
        self.verticalScrollBar().setValue(place.scroll_px)

    def _fold(self, conversation_id: int | None, *, expanded: bool) -> None:
        """Expand or collapse a conversation; the selection stays, or moves to its fold."""
        scrolled = self.verticalScrollBar().value()
        before = self.place.selected
        self.results.set_expanded(conversation_id, expanded)
        self.doItemsLayout()
        self.verticalScrollBar().setValue(scrolled)
        for wanted in (before, ("fold", conversation_id)):
            if (index := self.results.row_of(wanted)).isValid():
                self.setCurrentIndex(index)
                return

    def _on_menu_requested(self, position: QPoint) -> None:
        row = self.results.value_at(self.indexAt(position))
        result = row.best if isinstance(row, ResultGroup) else row
        if isinstance(result, SearchResult):
            self.menu_requested.emit(result, self.viewport().mapToGlobal(position))

    # Qt overrides

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Expand or collapse the conversation of a row with Right and Left."""
        steps = {Qt.Key.Key_Right: True, Qt.Key.Key_Left: False}
        expanded = steps.get(Qt.Key(event.key()))
        row = self.results.value_at(self.currentIndex())
        if expanded is None or row is None:
            super().keyPressEvent(event)
            return
        result = row.best if isinstance(row, ResultGroup) else row
        if isinstance(result, SearchResult | FoldRow):
            self._fold(result.conversation_id, expanded=expanded)
