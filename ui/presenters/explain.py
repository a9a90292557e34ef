"""Explanations: why a turn is not recalled, whether search finds it, and the test questions."""

from collections.abc import Coroutine
from typing import Any

from app.domain.diagnostics import Probe, ProbeDetails
from app.domain.formatting import format_turn
from app.domain.ids import ExchangeId
from app.domain.text import one_line
from app.domain.translation import tr
from app.memory.coverage import TurnCoverage, TurnSearchStatus
from app.memory.explain import Explainer
from app.memory.probes import ProbeQuestions
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.views.dialogs.why_dialog import WhyDialog
from ui.views.memory.questions_view import QuestionsView
from ui.widgets.banner import Banner
from ui.widgets.transcript.heights import AtOffset, Centered
from ui.widgets.transcript.view import TranscriptView

_QUESTION_CHARS = 500  # a search takes no more
_WHY, _KEEP, _PROBES = "why", "keep probe", "probes"


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
