"""All controllers of one open data directory, and what needs more than one of them."""

import asyncio
from collections.abc import Callable

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QInputDialog, QMessageBox

from app.bootstrap import Services
from app.chat.inspecting import Source
from app.chat.places import parse_link
from app.domain.conversations import Conversation
from app.domain.errors import KnownError
from app.domain.ids import ConversationId, ExchangeId
from app.domain.links import Link
from app.domain.recalls import RecalledPlace
from ui.bridge import Bridge
from ui.controllers.background import BackgroundController
from ui.controllers.chatting import ChatController
from ui.controllers.commanding import CommandController, Deeds
from ui.controllers.conversations import ConversationsController
from ui.controllers.coverage import CoverageController
from ui.controllers.explaining import ExplainController
from ui.controllers.facts import FactsController
from ui.controllers.finding import FindController
from ui.controllers.importing import ImportController
from ui.controllers.inspecting import InspectController
from ui.controllers.links import LinkController
from ui.controllers.memories import MemoriesController
from ui.controllers.model_choice import ModelController
from ui.controllers.pages import PageController
from ui.controllers.privacy import PrivacyController
from ui.controllers.recalling import RecallController
from ui.controllers.replies import RunningReplies
from ui.controllers.searching import SearchController
from ui.controllers.settings import SettingsController
from ui.controllers.summaries import SummariesController
from ui.controllers.talking import TalkController
from ui.controllers.tuning import TuningController
from ui.controllers.workers import WorkersController
from ui.theme import Appearance
from ui.views.main_window import MainWindow, keep_state
from ui.views.palette import CommandPalette
from ui.widgets.transcript.view import TranscriptView


