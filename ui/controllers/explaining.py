"""Why a turn is not found, and the probe questions that watch over it: two dialogs and their work."""

from PySide6.QtCore import QObject

from app.bootstrap import Services
from app.domain.errors import KnownError
from app.domain.ids import ExchangeId
from app.domain.probes import Probe, ProbePlace
from app.domain.text import one_line
from ui.bridge import Bridge
from ui.controllers.chatting import ChatController
from ui.errors import words_for
from ui.views.main_window import MainWindow
from ui.views.probes_dialog import ProbesDialog
from ui.views.why_dialog import WhyDialog
from ui.widgets.transcript.anchor import AtPlace, Centred
from ui.widgets.transcript.view import TranscriptView

_QUESTION_CHARS = 500  # more no search takes


class ExplainController(QObject):
    """Opens the dialogs and answers them."""

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
        self._transcript = transcript
        self._turn: int | None = None
        self._last_asked = ""
        transcript.current_turn_changed.connect(self._on_current_turn_changed)
        transcript.why_requested.connect(self._explain_turn)
        window.chat.composer.send_requested.connect(self._on_send_requested)
        chat.opened.connect(self._on_chat_opened)
        window.actions_by_name["why"].triggered.connect(self._on_why_triggered)
        window.actions_by_name["probes"].triggered.connect(self._on_probes_triggered)

    # -- one turn

    def explain(self, exchange_id: ExchangeId, called: str, question: str) -> None:
        """Open the dialog about a turn, known to people as `called`, with a question in it."""
        dialog = WhyDialog(called, question, self._window)
        dialog.asked.connect(
            lambda asked: self._bridge.start("why", self._ask(dialog, exchange_id, asked))
        )
        dialog.save_requested.connect(
            lambda asked: self._bridge.start("keep probe", self._keep(dialog, exchange_id, asked))
        )
        dialog.finished.connect(lambda: self._close(dialog, "why", "keep probe"))
        dialog.open()
        dialog.begin()

    async def _ask(self, dialog: WhyDialog, exchange_id: ExchangeId, question: str) -> None:
        try:
            explained = await self._bridge.run(
                lambda: self._services.explainer.explain(question, exchange_id)
            )
        except KnownError as error:
            dialog.show_error(*words_for(error))
        else:
            dialog.show_explanation(explained)

    async def _keep(self, dialog: WhyDialog, exchange_id: ExchangeId, question: str) -> None:
        try:
            await self._bridge.write(lambda: self._services.probes.add(question, exchange_id))
        except KnownError as error:
            dialog.show_error(*words_for(error))
        else:
            dialog.tell("Kept. Find \N{RIGHTWARDS ARROW} Probe questions asks it again.")

    def _on_why_triggered(self) -> None:
        view = self._chat.view
        if view is None or not view.path:
            return
        self._explain_turn(min(self._turn_meant(), len(view.path) - 1))

    def _explain_turn(self, turn: int) -> None:
        """Ask about a turn of the open conversation what was searched for last, or else asked."""
        view = self._chat.view
        if view is None or turn >= len(view.path):
            return
        exchange = view.path[turn]
        called = f"{view.conversation.title}, turn {exchange.turn_number}"
        question = self._window.sidebar.query.strip() or self._last_asked
        self.explain(exchange.id, called, question)

    def _on_send_requested(self, words: str) -> None:
        self._last_asked = one_line(words, _QUESTION_CHARS)

    def _turn_meant(self) -> int:
        """Return the turn clicked or tabbed into, else the one jumped to, else that in the middle."""
        first, last = self._transcript.visible_items
        if self._turn is not None and first <= self._turn <= last:
            return self._turn
        anchor = self._transcript.anchor
        if isinstance(anchor, Centred | AtPlace):
            return anchor.index
        return max(0, (first + last + 1) // 2)

    # -- all probes

    def _on_probes_triggered(self) -> None:
        dialog = ProbesDialog(self._window)
        dialog.run_requested.connect(lambda: self._bridge.start("probes", self._run(dialog)))
        dialog.remove_requested.connect(
            lambda probe: self._bridge.start("probes", self._remove(dialog, probe))
        )
        dialog.turn_requested.connect(lambda place: self._open(dialog, place))
        dialog.finished.connect(lambda: self._close(dialog, "probes"))
        dialog.open()
        self._bridge.start("probes", self._list(dialog))

    async def _list(self, dialog: ProbesDialog) -> None:
        dialog.show_places(await self._bridge.run(self._services.probes.listed))

    async def _run(self, dialog: ProbesDialog) -> None:
        probes, is_over = self._services.probes, False
        dialog.show_progress(0, 0)
        done = (0, 0)

        def on_progress(now: int, total: int) -> None:
            nonlocal done
            done = (now, total)
            show()

        show = self._bridge.on_gui(lambda: None if is_over else dialog.show_progress(*done))
        try:
            places = await self._bridge.run(lambda: probes.run(lambda: is_over, on_progress))
        except KnownError as error:
            is_over = True
            dialog.show_error(*words_for(error))
            return
        finally:
            is_over = True
        dialog.show_places(places)

    async def _remove(self, dialog: ProbesDialog, probe: Probe) -> None:
        try:
            await self._bridge.write(lambda: self._services.probes.drop(probe))
        except KnownError as error:
            dialog.show_error(*words_for(error))
            return
        await self._list(dialog)

    def _open(self, dialog: ProbesDialog, place: ProbePlace) -> None:
        assert place.conversation_id is not None
        dialog.accept()
        self._chat.open(place.conversation_id, place.probe.exchange_id)

    # -- the rest

    def _close(self, dialog: QObject, *tasks: str) -> None:
        """Let go of a dialog and of what was to be shown in it."""
        for name in tasks:
            self._bridge.cancel(name)
        dialog.deleteLater()

    def _on_current_turn_changed(self, turn: int) -> None:
        self._turn = turn

    def _on_chat_opened(self, conversation: object) -> None:
        self._turn = None
        self._window.actions_by_name["why"].setEnabled(conversation is not None)
