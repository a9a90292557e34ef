"""List of search results: groups that fold, keys, and a place that can be returned to."""

from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QListView, QWidget

from app.domain.results import SearchResponse, SearchResult
from app.domain.translation import tr
from ui.models.results import FoldRow, ResultGroup, ResultListModel
from ui.views.result_rows import ResultDelegate
from ui.widgets.controls import set_up_list_view


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
        """Select and open the best result."""
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
