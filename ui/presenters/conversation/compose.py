"""Commands about the open conversation: send, stop, edit, retry, regenerate, branch, fork, link, brief."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication

from app.chat.exchange_loop import ExchangeLoop
from app.chat.library import ConversationView, Library
from app.chat.planner import NewConversation
from app.chat.reply import Reply
from app.domain.attachments import files_of
from app.domain.conversations import Draft, Exchange, RecallChoice, Text
from app.domain.errors import KnownError
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.links import link_to
from app.domain.translation import tr, trn
from app.memory.recall.mentions import Mention
from ui.presenters.conversation.open_conversation import ConversationPresenter
from ui.presenters.conversation.turns import RunningReplies
from ui.presenters.presenter import Presenter, copy_link
from ui.views.chat_pane import ChatPane


class ComposePresenter(Presenter):
    """Sends what is typed, and runs the commands of a turn. No command cancels an earlier one.

    `mentions_in` returns the mentions in a text, `brief_of` turns as Markdown and how many it has; both block.

    Signals:
        queued: A `Draft` that was sent while a reply runs here.
        start_failed: A reply did not begin in this place of drafts.
    """

    _exchanges: ExchangeLoop
    _library: Library
    _view: ChatPane
    _conversation: ConversationPresenter
    _replies: RunningReplies
    _mentions_in: Callable[[str], Sequence[Mention]]
    _brief_of: Callable[[Sequence[Exchange]], tuple[str, int]]

    queued = Signal(object)
    start_failed = Signal(object)

    def _set_up(self) -> None:
        self._composer = self._view.composer
        self._edited: tuple[ExchangeId, MessageId] | None = None
        # Replies that were requested and have not begun, by place; set once the user pressed Stop.
        self._starts: dict[ConversationId | None, asyncio.Event] = {}
        self._conversation.opened.connect(self._on_conversation_opened)
        self._composer.send_requested.connect(self._on_send_requested)
        self._composer.stop_requested.connect(self.stop)
        self._composer.edit_cancelled.connect(self._on_edit_cancelled)
        self._composer.last_message_requested.connect(self.on_last_turn(self._edit_last))

    def stop(self) -> None:
        """Stop the reply of the open conversation, also one that has not begun yet."""
        conversation_id = self._conversation.conversation_id
        reply = self._replies.of(conversation_id) if conversation_id is not None else None
        start = self._starts.get(self._conversation.drafts.place_of(conversation_id))
        if reply is not None:
            reply.stop()
        elif start is not None:
            start.set()
        if reply is not None or start is not None:
            self._view.status.show_text(tr("Stopping\u2026"))

    # -- sending

    def _on_send_requested(self, text: str) -> None:
        """Take the text out of the composer, so that the next message can be typed."""
        edited = self._edited if self._composer.is_editing else None
        conversation_id = self._conversation.target_id
        draft = replace(self._composer.draft, text=text)
        if edited is None and self._is_running(conversation_id):
            if conversation_id is not None:  # else it has no place yet, and stays in the box
                self._composer.clear()
                self.queued.emit(draft)
            return
        self._edited = None
        self._composer.clear()
        if edited is None:
            self._conversation.drafts.note_sent()
        self._start(conversation_id, draft, edited)

    def send(self, conversation_id: ConversationId, draft: Draft) -> None:
        """Send a message in a conversation, which need not be the open one."""
        self._start(conversation_id, draft, None)

    def _is_running(self, conversation_id: ConversationId | None) -> bool:
        is_begun = conversation_id is not None and self._replies.of(conversation_id) is not None
        return is_begun or self._conversation.drafts.place_of(conversation_id) in self._starts

    def _start(
        self,
        conversation_id: ConversationId | None,
        draft: Draft,
        edited: tuple[ExchangeId, MessageId] | None,
    ) -> None:
        if self._conversation.conversation_id == conversation_id:
            self._conversation.show_running(True)
        place = self._conversation.drafts.place_of(conversation_id)
        new = NewConversation() if conversation_id is not None else self._conversation.new
        self._bridge.submit(
            self._send(conversation_id, draft, edited, place, new),
            lambda error: self._on_send_failed(error, draft, edited, place),
        )

    async def _send(
        self,
        conversation_id: ConversationId | None,
        draft: Draft,
        edited: tuple[ExchangeId, MessageId] | None,
        place: ConversationId | None,
        new: NewConversation,
    ) -> None:
        conversation, blocks = self._conversation, (Text(draft.text), *draft.files)
        choice = await self._choice(draft)
        if edited is not None:
            await self._follow(lambda: self._exchanges.edit(*edited, blocks, choice), place)
            return
        is_shown = conversation.conversation_id == conversation_id
        reply = await self._follow(
            lambda: self._exchanges.send(conversation_id, blocks, new, choice),
            place,
            conversation.view if is_shown else None,
        )
        conversation.drafts.note_stored(place, reply.plan.conversation.id)

    async def _choice(self, draft: Draft) -> RecallChoice:
        """Return what memory may bring to a message, with the conversations that it mentions."""
        if "@" not in draft.text:
            return draft.choice
        found = await self._bridge.run(lambda: self._mentions_in(draft.text))
        return replace(draft.choice, mentioned=tuple(each.conversation_id for each in found))

    def _on_send_failed(
        self,
        error: KnownError,
        draft: Draft,
        edited: tuple[ExchangeId, MessageId] | None,
        place: ConversationId | None,
    ) -> None:
        """Put text and files back in front of what was added since."""
        self._on_start_failed(error)
        drafts = self._conversation.drafts
        if drafts.here != place or (edited is None and self._composer.is_editing):
            if edited is None:
                drafts.save(place, draft.followed_by(drafts.typed(place)))
            return
        draft = draft.followed_by(self._composer.draft)
        if edited is not None:
            self._edited = edited
            self._composer.begin_edit(draft)
        else:
            self._composer.show_draft(draft)
            drafts.save(place, draft)

    async def _follow(
        self,
        request: Callable[[], "Future[Reply]"],
        place: ConversationId | None,
        shown: ConversationView | None = None,
    ) -> Reply:
        """Start a reply and show it where it was asked for, once its turn is stored.

        It continues the branch that is `shown`.
        """
        conversation = self._conversation
        start = self._starts[place] = asyncio.Event()
        try:
            if shown is not None and shown.path:
                last = shown.path[-1]
                if last.message_ids[-1] != shown.conversation.visible_leaf_id:  # only looked at
                    await self._bridge.write(lambda: self._library.switch_branch(last.id))
            reply = await self._bridge.wait(request())
        except KnownError:
            self.start_failed.emit(place)
            raise
        finally:
            if self._starts.get(place) is start:
                del self._starts[place]
        self._replies.add(reply)
        self._view.banner.leave()  # such as why the last attempt failed
        if start.is_set():
            reply.stop()
        is_open = conversation.conversation_id == conversation.target_id
        if is_open and conversation.drafts.here == place:
            await conversation.show_started(reply)
        return reply

    def _on_start_failed(self, error: KnownError) -> None:
        self._view.banner.show_error(error)
        opened = self._conversation.conversation_id
        self._conversation.show_running(self._is_running(opened))

    # -- commands about a turn

    def retry(self, turn: int) -> None:
        """Run a failed turn again, or continue an interrupted one."""
        self._answer_again(self._exchanges.retry, turn)

    def regenerate(self, turn: int) -> None:
        """Ask for another answer on a new branch."""
        self._answer_again(self._exchanges.regenerate, turn)

    def regenerate_with(self, turn: int) -> None:
        """Have a model chosen that answers once, on a new branch."""
        if (shown := self._conversation.exchange_at(turn)) is not None:

            def ask(model: str) -> None:
                if self._conversation.exchange_at(turn) == shown:
                    self._answer_again(lambda id_: self._exchanges.regenerate(id_, model), turn)

            self._view.model.open(ask)

    def _answer_again(self, request: Callable[[ExchangeId], "Future[Reply]"], turn: int) -> None:
        if (exchange := self._conversation.exchange_at(turn)) is not None:
            self._composer.box.setFocus()  # the turn's buttons go, and Qt would pass the focus on
            self._conversation.show_running(True)
            reply = self._follow(lambda: request(exchange.id), exchange.conversation_id)
            self._bridge.submit(reply, self._on_start_failed)

    def edit(self, turn: int, message_id: MessageId) -> None:
        """Put an earlier message into the composer; sending it makes a branch."""
        if (exchange := self._conversation.exchange_at(turn)) is not None:
            self._bridge.start("edit", self._begin_edit(exchange, message_id))

    def _edit_last(self, turn: int) -> None:
        """Edit the last message of the user in a turn."""
        exchange = self._conversation.exchange_at(turn)
        if exchange is not None and not self._conversation.is_read_only:
            self._bridge.start("edit", self._begin_edit(exchange, None))

    async def _begin_edit(self, exchange: Exchange, message_id: MessageId | None) -> None:
        messages = await self._bridge.run(lambda: self._library.messages([exchange]))
        if self._conversation.target_id != exchange.conversation_id:
            return
        for message in reversed(messages[exchange.id]):
            is_last = message_id is None and message.opens_turn
            if is_last or message.id == message_id:
                self._composer.flush_draft()
                self._edited = (exchange.id, message.id)
                self._composer.begin_edit(Draft(message.text, files_of(message.blocks)))
                return

    def _on_edit_cancelled(self) -> None:
        self._edited = None
        self._conversation.drafts.show()

    def show_branch(self, turn: int, _message_id: MessageId, position: int) -> None:
        """Show the sibling at `position`, counted from 1, in place of a turn."""
        view = self._conversation.view
        if view is not None and turn < len(view.path):
            exchange_id = view.siblings[turn][position - 1]
            if self._conversation.is_read_only:
                self._conversation.open(view.conversation.id, exchange_id)
            else:
                self._bridge.submit(self._switch(exchange_id))

    async def _switch(self, exchange_id: ExchangeId) -> None:
        view = await self._bridge.write(lambda: self._library.switch_branch(exchange_id))
        await self._conversation.show(view.conversation.id, exchange_id)

    def fork(self, turn: int) -> None:
        """Copy the conversation up to a turn into a new one, and open that."""
        if (exchange := self._conversation.exchange_at(turn)) is not None:
            self._bridge.save(lambda: self._library.fork(exchange.id), self._conversation.open)

    def copy_link(self, turn: int) -> None:
        if (exchange := self._conversation.exchange_at(turn)) is not None:
            link = link_to(exchange.conversation_id, exchange.turn_number)
            copy_link(link, self._view.banner)

    def copy_brief(self, turn: int) -> None:
        turns = self._conversation.path[turn:]

        def copy(brief: tuple[str, int]) -> None:
            text, count = brief
            QGuiApplication.clipboard().setText(text)
            copied = trn("{count} turn was copied.", "{count} turns were copied.", count)
            self._view.banner.show_message(copied, brief=True)

        if turns:
            self._bridge.load("brief", lambda: self._brief_of(turns), copy)

    def on_last_turn(self, command: Callable[[int], None]) -> Callable[[], None]:
        """Return a function that runs a command on the last turn, if there is one."""

        def run() -> None:
            if path := self._conversation.path:
                command(len(path) - 1)

        return run

    def _on_conversation_opened(self) -> None:
        self._edited = None
        self._composer.end_edit()
