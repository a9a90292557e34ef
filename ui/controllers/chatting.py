"""The open conversation: shown turn by turn, talked to, branched, searched within."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from app.bootstrap import Services
from app.chat.library import ConversationView
from app.chat.places import link_to
from app.chat.running import Reply
from app.domain.conversations import Conversation, Exchange, Message, Text
from app.domain.errors import KnownError, NotFound
from app.domain.events import Changed
from app.domain.ids import ConversationId, ExchangeId, MessageId
from ui.bridge import Bridge
from ui.controllers.replies import RunningReplies
from ui.controllers.turns import content_of, heads_of
from ui.errors import words_for
from ui.theme import Appearance
from ui.views.main_window import MainWindow
from ui.widgets.transcript.values import Footer
from ui.widgets.transcript.view import TranscriptView


class ChatController(QObject):
    """Shows one conversation and carries out what is wished of it.

    Signals:
        opened: The `Conversation` that is open now, or None for one not yet begun.
        link_activated: (target, words it stands behind): a link in a message was clicked.
    """

    opened = Signal(object)
    link_activated = Signal(str, str)

    def __init__(
        self, services: Services, bridge: Bridge, window: MainWindow, appearance: Appearance
    ) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._window = window
        self._pane = window.chat
        transcript = window.chat.transcript
        assert isinstance(transcript, TranscriptView)
        self._transcript = transcript
        self._view: ConversationView | None = None
        self._private = False
        self._model = ""
        self._edited: tuple[ExchangeId, MessageId] | None = None
        self._replies = RunningReplies(bridge, self)
        self._replies.grew.connect(self._on_reply_grew)
        self._replies.retrying.connect(self._on_reply_retrying)
        self._replies.ended.connect(self._on_reply_ended)
        bridge.changed.connect(self._on_changed)
        appearance.theme_changed.connect(transcript.set_theme)
        self._wire_pane()
        self._wire_transcript()

    @property
    def conversation_id(self) -> ConversationId | None:
        """The open conversation, None for one not yet begun."""
        return self._view.conversation.id if self._view else None

    @property
    def view(self) -> ConversationView | None:
        """The open conversation on the path that is shown."""
        return self._view

    async def begin(self, conversation_id: int | None) -> None:
        """Show the first screen: what was open the last time, if it still is there."""
        if conversation_id is not None:
            try:
                await self._load(ConversationId(conversation_id))
            except NotFound:
                self._show_new(private=False)
        else:
            self._show_new(private=False)
        await self._show_draft()

    def begin_new(self, *, private: bool = False) -> None:
        """Show an empty conversation; it exists once something is said in it."""
        self._pane.composer.flush_draft()
        self._show_new(private=private)
        self._bridge.start("draft", self._show_draft())
        self._pane.composer.box.setFocus()

    def open(
        self, conversation_id: ConversationId, exchange_id: ExchangeId | None = None
    ) -> "asyncio.Task[None]":
        """Show a conversation; at an exchange, centred and highlighted, on whatever branch it is."""
        self._pane.composer.flush_draft()
        return self._bridge.start("open conversation", self._open(conversation_id, exchange_id))

    # -- showing

    def _show_new(self, *, private: bool) -> None:
        self._view, self._private, self._edited = None, private, None
        self._model = self._services.settings.text("default_model")
        self._transcript.show_conversation(())
        if private:
            self._pane.show_message(
                "A private conversation: it is never indexed, summarised or recalled."
            )
        else:
            self._pane.show_welcome()
        self._pane.show_title("", private=private, editable=False)
        self._pane.show_models(self._model_rows(), self._model)
        self._pane.composer.show_running(False)
        self._pane.show_status("")
        self._services.workers.conversation_opened(None)
        self.opened.emit(None)

    async def _open(self, conversation_id: ConversationId, exchange_id: ExchangeId | None) -> None:
        try:
            await self._load(conversation_id, exchange_id)
        except KnownError as error:
            self._tell(error)
            return
        await self._show_draft()
        assert self._view is not None
        places = [each.id for each in self._view.path]
        if exchange_id in places:
            self._transcript.scroll_to_turn(places.index(exchange_id))

    async def _load(self, conversation_id: ConversationId, show: ExchangeId | None = None) -> None:
        """Read a conversation and show its turns' places; their words follow on demand."""
        library, exchanges = self._services.library, self._services.exchanges

        def read() -> tuple[ConversationView, dict[MessageId, int]]:
            return library.open(conversation_id, show), dict(
                exchanges.text_lengths(conversation_id)
            )

        view, lengths = await self._bridge.run(read)
        self._view, self._edited = view, None
        self._private = view.conversation.private
        self._model = view.conversation.model or self._services.settings.text("default_model")
        self._transcript.show_conversation(heads_of(view.path, lengths))
        self._pane.show_transcript()
        self._show_head(view.conversation)
        reply = self._replies.of(conversation_id)
        self._pane.composer.show_running(reply is not None)
        if reply is not None:
            await self._show_reply(reply)
        self._services.workers.conversation_opened(conversation_id)
        self.opened.emit(view.conversation)

    def _show_head(self, conversation: Conversation) -> None:
        self._pane.show_title(conversation.title, private=conversation.private, editable=True)
        self._pane.show_models(self._model_rows(), self._model)

    async def _show_draft(self) -> None:
        conversation_id = self.conversation_id
        draft = await self._bridge.run(lambda: self._services.conversations.draft(conversation_id))
        if self.conversation_id == conversation_id:
            self._pane.composer.show_text(draft)

    def _on_content_requested(self, first: int, last: int) -> None:
        if self._view is not None:
            wanted = range(max(0, first), min(last + 1, len(self._view.path)))
            self._bridge.start(f"turns {first}", self._provide(self._view, wanted))

    async def _provide(self, view: ConversationView, turns: Sequence[int]) -> None:
        exchanges = [view.path[turn] for turn in turns]
        messages = await self._bridge.run(lambda: self._services.library.messages(exchanges))
        if self._view is not view:
            return
        for turn, exchange in zip(turns, exchanges, strict=True):
            if not self._is_growing(exchange):
                self._provide_turn(turn, exchange, messages[exchange.id])

    def _provide_turn(self, turn: int, exchange: Exchange, messages: Sequence[Message]) -> None:
        assert self._view is not None
        content = content_of(exchange, messages, self._view.siblings[turn])
        self._transcript.provide(turn, content)

    def _is_growing(self, exchange: Exchange) -> bool:
        reply = self._replies.of(exchange.conversation_id)
        return reply is not None and reply.plan.exchange.id == exchange.id

    # -- talking

    def _on_send_requested(self, words: str) -> None:
        self._bridge.start("send", self._send(words))

    async def _send(self, words: str) -> None:
        blocks = (Text(words),)
        if self._edited is not None:
            wish = self._services.chat.edit(*self._edited, blocks)
        else:
            wish = self._services.chat.send(
                self.conversation_id, blocks, model=self._chosen_model(), private=self._private
            )
        if await self._begin_reply(wish):
            self._edited = None
            self._pane.composer.clear()

    async def _begin_reply(self, wish: "Future[Reply]") -> bool:
        """Wait until a wish is safe, then show its turn growing; False when it was refused."""
        try:
            reply = await self._bridge.wait(wish)
        except KnownError as error:
            self._tell(error)
            return False
        self._replies.add(reply)
        await self._load(reply.plan.conversation.id, reply.plan.exchange.id)
        return True

    async def _show_reply(self, reply: Reply) -> None:
        """Show a turn that is growing: what was asked, and what has come so far."""
        assert self._view is not None
        view, exchange = self._view, reply.plan.exchange
        turn = self._turn_of(exchange.id)
        if turn is None:
            return
        messages = await self._bridge.run(lambda: self._services.exchanges.messages_of(exchange))
        if self._view is not view or self._replies.of(exchange.conversation_id) is not reply:
            return
        self._provide_turn(turn, exchange, messages)
        self._transcript.begin_reply(turn)
        for kind, text in self._replies.so_far(reply):
            self._append(kind, text)

    def _append(self, kind: str, text: str) -> None:
        if kind == "thinking":
            self._transcript.append_thinking(text)
        else:
            self._transcript.append_text(text)

    def _on_reply_grew(self, reply: Reply, kind: str, text: str) -> None:
        if reply.plan.conversation.id == self.conversation_id:
            self._pane.show_status("")
            self._append(kind, text)

    def _on_reply_retrying(self, reply: Reply, words: str) -> None:
        if reply.plan.conversation.id == self.conversation_id:
            self._pane.show_status(words)

    def _on_reply_ended(self, reply: Reply, outcome: object) -> None:
        if isinstance(outcome, KnownError):
            self._tell(outcome)
        if reply.plan.conversation.id != self.conversation_id:
            return
        self._pane.composer.show_running(False)
        self._pane.show_status("")
        if isinstance(outcome, Exchange):
            self._bridge.start("reply ended", self._finish_reply(outcome))

    async def _finish_reply(self, exchange: Exchange) -> None:
        """Show a turn as it was stored."""
        view = self._view
        conversation_id = exchange.conversation_id
        fresh, messages = await self._bridge.run(
            lambda: (
                self._services.library.open(conversation_id, exchange.id),
                self._services.exchanges.messages_of(exchange),
            )
        )
        if self._view is not view or view is None:
            return
        self._view = fresh
        turn = self._turn_of(exchange.id)
        if turn is not None:
            footer = Footer(exchange.model, exchange.usage)
            self._transcript.finish_reply(exchange.status, footer, exchange.problem)
            self._provide_turn(turn, exchange, messages)

    def _stop(self) -> None:
        if self.conversation_id is not None:
            reply = self._replies.of(self.conversation_id)
            if reply is not None:
                reply.stop()

    # -- what can be done to a turn

    def _again(self, wish: Callable[[ExchangeId], "Future[Reply]"], turn: int) -> None:
        if self._view is not None and turn < len(self._view.path):
            exchange_id = self._view.path[turn].id
            self._bridge.start("again", self._begin_reply(wish(exchange_id)))

    def _on_retry_requested(self, turn: int) -> None:
        self._again(self._services.chat.retry, turn)

    def _on_regenerate_requested(self, turn: int) -> None:
        self._again(self._services.chat.regenerate, turn)

    def _on_edit_requested(self, turn: int, message_id: MessageId) -> None:
        """Take an earlier message into the composer; sending it makes a branch."""
        if self._view is not None and turn < len(self._view.path):
            exchange_id = self._view.path[turn].id
            self._bridge.start("edit", self._begin_edit(exchange_id, message_id))

    async def _begin_edit(self, exchange_id: ExchangeId, message_id: MessageId) -> None:
        found = await self._bridge.run(lambda: self._services.exchanges.messages([message_id]))
        if message_id in found:
            self._pane.composer.flush_draft()
            self._edited = (exchange_id, message_id)
            self._pane.composer.begin_edit(found[message_id].text)

    def _on_edit_cancelled(self) -> None:
        self._edited = None
        self._bridge.start("draft", self._show_draft())

    def _on_branch_requested(self, turn: int, _message_id: MessageId, position: int) -> None:
        """Show the sibling at `position` (counted from 1) in the place of a turn."""
        if self._view is not None:
            sibling = self._view.siblings[turn][position - 1]
            self._bridge.start("branch", self._switch(sibling))

    async def _switch(self, exchange_id: ExchangeId) -> None:
        view = await self._bridge.run(lambda: self._services.library.switch_branch(exchange_id))
        await self._open(view.conversation.id, exchange_id)

    def _on_fork_requested(self, turn: int) -> None:
        if self._view is not None:
            self._bridge.start("fork", self._fork(self._view.path[turn].id))

    async def _fork(self, exchange_id: ExchangeId) -> None:
        fork = await self._bridge.run(lambda: self._services.library.fork(exchange_id))
        await self._open(fork, None)

    def _on_link_wanted(self, turn: int) -> None:
        if self._view is not None and self._view.path:
            link = link_to(self._view.conversation.id, self._view.path[turn].turn_number)
            QGuiApplication.clipboard().setText(link)
            self._pane.banner.tell(f"{link} was copied.", brief=True)

    # -- models

    def _model_rows(self) -> list[tuple[str, str]]:
        rows = [("recall:", "Recall (built in)")]
        default = self._services.settings.text("default_model")
        return rows if default == "recall:" else [*rows, (default, default)]

    def _chosen_model(self) -> str | None:
        """The model to keep for the conversation; None while the default one applies."""
        default = self._services.settings.text("default_model")
        return None if self._model == default else self._model

    def _on_models_requested(self) -> None:
        self._bridge.start("models", self._list_models())

    async def _list_models(self) -> None:
        """Ask every provider that could answer for its models; those that fail are left out."""
        models = self._services.models
        names = await self._bridge.run(
            lambda: [
                state.config.name
                for state in models.providers()
                if models.has_key(state.config.name)
            ]
        )
        rows = self._model_rows()
        for name in names:
            try:
                cards = await self._bridge.wait(
                    self._services.chat.call(partial(models.models, name))
                )
            except KnownError as error:
                self._pane.show_status(f"{name}: {error.title}")
                continue
            known = {model for model, _ in rows}
            rows += [
                (str(card.ref), f"{card.ref}")
                for card in cards
                if not card.is_embedding and str(card.ref) not in known
            ]
        self._pane.show_models(rows, self._model)

    def _on_model_chosen(self, model: str) -> None:
        self._bridge.start("choose model", self._choose_model(model))

    async def _choose_model(self, model: str) -> None:
        try:
            self._model = await self._bridge.run(lambda: self._services.models.check_name(model))
            if (conversation_id := self.conversation_id) is not None:
                chosen = self._model
                await self._bridge.run(
                    lambda: self._services.library.choose_model(conversation_id, chosen)
                )
        except KnownError as error:
            self._tell(error)
        self._pane.show_models(self._model_rows(), self._model)

    # -- the rest

    def _on_draft_changed(self, words: str) -> None:
        conversation_id = self.conversation_id
        if self._edited is not None or (self._private and conversation_id is None):
            return
        self._bridge.start(
            f"save draft {conversation_id}",
            self._bridge.run(lambda: self._services.library.save_draft(conversation_id, words)),
        )

    def _on_changed(self, changed: Changed) -> None:
        if self._view is not None and self._view.conversation.id in changed.conversations:
            self._bridge.start("head", self._refresh_head(self._view.conversation.id))

    async def _refresh_head(self, conversation_id: ConversationId) -> None:
        try:
            found = await self._bridge.run(
                lambda: self._services.conversations.get(conversation_id)
            )
        except KnownError:
            if self.conversation_id == conversation_id:
                self.begin_new()
            return
        if self.conversation_id == conversation_id:
            self._pane.show_title(found.title, private=found.private, editable=True)

    def _turn_of(self, exchange_id: ExchangeId) -> int | None:
        path = self._view.path if self._view else ()
        return next((turn for turn, each in enumerate(path) if each.id == exchange_id), None)

    def _last_turn(self, act: Callable[[int], None]) -> Callable[[], None]:
        def on_last() -> None:
            if self._view is not None and self._view.path:
                act(len(self._view.path) - 1)

        return on_last

    def _tell(self, error: BaseException) -> None:
        title, hint = words_for(error)
        self._pane.banner.tell(f"{title}. {hint}", brief=False)

    def _wire_pane(self) -> None:
        pane, actions = self._pane, self._window.actions_by_name
        pane.composer.send_requested.connect(self._on_send_requested)
        pane.composer.stop_requested.connect(self._stop)
        pane.composer.draft_changed.connect(self._on_draft_changed)
        pane.composer.edit_cancelled.connect(self._on_edit_cancelled)
        pane.models_requested.connect(self._on_models_requested)
        pane.model_chosen.connect(self._on_model_chosen)
        actions["stop"].triggered.connect(self._stop)
        actions["regenerate"].triggered.connect(self._last_turn(self._on_regenerate_requested))
        actions["copy_link"].triggered.connect(self._last_turn(self._on_link_wanted))

    def _wire_transcript(self) -> None:
        transcript = self._transcript
        transcript.content_requested.connect(self._on_content_requested)
        transcript.retry_requested.connect(self._on_retry_requested)
        transcript.regenerate_requested.connect(self._on_regenerate_requested)
        transcript.continue_requested.connect(self._on_retry_requested)
        transcript.edit_requested.connect(self._on_edit_requested)
        transcript.branch_requested.connect(self._on_branch_requested)
        transcript.fork_requested.connect(self._on_fork_requested)
        transcript.link_requested.connect(self._on_link_wanted)
        transcript.link_activated.connect(self.link_activated)
        transcript.link_hovered.connect(self._window.statusBar().showMessage)
