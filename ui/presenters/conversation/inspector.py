"""Explanations: what was recalled for an answer, why a turn is not recalled, and the test questions."""

from collections.abc import Callable, Coroutine
from typing import Any

from app.chat.inspector import InspectionService, Source
from app.domain.change_set import ChangeSet
from app.domain.diagnostics import Probe, ProbeDetails
from app.domain.ids import ExchangeId
from app.domain.recall import Verdict
from app.domain.text import one_line
from app.domain.translation import format_turn, tr
from app.memory.search.coverage import TurnCoverage, TurnSearchStatus
from app.memory.search.explain import Explainer
from app.memory.search.probes import ProbeQuestions
from ui.presenters.conversation.open_conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.views.dialogs.why_dialog import WhyDialog
from ui.views.memory.inspector import InspectorView
from ui.views.memory.questions_view import QuestionsView
from ui.widgets.banner import Banner
from ui.widgets.transcript.heights import AtOffset, Centered
from ui.widgets.transcript.view import TranscriptView

_TASK = "inspect"
_ALWAYS = frozenset(("memory", "rag_enabled"))  # topics that concern every answer
_JUDGED = {
    Verdict.UP: tr("It will rank higher from now on."),
    Verdict.DOWN: tr("It will rank lower from now on."),
    Verdict.NEVER: tr("It will not be recalled again. It stays stored, and search finds it."),
    None: tr("Your rating was removed."),
}
_QUESTION_CHARS = 500  # a search takes no more
_WHY, _KEEP, _PROBES = "why", "keep probe", "probes"


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
        self._view.show_nothing(is_reading=True)  # what is shown belongs to another conversation
        self.refresh()

    def _on_changed(self, changed: ChangeSet) -> None:
        if (shown := self._shown()) is not None and (
            shown in changed.exchanges
            or self._conversation.conversation_id in changed.conversations
            or changed.topics & _ALWAYS
        ):
            self.refresh()


class ExplainPresenter(Presenter):
    """Opens the dialog about a turn, and keeps the page of test questions up to date."""

    _explainer: Explainer
    _probes: ProbeQuestions
    _coverage: TurnCoverage
    _messages: Banner
    _conversation: ConversationPresenter
    _transcript: TranscriptView
    _view: QuestionsView

    def _set_up(self) -> None:
        self._current_turn: int | None = None
        self._last_message = ""
        self._asked_in: str | None = None  # the project of the last message
        self._conversation.opened.connect(lambda _: self.note_current_turn(None))
        view = self._view
        view.shown.connect(lambda: self._start(self._list()))
        view.run_requested.connect(lambda: self._start(self._run()))
        view.remove_requested.connect(lambda probe: self._start(self._remove(probe)))
        view.turn_requested.connect(self._on_turn_requested)

    # -- one turn

    def explain(self, exchange_id: ExchangeId, label: str, question: str) -> WhyDialog:
        """Open the dialog about a turn, called `label`, with a question; return it."""
        dialog = WhyDialog(label, question, self._messages.window())
        project = self._asked_in

        async def keep(question: str) -> None:
            await self._bridge.write(lambda: self._probes.add(question, exchange_id))
            if self._view.isVisible():
                await self._list()
            dialog.status.show_text(
                tr("The question was kept. View \N{RIGHTWARDS ARROW} Test questions asks it again.")
            )

        dialog.asked.connect(
            lambda text: self._bridge.load(
                _WHY,
                lambda: self._explainer.explain(text, exchange_id, project=project),
                dialog.show_explanation,
                dialog.show_error,
            )
        )
        dialog.save_requested.connect(
            lambda text: self._bridge.start(_KEEP, keep(text), dialog.show_error)
        )
        self._open_dialog(dialog, _WHY, _KEEP)
        dialog.begin()
        return dialog

    def explain_current(self, query: str = "") -> None:
        """Explain the turn the user means; see `explain_turn`."""
        if path := self._conversation.path:
            self.explain_turn(min(self._meant_turn(), len(path) - 1), query)

    def explain_turn(self, turn: int, query: str = "") -> None:
        """Explain a turn of the open conversation for `query`, else for the last message sent."""
        view, exchange = self._conversation.view, self._conversation.exchange_at(turn)
        if view is not None and exchange is not None:
            label = f"{view.conversation.title}, {format_turn(exchange.turn_number)}"
            self.explain(exchange.id, label, query.strip() or self._last_message)

    def note_message(self, text: str) -> None:
        """Take note of a message that is sent, and of the project that it is asked in."""
        self._last_message = one_line(text, _QUESTION_CHARS)
        self._asked_in = self._conversation.project_here

    def note_current_turn(self, turn: int | None) -> None:
        """Take note of the turn that was clicked or tabbed into, None for none."""
        self._current_turn = turn

    def show_coverage(self, turn: int) -> None:
        """Show whether search finds a turn, and if not, why."""
        if (exchange := self._conversation.exchange_at(turn)) is None:
            return

        def show(covered: TurnSearchStatus | None) -> None:
            if covered is not None:
                text = f"{format_turn(exchange.turn_number).capitalize()}: {covered.sentence}"
                self._messages.show_message(text, brief=covered.words and covered.meaning)

        self._bridge.load(
            "coverage", lambda: self._coverage.of_turns([exchange.id]).get(exchange.id), show
        )

    def _meant_turn(self) -> int:
        """Return the turn clicked or tabbed into, else the one scrolled to, else the middle one."""
        first, last = self._transcript.visible_items
        if self._current_turn is not None and first <= self._current_turn <= last:
            return self._current_turn
        anchor = self._transcript.anchor
        if isinstance(anchor, Centered | AtOffset):
            return anchor.index
        return max(0, (first + last + 1) // 2)

    # -- all test questions

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._bridge.start(_PROBES, work, self._view.show_error)

    async def _list(self) -> None:
        self._view.show_places(await self._bridge.run(self._probes.listed))

    async def _remove(self, probe: Probe) -> None:
        await self._bridge.write(lambda: self._probes.drop(probe))
        await self._list()

    def _on_turn_requested(self, place: ProbeDetails) -> None:
        assert place.conversation_id is not None
        self._conversation.open(place.conversation_id, place.probe.exchange_id, None)

    async def _run(self) -> None:
        is_over = False
        progress = (0, 0)
        self._view.show_progress(*progress)

        def on_progress(done: int, total: int) -> None:
            nonlocal progress
            progress = (done, total)
            show()

        show = self._bridge.on_gui(lambda: None if is_over else self._view.show_progress(*progress))
        try:
            places = await self._bridge.run(lambda: self._probes.run(lambda: is_over, on_progress))
        finally:
            is_over = True
        self._view.show_places(places)
