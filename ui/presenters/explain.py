"""Explanations: why a turn is not recalled, whether search finds it, and the test questions."""

from PySide6.QtWidgets import QDialog

from app.domain.diagnostics import Probe, ProbeDetails
from app.domain.formatting import format_turn
from app.domain.ids import ExchangeId
from app.domain.text import one_line
from app.domain.translation import tr
from app.memory.coverage import TurnCoverage, TurnSearchStatus
from app.memory.explain import Explainer
from app.memory.probes import ProbeQuestions
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import OpenTurn, Presenter
from ui.views.dialogs.probes_dialog import ProbesDialog
from ui.views.dialogs.why_dialog import WhyDialog
from ui.widgets.banner import Banner
from ui.widgets.transcript.heights import AtOffset, Centered
from ui.widgets.transcript.view import TranscriptView

_QUESTION_CHARS = 500  # a search takes no more
_WHY, _KEEP, _PROBES = "why", "keep probe", "probes"


class ExplainPresenter(Presenter):
    """Opens the two dialogs and answers their questions."""

    _explainer: Explainer
    _probes: ProbeQuestions
    _coverage: TurnCoverage
    _messages: Banner
    _conversation: ConversationPresenter
    _transcript: TranscriptView

    def __post_init__(self) -> None:
        super().__post_init__()
        self._current_turn: int | None = None
        self._last_message = ""
        self._conversation.opened.connect(self._on_conversation_opened)

    # -- one turn

    def explain(self, exchange_id: ExchangeId, label: str, question: str) -> WhyDialog:
        """Open the dialog about a turn, called `label`, with a question; return it."""
        dialog = WhyDialog(label, question, self._messages.window())

        async def keep(question: str) -> None:
            await self._bridge.write(lambda: self._probes.add(question, exchange_id))
            dialog.show_message(
                tr("The question was kept. Find \N{RIGHTWARDS ARROW} Test questions asks it again.")
            )

        dialog.asked.connect(
            lambda text: self._bridge.load(
                _WHY,
                lambda: self._explainer.explain(text, exchange_id),
                dialog.show_explanation,
                dialog.show_error,
            )
        )
        dialog.save_requested.connect(
            lambda text: self._bridge.start(_KEEP, keep(text), dialog.show_error)
        )
        dialog.finished.connect(lambda: self._close(dialog, _WHY, _KEEP))
        dialog.open()
        dialog.begin()
        return dialog

    def explain_current(self, query: str = "") -> None:
        """Explain the turn the user means; see `explain_turn`."""
        view = self._conversation.view
        if view is not None and view.path:
            self.explain_turn(min(self._meant_turn(), len(view.path) - 1), query)

    def explain_turn(self, turn: int, query: str = "") -> None:
        """Explain a turn of the open conversation for `query`, else for the last message sent."""
        view = self._conversation.view
        if view is not None and turn < len(view.path):
            exchange = view.path[turn]
            label = f"{view.conversation.title}, {format_turn(exchange.turn_number)}"
            self.explain(exchange.id, label, query.strip() or self._last_message)

    def note_message(self, text: str) -> None:
        """Take note of a message that is sent."""
        self._last_message = one_line(text, _QUESTION_CHARS)

    def note_current_turn(self, turn: int) -> None:
        """Take note of the turn that was clicked or tabbed into."""
        self._current_turn = turn

    def show_coverage(self, turn: int) -> None:
        """Show whether search finds a turn, and if not, why."""
        view = self._conversation.view
        if view is None or turn >= len(view.path):
            return
        exchange = view.path[turn]

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

    def _on_conversation_opened(self, _conversation: object) -> None:
        self._current_turn = None

    # -- all probes

    def show_probes(self, show_turn: OpenTurn) -> ProbesDialog:
        """Open the dialog of all test questions, from which `show_turn` opens one; return it."""
        dialog = ProbesDialog(self._messages.window())

        async def remove(probe: Probe) -> None:
            await self._bridge.write(lambda: self._probes.drop(probe))
            await list_all()

        async def list_all() -> None:
            dialog.show_places(await self._bridge.run(self._probes.listed))

        def open_turn(place: ProbeDetails) -> None:
            assert place.conversation_id is not None
            dialog.accept()
            show_turn(place.conversation_id, place.probe.exchange_id, None)

        start = self._bridge.start
        dialog.run_requested.connect(lambda: start(_PROBES, self._run(dialog), dialog.show_error))
        dialog.remove_requested.connect(
            lambda probe: start(_PROBES, remove(probe), dialog.show_error)
        )
        dialog.turn_requested.connect(open_turn)
        dialog.finished.connect(lambda: self._close(dialog, _PROBES))
        dialog.open()
        start(_PROBES, list_all(), dialog.show_error)
        return dialog

    async def _run(self, dialog: ProbesDialog) -> None:
        is_over = False
        progress = (0, 0)
        dialog.show_progress(*progress)

        def on_progress(done: int, total: int) -> None:
            nonlocal progress
            progress = (done, total)
            show()

        show = self._bridge.on_gui(lambda: None if is_over else dialog.show_progress(*progress))
        try:
            places = await self._bridge.run(lambda: self._probes.run(lambda: is_over, on_progress))
        finally:
            is_over = True
        dialog.show_places(places)

    def _close(self, dialog: QDialog, *tasks: str) -> None:
        """Delete a dialog and cancel the tasks whose results it was to show."""
        for name in tasks:
            self._bridge.cancel(name)
        dialog.deleteLater()
