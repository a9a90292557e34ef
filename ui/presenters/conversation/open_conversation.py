"""The open conversation on screen: its turns, its draft and the reply that grows in it.

`compose` runs the commands about it; `choices` says what answers.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from PySide6.QtCore import Signal

from app.chat.library import ConversationView, Library
from app.chat.planner import NewConversation
from app.chat.reply import Reply
from app.domain.change_set import ChangeSet
from app.domain.conversations import Conversation, Draft, Exchange, Message
from app.domain.errors import KnownError, NotFound
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges
from ui.presenters.conversation.reply_and_draft import Drafts, GrowingReply
from ui.presenters.conversation.turns import (
    ConversationReader,
    Position,
    RunningReplies,
    changed_turns,
    content_of,
    headers_of,
)
from ui.presenters.presenter import Presenter
from ui.views.chat_pane import ChatPane
from ui.widgets.transcript.panels import update_days
from ui.widgets.transcript.view import TranscriptView

_PAUSE_S = 0.005  # between two turns: for keys, the mouse and turns just outside the screen


class ConversationPresenter(Presenter):
    """Shows one conversation, stored or growing.

    Attributes:
        view: The open conversation on the path shown; None for one not yet stored.
        new: What was chosen for one not yet stored.
        listed_project: The uid of the project in which new conversations begin, None for none.
        drafts: What was typed and not sent.
        loads: How often something was opened.

    Signals:
        opened: The `Conversation` that is open now, or None for one not yet stored.
        updated: The open `Conversation` after a change of its title, model or state.
        left: The `Conversation` that was open before another was opened.
        content_shown: First and last turn whose contents came with the load; others are requested later.
        scrolled_to: The position on the path of the exchange that was asked for.
        running_changed: (Whether there are turns, whether a reply is running).
        project_chosen: Another project was chosen for one not yet stored.
        jumping: The user is about to leave what is shown for something else.
        reply_ended: (Reply, its outcome), once the turn is shown as it was stored; of any conversation.
    """

    opened = Signal(object)
    updated = Signal(object)
    left = Signal(object)
    content_shown = Signal(int, int)
    scrolled_to = Signal(int)
    running_changed = Signal(bool, bool)
    project_chosen = Signal()
    jumping = Signal()
    reply_ended = Signal(object, object)

    _library: Library
    _exchanges: Exchanges
    _conversations: Conversations
    _pane: ChatPane
    _transcript: TranscriptView
    _replies: RunningReplies

    def _set_up(self) -> None:
        self.view: ConversationView | None = None
        self.new = NewConversation()
        self.listed_project: str | None = None
        self._reader = ConversationReader(self._library, self._exchanges)
        self.loads = 0
        self._loading: ConversationId | None = None
        self._is_stale = False  # what is being loaded has changed since
        self.drafts = Drafts(self._bridge, self._library, self._pane.composer, self)
        self._growing = GrowingReply(
            self._bridge, self._exchanges, self._pane, self._transcript, self._replies, self
        )
        self._bridge.subscribe(self._on_changed, "messages_in", "conversations")
        self._bridge.day_began.connect(lambda: update_days(self._transcript))
        self._transcript.content_requested.connect(self._on_content_requested)

    @property
    def is_private(self) -> bool:
        return self.view.conversation.private if self.view else self.new.private

    @property
    def is_read_only(self) -> bool:
        """Whether the open conversation is in the trash."""
        return self.view is not None and self.view.conversation.deleted_at is not None

    @property
    def conversation_id(self) -> ConversationId | None:
        """The open conversation, None for one not yet stored."""
        return self.view.conversation.id if self.view else None

    @property
    def target_id(self) -> ConversationId | None:
        """The conversation that what is typed belongs to: the one being opened, else the open one."""
        return self._loading or self.conversation_id

    @property
    def project_here(self) -> str | None:
        """The uid of the project of the open conversation, stored or not; None for none."""
        return self.view.conversation.project if self.view else self.new.project

    @property
    def path(self) -> Sequence[Exchange]:
        return self.view.path if self.view else ()

    def exchange_at(self, turn: int) -> Exchange | None:
        """Return the exchange at a position on the path shown."""
        return self.path[turn] if 0 <= turn < len(self.path) else None

    def turn_of(self, exchange_id: ExchangeId) -> int | None:
        """Return the position of an exchange on the path shown."""
        return next((turn for turn, each in enumerate(self.path) if each.id == exchange_id), None)

    # -- opening

    async def begin(self, conversation_id: int | None, position: Position | None = None) -> None:
        """Show the conversation that was open last, if there is one; keep what was typed since."""
        self._loading = None if conversation_id is None else ConversationId(conversation_id)
        self.drafts.show(self._pane.composer.draft)
        with suppress(NotFound):
            if self._loading is not None:
                await self.load(self._loading, position=position)
                return
        self._show_new(private=False)

    def begin_new(self, *, private: bool = False, text: str = "") -> None:
        """Show an empty conversation, with a text to send; it is stored with its first message."""
        self.jumping.emit()
        self._turn_to(None, private=private)
        self.drafts.show(Draft(text))
        self._pane.composer.box.setFocus()

    def open(
        self,
        conversation_id: ConversationId,
        exchange_id: ExchangeId | None = None,
        message_id: MessageId | None = None,
    ) -> "asyncio.Task[None]":
        """Show a conversation, at an exchange or one of its messages, on whatever branch it is."""
        self.jumping.emit()
        self._turn_to(conversation_id)
        work = self.load(conversation_id, exchange_id, message_id, scrolls=True)
        return self._bridge.start("open conversation", work)

    async def show(
        self,
        conversation_id: ConversationId | None,
        exchange_id: ExchangeId | None = None,
        *,
        position: Position | None = None,
        scrolls: bool = True,
    ) -> None:
        """Show a conversation as `load` does, None for a new one; raises NotFound, StorageError."""
        self._turn_to(conversation_id)
        if conversation_id is not None:
            await self.load(conversation_id, exchange_id, position=position, scrolls=scrolls)

    def _turn_to(self, conversation_id: ConversationId | None, *, private: bool = False) -> None:
        """Let what is typed from now on belong to a conversation."""
        self._pane.composer.flush_draft()
        is_open = conversation_id is not None and conversation_id == self.target_id
        self._loading = conversation_id
        if conversation_id is None:
            self._show_new(private=private)
        if not is_open or self._pane.composer.is_editing:
            self.drafts.show()

    async def load(
        self,
        conversation_id: ConversationId,
        exchange_id: ExchangeId | None = None,
        message_id: MessageId | None = None,
        *,
        position: Position | None = None,
        scrolls: bool = False,
    ) -> None:
        """Show a conversation on the path through an exchange; contents follow on demand.

        It `scrolls` to the exchange or its message, else to `position`, else to the end. What is
        opened meanwhile is shown instead. Raises NotFound, StorageError; what was open then stays.
        """
        load = self.loads = self.loads + 1
        self._loading, self._is_stale = conversation_id, False
        try:
            read = partial(self._reader.read_to_show, conversation_id, exchange_id, position)
            view, headers, contents = await self._bridge.run(lambda: read(scrolls=scrolls))
        except KnownError:
            if load == self.loads:
                self._loading = None
                if conversation_id != self.conversation_id:
                    self.drafts.show(self._pane.composer.draft)
            raise
        if load != self.loads:
            return
        self._loading = None
        if conversation_id != self.conversation_id:
            self._pane.banner.leave()
        self._set_view(view)
        self._transcript.set_read_only(self.is_read_only)
        turn = self.turn_of(exchange_id) if scrolls and exchange_id is not None else None
        self._transcript.show_conversation(
            headers, position, turn=turn, message_id=message_id, contents=contents
        )
        reply = self._replies.of(conversation_id)
        self._show_opened(is_running=reply is not None)
        if contents:
            self.content_shown.emit(min(contents), max(contents))
        if turn is not None:
            self.scrolled_to.emit(turn)
        if reply is not None:
            await self._growing.show(reply)
        if self._is_stale:  # a reply may have ended before its turn was on screen
            self.refresh(conversation_id)

    async def show_started(self, reply: Reply) -> None:
        """Show a reply that has just begun: append its turn, or load the path it is on."""
        plan, exchange, path = reply.plan, reply.plan.exchange, self.path
        last = path[-1].id if path else None
        if exchange.parent_id != last or exchange.id == last:
            await self.load(plan.conversation.id, exchange.id)
            return
        siblings = (*(self.view.siblings if self.view else ()), (exchange.id,))
        is_new = self.view is None
        if not is_new:
            self._show_record(plan.conversation)
        self._set_view(ConversationView(plan.conversation, (), "", (*path, exchange), siblings))
        if not path:
            self._transcript.show_conversation(())
        lengths = {each.id: len(each.text) for each in plan.messages}
        self._transcript.add_turn(
            headers_of([exchange], lengths)[0], content_of(exchange, plan.messages, (exchange.id,))
        )
        self._transcript.begin_reply()
        if is_new:
            self._show_opened(is_running=True)
        else:
            self.show_running(True)
        self.scrolled_to.emit(len(path))

    def choose_project(self, uid: str | None) -> None:
        """Begin the conversation, which is not yet stored, in a project, by its uid; None for none."""
        self.new = replace(self.new, project=uid)
        self.project_chosen.emit()

    def show_running(self, running: bool) -> None:
        """Offer Stop while a reply runs in the open conversation, else Send."""
        self._pane.composer.show_running(running)
        self.running_changed.emit(bool(self.path), running)
        if not running:
            self._pane.status.show_text("")

    def _show_new(self, *, private: bool) -> None:
        self.loads += 1
        self._loading = None
        self._pane.banner.leave()
        self._set_view(None)
        self._transcript.set_read_only(False)
        self.new = NewConversation(private=private, project=self.listed_project)
        self._transcript.show_conversation(())
        (self._pane.show_private if private else self._pane.show_welcome)()
        self._pane.show_title("", private=private, editable=False)
        self._pane.set_writable(True)
        self.show_state()
        self.show_running(False)
        self.opened.emit(None)

    def _set_view(self, view: ConversationView | None) -> None:
        before, self.view = self.view, view
        if before is not None and before.conversation.id != self.conversation_id:
            self.left.emit(before.conversation)

    def _show_opened(self, *, is_running: bool) -> None:
        assert self.view is not None
        self._pane.show_transcript()
        self._show_header(self.view.conversation)
        self._pane.status.show_text("")  # of what was open before
        self.show_running(is_running)
        self.opened.emit(self.view.conversation)

    def _show_header(self, conversation: Conversation) -> None:
        writable = conversation.deleted_at is None
        self._pane.show_title(conversation.title, private=conversation.private, editable=writable)
        self._pane.set_writable(writable)
        self.show_state()

    def show_state(self) -> None:
        """Say above the composer why nothing can be sent, or that it goes to another branch."""
        view, show_current = self.view, None
        if view is not None and not view.is_visible_branch:
            # While a reply runs the record is ahead of the path shown.
            newest = self._growing.newest(view.conversation.id)
            if newest is None or self.turn_of(newest) is None:
                show_current = partial(self.open, view.conversation.id)
        self._pane.show_state(show_current, in_trash=self.is_read_only)

    # -- contents of turns

    def _on_content_requested(self, first: int, last: int) -> None:
        if self.view is not None:
            turns = range(max(0, first), min(last + 1, len(self.view.path)))
            self._bridge.start(f"turns {first}", self._provide(self.view, turns))

    async def _provide(self, view: ConversationView, turns: Sequence[int]) -> None:
        read = partial(self._library.messages, [view.path[turn] for turn in turns])
        messages = await self._bridge.run(read)
        first, last = self._transcript.visible_items
        for turn in sorted(turns, key=lambda turn: abs(2 * turn - first - last)):
            exchange = view.path[turn]
            reply = self._replies.of(exchange.conversation_id)
            is_live = reply is not None and reply.plan.exchange.id == exchange.id
            if is_live or self.exchange_at(turn) != exchange:
                continue
            if self.provide_turn(turn, exchange, messages[exchange.id]):  # takes 5 to 20 ms
                await asyncio.sleep(_PAUSE_S)

    def provide_turn(self, turn: int, exchange: Exchange, messages: Sequence[Message]) -> bool:
        """Set a turn's content; return whether it was drawn."""
        assert self.view is not None
        siblings = self.view.siblings[turn]
        return self._transcript.provide(turn, content_of(exchange, messages, siblings))

    # -- changes made elsewhere

    def _on_changed(self, changed: ChangeSet) -> None:
        self._is_stale |= self._loading in changed.messages_in | changed.conversations
        if (conversation_id := self.conversation_id) is None:
            return
        is_edited = conversation_id in changed.conversations
        is_shown = not is_edited and changed.exchanges == {self._growing.ended}
        is_own = is_shown or self._growing.is_of(conversation_id)
        if conversation_id in changed.messages_in and not is_own:
            self.refresh(conversation_id)
        elif is_edited:
            self._bridge.start("update", self._update_record(conversation_id))

    def refresh(self, conversation_id: ConversationId) -> None:
        """Show changes made elsewhere, as by a command line; keep the position and the draft."""
        self._bridge.start("refresh", self._refresh(conversation_id))

    async def _refresh(self, conversation_id: ConversationId) -> None:
        try:
            fresh, headers = await self._bridge.run(lambda: self._reader.read(conversation_id))
        except KnownError:
            self._leave(conversation_id)
            return
        if self.conversation_id != conversation_id or self.view is None:
            return
        self._show_record(fresh.conversation)
        shown = self.view.path
        changed, added = changed_turns(shown, fresh.path), headers[len(shown) :]
        if changed is None or not (changed or added) or self._growing.is_of(conversation_id):
            return
        self.view = fresh
        self.show_state()
        self._transcript.extend(added)
        self.show_running(False)
        await self._provide(fresh, changed)

    async def _update_record(self, conversation_id: ConversationId) -> None:
        try:
            stored = await self._bridge.run(lambda: self._conversations.get(conversation_id))
        except KnownError:
            self._leave(conversation_id)
            return
        if self.conversation_id == conversation_id:
            self._show_record(stored)

    def _leave(self, gone: ConversationId) -> None:
        if self.conversation_id == gone:
            self.begin_new()

    def _show_record(self, conversation: Conversation) -> None:
        """Take over a conversation's record, and emit `updated` if what is shown of it changed."""
        assert self.view is not None
        before = self.view.conversation
        self.view = replace(self.view, conversation=conversation)
        if conversation.deleted_at != before.deleted_at:
            self._transcript.set_read_only(self.is_read_only)
        self._show_header(conversation)
        moved = replace(before, updated_at=conversation.updated_at)
        if replace(moved, visible_leaf_id=conversation.visible_leaf_id) != conversation:
            self.updated.emit(conversation)
