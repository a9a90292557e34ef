"""The inspector at work: it follows the answer that is selected, the newest one by default."""

from collections.abc import Callable

from PySide6.QtCore import QObject

from app.bootstrap import Services
from app.chat.inspecting import Inspection, Source
from app.domain.errors import KnownError
from app.domain.events import Changed
from app.domain.ids import ExchangeId
from app.domain.recalls import Verdict
from ui.bridge import Bridge
from ui.controllers.chatting import ChatController
from ui.views.main_window import MainWindow
from ui.widgets.transcript.view import TranscriptView

_TOLD = {
    Verdict.UP: "It will rank higher from now on.",
    Verdict.DOWN: "It will rank lower from now on.",
    Verdict.NEVER: "It is never used again. It stays where it is, and search finds it.",
    None: "Taken back.",
}


class InspectController(QObject):
    """Shows the inspector, and passes on what the user thinks of a source.

    `open_source` shows where a source was said.
    """

    def __init__(
        self,
        services: Services,
        bridge: Bridge,
        window: MainWindow,
        chat: ChatController,
        open_source: Callable[[Source], None],
    ) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._window = window
        self._view = window.inspector
        self._chat = chat
        self._selected: ExchangeId | None = None
        self._run = 0
        transcript = window.chat.transcript
        assert isinstance(transcript, TranscriptView)
        self._transcript = transcript
        transcript.inspect_requested.connect(self._on_inspect_requested)
        transcript.current_turn_changed.connect(self._select)
        chat.opened.connect(self._on_chat_opened)
        chat.landed.connect(self._select)
        bridge.changed.connect(self._on_changed)
        window.inspector_dock.visibilityChanged.connect(self._on_visibility_changed)
        self._view.stepped.connect(self._on_stepped)
        self._view.run_chosen.connect(self._on_run_chosen)
        self._view.recalled.open_requested.connect(open_source)
        self._view.recalled.judged.connect(self._on_judged)

    # -- which answer

    def _on_inspect_requested(self, turn: int) -> None:
        self._window.actions_by_name["inspector"].setChecked(True)
        self._window.inspector_dock.raise_()
        self._select(turn)

    def _on_stepped(self, step: int) -> None:
        if (turn := self._turn()) is None:
            return
        self._select(turn + step)
        self._transcript.scroll_to_turn(turn + step)

    def _select(self, turn: int) -> None:
        view = self._chat.view
        if view is not None and 0 <= turn < len(view.path):
            self._selected, self._run = view.path[turn].id, 0
            self._refresh()

    def _on_run_chosen(self, run: int) -> None:
        self._run = run
        self._refresh()

    def _turn(self) -> int | None:
        """Return the place of the answer that is meant: the one selected, else the last."""
        if self._selected is not None and (turn := self._chat.turn_of(self._selected)) is not None:
            return turn
        view = self._chat.view
        return len(view.path) - 1 if view is not None and view.path else None

    # -- showing it

    def _refresh(self) -> None:
        if not self._window.inspector_dock.isVisible():
            return
        turn, view = self._turn(), self._chat.view
        if turn is None or view is None:
            self._bridge.cancel("inspect")
            self._view.show_nothing()
        else:
            self._bridge.start("inspect", self._show(view.path[turn].id, self._run))

    async def _show(self, exchange_id: ExchangeId, run: int) -> None:
        try:
            inspection = await self._bridge.run(
                lambda: self._services.inspector.inspect(exchange_id, run)
            )
        except KnownError:
            self._view.show_nothing()  # it was forgotten
            return
        self._show_inspection(inspection)

    def _show_inspection(self, inspection: Inspection) -> None:
        turn, view = self._chat.turn_of(inspection.exchange.id), self._chat.view
        if turn is not None and view is not None:
            is_on = self._services.settings.flag("rag_enabled")
            self._view.show_inspection(inspection, turn, len(view.path), is_on=is_on)

    # -- what the user thinks

    def _on_judged(self, source: Source, verdict: Verdict | None) -> None:
        self._bridge.carry_out(self._judge(source, verdict))

    async def _judge(self, source: Source, verdict: Verdict | None) -> None:
        try:
            await self._bridge.write(lambda: self._services.inspector.judge(source.place, verdict))
        except KnownError as error:
            self._window.chat.tell(error)
            return
        self._window.chat.banner.tell(_TOLD[verdict], brief=True)

    # -- what happens elsewhere

    def _on_chat_opened(self, _conversation: object) -> None:
        self._selected, self._run = None, 0
        self._refresh()

    def _on_visibility_changed(self, _visible: bool) -> None:
        self._refresh()

    def _on_changed(self, changed: Changed) -> None:
        turn, view = self._turn(), self._chat.view
        if turn is None or view is None:
            return
        is_concerned = (
            view.path[turn].id in changed.exchanges
            or view.conversation.id in changed.conversations
            or changed.learned
            or "rag_enabled" in changed.settings
        )
        if is_concerned:
            self._refresh()
