"""The search box: what is typed becomes results, a result becomes a turn on screen.

Words answer at once; the answer by words and meaning takes their place as soon as it is there.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, QPoint, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu

from app.bootstrap import Services
from app.domain.errors import IndexUnavailable, KnownError
from app.domain.ids import ConversationId, ExchangeId, MessageId, passage_of
from app.domain.links import link_to
from app.domain.passages import PassageKind, SearchAnswer, SearchResult
from app.index.query import parse_query
from app.memory.overview import Embedded
from ui.bridge import Bridge
from ui.controllers.chatting import ChatController
from ui.controllers.landing import land_on_message
from ui.views.main_window import MainWindow
from ui.widgets.transcript.view import TranscriptView

_LIMIT = 20
_AT_ONCE_MS = 30.0  # so fast, words need not answer first
_GRACE_S = 0.04  # two answers one right after the other would flicker
_PATIENCE_S = 0.4  # then Enter opens what words found
_UNKNOWN_MS = 100.0
_ASK_AGAIN_MS = 1_500

Explain = Callable[[ExchangeId, str, str], None]
OpenFact = Callable[[int], object]
OpenPage = Callable[[str, str], None]
Outcome = SearchAnswer | KnownError | None


class SearchController(QObject):
    """Asks as the user types; an answer that comes too late is not shown.

    `explain` is given an exchange, what it is called and a question: why is it not found?
    `open_page` is given what a manual page is called and its title, `open_fact` and `open_memory` the
    id of a fact or a saved text that no conversation said.
    """

    def __init__(
        self,
        services: Services,
        bridge: Bridge,
        window: MainWindow,
        chat: ChatController,
        explain: Explain,
        open_page: OpenPage,
        open_fact: OpenFact,
        open_memory: OpenFact,
    ) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._window = window
        self._sidebar = window.sidebar
        self._chat = chat
        self._explain = explain
        self._open_page = open_page
        self._open_fact = open_fact
        self._open_memory = open_memory
        transcript = window.chat.transcript
        assert isinstance(transcript, TranscriptView)
        self._transcript = transcript
        self._by_words = _OneAtATime(bridge, "search by words")
        self._by_meaning = _OneAtATime(bridge, "search by meaning")
        self._meaning_ms = _UNKNOWN_MS
        self._again = QTimer(self, singleShot=True, interval=_ASK_AGAIN_MS)
        self._again.timeout.connect(self._on_again_timeout)
        self._sidebar.query_changed.connect(self._on_query_changed)
        self._sidebar.result_chosen.connect(self._on_result_chosen)
        self._sidebar.result_menu_requested.connect(self._on_result_menu_requested)

    # -- asking

    def _on_query_changed(self, words: str) -> None:
        self._again.stop()
        if words.strip():
            self._bridge.start("search", self._search(words))
        else:
            self._bridge.cancel("search")

    def _on_again_timeout(self) -> None:
        """Ask once more while the answer was not all there is to know."""
        if (words := self._sidebar.query).strip() and self._sidebar.shows_results:
            self._bridge.start("search", self._search(words, first_by_words=False))

    async def _search(self, words: str, *, first_by_words: bool = True) -> None:
        search = self._services.search.search
        first: SearchAnswer | None = None
        if first_by_words and self._meaning_ms >= _AT_ONCE_MS:
            outcome = await self._by_words.outcome(
                lambda: search(words, limit=_LIMIT, by_meaning=False)
            )
            if not isinstance(outcome, SearchAnswer):
                self._show_failure(outcome)
                return
            first = outcome
        joining = asyncio.ensure_future(
            self._by_meaning.outcome(lambda: search(words, limit=_LIMIT))
        )
        try:
            if first is not None:
                await self._show_first(first, joining)
            answer = await joining
        finally:
            joining.cancel()  # it gives up its place in the queue
        if not isinstance(answer, SearchAnswer):
            self._show_failure(answer)
            return
        if answer.by_meaning:
            self._meaning_ms = answer.took_ms
        self._sidebar.show_answer(answer)
        await self._show_state(answer)

    async def _show_first(self, answer: SearchAnswer, joining: "asyncio.Future[Outcome]") -> None:
        """Show what words found unless the whole answer comes at once; make do if it is late."""
        await asyncio.wait([joining], timeout=_GRACE_S)
        if joining.done():
            return
        if answer.results:
            self._sidebar.show_answer(answer, is_final=False)
        await asyncio.wait([joining], timeout=_PATIENCE_S)
        if joining.done():
            return
        if answer.results:
            self._sidebar.show_answer(answer)
        else:
            self._sidebar.show_message("Nothing says these words.\nLooking by meaning\u2026")

    def _show_failure(self, error: KnownError | None) -> None:
        if error is None:
            return
        self._sidebar.show_note("")
        self._sidebar.show_message(f"{error.title}.\n{error.hint}".strip())
        if isinstance(error, IndexUnavailable):
            self._again.start()

    async def _show_state(self, answer: SearchAnswer) -> None:
        """Say what the answer could not know yet; if that changes by itself, ask again soon."""
        embedded = None
        if not answer.notice and not parse_query(answer.query).is_list:
            embedded = await self._bridge.run(self._services.meaning.embedded)
        is_on = self._services.settings.flag("embedding_pipeline_enabled")
        state = state_of(answer, embedded, is_embedding=is_on)
        self._sidebar.show_note(state.words)
        if state.will_change:
            self._again.start()

    # -- opening

    def _on_result_chosen(self, result: SearchResult) -> None:
        if result.kind is PassageKind.MAN_PAGE:
            self._open_page(result.source, result.conversation_title)
        if result.kind is PassageKind.FACT and result.exchange_id is None:
            self._open_fact(result.passage_id)
            return
        if result.kind is PassageKind.MEMORY and result.exchange_id is None:
            self._open_memory(result.passage_id)
            return
        if result.conversation_id is None:
            return
        if result.kind is PassageKind.CONVERSATION_SUMMARY:
            self._bridge.start("first match", self._open_first_match(result.conversation_id))
        else:
            self.open_turn(result.conversation_id, result.exchange_id, result.message_id)

    def open_turn(
        self,
        conversation_id: ConversationId,
        exchange_id: ExchangeId | None,
        message_id: MessageId | None,
    ) -> None:
        """Show a conversation at an exchange, centred on one of its messages and highlighted."""
        opening = self._chat.open(conversation_id, exchange_id)
        if exchange_id is not None and message_id is not None:
            self._bridge.start("landing", self._land(opening, exchange_id, message_id))

    async def _land(
        self, opening: "asyncio.Task[None]", exchange_id: ExchangeId, message_id: MessageId
    ) -> None:
        await asyncio.wait([opening])
        if (turn := self._chat.turn_of(exchange_id)) is not None and not opening.cancelled():
            await land_on_message(self._transcript, turn, message_id)

    async def _open_first_match(self, conversation_id: ConversationId) -> None:
        """Show a conversation at the turn that answers what is asked best."""
        query = self._sidebar.query
        try:
            best = await self._bridge.run(lambda: self._best_turn(conversation_id, query))
        except KnownError:
            best = None
        self.open_turn(conversation_id, *(best or (None, None)))

    def _best_turn(
        self, conversation_id: ConversationId, query: str
    ) -> tuple[ExchangeId | None, MessageId | None] | None:
        words = parse_query(query).words
        parts = self._services.search.parts_ranked(words, [conversation_id]) if words else []
        places = self._services.passages.places({passage_of(each) for each in parts})
        for part in parts:
            place = places.get(passage_of(part))
            if place is not None and place.kind is PassageKind.TURN:
                return place.exchange_id, self._services.passages.messages_of([part]).get(part)
        return None

    def _on_result_menu_requested(self, result: SearchResult, position: QPoint) -> None:
        menu = QMenu(self._window)
        menu.addAction("Open").triggered.connect(lambda: self._on_result_chosen(result))
        if result.kind is PassageKind.FACT:
            menu.addAction("Show among the facts").triggered.connect(
                lambda: self._open_fact(result.passage_id)
            )
        if result.kind is PassageKind.MEMORY:
            menu.addAction("Show among the saved memories").triggered.connect(
                lambda: self._open_memory(result.passage_id)
            )
        conversation_id, exchange_id = result.conversation_id, result.exchange_id
        if conversation_id is not None and exchange_id is not None:
            turn = result.turn_number or 0
            link = link_to(conversation_id, turn, exchange_id, is_shown=result.is_shown)
            menu.addAction("Copy link to turn").triggered.connect(lambda: self._copy_link(link))
            called, query = f"{result.conversation_title}, turn {turn}", self._sidebar.query
            menu.addAction("Why does it stand here?\u2026").triggered.connect(
                lambda: self._explain(exchange_id, called, query)
            )
        menu.popup(position)
        menu.aboutToHide.connect(menu.deleteLater)

    def _copy_link(self, link: str) -> None:
        QGuiApplication.clipboard().setText(link)
        self._window.chat.banner.tell(f"{link} was copied.", brief=True)


@dataclass(frozen=True, slots=True)
class State:
    """What an answer could not know, in `words` for the line under the box ("": it knew all)."""

    words: str = ""
    will_change: bool = False


def state_of(answer: SearchAnswer, embedded: Embedded | None, *, is_embedding: bool) -> State:
    """Return what to say of an answer; `embedded` None when meaning plays no part in the query."""
    if answer.covered_share < 1:
        return State(f"Searching {_percent(answer.covered_share)} of your history so far.", True)
    if answer.notice:
        return State(f"By words only. {answer.notice}")
    if embedded is None:
        return State()
    if embedded.share >= 1:
        words = "" if answer.by_meaning else "By words only: meaning is being made ready\u2026"
        return State(words, bool(words))
    share = _percent(embedded.share)
    if answer.by_meaning:
        ending = "" if is_embedding else ", and the embedding pipeline is off"
        return State(f"By meaning so far: {share} is embedded{ending}.")
    if not is_embedding:
        return State(f"By words only: the embedding pipeline is off ({share} is embedded).")
    return State(f"By words only: the rest is being embedded ({share}).", will_change=True)


def _percent(share: float) -> str:
    """Return a share below 1, which is never said to be all of it."""
    return f"{min(0.99, share):.0%}"


class _OneAtATime:
    """Runs one call on the pool at a time: who asks next waits, or gives up and another waits.

    So a slow embedder holds one thread, however fast the user types.
    """

    def __init__(self, bridge: Bridge, name: str) -> None:
        self._bridge = bridge
        self._name = name
        self._task: asyncio.Task[Outcome] | None = None

    async def outcome(self, call: Callable[[], SearchAnswer]) -> Outcome:
        """Return the answer or the known error; None when the call was broken off."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])
        self._task = task = self._bridge.start(self._name, self._run(call))
        await asyncio.wait([task])
        return None if task.cancelled() or task.exception() is not None else task.result()

    async def _run(self, call: Callable[[], SearchAnswer]) -> Outcome:
        try:
            return await self._bridge.run(call)
        except KnownError as error:
            return error
