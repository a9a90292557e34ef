"""Private conversations: asked about when they are left, kept or discarded."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from app.domain.conversations import Conversation, TitleOrigin
from app.domain.ids import ConversationId
from app.domain.translation import tr
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.views.dialogs.confirm import Confirmation, confirm
from ui.widgets.banner import Banner


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
    return tr("the private conversation") + (
        f" \u201c{conversation.title}\u201d" if is_named else ""
    )
