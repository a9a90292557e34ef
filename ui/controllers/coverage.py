"""Whether search finds a turn, and if not why not: asked in its menu, told across the top."""

from PySide6.QtCore import QObject

from app.bootstrap import Services
from app.domain.ids import ExchangeId
from ui.bridge import Bridge
from ui.controllers.chatting import ChatController
from ui.views.main_window import MainWindow
from ui.widgets.transcript.view import TranscriptView


class CoverageController(QObject):
    """Answers "Is this found by search?"."""

    def __init__(
        self, services: Services, bridge: Bridge, window: MainWindow, chat: ChatController
    ) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._window = window
        self._chat = chat
        transcript = window.chat.transcript
        assert isinstance(transcript, TranscriptView)
        transcript.coverage_requested.connect(self._on_coverage_requested)

    def _on_coverage_requested(self, turn: int) -> None:
        view = self._chat.view
        if view is not None and turn < len(view.path):
            exchange = view.path[turn]
            self._bridge.start("coverage", self._tell(exchange.id, exchange.turn_number))

    async def _tell(self, exchange_id: ExchangeId, number: int) -> None:
        found = await self._bridge.run(lambda: self._services.coverage.of_turns([exchange_id]))
        if (searchable := found.get(exchange_id)) is not None:
            words = f"Turn {number}: {searchable.sentence}"
            self._window.chat.banner.tell(words, brief=searchable.words and searchable.meaning)
