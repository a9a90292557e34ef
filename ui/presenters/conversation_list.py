"""The list of conversations in the sidebar, and the menu of each."""

from collections.abc import Callable

from PySide6.QtCore import QObject, QPoint, QTimer
from PySide6.QtWidgets import QMenu

from app.domain.changes import ChangeSet
from app.domain.conversations import Conversation
from app.domain.ids import ConversationId
from app.storage.tables.conversations import Conversations, ListFilter
from ui.bridge import Bridge
from ui.presenters.conversation_commands import ConversationCommands
from ui.presenters.protocols import MessageView
from ui.views.sidebar import FOLDERS, Folder, Sidebar
from ui.views.welcome import Welcome

_REFRESH_MS = 250


class ConversationListPresenter(QObject):
    """Lists the conversations of a folder of the sidebar.

    `has_any` returns whether there are conversations, archived and deleted ones included; it
    blocks. `open_conversation` shows one.
    """

    def __init__(
        self,
        conversations: Conversations,
        has_any: Callable[[], bool],
        commands: ConversationCommands,
        bridge: Bridge,
        messages: MessageView,
        sidebar: Sidebar,
        welcome: Welcome,
        open_conversation: Callable[[ConversationId], object],
    ) -> None:
        super().__init__(bridge)
        self._conversations = conversations
        self._has_any = has_any
        self._commands = commands
        self._bridge = bridge
        self._messages = messages
        self._sidebar = sidebar
        self._welcome = welcome
        self._folder = FOLDERS[0]
        self._due = QTimer(self, singleShot=True, interval=_REFRESH_MS)
        self._due.timeout.connect(self.refresh)
        sidebar.conversation_chosen.connect(lambda each: open_conversation(each.id))
        sidebar.folder_chosen.connect(self._on_folder_chosen)
        sidebar.menu_requested.connect(self._on_menu_requested)
        bridge.changed.connect(self._on_changed)

    def refresh(self) -> None:
        """Read the list again."""
        self._bridge.start("conversations", self.load(), self._messages.show_error)

    async def load(self) -> None:
        """Read the list and show it; raises StorageError."""
        folder = self._folder
        which = ListFilter(archived=folder.archived, trash=folder.trash)
        found = await self._bridge.run(lambda: self._conversations.listed(which))
        self._sidebar.show_conversations(found, folder.empty_text)
        has_any = bool(found) or await self._bridge.run(self._has_any)
        self._welcome.greet(is_newcomer=not has_any)
        opened = self._commands.opened
        if opened is not None and any(each.id == opened.id for each in found):
            self._sidebar.select_conversation(opened.id)

    def show_opened(self, conversation: Conversation | None) -> None:
        """Select the conversation that is open now."""
        self._commands.show_opened(conversation)
        self._sidebar.select_conversation(conversation.id if conversation else None)

    def _on_changed(self, changed: ChangeSet) -> None:
        if changed.conversations and not self._due.isActive():
            self._due.start()

    def _on_folder_chosen(self, folder: Folder) -> None:
        self._folder = folder
        self.refresh()

    def _on_menu_requested(self, conversation: Conversation, position: QPoint) -> None:
        menu = QMenu(self._messages.window())
        for text, command in self._commands.menu_of(conversation):
            menu.addAction(text).triggered.connect(
                lambda _checked=False, command=command: command(conversation)
            )
        menu.popup(position)
        menu.aboutToHide.connect(menu.deleteLater)
