"""Parts of the open conversation: the reply that grows in it, and what was typed and not sent.

A reply is shown as it grows, and as it was stored once it has ended. A message may wait for that end; it is stored
in front of the draft.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from app.chat.library import Library
from app.chat.reply import Reply
from app.domain.chat import TextWasThinking
from app.domain.conversations import Block, Draft, Exchange, Role
from app.domain.errors import KnownError
from app.domain.ids import ConversationId, ExchangeId
from app.domain.turns import RECALL_MODEL
from app.storage.tables.exchanges import Exchanges
from ui.presenters.conversation.turns import RunningReplies, content_of
from ui.presenters.presenter import Presenter
from ui.views.chat_pane import ChatPane
from ui.widgets.composer.composer import Composer
from ui.widgets.transcript.view import TranscriptView

if TYPE_CHECKING:
    from ui.presenters.conversation.open_conversation import ConversationPresenter

NEW_PRIVATE = ConversationId(-1)  # a private conversation not yet stored
_ANSWER_ROLES = (Role.ASSISTANT, Role.TOOL)


class GrowingReply(Presenter):
    """Shows the reply that runs in the open conversation.

    Attributes:
        ending: The exchange whose reply has ended and is being shown as it was stored.
        ended: The last one that is shown as it was stored.
    """

    _exchanges: Exchanges
    _pane: ChatPane
    _transcript: TranscriptView
    _replies: RunningReplies
    _conversation: "ConversationPresenter"

    def _set_up(self) -> None:
        self.ending: ExchangeId | None = None
        self.ended: ExchangeId | None = None
        self._replies.grew.connect(self._on_reply_grew)
        self._replies.status_changed.connect(self._on_reply_status_changed)
        self._replies.ended.connect(self._on_reply_ended)

    def is_of(self, conversation_id: ConversationId) -> bool:
        """Return whether a reply is running in a conversation, or any is being finished."""
        return self._replies.of(conversation_id) is not None or self.ending is not None

    def newest(self, conversation_id: ConversationId) -> ExchangeId | None:
        """Return the exchange of the reply that is running or being finished, if there is one."""
        reply = self._replies.of(conversation_id)
        return reply.plan.exchange.id if reply is not None else self.ending

    async def show(self, reply: Reply) -> None:
        """Show a turn that is growing: its question and the reply so far."""
        load, exchange = self._conversation.loads, reply.plan.exchange
        turn = self._conversation.turn_of(exchange.id)
        if turn is None:
            return
        messages = await self._bridge.run(lambda: self._exchanges.messages_of(exchange))
        if (
            self._conversation.loads != load
            or self._replies.of(exchange.conversation_id) is not reply
        ):
            return
        question = [each for each in messages if each.role not in _ANSWER_ROLES]
        self._conversation.provide_turn(turn, exchange, question)
        self._transcript.begin_reply(turn)
        for message in messages:
            if message.role in _ANSWER_ROLES:  # a reply that is continued
                self._append_blocks(message.blocks)
        self._append_blocks(self._replies.so_far(reply))

    def _append_blocks(self, blocks: Iterable[Block | TextWasThinking]) -> None:
        for block in blocks:
            self._transcript.append(block)

    def _on_reply_grew(self, reply: Reply, part: Block | TextWasThinking) -> None:
        if reply.plan.conversation.id == self._conversation.conversation_id:
            self._pane.status.show_text("")
            self._append_blocks([part])

    def _on_reply_status_changed(self, reply: Reply, text: str) -> None:
        if reply.plan.conversation.id == self._conversation.conversation_id:
            self._pane.status.show_text(text)

    def _on_reply_ended(self, reply: Reply, outcome: object) -> None:
        if isinstance(outcome, BaseException):
            self._pane.banner.show_error(outcome)
        if reply.plan.conversation.id == self._conversation.conversation_id:
            self._conversation.show_running(False)
            if isinstance(outcome, Exchange):
                self.ending = outcome.id
                self._bridge.start("reply ended", self._end_reply(reply, outcome))
                return
        self._conversation.reply_ended.emit(reply, outcome)

    async def _end_reply(self, reply: Reply, exchange: Exchange) -> None:
        try:
            await self._finish_reply(exchange)
        finally:
            self._conversation.reply_ended.emit(reply, exchange)

    async def _finish_reply(self, exchange: Exchange) -> None:
        """Show a turn as it was stored."""
        load = self._conversation.loads
        try:
            messages = await self._bridge.run(lambda: self._exchanges.messages_of(exchange))
        finally:
            if self.ending == exchange.id:
                self.ending = None
        view, turn = self._conversation.view, self._conversation.turn_of(exchange.id)
        if view is None or view.conversation.id != exchange.conversation_id or not messages:
            return
        if self._conversation.loads != load or turn is None:  # it was loaded again meanwhile
            self._conversation.refresh(exchange.conversation_id)
            return
        leaf = exchange.message_ids[-1]
        self._conversation.view = replace(
            view,
            conversation=replace(view.conversation, visible_leaf_id=leaf),
            path=(*view.path[:turn], exchange, *view.path[turn + 1 :]),
        )
        self._conversation.show_state()
        self._transcript.finish_reply(turn, content_of(exchange, messages, view.siblings[turn]))
        self.ended = exchange.id
        if exchange.model == RECALL_MODEL:  # the answer came at once: nobody has read it yet
            self._transcript.show_from_start(turn)


class Drafts(Presenter):
    """Stores what is typed, and shows it again where it was typed.

    Attributes:
        queued: The messages that wait for the end of a reply; stored in front of the draft.
    """

    _library: Library
    _composer: Composer
    _conversation: "ConversationPresenter"

    def _set_up(self) -> None:
        self._drafts: dict[ConversationId | None, Draft] = {NEW_PRIVATE: Draft()}
        # What was typed where the stored draft is still being read, as far as it is not on screen.
        self._unread: dict[ConversationId | None, Draft] = {}
        self.queued: dict[ConversationId, Draft] = {}
        self._composer.draft_changed.connect(self._on_draft_changed)

    def show(self, typed: Draft = Draft()) -> None:  # noqa: B008 - a value that cannot change
        """Show what was typed here and not sent, above what is `typed` here while that is read."""
        here = self.here
        known = self._drafts.get(here)
        if known is None:
            known = self._unread.setdefault(here, Draft())
        elif typed != Draft():
            self.save(here, known.followed_by(typed))
        self._composer.end_edit()
        self._composer.show_draft(known.followed_by(typed))
        if here in self._unread:
            self._bridge.start(f"draft {here}", self._read(here))

    async def _read(self, conversation_id: ConversationId | None) -> None:
        """Put a stored draft above what was typed while it is read, on screen or elsewhere."""
        try:
            stored = await self._bridge.run(lambda: self._library.draft(conversation_id))
        except KnownError:
            del self._unread[conversation_id]
            raise
        typed = self._unread.pop(conversation_id)
        if self.here == conversation_id and not self._composer.is_editing:
            typed = self._composer.draft
            if stored != Draft():
                self._composer.show_draft(stored.followed_by(typed))
        if typed != Draft():
            self.save(conversation_id, stored.followed_by(typed))
        elif stored != Draft():
            self._drafts[conversation_id] = stored

    @property
    def here(self) -> ConversationId | None:
        """The place that what is typed belongs to."""
        return self.place_of(self._conversation.target_id)

    def place_of(self, conversation_id: ConversationId | None) -> ConversationId | None:
        """Return a conversation's id; for the new one that is shown None, or `NEW_PRIVATE`."""
        is_private = conversation_id is None and self._conversation.is_private
        return NEW_PRIVATE if is_private else conversation_id

    def save(self, conversation_id: ConversationId | None, draft: Draft) -> None:
        """Store what was typed and not sent; that of `NEW_PRIVATE` is kept until the program ends."""
        if conversation_id in self._unread:
            self._unread[conversation_id] = draft
            return
        self._drafts[conversation_id] = draft
        if conversation_id == NEW_PRIVATE:
            return
        waiting = self.queued.get(conversation_id) if conversation_id is not None else None
        whole = waiting.followed_by(draft) if waiting is not None else draft
        self._bridge.save(partial(self._library.save_draft, conversation_id, whole))

    def typed(self, conversation_id: ConversationId | None) -> Draft:
        """Return what was typed in a conversation in this session and not sent."""
        known = self._drafts.get(conversation_id, Draft())
        return self._unread.get(conversation_id, known)

    def note_sent(self) -> None:
        """Take note that the draft is being sent; it is deleted with the message's commit."""
        here = self.here
        (self._unread if here in self._unread else self._drafts)[here] = Draft()

    def note_stored(self, place: ConversationId | None, conversation_id: ConversationId) -> None:
        """Store again what was typed since a message was sent: the commit deletes its draft.

        If the new conversation in which it was typed is shown as a stored one now, it goes along.
        """
        typed = self.typed(place)
        if self.here == conversation_id:
            if place != conversation_id and typed != Draft():
                self.save(place, Draft())
            place = conversation_id
            typed = typed if self._composer.is_editing else self._composer.draft
        if typed != Draft():
            self.save(place, typed)

    def _on_draft_changed(self, draft: Draft) -> None:
        if not self._composer.is_editing and self._conversation.loads:
            self.save(self.here, draft)
