"""The inspector: follows the selected answer, by default the newest one."""

from collections.abc import Callable

from PySide6.QtCore import QObject

from app.chat.inspector import InspectionService, Source
from app.domain.changes import ChangeSet
from app.domain.errors import KnownError
from app.domain.ids import ExchangeId
from app.domain.recall import Verdict
from ui.bridge import Bridge
from ui.presenters.protocols import MessageView, ShownConversation
from ui.views.inspector import InspectorView
from ui.widgets.transcript.view import TranscriptView

_TASK = "inspect"
_JUDGED = {
    Verdict.UP: "It will rank higher from now on.",
    Verdict.DOWN: "It will rank lower from now on.",
    Verdict.NEVER: "It will not be recalled again. It stays stored, and search finds it.",
    None: "Your rating was removed.",
}


class InspectorPresenter(QObject):
    """Shows the inspector while it is visible, and stores what the user thinks of a source.

    `is_recall_on` is the setting; `open_source` shows where a source comes from.
    """

    def __init__(
        self,
        service: InspectionService,
        is_recall_on: Callable[[], bool],
        bridge: Bridge,
        view: InspectorView,
        messages: MessageView,
        conversation: ShownConversation,
        transcript: TranscriptView,
        open_source: Callable[[Source], None],
    ) -> None:
        super().__init__(bridge)
        self._service = service
        self._is_recall_on = is_recall_on
        self._bridge = bridge
        self._view = view
        self._messages = messages
        self._conversation = conversation
        self._transcript = transcript
        self._selected: ExchangeId | None = None
        self._run = 0
        conversation.opened.connect(self._on_conversation_opened)
        bridge.changed.connect(self._on_changed)
        view.stepped.connect(self._on_stepped)
        view.run_chosen.connect(self._on_run_chosen)
        view.recalled.open_requested.connect(open_source)
        view.recalled.judged.connect(self._on_judged)

    def select(self, turn: int) -> None:
        """Show the answer of a turn; the newest one is followed as turns are added."""
        view = self._conversation.view
        if view is not None and 0 <= turn < len(view.path):
            is_newest = turn == len(view.path) - 1
            self._selected, self._run = None if is_newest else view.path[turn].id, 0
            self.refresh()

    def refresh(self) -> None:
        """Read the answer again, if the inspector is visible."""
        if not self._view.isVisible():
            return
        turn, view = self._turn(), self._conversation.view
        if turn is None or view is None:
            self._bridge.cancel(_TASK)
            self._view.show_nothing()
        else:
            self._bridge.start(_TASK, self._show(view.path[turn].id, self._run))

    def _turn(self) -> int | None:
        """Return the position of the selected answer, else of the last one."""
        if self._selected is not None:
            turn = self._conversation.turn_of(self._selected)
            if turn is not None:
                return turn
        view = self._conversation.view
        return len(view.path) - 1 if view is not None and view.path else None

    async def _show(self, exchange_id: ExchangeId, run: int) -> None:
        try:
            inspection = await self._bridge.run(lambda: self._service.inspect(exchange_id, run))
        except KnownError:
            self._view.show_nothing()  # it was deleted
            return
        turn, view = self._conversation.turn_of(exchange_id), self._conversation.view
        if turn is not None and view is not None:
            is_on = self._is_recall_on()
            self._view.show_inspection(inspection, turn, len(view.path), is_on=is_on)

    def _on_stepped(self, step: int) -> None:
        if (turn := self._turn()) is not None:
            self.select(turn + step)
            self._transcript.scroll_to_turn(turn + step)

    def _on_run_chosen(self, run: int) -> None:
        self._run = run
        self.refresh()

    def _on_judged(self, source: Source, verdict: Verdict | None) -> None:
        async def judge() -> None:
            await self._bridge.write(lambda: self._service.judge(source.place, verdict))
            self._messages.show_message(_JUDGED[verdict], brief=True)

        self._bridge.submit(judge(), self._messages.show_error)

    def _on_conversation_opened(self, _conversation: object) -> None:
        self._selected, self._run = None, 0
        self.refresh()

    def _on_changed(self, changed: ChangeSet) -> None:
        turn, view = self._turn(), self._conversation.view
        if turn is None or view is None:
            return
        if (
            view.path[turn].id in changed.exchanges
            or view.conversation.id in changed.conversations
            or changed.memory
            or "rag_enabled" in changed.settings
        ):
            self.refresh()
