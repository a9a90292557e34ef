"""Commands about stored conversations: pin, archive, tag, delete, restore, forget, export."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
from ui.presenters.conversation.open_conversation import ConversationPresenter
from ui.presenters.presenter import Presenter, ask_for_text
from ui.views.dialogs.confirm import confirm_deletion
from ui.widgets.banner import Banner
from ui.widgets.dialog import file_dialog

_FORMATS = {
    "Markdown (*.md)": ExportFormat.MARKDOWN,
    "JSON (*.json)": ExportFormat.JSON,
    "JSON Lines (*.jsonl)": ExportFormat.JSONL,
}
_NAME_CHARS = 80
Command = Callable[[Sequence[Conversation]], object]
Entry = tuple[str, Callable[[], object]]
Export = Callable[[Path, ExportFormat, Sequence[ConversationId]], ExportReport]


@dataclass(frozen=True, slots=True)
class Removal:
    """Removes conversations, after stopping their replies. Blocking."""

    _exchanges: ExchangeLoop
    _library: Library
    _forget: Callable[[Sequence[ConversationId]], tuple[str, ...]]

    def delete(self, *conversation_ids: ConversationId) -> None:
        self._exchanges.stop(conversation_ids)
        self._library.delete(*conversation_ids)

    def forget(self, conversation_ids: Sequence[ConversationId]) -> tuple[str, ...]:
        """Delete conversations permanently; return what remains elsewhere, as text."""
        self._exchanges.stop(conversation_ids)
        return self._forget(conversation_ids)


class ConversationCommands(Presenter):
    """Runs commands on the open conversation, by `actions`, or on some of the list, by their menu.

    What is done to several is one transaction.
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

    def _set_up(self) -> None:
        self.opened: Conversation | None = None
        commands: dict[str, Command] = {
            "pin": self._pin,
            "archive": self._archive,
            "tag": self._ask_for_tags,
            "delete": self.delete,
            "restore": self._restore,
            "forget": self.ask_to_forget,
            "move": lambda chosen: self._ask_for_project(_ids(chosen)),
            "export": lambda chosen: self.ask_for_export(_ids(chosen)),
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

    def menu_of(self, conversations: Sequence[Conversation]) -> list[Entry]:
        """Return the entries of the menu of conversations: text and what it runs."""
        is_one, first = len(conversations) == 1, conversations[0]
        entries: list[tuple[str, Command]] = [
            (
                tr("Unarchive") if all(each.archived for each in conversations) else tr("Archive"),
                self._archive,
            ),
            (tr("Tags\u2026") if is_one else tr("Add tags\u2026"), self._ask_for_tags),
            (tr("Move to project\u2026"), lambda chosen: self._ask_for_project(_ids(chosen))),
            (tr("Export\u2026"), lambda chosen: self.ask_for_export(_ids(chosen))),
            (tr("Delete"), self.delete),
        ]
        if any(each.deleted_at is not None for each in conversations):
            entries = [
                (tr("Restore"), self._restore),
                (tr("Forget permanently\u2026"), self.ask_to_forget),
            ]
        elif is_one:
            entries.insert(0, (tr("Unpin") if first.pinned else tr("Pin"), self._pin))
        return [(text, partial(command, conversations)) for text, command in entries]

    def rename(self, title: str, conversation: Conversation | None = None) -> None:
        """Give a conversation a title, the open one by default."""
        if (chosen := conversation or self.opened) is not None:
            self._bridge.save(lambda: self._library.rename(chosen.id, title))

    def ask_for_export(self, ids: Sequence[ConversationId] = ()) -> None:
        """Ask where to write some conversations, or all of them, then do so."""
        dialog = file_dialog(self._messages.window(), tr("Export"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters(list(_FORMATS))
        title = self.opened.title if self.opened and [*ids] == [self.opened.id] else ""
        name = re.sub(r"[^\w-]+", " ", title).strip()[:_NAME_CHARS]
        dialog.selectFile(name or ("conversation" if len(ids) == 1 else "commonplace"))

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

    def _pin(self, conversations: Sequence[Conversation]) -> None:
        (chosen,) = conversations
        self._bridge.save(lambda: self._library.pin(chosen.id, not chosen.pinned))

    def _archive(self, conversations: Sequence[Conversation]) -> None:
        archived = not all(each.archived for each in conversations)
        ids = [each.id for each in conversations if each.archived != archived]

        def archive(on: bool) -> None:
            self._bridge.save(lambda: self._library.archive(ids, on))

        archive(archived)
        one, several = (
            tr("\u201c{title}\u201d was moved out of the archive."),
            trn(
                "{count} conversation was moved out of the archive.",
                "{count} conversations were moved out of the archive.",
                len(ids),
            ),
        )
        if archived:
            one, several = (
                tr("\u201c{title}\u201d was archived."),
                trn(
                    "{count} conversation was archived.",
                    "{count} conversations were archived.",
                    len(ids),
                ),
            )
        self._report(_said(conversations, one, several), lambda: archive(not archived))

    def delete(self, conversations: Sequence[Conversation]) -> None:
        self._bridge.save(lambda: self._removal.delete(*_ids(conversations)))
        self._close_if_open(conversations)
        several = trn(
            "{count} conversation is in the trash for 30 days.",
            "{count} conversations are in the trash for 30 days.",
            len(conversations),
        )
        text = _said(conversations, tr("\u201c{title}\u201d is in the trash for 30 days."), several)
        self._report(text, lambda: self._restore(conversations))

    def _report(self, text: str, undo: Callable[[], object]) -> None:
        self._messages.show_message(text, tr("Undo"), undo, brief=True)

    def _restore(self, conversations: Sequence[Conversation]) -> None:
        """Restore conversations; a single one is opened."""

        def show(_: object) -> None:
            if len(conversations) == 1:
                self._conversation.open(conversations[0].id)

        self._bridge.save(lambda: self._library.restore(*_ids(conversations)), show)

    def _ask_for_tags(self, conversations: Sequence[Conversation]) -> None:
        ids = _ids(conversations)
        if len(ids) == 1:
            self._bridge.load(
                "tags",
                lambda: self._conversations.tags_of(ids).get(ids[0], ()),
                lambda present: self._edit_tags(ids[0], present),
            )
            return
        label = trn(
            "Tags for {count} conversation, separated by commas:",
            "Tags for {count} conversations, separated by commas:",
            len(ids),
        )

        def add(text: str) -> None:
            names = _names(text)
            count = trn("{count} conversation", "{count} conversations", len(ids))
            tags = " ".join(f"#{name}" for name in names)
            done = tr("{conversations}: {tags} added.").format(conversations=count, tags=tags)
            self._bridge.save(
                lambda: self._library.tag(ids, names),
                lambda _: self._messages.show_message(done, brief=True),
            )

        ask_for_text(self._messages.window(), tr("Add tags"), label, "", add)

    def _edit_tags(self, conversation_id: ConversationId, present: Sequence[str]) -> None:
        def save(text: str) -> None:
            wanted = _names(text)
            added = [name for name in wanted if name not in present]
            removed = [name for name in present if name not in wanted]
            self._bridge.save(lambda: self._library.tag([conversation_id], added, removed))

        label = tr("Tags, separated by commas:")
        ask_for_text(self._messages.window(), tr("Tags"), label, ", ".join(present), save)

    def ask_to_forget(self, conversations: Sequence[Conversation]) -> None:
        """Forget conversations for good, after a question whose default is to cancel."""
        count = trn("{count} conversation", "{count} conversations", len(conversations))
        name = _said(conversations, tr("\u201c{title}\u201d"), count)
        window = self._messages.window()
        confirm_deletion(window, name, "", lambda: self._forget(conversations))

    def _forget(self, conversations: Sequence[Conversation]) -> None:
        def report(remains: tuple[str, ...]) -> None:
            said = _said(conversations, tr("The conversation was permanently deleted."), "")
            self._messages.show_message(" ".join(remains) or said, brief=not remains)

        self._close_if_open(conversations)
        self._bridge.save(lambda: self._removal.forget(_ids(conversations)), report)

    def _close_if_open(self, conversations: Sequence[Conversation]) -> None:
        if self.opened is not None and self.opened.id in _ids(conversations):
            self._conversation.begin_new()

    def _run_on_opened(self, command: Command) -> None:
        if self.opened is not None:
            command([self.opened])


def _ids(conversations: Sequence[Conversation]) -> list[ConversationId]:
    return [each.id for each in conversations]


def _names(text: str) -> list[str]:
    """Return the tags that are separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _said(conversations: Sequence[Conversation], of_one: str, of_several: str) -> str:
    """Return what is said of one conversation, with its title, or of several."""
    return of_one.format(title=conversations[0].title) if len(conversations) == 1 else of_several
