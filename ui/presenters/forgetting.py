"""Forgetting a turn of the open conversation, or a message of it, after a question."""

from collections.abc import Callable, Sequence

from app.domain.conversations import Exchange
from app.domain.formatting import format_turn
from app.domain.ids import ExchangeId, MessageId
from app.domain.translation import tr
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.views.dialogs.confirm import confirm_deletion
from ui.widgets.banner import Banner


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
