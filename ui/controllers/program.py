"""All controllers of one open data directory, and what needs more than one of them."""

import asyncio

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QInputDialog, QMessageBox

from app.bootstrap import Services
from app.chat.places import parse_place
from app.domain.conversations import Conversation
from app.domain.errors import KnownError
from app.domain.ids import ConversationId, ExchangeId
from ui.bridge import Bridge
from ui.controllers.chatting import ChatController
from ui.controllers.conversations import ConversationsController
from ui.controllers.finding import FindController
from ui.controllers.importing import ImportController
from ui.controllers.links import LinkController
from ui.controllers.searching import SearchController
from ui.controllers.settings import SettingsController
from ui.controllers.workers import WorkersController
from ui.errors import words_for
from ui.theme import Appearance, Theme
from ui.views.main_window import MainWindow
from ui.views.palette import CommandPalette


class Program(QObject):
    """The program at work in its window.

    Attributes:
        ready: Set when the list of conversations has been shown for the first time.
        chat, conversations, find, importing, links, search, settings, workers: The controllers.
    """

    def __init__(
        self, services: Services, bridge: Bridge, window: MainWindow, appearance: Appearance
    ) -> None:
        super().__init__(window)
        self.ready = asyncio.Event()
        self._services = services
        self._bridge = bridge
        self._window = window
        self._appearance = appearance
        self.chat = ChatController(services, bridge, window, appearance)
        self.conversations = ConversationsController(
            services, bridge, window, self.open_conversation, self.chat.begin_new
        )
        self.search = SearchController(services, bridge, window.sidebar, self.open_turn)
        self.find = FindController(services, bridge, window, self.chat)
        self.settings = SettingsController(services, bridge, window, appearance)
        self.importing = ImportController(services, bridge, window)
        self.workers = WorkersController(services, bridge, window)
        self.chat.opened.connect(self.conversations.show_opened)
        self.chat.opened.connect(self._on_chat_opened)
        self.links = LinkController(window, self._open_numbered)
        self.chat.link_activated.connect(self.links.follow)
        window.chat.welcome.model_requested.connect(lambda: self.settings.open("Providers"))
        window.sidebar.new_requested.connect(self.chat.begin_new)
        appearance.theme_changed.connect(self._on_theme_changed)
        self._wire_actions()
        self._bridge.start("begin", self._begin())

    def open_conversation(self, conversation_id: ConversationId) -> None:
        """Show a conversation on its visible path."""
        self.chat.open(conversation_id)

    def open_turn(self, conversation_id: ConversationId, exchange_id: ExchangeId | None) -> None:
        """Show a conversation at an exchange, centred and highlighted, on whatever branch it is."""
        self.chat.open(conversation_id, exchange_id)

    def flush(self) -> None:
        """Before the goodbye: stop what runs, hand over what was typed."""
        self.importing.stop()
        self._window.chat.composer.flush_draft()

    async def _begin(self) -> None:
        """Show what there is, then set the workers going."""
        if notices := self._services.store.notices:
            self._window.chat.banner.tell(" ".join(notices), brief=False)
        await self.chat.begin(self._window.conversation_id)
        await self.conversations.first_list()
        self._window.chat.composer.box.setFocus()
        self.workers.start()
        self.ready.set()

    def _on_chat_opened(self, conversation: Conversation | None) -> None:
        """Note where the user is: a killed program comes back there too."""
        self._window.conversation_id = conversation.id if conversation else None
        self._window.save_state(self._services.paths.window)

    def _wire_actions(self) -> None:
        actions = self._window.actions_by_name
        for name, act in (
            ("new", self.chat.begin_new),
            ("new_private", lambda: self.chat.begin_new(private=True)),
            ("search", self._window.sidebar.focus_search),
            ("back", self._window.sidebar.back_to_results),
            ("palette", self._on_palette_triggered),
            ("open_link", self._ask_place),
            ("backup", lambda: self._start("backup", self._back_up())),
            ("check", lambda: self._start("check", self._check())),
            ("open_folder", self._open_folder),
            ("about", self._about),
        ):
            actions[name].triggered.connect(lambda _checked=False, act=act: act())

    def _start(self, name: str, work: object) -> None:
        self._bridge.start(name, work)  # type: ignore[arg-type]

    def _on_theme_changed(self, theme: Theme) -> None:
        self._window.sidebar.set_theme(theme)

    def _on_palette_triggered(self) -> None:
        palette = CommandPalette(list(self._window.actions_by_name), self._window)
        palette.finished.connect(palette.deleteLater)
        palette.open()

    def _ask_place(self) -> None:
        dialog = QInputDialog(self._window)
        dialog.setWindowTitle("Open a turn")
        dialog.setLabelText("A link to a turn, or ID:TURN:")
        dialog.textValueSelected.connect(self._on_place_entered)
        dialog.open()

    def _on_place_entered(self, words: str) -> None:
        try:
            conversation_id, turn = parse_place(words)
        except KnownError as error:
            self._window.chat.banner.tell(str(error), brief=False)
            return
        self._open_numbered(conversation_id, turn)

    def _open_numbered(self, conversation_id: int, turn: int | None) -> None:
        """Show a turn by its number on the shown path."""
        self._bridge.start("open place", self._open_place(ConversationId(conversation_id), turn))

    async def _open_place(self, conversation_id: ConversationId, turn: int | None) -> None:
        try:
            view = await self._bridge.run(lambda: self._services.library.open(conversation_id))
        except KnownError as error:
            title, hint = words_for(error)
            self._window.chat.banner.tell(f"{title}. {hint}", brief=False)
            return
        exchange = next((each for each in view.path if each.turn_number == turn), None)
        self.open_turn(conversation_id, exchange.id if exchange else None)

    async def _back_up(self) -> None:
        backup = await self._bridge.run(self._services.back_up)
        self._window.chat.banner.tell(f"Backed up and verified: {backup.path.name}", brief=True)

    async def _check(self) -> None:
        report = await self._bridge.run(self._services.check)
        box = QMessageBox(self._window)
        box.setWindowTitle("Check")
        box.setText(
            "Everything is in order."
            if not report.problems
            else f"{len(report.problems)} things are not in order."
        )
        box.setDetailedText("\n".join(report.problems))
        box.open()

    def _open_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._services.paths.root)))

    def _about(self) -> None:
        QMessageBox.about(
            self._window,
            "About Commonplace",
            f"{QGuiApplication.applicationDisplayName()}, a chat program that remembers.\n\n"
            "Everything is kept on this computer. MIT licence.",
        )
