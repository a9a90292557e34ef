"""The search box: results as the user types, what opens when one is chosen, and its menu of filters.

Text search answers at once; the ranked answer by words and vectors replaces it when it is there.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from PySide6.QtCore import QPoint, QTimer

from app.domain.errors import IndexUnavailable, InvalidInput, KnownError
from app.domain.ids import ConversationId, ExchangeId, MessageId, passage_id_of
from app.domain.links import link_to
from app.domain.passages import DOCUMENT_KINDS, PassageKind
from app.domain.records.topics import Topic
from app.domain.results import SearchResponse, SearchResult
from app.domain.text import sentences
from app.domain.translation import format_percent, format_turn, tr
from app.index.query import finished_part, parse_query
from app.index.snippets import marks_in
from app.memory.search.coverage import EmbeddingCoverage
from app.memory.search.service import SearchService
from app.memory.search.vector_search import VectorSearch
from app.memory.topics.service import TopicService
from app.storage.tables.conversations import Conversations, FilterValues
from app.storage.tables.passages.queries import Passages
from ui.presenters.presenter import Navigation, Presenter, copy_link, show_menu
from ui.views.filter_menu import filter_menu
from ui.views.sidebar import Sidebar
from ui.widgets.banner import Banner
from ui.widgets.search_box import SearchBox
from ui.widgets.transcript.find import FindWords

_LIMIT = 20
_FAST_MS = 30.0  # a ranked answer this fast needs no text search before it
_GRACE_S = 0.04  # two answers within this time would flicker
_FINAL_AFTER_S = 0.4  # then Enter opens the best result of the text search
_UNKNOWN_MS = 100.0
_REPEAT_MS = 1_500
Outcome = SearchResponse | KnownError | None


class SearchPresenter(Presenter):
    """Searches as the user types; an answer that comes too late is not shown.

    `is_embedding` says whether the embedding pipeline is on. `mark` shows the words of the search in the
    conversation that is open, until it gets None.
    """

    _search_service: SearchService
    _passages: Passages
    _vectors: VectorSearch
    _is_embedding: Callable[[], bool]
    _sidebar: Sidebar
    _messages: Banner
    _navigation: Navigation
    _mark: Callable[[FindWords | None], object]

    def _set_up(self) -> None:
        self._ranked_ms = _UNKNOWN_MS
        self._repeat = QTimer(self._sidebar, singleShot=True, interval=_REPEAT_MS)
        self._repeat.timeout.connect(self._on_repeat_timeout)
        self._sidebar.query_changed.connect(self._on_query_changed)
        self._sidebar.result_list.result_chosen.connect(self._on_result_chosen)
        self._sidebar.result_list.menu_requested.connect(self._on_result_menu_requested)
        self._bridge.subscribe(lambda _: self._repeat.start(), "passages", "conversations")
        if query := self._sidebar.query:  # typed before the library was open
            self._on_query_changed(query)

    # -- searching

    def _on_query_changed(self, query: str) -> None:
        self._repeat.stop()
        if finished := finished_part(query):
            self._bridge.start("search", self._search(finished))
        elif not query.strip():
            self._bridge.cancel("search")
            self._mark(None)

    def _on_repeat_timeout(self) -> None:
        """Repeat a search whose answer was incomplete, or is out of date."""
        query = finished_part(self._sidebar.query)
        if query and self._sidebar.shows_results:
            self._bridge.start("search", self._search(query, text_first=False))

    async def _search(self, query: str, *, text_first: bool = True) -> None:
        search = self._search_service.search
        first: SearchResponse | None = None
        if text_first and self._ranked_ms >= _FAST_MS:
            outcome = await self._bridge.run_alone(
                "text search", lambda: search(query, limit=_LIMIT, by_meaning=False)
            )
            if not isinstance(outcome, SearchResponse):
                self._show_failure(outcome)
                return
            first = outcome
        ranked = asyncio.ensure_future(
            self._bridge.run_alone("ranked search", lambda: search(query, limit=_LIMIT))
        )
        try:
            if first is not None:
                await self._show_first(first, ranked)
            answer = await ranked
        finally:
            ranked.cancel()  # it leaves the queue
        if not isinstance(answer, SearchResponse):
            self._show_failure(answer)
            return
        if answer.by_meaning:
            self._ranked_ms = answer.took_ms
        self._sidebar.show_answer(answer)
        await self._show_completeness(answer)

    async def _show_first(self, answer: SearchResponse, ranked: "asyncio.Future[Outcome]") -> None:
        """Show the text search's answer unless the ranked one comes at once; final if it is late."""
        await asyncio.wait([ranked], timeout=_GRACE_S)
        if ranked.done():
            return
        if answer.results:
            self._sidebar.show_answer(answer, is_final=False)
        await asyncio.wait([ranked], timeout=_FINAL_AFTER_S)
        if ranked.done():
            return
        if answer.results:
            self._sidebar.show_answer(answer)
        else:
            self._sidebar.show_message(tr("No exact matches.\nSearching by meaning\u2026"))

    def _show_failure(self, error: KnownError | None) -> None:
        if error is None:
            return
        self._sidebar.show_note("")
        self._sidebar.show_message(f"{sentences(error.title)}\n{sentences(error.hint)}".strip())
        if isinstance(error, IndexUnavailable):
            self._repeat.start()

    async def _show_completeness(self, answer: SearchResponse) -> None:
        """Show what the answer leaves out; repeat the search if that will change by itself."""
        coverage = None
        if not answer.notice and not answer.is_list:
            coverage = await self._bridge.run(self._vectors.embedded)
        note, will_change = completeness_of(answer, coverage, is_embedding=self._is_embedding())
        self._sidebar.show_note(note)
        if will_change:
            self._repeat.start()

    # -- opening

    def _on_result_chosen(self, result: SearchResult) -> None:
        navigation = self._navigation
        self._mark_words()
        if result.kind in DOCUMENT_KINDS:
            navigation.page(result.place, result.conversation_title)
        elif result.kind is PassageKind.FACT and result.exchange_id is None:
            navigation.fact(result.passage_id)
        elif result.kind is PassageKind.MEMORY and result.exchange_id is None:
            navigation.memory(result.passage_id)
        elif result.conversation_id is None:
            return
        elif result.kind is PassageKind.CONVERSATION_SUMMARY:
            self._bridge.start("best turn", self._open_best_turn(result.conversation_id))
        else:
            navigation.turn(result.conversation_id, result.exchange_id, result.message_id)

    def _mark_words(self) -> None:
        """Mark the words of the search for as long as it is open."""
        try:
            query = parse_query(finished_part(self._sidebar.query))
        except InvalidInput:  # it is being typed
            return
        self._mark(None if query.is_list else partial(marks_in, query=query))

    async def _open_best_turn(self, conversation_id: ConversationId) -> None:
        """Show a conversation at the turn that matches the query best."""
        query = finished_part(self._sidebar.query)
        try:
            best = await self._bridge.run(lambda: self._best_turn(conversation_id, query))
        except KnownError:
            best = None
        self._navigation.turn(conversation_id, *(best or (None, None)))

    def _best_turn(
        self, conversation_id: ConversationId, query: str
    ) -> tuple[ExchangeId | None, MessageId | None] | None:
        words = parse_query(query).words
        parts = self._search_service.parts_ranked(words, [conversation_id]) if words else []
        places = self._passages.places({passage_id_of(each) for each in parts})
        for part in parts:
            place = places.get(passage_id_of(part))
            if place is not None and place.kind is PassageKind.TURN:
                return place.exchange_id, self._passages.messages_of([part]).get(part)
        return None

    def _on_result_menu_requested(self, result: SearchResult, position: QPoint) -> None:
        navigation = self._navigation
        conversation_id, exchange_id = result.conversation_id, result.exchange_id
        entries: list[tuple[str, Callable[[], object]]] = [
            (tr("Open"), lambda: self._on_result_chosen(result))
        ]
        if result.kind is PassageKind.FACT:
            entries.append((tr("Show in facts"), lambda: navigation.fact(result.passage_id)))
        if result.kind is PassageKind.MEMORY:
            entries.append(
                (tr("Show in saved memories"), lambda: navigation.memory(result.passage_id))
            )
        if conversation_id is not None and exchange_id is not None:
            turn = result.turn_number or 0
            link = link_to(conversation_id, turn, exchange_id, is_shown=result.is_shown)
            label, query = f"{result.conversation_title}, {format_turn(turn)}", self._sidebar.query
            entries += [
                (tr("Copy link to turn"), lambda: copy_link(link, self._messages)),
                (
                    tr("Why is this ranked here?\u2026"),
                    lambda: navigation.explain(exchange_id, label, query),
                ),
            ]
        show_menu(self._messages.window(), position, entries)


