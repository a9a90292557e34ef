"""Commands about a stored conversation: pin, archive, tag, delete, restore, forget, export."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFileDialog

from app.chat.exchange_loop import ExchangeLoop
from app.chat.library import Library
from app.domain.conversations import Conversation
from app.domain.ids import ConversationId
from app.domain.transfer import ExportReport
from app.domain.translation import tr, trn
from app.storage.tables.conversations import Conversations
from app.transfer.exporting import ExportFormat
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import Presenter, ask_for_text
from ui.views.dialogs.confirm import confirm_deletion
from ui.widgets.banner import Banner

_FORMATS = {
    "Markdown (*.md)": ExportFormat.MARKDOWN,
    "JSON (*.json)": ExportFormat.JSON,
    "JSON Lines (*.jsonl)": ExportFormat.JSONL,
}
Command = Callable[[Conversation], object]
Export = Callable[[Path, ExportFormat, Sequence[ConversationId]], ExportReport]


@dataclass(frozen=True, slots=True)
class Removal:
    """Removes conversations, after stopping their replies. Blocking."""

    _exchanges: ExchangeLoop
    _library: Library
    _forget: Callable[[Sequence[ConversationId]], tuple[str, ...]]

    def delete(self, *conversation_ids: ConversationId) -> None:
        """Move conversations to the trash."""
        self._exchanges.stop(conversation_ids)
        self._library.delete(*conversation_ids)

    def forget(self, conversation_ids: Sequence[ConversationId]) -> tuple[str, ...]:
        """Delete conversations permanently; return what remains elsewhere, as text."""
        self._exchanges.stop(conversation_ids)
        return self._forget(conversation_ids)


class ConversationCommands(Presenter):
    """Runs commands on the open conversation, by `actions`, or on one of the list, by its menu.

    `export` writes some conversations, or all, in place of an existing file; it blocks.

    Attributes:
        opened: The open conversation, or None.
    """

    _library: Library
    _conversations: Conversations
    _removal: Removal
    _export: Export
    _messages: Banner
    _conversation: ConversationPresenter
    _actions: Mapping[str, QAction]
    _ask_for_project: Callable[[Sequence[ConversationId]], object]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.opened: Conversation | None = None
        commands: dict[str, Command] = {
            "pin": self._pin,
            "archive": self._archive,
            "tag": self._ask_for_tags,
            "delete": self._delete,
            "restore": self._restore,
            "forget": self._ask_to_forget,
            "move": lambda each: self._ask_for_project([each.id]),
            "export": lambda each: self.ask_for_export([each.id]),
        }
        for name, command in commands.items():
            self._actions[name].triggered.connect(
                lambda _checked=False, command=command: self._run_on_opened(command)
            )
        self.show_opened(None)

    def show_opened(self, conversation: Conversation | None) -> None:
        """Enable what can be done to the conversation that is open now."""
        self.opened = conversation
        in_trash = conversation is not None and conversation.deleted_at is not None
        for name in ("forget", "export"):
            self._actions[name].setEnabled(conversation is not None)
        for name in ("rename", "pin", "archive", "tag", "move", "delete"):
            self._actions[name].setEnabled(conversation is not None and not in_trash)
        self._actions["restore"].setEnabled(in_trash)
        self._actions["pin"].setChecked(bool(conversation and conversation.pinned))
        self._actions["archive"].setChecked(bool(conversation and conversation.archived))

    def menu_of(self, conversation: Conversation) -> tuple[tuple[str, Command], ...]:
        """Return the entries of a conversation's menu: text and command."""
        if conversation.deleted_at is not None:
            return (
                (tr("Restore"), self._restore),
                (tr("Forget permanently\u2026"), self._ask_to_forget),
            )
        return (
            (tr("Unpin") if conversation.pinned else tr("Pin"), self._pin),
            (tr("Unarchive") if conversation.archived else tr("Archive"), self._archive),
            (tr("Tags\u2026"), self._ask_for_tags),
            (tr("Move to project\u2026"), lambda each: self._ask_for_project([each.id])),
            (tr("Export\u2026"), lambda each: self.ask_for_export([each.id])),
            (tr("Delete"), self._delete),
        )

    def rename(self, title: str, conversation: Conversation | None = None) -> None:
        """Give a conversation a title, the open one by default."""
        if (chosen := conversation or self.opened) is not None:
            self._bridge.save(lambda: self._library.rename(chosen.id, title))

    def ask_for_export(self, ids: Sequence[ConversationId] = ()) -> None:
        """Ask where to write some conversations, or all of them, then do so."""
        dialog = QFileDialog(self._messages.window(), tr("Export"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters(list(_FORMATS))
        dialog.selectFile("conversation" if len(ids) == 1 else "commonplace")

        def add_ending(chosen: str) -> None:
            dialog.setDefaultSuffix(_FORMATS[chosen].value)  # before it asks about an existing file

        add_ending(dialog.selectedNameFilter())
        dialog.filterSelected.connect(add_ending)

        def export(name: str) -> None:
            form, path = _FORMATS[dialog.selectedNameFilter()], Path(name)
            self._bridge.load(
                "export",
                lambda: self._export(path, form, ids),
                lambda report: self._report_export(report, path),
            )

        dialog.fileSelected.connect(export)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _report_export(self, report: ExportReport, path: Path) -> None:
        count, remark = report.conversations, report.remark
        written = trn("{count} conversation", "{count} conversations", count)
        text = tr("Written to {path}: {conversations}.").format(path=path, conversations=written)
        text = f"{text} {remark}".rstrip()
        self._messages.show_message(text, brief=not remark)

    def _pin(self, conversation: Conversation) -> None:
        self._bridge.save(lambda: self._library.pin(conversation.id, not conversation.pinned))

    def _archive(self, conversation: Conversation) -> None:
        archived = not conversation.archived

        def archive(on: bool) -> None:
            self._bridge.save(lambda: self._library.archive(conversation.id, on))

        archive(archived)
        back = tr("\u201c{title}\u201d was moved out of the archive.")
        text = tr("\u201c{title}\u201d was archived.") if archived else back
        self._messages.show_message(
            text.format(title=conversation.title),
            tr("Undo"),
            lambda: archive(not archived),
            brief=True,
        )

    def _delete(self, conversation: Conversation) -> None:
        self._bridge.save(lambda: self._removal.delete(conversation.id))
        self._close_if_open(conversation)
        self._messages.show_message(
            tr("\u201c{title}\u201d is in the trash for 30 days.").format(title=conversation.title),
            tr("Undo"),
            lambda: self._restore(conversation),
            brief=True,
        )

    def _restore(self, conversation: Conversation) -> None:
        self._bridge.save(
            lambda: self._library.restore(conversation.id),
            lambda _: self._conversation.open(conversation.id),
        )

    def _ask_for_tags(self, conversation: Conversation) -> None:
        self._bridge.load(
            "tags",
            lambda: self._conversations.tags_of([conversation.id]).get(conversation.id, ()),
            lambda present: self._edit_tags(conversation, present),
        )

    def _edit_tags(self, conversation: Conversation, present: Sequence[str]) -> None:
        def save(text: str) -> None:
            wanted = [name.strip() for name in text.split(",") if name.strip()]
            added = [name for name in wanted if name not in present]
            removed = [name for name in present if name not in wanted]
            self._bridge.save(lambda: self._library.tag(conversation.id, added, removed))

        label = tr("Tags, separated by commas:")
        ask_for_text(self._messages.window(), tr("Tags"), label, ", ".join(present), save)

    def _ask_to_forget(self, conversation: Conversation) -> None:
        confirm_deletion(
            self._messages.window(),
            tr("\u201c{title}\u201d").format(title=conversation.title),
            "",
            lambda: self._forget(conversation),
        )

    def _forget(self, conversation: Conversation) -> None:
        def report(remains: tuple[str, ...]) -> None:
            text = " ".join(remains) or tr("The conversation was permanently deleted.")
            self._messages.show_message(text, brief=not remains)

        self._close_if_open(conversation)
        self._bridge.save(lambda: self._removal.forget([conversation.id]), report)

    def _close_if_open(self, conversation: Conversation) -> None:
        if self.opened is not None and self.opened.id == conversation.id:
            self._conversation.begin_new()

    def _run_on_opened(self, command: Command) -> None:
        if self.opened is not None:
            command(self.opened)
