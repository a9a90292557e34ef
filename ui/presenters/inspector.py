"""The inspector: follows the selected answer, by default the newest one."""

from collections.abc import Callable

from app.chat.inspector import InspectionService, Source
from app.domain.changes import ChangeSet
from app.domain.ids import ExchangeId
from app.domain.recall import Verdict
from app.domain.translation import tr
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.views.memory.inspector import InspectorView
from ui.widgets.banner import Banner
from ui.widgets.transcript.view import TranscriptView

_TASK = "inspect"
_ALWAYS = frozenset(("memory", "rag_enabled"))  # topics that concern every answer
_JUDGED = {
    Verdict.UP: tr("It will rank higher from now on."),
    Verdict.DOWN: tr("It will rank lower from now on."),
    Verdict.NEVER: tr("It will not be recalled again. It stays stored, and search finds it."),
    None: tr("Your rating was removed."),
}


class InspectorPresenter(Presenter):
    """Shows the inspector while it is visible, and stores what the user thinks of a source.

    `is_recall_on` is the setting; `open_source` shows where a source comes from.
    """

    _service: InspectionService
    _is_recall_on: Callable[[], bool]
    _view: InspectorView
    _messages: Banner
    _conversation: ConversationPresenter
    _transcript: TranscriptView
    _open_source: Callable[[Source], None]

    def _set_up(self) -> None:
        self._selected: ExchangeId | None = None
        self._run = 0
        self._conversation.opened.connect(self._on_conversation_opened)
        self._bridge.subscribe(
            self._on_changed, "exchanges", "conversations", *_ALWAYS, while_shown=self._view
        )
        self._view.shown.connect(self.refresh)
        self._view.stepped.connect(self._on_stepped)
        self._view.run_chosen.connect(self._on_run_chosen)
        self._view.recalled.open_requested.connect(self._open_source)
        self._view.recalled.judged.connect(
            lambda source, verdict: self._bridge.save(
                lambda: self._service.vote(source.place, verdict),
                lambda _: self._messages.show_message(_JUDGED[verdict], brief=True),
            )
        )

    def select(self, turn: int) -> None:
        """Show the answer of a turn; the newest one is followed as turns are added."""
        if (exchange := self._conversation.exchange_at(turn)) is not None:
            is_newest = turn == len(self._conversation.path) - 1
            self._selected, self._run = None if is_newest else exchange.id, 0
            self.refresh()

    def refresh(self) -> None:
        """Read the answer again, if the inspector is visible."""
        if not self._view.isVisible():
            return
        if (exchange_id := self._shown()) is None:
            self._bridge.cancel(_TASK)
            self._view.show_nothing()
        else:
            shown = self._show(exchange_id, self._run)
            self._bridge.start(_TASK, shown, lambda _deleted: self._view.show_nothing())

    def _turn(self) -> int | None:
        """Return the position of the selected answer, else of the last one."""
        if self._selected is not None:
            turn = self._conversation.turn_of(self._selected)
            if turn is not None:
                return turn
        path = self._conversation.path
        return len(path) - 1 if path else None

    def _shown(self) -> ExchangeId | None:
        turn = self._turn()
        return None if turn is None else self._conversation.path[turn].id

    async def _show(self, exchange_id: ExchangeId, run: int) -> None:
        inspection = await self._bridge.run(lambda: self._service.inspect(exchange_id, run))
        if (turn := self._conversation.turn_of(exchange_id)) is not None:
            count, is_on = len(self._conversation.path), self._is_recall_on()
            self._view.show_inspection(inspection, turn, count, is_on=is_on)

    def _on_stepped(self, step: int) -> None:
        if (turn := self._turn()) is not None:
            self.select(turn + step)
            self._transcript.scroll_to_turn(turn + step)

    def _on_run_chosen(self, run: int) -> None:
        self._run = run
        self.refresh()

    def _on_conversation_opened(self) -> None:
        self._selected, self._run = None, 0
        self.refresh()

    def _on_changed(self, changed: ChangeSet) -> None:
        if (shown := self._shown()) is not None and (
            shown in changed.exchanges
            or self._conversation.conversation_id in changed.conversations
            or changed.topics & _ALWAYS
        ):
            self.refresh()