class Program(QObject):
    """The program at work in its window.

    Attributes:
        ready: Set when the list of conversations has been shown for the first time.
        background, chat, commands, conversations, coverage, explain, facts, find, importing, inspect,
            links, memories, models, pages, privacy, recall, search, settings, summaries, talk, tuning,
            workers: The controllers.
    """

    def __init__(
        self, services: Services, bridge: Bridge, window: MainWindow, appearance: Appearance
    ) -> None:
        super().__init__(window)
        self.ready = asyncio.Event()
        self._services = services
        self._bridge = bridge
        self._window = window
        transcript = window.chat.transcript
        assert isinstance(transcript, TranscriptView)
        self._transcript = transcript
        # Before the settings are read, which may ask for another theme than the system's.
        appearance.theme_changed.connect(window.sidebar.set_theme)
        appearance.theme_changed.connect(window.inspector.set_theme)
        self._replies = RunningReplies(bridge, self)
        self.chat = ChatController(services, bridge, window, appearance, self._replies)
        self.models = ModelController(services, bridge, window, self.chat)
        self.talk = TalkController(services, bridge, window, self.chat, self.models, self._replies)
        self.conversations = ConversationsController(
            services, bridge, window, self.open_conversation, self.chat.begin_new
        )
        self.coverage = CoverageController(services, bridge, window, self.chat)
        self.explain = ExplainController(services, bridge, window, self.chat)
        self.pages = PageController(services, bridge, window)
        self.search = SearchController(
            services, bridge, window, self.chat, self.explain.explain, self.pages.open,
            self._open_fact, self._open_memory,
        )  # fmt: skip
        self.facts = FactsController(services, bridge, window, appearance, self.search.open_turn)
        self.memories = MemoriesController(services, bridge, window, appearance, self.open_turn)
        self.summaries = SummariesController(services, bridge, window, appearance, self.chat)
        self.find = FindController(services, bridge, window, self.chat)
        self.background = BackgroundController(services, bridge, window)
        self.tuning = TuningController(services, bridge, appearance, self.chat, self._open_recalled)
        self.settings = SettingsController(
            services, bridge, window, appearance, self.background, self.tuning
        )
        self.recall = RecallController(
            services, bridge, window, self.chat, self.search.open_turn, self._open_fact,
            self._open_memory, self.settings.open,
        )  # fmt: skip
        self.inspect = InspectController(services, bridge, window, self.chat, self.recall.open)
        self.importing = ImportController(services, bridge, window, self.background)
        self.workers = WorkersController(services, bridge, window)
        self.privacy = PrivacyController(services, bridge, window, self.chat)
        self.links = LinkController(window, self._open_link)
        self.commands = self._command_controller(appearance)
        self._wire_controllers()
        self._wire_transcript()
        self._wire_actions()
        self._bridge.start("begin", self._begin())

    def open_conversation(self, conversation_id: ConversationId) -> None:
        """Show a conversation on its visible path."""
        self.chat.open(conversation_id)

    def open_turn(self, conversation_id: ConversationId, exchange_id: ExchangeId | None) -> None:
        """Show a conversation at an exchange, centred and highlighted, on whatever branch it is."""
        self.chat.open(conversation_id, exchange_id)

    def _open_fact(self, fact_id: int) -> None:
        self.facts.open(fact_id)

    def _open_memory(self, memory_id: int) -> None:
        self.memories.open(memory_id)

    def _open_recalled(self, place: RecalledPlace) -> None:
        self.recall.open(Source(place, rank=0, cited=False))

    def ask_to_leave(self, leave: Callable[[], None]) -> None:
        """Call `leave` at once, or after the user has decided what is to be decided before."""
        self.memories.ask_before_leaving(lambda: self.privacy.ask_before_leaving(leave))

    def flush(self) -> None:
        """Before the goodbye: stop what runs, hand over what was typed."""
        self._window.place = self._transcript.place()
        self.importing.stop()
        self._window.chat.composer.flush_draft()

    def _command_controller(self, appearance: Appearance) -> CommandController:
        deeds = Deeds(
            open_turn=self.open_turn,
            open_page=self.pages.open,
            import_files=self.importing.start,
            ask_export=self.conversations.ask_export,
        )
        commands = CommandController(
            self._services, self._bridge, self._window, appearance, self.chat, deeds
        )
        commands.panel.link_activated.connect(self.links.follow)
        return commands

    async def _begin(self) -> None:
        """Show what there is, then set the workers going."""
        if notices := self._services.store.notices:
            self._window.chat.banner.tell(" ".join(notices), brief=False)
        await self.chat.begin(self._window.conversation_id, self._window.place)
        await self.conversations.first_list()
        self._window.chat.composer.box.setFocus()
        self.workers.start()
        self.ready.set()

    def _on_chat_opened(self, conversation: Conversation | None) -> None:
        """Note where the user is: a killed program comes back there too."""
        window, file = self._window, self._services.paths.window
        window.conversation_id = conversation.id if conversation else None
        window.place = None
        state = window.state_to_keep()
        self._bridge.start("window state", self._bridge.run(lambda: keep_state(file, state)))

    def _wire_controllers(self) -> None:
        self.chat.opened.connect(self.conversations.show_opened)
        self.chat.opened.connect(self._on_chat_opened)
        self._window.chat.welcome.model_requested.connect(lambda: self.settings.open("Providers"))
        self._window.sidebar.new_requested.connect(self.chat.begin_new)

    def _wire_transcript(self) -> None:
        transcript = self._transcript
        transcript.link_activated.connect(self.links.follow)
        transcript.link_hovered.connect(self._window.statusBar().showMessage)

    def _wire_actions(self) -> None:
        actions = self._window.actions_by_name
        for name, act in (
            ("new", self.chat.begin_new),
            ("new_private", lambda: self.chat.begin_new(private=True)),
            ("search", self._with_sidebar(self._window.sidebar.focus_search)),
            ("back", self._with_sidebar(self._window.sidebar.back_to_results)),
            ("palette", self._on_palette_triggered),
            ("open_link", self._ask_place),
            ("backup", lambda: self._start("backup", self._back_up())),
            ("check", lambda: self._start("check", self._check())),
            ("open_folder", self._open_folder),
            ("about", self._about),
        ):
            actions[name].triggered.connect(lambda _checked=False, act=act: act())

    def _with_sidebar(self, act: Callable[[], object]) -> Callable[[], None]:
        """Return a deed of the sidebar that shows it first."""

        def shown() -> None:
            self._window.actions_by_name["sidebar"].setChecked(True)
            act()

        return shown

    def _start(self, name: str, work: object) -> None:
        self._bridge.start(name, work)  # type: ignore[arg-type]

    def _on_palette_triggered(self) -> None:
        palette = CommandPalette(list(self._window.actions_by_name), self._window)
        palette.finished.connect(palette.deleteLater)
        palette.open()

    def _ask_place(self) -> None:
        dialog = QInputDialog(self._window)
        dialog.setWindowTitle("Open a turn")
        dialog.setLabelText("A link to a turn, or ID:TURN:")
        dialog.textValueSelected.connect(self._on_place_entered)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _on_place_entered(self, words: str) -> None:
        try:
            link = parse_link(words)
        except KnownError as error:
            self._window.chat.tell(error)
            return
        self._open_link(link)

    def _open_link(self, link: Link) -> None:
        """Show a turn by its exchange, or by its number on the shown path."""
        if link.exchange_id is not None:
            self.open_turn(link.conversation_id, link.exchange_id)
        else:
            place = self._open_place(link.conversation_id, link.turn_number)
            self._bridge.start("open place", place)

    async def _open_place(self, conversation_id: ConversationId, turn: int | None) -> None:
        try:
            view = await self._bridge.run(lambda: self._services.library.open(conversation_id))
        except KnownError as error:
            self._window.chat.tell(error)
            return
        exchange = next((each for each in view.path if each.turn_number == turn), None)
        self.open_turn(conversation_id, exchange.id if exchange else None)

    async def _back_up(self) -> None:
        backup = await self._bridge.run(self._services.back_up)
        self._window.chat.banner.tell(f"Backed up and verified: {backup.path.name}", brief=True)

    async def _check(self, *, repair: bool = False) -> None:
        report = await self._bridge.run(lambda: self._services.check(repair=repair))
        box = QMessageBox(self._window)
        box.setWindowTitle("Check")
        left, mended = len(report.problems), len(report.repaired)
        box.setText(
            f"{left:,} {'thing is' if left == 1 else 'things are'} not in order."
            if left
            else "Everything is in order."
        )
        rows = sum(report.counts.values())
        told = f"{mended:,} mended. " if mended else ""
        box.setInformativeText(f"{told}{rows:,} records were looked at.")
        box.setDetailedText("\n".join((*report.problems, *report.repaired)))
        if left and not repair:
            mend = box.addButton("Mend what can be mended", QMessageBox.ButtonRole.ActionRole)
            mend.clicked.connect(lambda: self._start("check", self._check(repair=True)))
        box.addButton(QMessageBox.StandardButton.Close)
        box.finished.connect(box.deleteLater)
        box.open()

    def _open_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._services.paths.root)))

    def _about(self) -> None:
        box = QMessageBox(self._window)
        box.setWindowTitle("About Commonplace")
        box.setIconPixmap(self._window.windowIcon().pixmap(64))
        box.setText("Commonplace")
        box.setInformativeText(
            "A chat program that remembers. Everything is kept on this computer. MIT licence."
        )
        box.finished.connect(box.deleteLater)
        box.open()