def completeness_of(
    answer: SearchResponse, coverage: EmbeddingCoverage | None, *, is_embedding: bool
) -> tuple[str, bool]:
    """Return what an answer leaves out, as text, "" for nothing, and whether that will change.

    `coverage` is None for a query without a vector.
    """
    if answer.covered_share < 1:
        share = format_percent(answer.covered_share)
        return tr("{share} of your history is searchable so far.").format(share=share), True
    if answer.notice:
        return tr("Text search only. {notice}").format(notice=answer.notice), False
    if coverage is None:
        return "", False
    if coverage.share >= 1:
        text = (
            ""
            if answer.by_meaning
            else tr("Search by words only: search by meaning is being loaded\u2026")
        )
        return text, bool(text)
    share = format_percent(coverage.share)
    if answer.by_meaning:
        ending = "" if is_embedding else tr(" Search by meaning is off.")
        return tr("{share} can be searched by meaning so far.{ending}").format(
            share=share, ending=ending
        ), False
    if not is_embedding:
        return tr("Search by words only: search by meaning is off ({share} read).").format(
            share=share
        ), False
    return tr("Search by words only: the search model is still reading ({share}).").format(
        share=share
    ), True


class FilterPresenter(Presenter):
    """Shows what there is to filter by when the user asks for it."""

    _conversations: Conversations
    _topics: TopicService
    _box: SearchBox

    def _set_up(self) -> None:
        self._box.filters_requested.connect(self._on_filters_requested)

    def _on_filters_requested(self) -> None:
        self._bridge.load(
            "filters",
            lambda: (self._conversations.filter_values(), self._topics.topics()),
            lambda found: self._show(*found),
        )

    def _show(self, values: FilterValues, topics: Sequence[Topic]) -> None:
        counted = [(each.name, each.conversations) for each in topics]
        menu = filter_menu(self._box, values, counted, datetime.now().astimezone().date())
        menu.aboutToHide.connect(menu.deleteLater)
        button = self._box.filter_button
        menu.popup(button.mapToGlobal(QPoint(0, button.height())))
