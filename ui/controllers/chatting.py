"""The open conversation on screen: its turns, its draft, and the reply that grows in it.

What the user wishes to be done to it is `talking`, which model answers is `model_choice`.
"""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial

from PySide6.QtCore import QObject, Signal

from app.bootstrap import Services
from app.chat.library import ConversationView
from app.chat.reply import Reply
from app.domain.conversations import (
    Block,
    Conversation,
    Exchange,
    Message,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.domain.errors import KnownError, NotFound
from app.domain.events import Changed
from app.domain.ids import ConversationId, ExchangeId, MessageId
from ui.bridge import Bridge
from ui.controllers.replies import RunningReplies
from ui.controllers.turns import content_of, heads_of
from ui.theme import Appearance
from ui.views.main_window import MainWindow
from ui.widgets.transcript.values import Footer, TurnHead
from ui.widgets.transcript.view import TranscriptView

Place = tuple[int, int]
_Line = tuple[ExchangeId, object, tuple[MessageId, ...]]

_ANSWERING = (Role.ASSISTANT, Role.TOOL)
_BREATH_S = 0.005  # for keys, the mouse and what is just beyond the screen


class ChatController(QObject):
    """Shows one conversation, whole and as it grows.

    Attributes:
        view: The open conversation on the path that is shown; None for one not yet begun.
        is_private: Whether it is, or will be, private.
        uses_memory: Whether memory will contribute to one not yet begun.

    Signals:
        opened: The `Conversation` that is open now, or None for one not yet begun.
        landed: The place on the path of the exchange that a conversation was opened at.
        left: The `Conversation` that was open before, when another takes its place.
    """

    opened = Signal(object)
    landed = Signal(int)
    left = Signal(object)

    def __init__(
        self,
        services: Services,
        bridge: Bridge,
        window: MainWindow,
        appearance: Appearance,
        replies: RunningReplies,
    ) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._window = window
        self._pane = window.chat
        transcript = window.chat.transcript
        assert isinstance(transcript, TranscriptView)
        self._transcript = transcript
        self._replies = replies
        self.view: ConversationView | None = None
        self.is_private = False
        self.uses_memory = True
        self._loads = 0
        self._reading: ConversationId | None = None
        self._is_behind = False  # what is being read has changed since
        self._drafts: dict[ConversationId | None, str] = {}
        self._ending: ExchangeId | None = None
        replies.grew.connect(self._on_reply_grew)
        replies.told.connect(self._on_reply_told)
        replies.ended.connect(self._on_reply_ended)
        bridge.changed.connect(self._on_changed)
        appearance.theme_changed.connect(transcript.set_theme)
        transcript.content_requested.connect(self._on_content_requested)
        self._pane.composer.draft_changed.connect(self._on_draft_changed)

    @property
    def conversation_id(self) -> ConversationId | None:
        """The open conversation, None for one not yet begun."""
        return self.view.conversation.id if self.view else None

    async def begin(self, conversation_id: int | None, place: Place | None = None) -> None:
        """Show the first screen: what was open the last time, where it was, if it still is there.

        What was typed while the program was starting stays.
        """
        typed = self._pane.composer.text
        try:
            if conversation_id is None:
                self._show_new(private=False)
            else:
                await self.load(ConversationId(conversation_id), place=place)
        except NotFound:
            self._show_new(private=False)
        if not typed:
            await self.show_draft()

    def begin_new(self, *, private: bool = False) -> None:
        """Show an empty conversation; it exists once something is said in it."""
        self._pane.composer.flush_draft()
        self._show_new(private=private)
        self._bridge.start("draft", self.show_draft())
        self._pane.composer.box.setFocus()

    def open(
        self, conversation_id: ConversationId, exchange_id: ExchangeId | None = None
    ) -> "asyncio.Task[None]":
        """Show a conversation; at an exchange, centred and highlighted, on whatever branch it is."""
        self._pane.composer.flush_draft()
        return self._bridge.start("open conversation", self.show(conversation_id, exchange_id))

    async def show(
        self, conversation_id: ConversationId, exchange_id: ExchangeId | None = None
    ) -> None:
        """Do what `open` does, and return when it is done."""
        try:
            is_shown = await self.load(conversation_id, exchange_id)
        except KnownError as error:
            self._pane.tell(error)
            return
        if not is_shown:
            return
        await self.show_draft()
        if exchange_id is not None and (turn := self.turn_of(exchange_id)) is not None:
            self._transcript.scroll_to_turn(turn)
            self.landed.emit(turn)

    async def load(
        self,
        conversation_id: ConversationId,
        show: ExchangeId | None = None,
        place: Place | None = None,
    ) -> bool:
        """Read a conversation and show its turns' places; their words follow on demand.

        Returns False when something else was opened meanwhile. Raises NotFound, StorageError.
        """
        self._loads += 1
        load = self._loads
        self._reading, self._is_behind = conversation_id, False
        library, exchanges = self._services.library, self._services.exchanges

        def read() -> tuple[ConversationView, tuple[TurnHead, ...]]:
            view = library.open(conversation_id, show)
            return view, heads_of(view.path, exchanges.text_lengths(conversation_id))

        view, heads = await self._bridge.run(read)
        if load != self._loads:
            return False
        self._reading = None
        self._leave(for_conversation=conversation_id)
        self.view, self.is_private = view, view.conversation.private
        self._transcript.show_conversation(heads, place)
        self._pane.show_transcript()
        self._show_head(view.conversation)
        reply = self._replies.of(conversation_id)
        self.show_running(reply is not None)
        if reply is not None:
            await self._show_reply(reply)
        self._services.workers.conversation_opened(conversation_id)
        self.opened.emit(view.conversation)
        if self._is_behind:  # a reply may have ended before its turn was on screen
            self._bridge.start("follow", self._follow(conversation_id))
        return True

    def show_running(self, running: bool) -> None:
        """Offer Stop while a reply runs in the open conversation, else Send."""
        self._pane.composer.show_running(running)
        actions = self._window.actions_by_name
        actions["stop"].setEnabled(running)
        has_turns = self.view is not None and bool(self.view.path)
        actions["regenerate"].setEnabled(has_turns and not running)
        actions["copy_link"].setEnabled(has_turns)
        if not running:
            self._pane.show_status("")

    async def show_draft(self) -> None:
        """Show what was typed here and not sent."""
        conversation_id = self.conversation_id
        draft = self._drafts.get(conversation_id)  # what is on its way into the database
        if draft is None:
            read = self._services.conversations.draft
            draft = await self._bridge.run(lambda: read(conversation_id))
        if self.conversation_id == conversation_id:
            self._pane.composer.show_text("" if self.is_private and self.view is None else draft)

    def forget_draft(self) -> None:
        """Take note that what was typed here has been sent."""
        self._drafts[self.conversation_id] = ""

    def turn_of(self, exchange_id: ExchangeId) -> int | None:
        """Return the place of an exchange on the path that is shown."""
        path = self.view.path if self.view else ()
        return next((turn for turn, each in enumerate(path) if each.id == exchange_id), None)

    # -- showing

    def _show_new(self, *, private: bool) -> None:
        self._loads += 1
        self._leave(for_conversation=None)
        self.view, self.is_private, self.uses_memory = None, private, True
        self._transcript.show_conversation(())
        if private:
            self._pane.show_notice(
                "A private conversation",
                "It is never indexed, summarised, recalled or used for facts. When you leave it, "
                "you can keep it or discard it.",
            )
        else:
            self._pane.show_welcome()
        self._pane.show_title("", private=private, editable=False)
        self._pane.composer.setEnabled(True)
        self.show_running(False)
        self._services.workers.conversation_opened(None)
        self.opened.emit(None)

    def _leave(self, for_conversation: ConversationId | None) -> None:
        if self.view is not None and self.view.conversation.id != for_conversation:
            self.left.emit(self.view.conversation)

    def _show_head(self, conversation: Conversation) -> None:
        self._pane.show_title(conversation.title, private=conversation.private, editable=True)
        self._pane.composer.setEnabled(conversation.deleted_at is None)

    def _on_content_requested(self, first: int, last: int) -> None:
        if self.view is not None:
            wanted = range(max(0, first), min(last + 1, len(self.view.path)))
            self._bridge.start(f"turns {first}", self._provide(self.view, wanted))

    async def _provide(self, view: ConversationView, turns: Sequence[int]) -> None:
        exchanges = [view.path[turn] for turn in turns]
        messages = await self._bridge.run(lambda: self._services.library.messages(exchanges))
        for turn, exchange in zip(turns, exchanges, strict=True):
            if self._shows(turn, exchange) and not self._is_growing(exchange):
                self._provide_turn(turn, exchange, messages[exchange.id])
                await asyncio.sleep(_BREATH_S)  # drawing one takes 5 to 20 ms

    def _shows(self, turn: int, exchange: Exchange) -> bool:
        """Return whether an exchange still is what it was, and where."""
        path = self.view.path if self.view is not None else ()
        return turn < len(path) and path[turn] == exchange

    def _provide_turn(self, turn: int, exchange: Exchange, messages: Sequence[Message]) -> None:
        assert self.view is not None
        content = content_of(exchange, messages, self.view.siblings[turn])
        self._transcript.provide(turn, content)

    def _is_growing(self, exchange: Exchange) -> bool:
        reply = self._replies.of(exchange.conversation_id)
        return reply is not None and reply.plan.exchange.id == exchange.id

    # -- a reply as it grows

    async def _show_reply(self, reply: Reply) -> None:
        """Show a turn that is growing: what was asked, and what has come so far."""
        view, exchange = self.view, reply.plan.exchange
        turn = self.turn_of(exchange.id)
        if turn is None:
            return
        messages = await self._bridge.run(lambda: self._services.exchanges.messages_of(exchange))
        if self.view is not view or self._replies.of(exchange.conversation_id) is not reply:
            return
        asked = [each for each in messages if each.role not in _ANSWERING]
        self._provide_turn(turn, exchange, asked)
        self._transcript.begin_reply(turn)
        for message in messages:
            if message.role in _ANSWERING:  # a reply that is continued
                self._append_blocks(message.blocks)
        self._append_blocks(self._replies.so_far(reply))

    def _append_blocks(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            match block:
                case Text(text):
                    self._transcript.append_text(text)
                case Thinking(text):
                    self._transcript.append_thinking(text)
                case ToolCall():
                    self._transcript.append_tool_call(block)
                case ToolResult():
                    self._transcript.append_tool_result(block)

    def _on_reply_grew(self, reply: Reply, part: Block) -> None:
        if reply.plan.conversation.id == self.conversation_id:
            self._pane.show_status("")
            self._append_blocks([part])

    def _on_reply_told(self, reply: Reply, words: str) -> None:
        if reply.plan.conversation.id == self.conversation_id:
            self._pane.show_status(words)

    def _on_reply_ended(self, reply: Reply, outcome: object) -> None:
        if isinstance(outcome, BaseException):
            self._pane.tell(outcome)
        if reply.plan.conversation.id != self.conversation_id:
            return
        self.show_running(False)
        if isinstance(outcome, Exchange):
            self._ending = outcome.id
            self._bridge.start("reply ended", self._finish_reply(outcome))

    async def _finish_reply(self, exchange: Exchange) -> None:
        """Show a turn as it was stored."""
        view = self.view
        conversation_id = exchange.conversation_id
        try:
            fresh, messages = await self._bridge.run(
                lambda: (
                    self._services.library.open(conversation_id, exchange.id),
                    self._services.exchanges.messages_of(exchange),
                )
            )
        except NotFound:
            return  # it was forgotten
        finally:
            if self._ending == exchange.id:
                self._ending = None
        if self.conversation_id != conversation_id:
            return
        if self.view is not view:  # it was read again meanwhile
            self._bridge.start("follow", self._follow(conversation_id))
            return
        self.view = fresh
        if (turn := self.turn_of(exchange.id)) is not None:
            footer = Footer(exchange.model, exchange.usage)
            self._transcript.finish_reply(exchange.status, footer, exchange.problem)
            self._provide_turn(turn, exchange, messages)

    # -- what happens elsewhere

    def _on_draft_changed(self, words: str) -> None:
        conversation_id = self.conversation_id
        if self._pane.composer.is_editing or (self.is_private and conversation_id is None):
            return
        self._drafts[conversation_id] = words
        save = partial(self._services.library.save_draft, conversation_id, words)
        self._bridge.carry_out(self._bridge.write(save))

    def _on_changed(self, changed: Changed) -> None:
        concerned = changed.messages_in | changed.conversations
        if self._reading in concerned:
            self._is_behind = True
        conversation_id = self.conversation_id
        if conversation_id is not None and conversation_id in concerned:
            self._bridge.start("follow", self._follow(conversation_id))

    async def _follow(self, conversation_id: ConversationId) -> None:
        """Show what was done to the open conversation from elsewhere, such as a command line.

        Who reads at the end sees it come; nobody is moved, and what is being written stays.
        """
        library, exchanges = self._services.library, self._services.exchanges

        def read() -> tuple[ConversationView, Sequence[TurnHead], Sequence[_Line]]:
            view = library.open(conversation_id)
            lengths = exchanges.text_lengths(conversation_id)
            return view, heads_of(view.path, lengths), _outline(view)

        try:
            fresh, heads, now = await self._bridge.run(read)
        except KnownError:
            if self.conversation_id == conversation_id:
                self.begin_new()
            return
        if self.conversation_id != conversation_id or self.view is None:
            return
        self._show_head(fresh.conversation)
        shown = _outline(self.view)
        is_same_branch = [each[0] for each in now[: len(shown)]] == [each[0] for each in shown]
        is_ours = self._replies.of(conversation_id) is not None or self._ending is not None
        if now == shown or not is_same_branch or is_ours:
            return
        self.view = fresh
        self._transcript.extend(heads[len(shown) :])
        self.show_running(False)
        changed = [turn for turn, before in enumerate(shown) if now[turn] != before]
        await self._provide(fresh, changed)


def _outline(view: ConversationView) -> list[_Line]:
    """Return what decides whether a path must be drawn anew."""
    return [(each.id, each.status, each.message_ids) for each in view.path]
