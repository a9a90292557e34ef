"""The search box: what is typed becomes results, a result becomes a turn on screen."""

from collections.abc import Callable

from PySide6.QtCore import QObject

from app.bootstrap import Services
from app.domain.errors import KnownError
from app.domain.ids import ConversationId, ExchangeId
from app.domain.passages import PassageKind, SearchResult
from ui.bridge import Bridge
from ui.views.sidebar import Sidebar

_LIMIT = 20
_BATCH_TURNS = 500

OpenTurn = Callable[[ConversationId, ExchangeId | None], None]


class SearchController(QObject):
    """Asks as the user types; an answer that comes too late is not shown."""

    def __init__(
        self, services: Services, bridge: Bridge, sidebar: Sidebar, open_turn: OpenTurn
    ) -> None:
        super().__init__(sidebar)
        self._services = services
        self._bridge = bridge
        self._sidebar = sidebar
        self._open_turn = open_turn
        sidebar.query_changed.connect(self._on_query_changed)
        sidebar.result_chosen.connect(self._on_result_chosen)

    def _on_query_changed(self, words: str) -> None:
        if words.strip():
            self._bridge.start("search", self._search(words))
        else:
            self._bridge.cancel("search")

    async def _search(self, words: str) -> None:
        try:
            answer = await self._bridge.run(
                lambda: self._services.search.search(words, limit=_LIMIT)
            )
        except KnownError as error:
            self._sidebar.show_message(f"{error.title}.\n{error.hint}")
            return
        self._sidebar.show_answer(answer)

    def _on_result_chosen(self, result: SearchResult) -> None:
        if result.conversation_id is None:
            return
        if result.kind is PassageKind.CONVERSATION_SUMMARY:
            self._bridge.start("first match", self._open_first_match(result))
        else:
            self._open_turn(result.conversation_id, result.exchange_id)

    async def _open_first_match(self, result: SearchResult) -> None:
        """Show a conversation at the turn that says most of what its summary was found by."""
        conversation_id = result.conversation_id
        assert conversation_id is not None
        words = {result.snippet[start:end].casefold() for start, end in result.marks}
        try:
            best = await self._bridge.run(lambda: self._best_turn(conversation_id, words))
        except KnownError:
            best = None
        self._open_turn(conversation_id, best)

    def _best_turn(self, conversation_id: ConversationId, words: set[str]) -> ExchangeId | None:
        """Return the first turn of the shown path that holds the most of `words`."""
        path = self._services.library.open(conversation_id).path
        best: tuple[int, ExchangeId | None] = (0, None)
        for start in range(0, len(path), _BATCH_TURNS):
            exchanges = path[start : start + _BATCH_TURNS]
            messages = self._services.library.messages(exchanges)
            for exchange in exchanges:
                said = " ".join(each.text for each in messages[exchange.id]).casefold()
                held = sum(word in said for word in words)
                if held > best[0]:
                    best = (held, exchange.id)
        return best[1]
