"""The conversation list and what can be done to a conversation in it."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, QPoint, Qt, QTimer
from PySide6.QtWidgets import QFileDialog, QInputDialog, QMenu

from app.bootstrap import Services
from app.domain.conversations import Conversation
from app.domain.errors import KnownError
from app.domain.events import Changed
from app.domain.ids import ConversationId
from app.storage.conversations import ListFilter
from app.transfer.exporting import ExportFormat, export
from ui.bridge import Bridge
from ui.controllers.asking import ask_to_forget
from ui.views.main_window import MainWindow
from ui.views.sidebar import SHELVES, Shelf

_EMPTY = {
    "Conversations": "No conversations yet.\nWrite a message, or import your past.",
    "Archived": "Nothing is archived.",
    "Trash": "The trash is empty.",
}
_LIST_EVERY_MS = 250
_FORMATS = {
    "Markdown (*.md)": ExportFormat.MARKDOWN,
    "JSON (*.json)": ExportFormat.JSON,
    "JSON Lines (*.jsonl)": ExportFormat.JSONL,
}


class ConversationsController(QObject):
    """Lists conversations; renames, pins, archives, tags, deletes, exports the one that is meant.

    Attributes:
        opened: The conversation in the middle of the window, or None.
    """

    def __init__(
        self,
        services: Services,
        bridge: Bridge,
        window: MainWindow,
        open_conversation: Callable[[ConversationId], None],
        close_conversation: Callable[[], None],
    ) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._window = window
        self._open = open_conversation
        self._close = close_conversation
        self._shelf = SHELVES[0]
        self.opened: Conversation | None = None
        sidebar = window.sidebar
        self._due = QTimer(self, singleShot=True, interval=_LIST_EVERY_MS)
        self._due.timeout.connect(self._on_due)
        sidebar.conversation_chosen.connect(self._on_conversation_chosen)
        sidebar.shelf_chosen.connect(self._on_shelf_chosen)
        sidebar.menu_requested.connect(self._on_menu_requested)
        window.chat.renamed.connect(self._on_renamed)
        bridge.changed.connect(self._on_changed)
        self._wire_actions()
        self.show_opened(None)

    async def first_list(self) -> None:
        """Read the list for the first time."""
        await self._list()

    def refresh(self) -> None:
        """Read the list again."""
        self._bridge.start("conversations", self._list())

    def show_opened(self, conversation: Conversation | None) -> None:
        """Take note of which conversation is open: actions are about it."""
        self.opened = conversation
        self._window.sidebar.select_conversation(conversation.id if conversation else None)
        in_trash = conversation is not None and conversation.deleted_at is not None
        actions = self._window.actions_by_name
        for name in ("forget", "export"):
            actions[name].setEnabled(conversation is not None)
        for name in ("rename", "pin", "archive", "tag", "delete"):
            actions[name].setEnabled(conversation is not None and not in_trash)
        actions["restore"].setEnabled(in_trash)
        actions["pin"].setChecked(bool(conversation and conversation.pinned))
        actions["archive"].setChecked(bool(conversation and conversation.archived))

    async def _list(self) -> None:
        shelf = self._shelf
        which = ListFilter(archived=shelf.archived, trash=shelf.trash)
        found = await self._bridge.run(lambda: self._services.conversations.listed(which))
        self._window.sidebar.show_conversations(found, _EMPTY[shelf.name])
        await self._greet(has_some=bool(found))
        if self.opened is not None:
            for conversation in found:
                if conversation.id == self.opened.id:
                    self.show_opened(conversation)

    async def _greet(self, *, has_some: bool) -> None:
        """Welcome who has no conversation at all; archived ones and the trash count too."""
        if not has_some:
            has_some = bool((await self._bridge.run(self._services.overview.read)).conversations)
        self._window.chat.welcome.greet(is_newcomer=not has_some)

    def _wire_actions(self) -> None:
        wishes: dict[str, Callable[[Conversation], None]] = {
            "rename": lambda _: self._window.chat.title.setFocus(
                Qt.FocusReason.ShortcutFocusReason
            ),
            "pin": lambda each: self._set_pinned(each, not each.pinned),
            "archive": lambda each: self._set_archived(each, not each.archived),
            "tag": self._ask_tags,
            "delete": self._delete,
            "restore": self._restore,
            "forget": self._ask_forget,
            "export": lambda each: self.ask_export(each.id),
        }
        for name, wish in wishes.items():
            self._window.actions_by_name[name].triggered.connect(
                lambda _checked=False, wish=wish: self._on_wish(wish)
            )
        self._window.actions_by_name["export_all"].triggered.connect(lambda: self.ask_export(None))

    def _on_wish(self, wish: Callable[[Conversation], None]) -> None:
        if self.opened is not None:
            wish(self.opened)

    # -- the list

    def _on_changed(self, changed: Changed) -> None:
        if changed.conversations and not self._due.isActive():
            self._due.start()

    def _on_due(self) -> None:
        self.refresh()

    def _on_conversation_chosen(self, conversation: Conversation) -> None:
        self._open(conversation.id)

    def _on_shelf_chosen(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self.refresh()

    def _on_renamed(self, title: str) -> None:
        if (opened := self.opened) is not None:
            self._do(lambda: self._services.library.rename(opened.id, title))

    def _on_menu_requested(self, conversation: Conversation, position: QPoint) -> None:
        menu = QMenu(self._window)
        entries: list[tuple[str, Callable[[Conversation], None]]] = (
            [("Restore", self._restore), ("Forget for ever\u2026", self._ask_forget)]
            if conversation.deleted_at is not None
            else [
                ("Unpin" if conversation.pinned else "Pin",
                 lambda each: self._set_pinned(each, not each.pinned)),
                ("Unarchive" if conversation.archived else "Archive",
                 lambda each: self._set_archived(each, not each.archived)),
                ("Tags\u2026", self._ask_tags),
                ("Export\u2026", lambda each: self.ask_export(each.id)),
                ("Delete", self._delete),
            ]
        )  # fmt: skip
        for words, act in entries:
            menu.addAction(words).triggered.connect(
                lambda _checked=False, act=act: act(conversation)
            )
        menu.popup(position)
        menu.aboutToHide.connect(menu.deleteLater)

    # -- wishes

    def _set_pinned(self, conversation: Conversation, pinned: bool) -> None:
        self._do(lambda: self._services.library.pin(conversation.id, pinned))

    def _set_archived(self, conversation: Conversation, archived: bool) -> None:
        self._do(lambda: self._services.library.archive(conversation.id, archived))
        words = f"'{conversation.title}' was {'archived' if archived else 'brought back'}."
        self._window.chat.banner.tell(
            words,
            "Undo",
            lambda: self._do(lambda: self._services.library.archive(conversation.id, not archived)),
            brief=True,
        )

    def _delete(self, conversation: Conversation) -> None:
        self._do(lambda: self._deleted(conversation.id))
        if self.opened is not None and self.opened.id == conversation.id:
            self._close()
        self._window.chat.banner.tell(
            f"'{conversation.title}' is in the trash for 30 days.",
            "Undo",
            lambda: self._restore(conversation),
            brief=True,
        )

    def _restore(self, conversation: Conversation) -> None:
        self._do(
            lambda: self._services.library.restore(conversation.id),
            lambda _: self._open(conversation.id),
        )

    def _ask_tags(self, conversation: Conversation) -> None:
        self._bridge.start("tags", self._tags(conversation))

    async def _tags(self, conversation: Conversation) -> None:
        tags = await self._bridge.run(
            lambda: self._services.conversations.tags_of([conversation.id])
        )
        present = tags.get(conversation.id, ())
        dialog = QInputDialog(self._window)
        dialog.setWindowTitle("Tags")
        dialog.setLabelText("Tags, separated by commas:")
        dialog.setTextValue(", ".join(present))

        def take(words: str) -> None:
            wanted = [name.strip() for name in words.split(",") if name.strip()]
            added = [name for name in wanted if name not in present]
            removed = [name for name in present if name not in wanted]
            self._do(lambda: self._services.library.tag(conversation.id, added, removed))

        dialog.textValueSelected.connect(take)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _ask_forget(self, conversation: Conversation) -> None:
        ask_to_forget(
            self._window,
            f"'{conversation.title}'",
            "It is erased from the database, the journal and every backup. Exports you have made "
            "elsewhere are not touched. This cannot be undone.",
            lambda: self._forget(conversation.id),
        )

    def _forget(self, conversation_id: ConversationId) -> None:
        if self.opened is not None and self.opened.id == conversation_id:
            self._close()
        self._do(lambda: self._forgotten(conversation_id), self._tell_what_is_left)

    def _deleted(self, conversation_id: ConversationId) -> None:
        self._services.chat.stop([conversation_id])
        self._services.library.delete(conversation_id)

    def _forgotten(self, conversation_id: ConversationId) -> tuple[str, ...]:
        self._services.chat.stop([conversation_id])
        return self._services.forget([conversation_id])

    def _tell_what_is_left(self, left: object) -> None:
        words = " ".join(left) if isinstance(left, tuple) and left else "It is gone for ever."
        self._window.chat.banner.tell(words, brief=not left)

    def ask_export(self, conversation_id: ConversationId | None) -> None:
        """Ask where to write a conversation, or (None) all of them, then do it."""
        dialog = QFileDialog(self._window, "Export")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters(list(_FORMATS))
        dialog.selectFile("conversation" if conversation_id else "commonplace")

        def take(name: str) -> None:
            chosen = _FORMATS[dialog.selectedNameFilter()]
            path = Path(name)
            if not path.suffix:
                path = path.with_suffix(f".{chosen.value}")
            self._bridge.start("export", self._export(path, chosen, conversation_id))

        dialog.fileSelected.connect(take)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    async def _export(
        self, path: Path, chosen: ExportFormat, conversation_id: ConversationId | None
    ) -> None:
        try:
            count = await self._bridge.run(
                lambda: export(self._services.store, path, chosen, conversation_id)
            )
        except KnownError as error:
            self._window.chat.tell(error)
            return
        noun = "conversation was" if count == 1 else "conversations were"
        self._window.chat.banner.tell(f"{count:,} {noun} written to {path}.", brief=True)

    def _do(
        self, act: Callable[[], object], then: Callable[[object], object] = lambda _: None
    ) -> None:
        """Do something that may block, and `then` something with its outcome."""
        self._bridge.carry_out(self._done(act, then))

    async def _done(self, act: Callable[[], object], then: Callable[[object], object]) -> None:
        try:
            outcome = await self._bridge.write(act)
        except KnownError as error:
            self._window.chat.tell(error)
        else:
            then(outcome)
