"""Drafts: what was typed in each conversation and not sent, and messages that wait for the end of a reply."""

from functools import partial
from typing import TYPE_CHECKING

from app.chat.library import Library
from app.domain.conversations import Draft
from app.domain.ids import ConversationId
from ui.presenters.presenter import Presenter
from ui.widgets.composer import Composer

if TYPE_CHECKING:
    from ui.presenters.conversation import ConversationPresenter


class Drafts(Presenter):
    """Stores what is typed, and shows it again where it was typed.

    Attributes:
        queued: The messages that wait for the end of a reply; stored in front of the draft.
    """

    _library: Library
    _composer: Composer
    _conversation: "ConversationPresenter"

    def _set_up(self) -> None:
        self._drafts: dict[ConversationId | None, Draft] = {}
        self.queued: dict[ConversationId, Draft] = {}
        self._composer.draft_changed.connect(self._on_draft_changed)

    async def show(self) -> None:
        """Show what was typed here and not sent."""
        conversation_id = self._conversation.conversation_id
        draft = self._drafts.get(conversation_id)  # it may not be stored yet
        if draft is None:
            draft = await self._bridge.run(lambda: self._library.draft(conversation_id))
        if self._conversation.conversation_id == conversation_id:
            is_new_private = self._conversation.is_private and self._conversation.view is None
            self._composer.show_draft(Draft() if is_new_private else draft)

    def save(self, conversation_id: ConversationId | None, draft: Draft) -> None:
        """Store what was typed and not sent; a private conversation not yet stored has no draft."""
        if self._conversation.is_private and conversation_id is None:
            return
        self._drafts[conversation_id] = draft
        waiting = self.queued.get(conversation_id) if conversation_id is not None else None
        whole = waiting.followed_by(draft) if waiting is not None else draft
        self._bridge.save(partial(self._library.save_draft, conversation_id, whole))

    def typed(self, conversation_id: ConversationId | None) -> Draft:
        """Return what was typed in a conversation in this session and not sent."""
        return self._drafts.get(conversation_id, Draft())

    def note_sent(self) -> None:
        """Take note that the draft is being sent; it is deleted with the message's commit."""
        self._drafts[self._conversation.conversation_id] = Draft()

    def _on_draft_changed(self, draft: Draft) -> None:
        if not self._composer.is_editing:
            self.save(self._conversation.conversation_id, draft)
