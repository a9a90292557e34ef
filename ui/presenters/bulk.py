"""Commands about several conversations of the list at once, each one transaction with one Undo."""

from collections.abc import Callable, Sequence

from app.chat.library import Library
from app.domain.conversations import Conversation
from app.domain.ids import ConversationId
from app.domain.translation import tr, trn
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.conversation_commands import Removal
from ui.presenters.presenter import Presenter, ask_for_text
from ui.views.dialogs.confirm import confirm_deletion
from ui.widgets.banner import Banner

Entry = tuple[str, Callable[[], object]]


class BulkCommands(Presenter):
    """Archives, tags, exports, deletes, restores and forgets the selected conversations."""

    _library: Library
    _removal: Removal
    _messages: Banner
    _conversation: ConversationPresenter
    _ask_for_export: Callable[[Sequence[ConversationId]], object]
    _ask_for_project: Callable[[Sequence[ConversationId]], object]

    def menu_of(self, conversations: Sequence[Conversation]) -> tuple[Entry, ...]:
        """Return the entries of the menu of several conversations: text and what it runs."""
        ids = [each.id for each in conversations]
        if any(each.deleted_at is not None for each in conversations):
            return (
                (tr("Restore"), lambda: self._bridge.save(lambda: self._library.restore(*ids))),
                (tr("Forget permanently\u2026"), lambda: self.ask_to_forget(conversations)),
            )
        archived = all(each.archived for each in conversations)
        return (
            (
                tr("Unarchive") if archived else tr("Archive"),
                lambda: self._archive(conversations, archived=not archived),
            ),
            (tr("Add tags\u2026"), lambda: self._ask_for_tags(conversations)),
            (tr("Move to project\u2026"), lambda: self._ask_for_project(ids)),
            (tr("Export\u2026"), lambda: self._ask_for_export(ids)),
            (tr("Delete"), lambda: self._delete(conversations)),
        )

    def _archive(self, conversations: Sequence[Conversation], *, archived: bool) -> None:
        ids = [each.id for each in conversations if each.archived != archived]
        done = (
            trn(
                "{count} conversation was archived.",
                "{count} conversations were archived.",
                len(ids),
            )
            if archived
            else trn(
                "{count} conversation was moved out of the archive.",
                "{count} conversations were moved out of the archive.",
                len(ids),
            )
        )

        def archive(on: bool) -> None:
            self._bridge.save(lambda: self._library.archive_all(ids, on))

        archive(archived)
        self._messages.show_message(done, tr("Undo"), lambda: archive(not archived), brief=True)

    def _ask_for_tags(self, conversations: Sequence[Conversation]) -> None:
        ids = [each.id for each in conversations]

        def save(text: str) -> None:
            names = [name.strip() for name in text.split(",") if name.strip()]
            self._bridge.save(lambda: self._library.tag_all(ids, names))

        label = trn(
            "Tags for {count} conversation, separated by commas:",
            "Tags for {count} conversations, separated by commas:",
            len(ids),
        )
        ask_for_text(self._messages.window(), tr("Add tags"), label, "", save)

    def _delete(self, conversations: Sequence[Conversation]) -> None:
        ids = [each.id for each in conversations]
        self._bridge.save(lambda: self._removal.delete(*ids))
        self._close(conversations)
        self._messages.show_message(
            trn(
                "{count} conversation is in the trash for 30 days.",
                "{count} conversations are in the trash for 30 days.",
                len(ids),
            ),
            tr("Undo"),
            lambda: self._bridge.save(lambda: self._library.restore(*ids)),
            brief=True,
        )

    def ask_to_forget(self, conversations: Sequence[Conversation]) -> None:
        """Forget conversations for good, after a question whose default is to cancel."""
        confirm_deletion(
            self._messages.window(),
            trn("{count} conversation", "{count} conversations", len(conversations)),
            "",
            lambda: self._forget(conversations),
        )

    def _forget(self, conversations: Sequence[Conversation]) -> None:
        def report(remains: tuple[str, ...]) -> None:
            self._messages.show_message(" ".join(remains), brief=not remains)

        self._close(conversations)
        self._bridge.save(lambda: self._removal.forget([each.id for each in conversations]), report)

    def _close(self, conversations: Sequence[Conversation]) -> None:
        """Leave the open conversation if it is one of these."""
        if self._conversation.conversation_id in {each.id for each in conversations}:
            self._conversation.begin_new()
