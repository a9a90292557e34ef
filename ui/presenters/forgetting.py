"""Forgetting a turn of the open conversation, after a question."""

from collections.abc import Callable

from app.domain.formatting import format_turn
from app.domain.ids import ExchangeId
from app.domain.translation import tr
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.views.dialogs.confirm import confirm_deletion
from ui.widgets.banner import Banner


class ForgetPresenter(Presenter):
    """Deletes what was said in a turn for good. `forget_turn` returns what remains elsewhere; it blocks."""

    _forget_turn: Callable[[ExchangeId], tuple[str, ...]]
    _messages: Banner
    _conversation: ConversationPresenter

    def ask(self, turn: int) -> None:
        """Ask, then forget a turn of the path shown, and show the conversation without it."""
        view = self._conversation.view
        if view is None or turn >= len(view.path):
            return
        exchange = view.path[turn]

        def show(remains: tuple[str, ...]) -> None:
            self._conversation.open(exchange.conversation_id, exchange.id)
            self._messages.show_message(" ".join(remains), brief=not remains)

        confirm_deletion(
            self._messages.window(),
            format_turn(turn),
            tr(
                "It is deleted from the database, the journal and every backup. Exports that you made "
                "elsewhere are not touched. This cannot be undone."
            ),
            lambda: self._bridge.save(lambda: self._forget_turn(exchange.id), show),
        )
