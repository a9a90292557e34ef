"""What the user wishes of the open conversation: say, stop, say differently, again, from here."""

from collections.abc import Callable
from concurrent.futures import Future

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication

from app.bootstrap import Services
from app.chat.library import ConversationView
from app.chat.reply import Reply
from app.domain.conversations import Text
from app.domain.errors import KnownError
from app.domain.ids import ExchangeId, MessageId
from app.domain.links import link_to
from ui.bridge import Bridge
from ui.controllers.chatting import ChatController
from ui.controllers.model_choice import ModelController
from ui.controllers.replies import RunningReplies
from ui.views.main_window import MainWindow
from ui.widgets.transcript.view import TranscriptView


class TalkController(QObject):
    """Turns gestures into exchanges. A wish, once made, is never cancelled by the next one."""

    def __init__(
        self,
        services: Services,
        bridge: Bridge,
        window: MainWindow,
        chat: ChatController,
        models: ModelController,
        replies: RunningReplies,
    ) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._pane = window.chat
        self._chat = chat
        self._models = models
        self._replies = replies
        self._edited: tuple[ExchangeId, MessageId] | None = None
        chat.opened.connect(self._on_chat_opened)
        self._wire(window)

    # -- talking

    def _on_send_requested(self, words: str) -> None:
        self._chat.show_running(True)
        self._bridge.carry_out(self._send(words))

    async def _send(self, words: str) -> None:
        blocks, edited, chat = (Text(words),), self._edited, self._chat
        try:
            if edited is not None:
                wish = self._services.chat.edit(*edited, blocks)
            else:
                await self._show_to_the_program(chat.view)
                wish = self._services.chat.send(
                    chat.conversation_id,
                    blocks,
                    model=self._models.model_for_new(),
                    private=chat.is_private,
                    recalls=chat.uses_memory,
                )
            await self._follow(wish, self._forget_words)
        except KnownError as error:
            self._pane.tell(error)
            chat.show_running(False)

    def _forget_words(self) -> None:
        """Empty the composer: its words are safe in the conversation."""
        if not self._pane.composer.is_editing:
            self._chat.forget_draft()
        self._pane.composer.clear()

    async def _show_to_the_program(self, view: ConversationView | None) -> None:
        """Make the branch that is looked at the shown one: what is said is said there."""
        if view is not None and view.path:
            last = view.path[-1]
            if last.message_ids[-1] != view.conversation.visible_leaf_id:
                await self._bridge.write(lambda: self._services.library.switch_branch(last.id))

    async def _follow(
        self, wish: "Future[Reply]", when_safe: Callable[[], None] = lambda: None
    ) -> None:
        """Wait until a wish is safe, then show its turn growing; raises KnownError."""
        chat, asked_in = self._chat, self._chat.conversation_id
        reply = await self._bridge.wait(wish)
        self._replies.add(reply)
        if chat.conversation_id == asked_in:
            when_safe()
            await chat.load(reply.plan.conversation.id, reply.plan.exchange.id)

    def _stop(self) -> None:
        if self._chat.conversation_id is not None:
            reply = self._replies.of(self._chat.conversation_id)
            if reply is not None:
                self._pane.show_status("Stopping\u2026")
                reply.stop()

    # -- what can be done to a turn

    def _on_retry_requested(self, turn: int) -> None:
        self._again(self._services.chat.retry, turn)

    def _on_regenerate_requested(self, turn: int) -> None:
        self._again(self._services.chat.regenerate, turn)

    def _again(self, wish: Callable[[ExchangeId], "Future[Reply]"], turn: int) -> None:
        if (exchange_id := self._exchange_at(turn)) is not None:
            self._chat.show_running(True)
            self._bridge.carry_out(self._wish_again(wish, exchange_id))

    async def _wish_again(
        self, wish: Callable[[ExchangeId], "Future[Reply]"], exchange_id: ExchangeId
    ) -> None:
        try:
            await self._follow(wish(exchange_id))
        except KnownError as error:
            self._pane.tell(error)
            running = self._chat.conversation_id
            self._chat.show_running(running is not None and bool(self._replies.of(running)))

    def _on_edit_requested(self, turn: int, message_id: MessageId) -> None:
        """Take an earlier message into the composer; sending it makes a branch."""
        if (exchange_id := self._exchange_at(turn)) is not None:
            self._bridge.start("edit", self._begin_edit(exchange_id, message_id))

    async def _begin_edit(self, exchange_id: ExchangeId, message_id: MessageId) -> None:
        found = await self._bridge.run(lambda: self._services.exchanges.messages([message_id]))
        if message_id in found:
            self._pane.composer.flush_draft()
            self._edited = (exchange_id, message_id)
            self._pane.composer.begin_edit(found[message_id].text)

    def _on_edit_cancelled(self) -> None:
        self._edited = None
        self._bridge.start("draft", self._chat.show_draft())

    def _on_branch_requested(self, turn: int, _message_id: MessageId, position: int) -> None:
        """Show the sibling at `position` (counted from 1) in the place of a turn."""
        view = self._chat.view
        if view is not None and turn < len(view.path):
            sibling = view.siblings[turn][position - 1]
            self._bridge.carry_out(self._switch(sibling))

    async def _switch(self, exchange_id: ExchangeId) -> None:
        view = await self._bridge.write(lambda: self._services.library.switch_branch(exchange_id))
        await self._chat.show(view.conversation.id, exchange_id)

    def _on_fork_requested(self, turn: int) -> None:
        if (exchange_id := self._exchange_at(turn)) is not None:
            self._bridge.carry_out(self._fork(exchange_id))

    async def _fork(self, exchange_id: ExchangeId) -> None:
        fork = await self._bridge.write(lambda: self._services.library.fork(exchange_id))
        await self._chat.show(fork)

    def _on_link_wanted(self, turn: int) -> None:
        view = self._chat.view
        if view is not None and turn < len(view.path):
            link = link_to(view.conversation.id, view.path[turn].turn_number)
            QGuiApplication.clipboard().setText(link)
            self._pane.banner.tell(f"{link} was copied.", brief=True)

    # -- the rest

    def _exchange_at(self, turn: int) -> ExchangeId | None:
        view = self._chat.view
        return view.path[turn].id if view is not None and turn < len(view.path) else None

    def _on_chat_opened(self, _conversation: object) -> None:
        self._edited = None
        self._pane.composer.end_edit()

    def _last_turn(self, act: Callable[[int], None]) -> Callable[[], None]:
        def on_last() -> None:
            if self._chat.view is not None and self._chat.view.path:
                act(len(self._chat.view.path) - 1)

        return on_last

    def _wire(self, window: MainWindow) -> None:
        composer, actions = self._pane.composer, window.actions_by_name
        composer.send_requested.connect(self._on_send_requested)
        composer.stop_requested.connect(self._stop)
        composer.edit_cancelled.connect(self._on_edit_cancelled)
        actions["stop"].triggered.connect(self._stop)
        actions["regenerate"].triggered.connect(self._last_turn(self._on_regenerate_requested))
        actions["copy_link"].triggered.connect(self._last_turn(self._on_link_wanted))
        transcript = self._pane.transcript
        assert isinstance(transcript, TranscriptView)
        transcript.retry_requested.connect(self._on_retry_requested)
        transcript.continue_requested.connect(self._on_retry_requested)
        transcript.regenerate_requested.connect(self._on_regenerate_requested)
        transcript.edit_requested.connect(self._on_edit_requested)
        transcript.branch_requested.connect(self._on_branch_requested)
        transcript.fork_requested.connect(self._on_fork_requested)
        transcript.link_requested.connect(self._on_link_wanted)
