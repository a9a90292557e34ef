"""Forgetting after a question: turns and messages, private conversations that are left, keys and passwords."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from app.domain.conversations import Conversation, Exchange, TitleOrigin
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.translation import format_turn, quoted, tr
from app.memory.secrets import SecretPlace, ValueService, places_text
from ui.presenters.conversation.open_conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.views.dialogs.confirm import (
    Confirmation,
    confirm,
    confirm_deletion,
    confirm_removal,
    deletion_details,
)
from ui.views.dialogs.secrets_dialog import SecretsDialog
from ui.widgets.banner import Banner

_Found = tuple[Sequence[str], Mapping[str, int]]


class ForgetPresenter(Presenter):
    """Deletes what was said for good. What forgets returns what remains elsewhere; it blocks."""

    _forget_turn: Callable[[ExchangeId], tuple[str, ...]]
    _forget_messages: Callable[[Sequence[MessageId]], tuple[str, ...]]
    _messages: Banner
    _conversation: ConversationPresenter

    def ask(self, turn: int) -> None:
        """Ask, then forget a turn of the path shown, and show the conversation without it."""
        if (exchange := self._conversation.exchange_at(turn)) is not None:
            self._confirm(exchange, format_turn(turn), lambda: self._forget_turn(exchange.id))

    def ask_messages(self, turn: int, ids: tuple[MessageId, ...]) -> None:
        """Ask, then forget the question of a turn of the path shown, or the messages of its answer."""
        exchange = self._conversation.exchange_at(turn)
        if exchange is None or not ids:
            return
        is_question = ids[0] == exchange.message_ids[0]
        name = tr("only the message in {turn}") if is_question else tr("only the answer in {turn}")
        name = name.format(turn=format_turn(turn))
        self._confirm(exchange, name, lambda: self._forget_messages(ids))

    def _confirm(
        self, exchange: Exchange, name: str, forget: Callable[[], tuple[str, ...]]
    ) -> None:
        def show(remains: tuple[str, ...]) -> None:
            self._conversation.open(exchange.conversation_id, exchange.id)
            self._messages.show_message(" ".join(remains), brief=not remains)

        window = self._messages.window()
        confirm_deletion(window, name, "", lambda: self._bridge.save(forget, show))


class PrivacyPresenter(Presenter):
    """Asks about a private conversation once it is left by opening another one or by quitting.

    It is kept until the user decides: a crash loses nothing. `forget` deletes conversations after
    stopping their replies, and blocks.
    """

    _forget: Callable[[Sequence[ConversationId]], object]
    _messages: Banner
    _conversation: ConversationPresenter

    def _set_up(self) -> None:
        self._session_start = datetime.now(UTC)
        self._decided: set[ConversationId] = set()
        self._conversation.left.connect(self._on_left)

    def ask_before_leaving(self, leave: Callable[[], object]) -> None:
        """Call `leave`, after asking if a private conversation of this session is open."""
        view = self._conversation.view
        if view is None or not self._is_undecided(view.conversation):
            leave()
            return
        conversation = view.conversation
        texts = Confirmation(
            tr("Private conversation"),
            tr("Keep {name}?").format(name=_name(conversation)),
            tr(
                "If you keep it, it stays out of search and recall. If you discard it, it is deleted."
            ),
            yes=tr("Keep"),
            other=tr("Discard"),
            yes_is_default=True,
        )
        confirm(
            self._messages.window(),
            texts,
            leave,
            on_other=lambda: self._discard(conversation, leave),
        )

    def _is_undecided(self, conversation: Conversation) -> bool:
        is_of_session = conversation.created_at >= self._session_start
        return conversation.private and is_of_session and conversation.id not in self._decided

    def _on_left(self, conversation: Conversation) -> None:
        if self._is_undecided(conversation):
            self._decided.add(conversation.id)
            self._messages.show_message(
                tr("You kept {name}. It stays out of search and recall.").format(
                    name=_name(conversation)
                ),
                tr("Discard"),
                lambda: self._discard(conversation),
                brief=False,
            )

    def _discard(
        self, conversation: Conversation, then: Callable[[], object] = lambda: None
    ) -> None:
        self._decided.add(conversation.id)
        self._bridge.save(lambda: self._forget([conversation.id]), lambda _: then())


def _name(conversation: Conversation) -> str:
    """Return what a private conversation is called, with the title if the user gave it one."""
    is_named = conversation.title_origin is TitleOrigin.USER
    return tr("the private conversation") + f" {quoted(conversation.title)}" * is_named


class SecretsPresenter(Presenter):
    """Shows the dialog. `find` yields places until its argument says to stop; it blocks."""

    _find: Callable[[Callable[[], bool]], Iterator[SecretPlace]]
    _values: ValueService
    _messages: Banner
    _conversation: ConversationPresenter

    def open(self) -> SecretsDialog:
        dialog, closed = SecretsDialog(self._messages.window()), threading.Event()
        dialog.open_requested.connect(lambda place: self._show(place, dialog))
        dialog.forget_requested.connect(
            lambda place: self._ask(
                lambda: self._values.in_messages([place.message_id]), dialog, closed
            )
        )
        dialog.forget_text_requested.connect(
            lambda text: self._ask(lambda: (text,), dialog, closed)
        )
        dialog.finished.connect(lambda _: closed.set())
        self._load(dialog, closed)
        return self._open_dialog(dialog, "secrets", "value places")

    def _load(self, dialog: SecretsDialog, closed: threading.Event) -> None:
        dialog.begin()
        self._bridge.load(
            "secrets",
            lambda: list(self._find(closed.is_set)),
            dialog.show_places,
            dialog.show_error,
        )

    def _show(self, place: SecretPlace, dialog: SecretsDialog) -> None:
        dialog.accept()
        self._conversation.open(place.conversation_id, place.exchange_id, place.message_id)

    def _ask(
        self, values: Callable[[], Sequence[str]], dialog: SecretsDialog, closed: threading.Event
    ) -> None:
        """Ask, with the number of records, then forget values."""

        def count() -> _Found:
            found = values()
            return found, self._values.places(found)

        def show(remains: Sequence[str]) -> None:
            self._messages.show_message(" ".join((tr("It was forgotten."), *remains)), brief=False)
            if (here := self._conversation.conversation_id) is not None:
                self._conversation.open(here)
            if not closed.is_set():
                self._load(dialog, closed)

        def ask(found: _Found) -> None:
            values, counts = found
            if not counts:
                text = tr("Nothing contains this text. Capital letters and spaces count.")
                dialog.status.setText(text)
                return
            details = tr(
                "Messages, titles and instructions keep the rest of their text; facts, summaries and "
                "stored prompts with it are deleted. Attached files are not searched."
            )
            forget, title = self._values.forget, tr("Forget")
            confirm_removal(
                dialog,
                title,
                tr("Forget it in {places}?").format(places=places_text(counts)),
                deletion_details(details),
                lambda: self._bridge.save(lambda: forget(values), show, dialog.show_error),
                title,
            )

        self._bridge.load("value places", count, ask, dialog.show_error)
