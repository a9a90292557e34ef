"""Slash commands: what is typed for the program runs off the GUI thread, its answer is shown here."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject

from app.bootstrap import Services
from app.chat.commands.session import CommandSession
from app.chat.commands.values import (
    Action,
    AskExport,
    CommandOutput,
    ImportFiles,
    OpenPage,
    OpenTurn,
    Place,
)
from app.chat.slates import KEY as SLATES
from app.domain.conversations import Conversation
from app.domain.errors import KnownError
from app.domain.events import Changed
from app.domain.ids import ConversationId, ExchangeId
from ui.bridge import Bridge
from ui.controllers.chatting import ChatController
from ui.errors import words_for
from ui.theme import Appearance
from ui.views.command_panel import CommandPanel
from ui.views.main_window import MainWindow
from ui.widgets.transcript.view import TranscriptView


@dataclass(frozen=True, slots=True)
class Deeds:
    """What commands ask of the window: show a turn, a page, import files, ask where to export."""

    open_turn: Callable[[ConversationId, ExchangeId | None], None]
    open_page: Callable[[str, str], None]
    import_files: Callable[[list[Path]], None]
    ask_export: Callable[[ConversationId], None]


class CommandController(QObject):
    """Runs commands one after the other; shows clean slates, which one of them begins.

    Attributes:
        panel: Where answers and errors stand.
    """

    def __init__(
        self,
        services: Services,
        bridge: Bridge,
        window: MainWindow,
        appearance: Appearance,
        chat: ChatController,
        deeds: Deeds,
    ) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._chat = chat
        self._deeds = deeds
        self._composer = window.chat.composer
        transcript = window.chat.transcript
        assert isinstance(transcript, TranscriptView)
        self._transcript = transcript
        self._session = CommandSession(services.commands)
        self._turn = asyncio.Lock()
        self._opened: ConversationId | None = None
        self.panel = CommandPanel(appearance.theme, window.chat)
        window.chat.add_panel(self.panel)
        appearance.theme_changed.connect(self.panel.set_theme)
        self.panel.dismissed.connect(self._session.give_up)
        self.panel.dismissed.connect(self._composer.box.setFocus)
        self.panel.link_hovered.connect(window.statusBar().showMessage)
        self._composer.take_commands(self._session.takes, self._session.complete)
        self._composer.command_requested.connect(self.run)
        self._composer.dismiss_requested.connect(self.panel.dismiss)
        self._composer.send_requested.connect(self._on_send_requested)
        chat.opened.connect(self._on_chat_opened)
        bridge.changed.connect(self._on_changed)
        actions = window.actions_by_name
        actions["clean_slate"].triggered.connect(lambda: self.run("/new"))
        actions["slash_commands"].triggered.connect(lambda: self.run("/help"))

    def run(self, text: str) -> None:
        """Carry a command out in the conversation that is open now."""
        path = self._chat.view.path if self._chat.view else ()
        place = Place(self._chat.conversation_id, path[-1].id if path else None)
        self._bridge.carry_out(self._run(text, place))

    async def _run(self, text: str, place: Place) -> None:
        async with self._turn:
            try:
                output = await self._bridge.run(lambda: self._session.run(text, place))
            except KnownError as error:
                self.panel.show_error(text, *words_for(error))
                return
        if self._composer.text == text and not output.keeps_text:
            self._composer.discard()
        self._show(text, output)

    def _show(self, text: str, output: CommandOutput) -> None:
        if output.markdown:
            self.panel.show_output(text, output.markdown)
        elif output.action is None:
            self.panel.dismiss()
        if output.action is not None:
            self._act(output.action)

    def _act(self, action: Action) -> None:
        match action:
            case OpenTurn(conversation_id, exchange_id):
                self._deeds.open_turn(conversation_id, exchange_id)
            case OpenPage(source, title):
                self._deeds.open_page(source, title)
            case ImportFiles(paths):
                self._deeds.import_files(list(paths))
            case AskExport(conversation_id):
                self._deeds.ask_export(conversation_id)

    def _on_send_requested(self) -> None:
        self.panel.dismiss()

    def _on_chat_opened(self, conversation: Conversation | None) -> None:
        """An answer is about the conversation it was asked in, unless it lists what to open."""
        opened = conversation.id if conversation else None
        if opened != self._opened and not self.panel.title.text().startswith("/search"):
            self.panel.dismiss()
        self._opened = opened
        self._show_slate()

    def _on_changed(self, changed: Changed) -> None:
        if SLATES in changed.settings:
            self._show_slate(goes_there=True)

    def _show_slate(self, *, goes_there: bool = False) -> None:
        path = self._chat.view.path if self._chat.view else ()
        is_clean = bool(path) and self._services.slates.is_after(path[-1].id)
        self._transcript.show_slate(is_clean, goes_there=goes_there)
