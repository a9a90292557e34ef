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
_SHORTEST = 2
_ABOUT_EXCHANGES = (PassageKind.TURN, PassageKind.EXCHANGE_SUMMARY, PassageKind.TOOL_SUMMARY)

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
        if len(words.strip()) < _SHORTEST:
            self._bridge.cancel("search")
            return
        self._bridge.start("search", self._search(words))

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
        if result.conversation_id is not None:
            exchange_id = result.exchange_id if result.kind in _ABOUT_EXCHANGES else None
            self._open_turn(result.conversation_id, exchange_id)
