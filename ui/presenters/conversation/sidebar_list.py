"""The list of conversations in the sidebar, and the menu of each."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPoint

from app.domain.conversations import Conversation
from app.domain.ids import ConversationId
from app.domain.records.projects import Project
from app.domain.translation import tr, trn
from app.storage.tables.conversations import Conversations, ListFilter
from ui.bridge import Refresh
from ui.presenters.conversation.list_commands import ConversationCommands
from ui.presenters.presenter import Presenter, show_menu
from ui.views.sidebar import FOLDERS, Folder, Sidebar
from ui.views.welcome import Welcome

_REFRESH_MS = 250


class ConversationListPresenter(Presenter):
    """Lists the conversations of a folder of the sidebar.

    `projects` returns each project with the number of its conversations, and `has_any` whether there are
    conversations, archived and deleted ones included; both block. `open_conversation` shows one.
    """

    _conversations: Conversations
    _projects: Callable[[], Sequence[tuple[Project, int]]]
    _has_any: Callable[[], bool]
    _commands: ConversationCommands
    _sidebar: Sidebar
    _welcome: Welcome
    _open_conversation: Callable[[ConversationId], object]

    def _set_up(self) -> None:
        self._folder = FOLDERS[0]
        rows = Refresh(self, self._bridge, "conversations", _REFRESH_MS, self._load_rows)
        names = Refresh(self, self._bridge, "folders", _REFRESH_MS, self._load_folders)
        self._bridge.subscribe(lambda _: rows.request(), "conversations", "messages_in", "projects")
        self._bridge.day_began.connect(rows.request)
        self._bridge.subscribe(lambda _: names.request(), "conversations", "projects")
        self._sidebar.conversation_chosen.connect(lambda each: self._open_conversation(each.id))
        self._sidebar.folder_chosen.connect(self._on_folder_chosen)
        self._sidebar.projects.chosen.connect(lambda _: self.refresh())
        self._sidebar.menu_requested.connect(self._on_menu_requested)
        self._sidebar.deletion_requested.connect(self._on_deletion_requested)
        self._sidebar.conversations.renamed.connect(
            lambda each, title: self._commands.rename(title, each)
        )
        self._sidebar.trash_emptied.connect(self._on_trash_emptied)

    def refresh(self) -> None:
        self._bridge.start("conversations", self._load_rows())

    async def load(self) -> None:
        """Read and show everything; raises StorageError."""
        await self._load_folders()
        await self._load_rows()

    async def _load_folders(self) -> None:
        """Show the tags and the projects, with the number of conversations of each."""
        tags, projects = await self._bridge.run(
            lambda: (self._conversations.tag_counts(), self._projects())
        )
        self._sidebar.show_tags(tags)
        self._sidebar.projects.show_projects(projects)

    async def _load_rows(self) -> None:
        folder, project = self._folder, self._sidebar.projects.uid or None
        shows_all = folder.tag is not None or (project is not None and not folder.archived)
        which = ListFilter(
            archived=None if shows_all else folder.archived,
            trash=folder.trash,
            tag=folder.tag,
            project=project,
        )
        found = await self._bridge.run(lambda: self._conversations.listed(which))
        empty = tr("No conversation of this project is here.") if project else folder.empty_text
        self._sidebar.show_conversations(found, empty)
        has_any = bool(found) or await self._bridge.run(self._has_any)
        self._welcome.greet(is_newcomer=not has_any)
        opened = self._commands.opened
        if opened is not None and any(each.id == opened.id for each in found):
            self._sidebar.select_conversation(opened.id)

    def show_opened(self, conversation: Conversation | None) -> None:
        """Select the conversation that is open now."""
        self._commands.show_opened(conversation)
        self._sidebar.select_conversation(conversation.id if conversation else None, is_opened=True)

    def _on_folder_chosen(self, folder: Folder) -> None:
        self._folder = folder
        self.refresh()

    def _on_menu_requested(self, conversation: Conversation, position: QPoint) -> None:
        selected = self._sidebar.selected_conversations
        chosen = selected if conversation in selected else [conversation]
        entries = self._commands.menu_of(chosen)
        if len(chosen) == 1 and conversation.deleted_at is None:
            entries.insert(0, (tr("Rename"), lambda: self._sidebar.edit_title(conversation)))
        count = trn("{count} conversation", "{count} conversations", len(chosen))
        heading = count if len(chosen) > 1 else ""
        show_menu(self._sidebar.window(), position, entries, heading)

    def _on_deletion_requested(self) -> None:
        """Delete what is selected; what is in the trash already is forgotten after a question."""
        chosen = self._sidebar.selected_conversations
        if any(each.deleted_at is not None for each in chosen):
            self._commands.ask_to_forget(chosen)
        elif chosen:
            self._commands.delete(chosen)

    def _on_trash_emptied(self) -> None:
        self._bridge.load(
            "trash",
            lambda: self._conversations.listed(ListFilter(archived=None, trash=True)),
            self._commands.ask_to_forget,
        )
