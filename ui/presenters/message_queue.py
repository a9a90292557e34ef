"""The queue of a conversation: a message sent while a reply runs waits, visibly, until that ends."""

from app.chat.reply import Reply
from app.domain.conversations import Draft, Exchange, ExchangeStatus
from app.domain.ids import ConversationId
from app.domain.text import one_line
from ui.presenters.compose import ComposePresenter
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.widgets.composer import Composer

_SHOWN_CHARS = 120


class QueuePresenter(Presenter):
    """Keeps one message for each conversation; a further one is added to it.

    It is stored with the draft, so that it survives a crash. After a reply that was stopped or
    failed it goes back into the message box instead of being sent.
    """

    _compose: ComposePresenter
    _conversation: ConversationPresenter
    _composer: Composer

    def _set_up(self) -> None:
        self._compose.queued.connect(self._on_queued)
        self._compose.start_failed.connect(self._put_back)
        self._composer.queue_cancelled.connect(self._on_cancelled)
        self._conversation.reply_ended.connect(self._on_reply_ended)
        self._conversation.opened.connect(lambda _: self._show())

    def _on_queued(self, draft: Draft) -> None:
        conversation, here = self._conversation, self._conversation.conversation_id
        if here is None:
            return
        earlier = conversation.queued.get(here, Draft())
        conversation.queued[here] = earlier.followed_by(draft)
        conversation.save_draft(here, Draft())
        self._show()

    def _on_cancelled(self) -> None:
        if (here := self._conversation.conversation_id) is not None:
            self._put_back(here)

    def _on_reply_ended(self, reply: Reply, outcome: object) -> None:
        conversation_id = reply.plan.conversation.id
        if conversation_id not in self._conversation.queued:
            return
        if isinstance(outcome, Exchange) and outcome.status is ExchangeStatus.COMPLETED:
            message = self._conversation.queued.pop(conversation_id)
            self._compose.send(conversation_id, message)
            self._show()
        else:
            self._put_back(conversation_id)

    def _put_back(self, conversation_id: ConversationId) -> None:
        """Put a queued message in front of what was typed since."""
        conversation = self._conversation
        if (message := conversation.queued.pop(conversation_id, None)) is None:
            return
        is_here = conversation.conversation_id == conversation_id and not self._composer.is_editing
        typed = self._composer.draft if is_here else conversation.typed(conversation_id)
        draft = message.followed_by(typed)
        conversation.save_draft(conversation_id, draft)
        if is_here:
            self._composer.show_draft(draft)
        self._show()

    def _show(self) -> None:
        here = self._conversation.conversation_id
        message = self._conversation.queued.get(here) if here is not None else None
        names = ", ".join(file.name for file in message.files) if message else ""
        text = one_line(message.text or names, _SHOWN_CHARS) if message else ""
        self._composer.show_queued(text)
