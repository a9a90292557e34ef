"""Wishes become plans: what the database says of a conversation, put to the rules of `plans`.

Everything here blocks; the exchange loop calls it in a worker thread.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.chat.plans import (
    Allocator,
    Plan,
    new_conversation,
    plan_edit,
    plan_regenerate,
    plan_retry,
    plan_send,
)
from app.chat.slates import CleanSlates, in_segment
from app.domain.conversations import Block, Conversation, Exchange, Message, Role, Text
from app.domain.errors import InvalidInput
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import PassageKind
from app.domain.text import clean
from app.storage.conversations import Conversations
from app.storage.exchanges import Exchanges, path_to, shown_path
from app.storage.passages import Passages
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.times import now


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a conversation begins with; of one that exists already only the model counts."""

    model: str | None
    private: bool
    recalls: bool


class Planner:
    """Plans exchanges. Blocking; each raises InvalidInput, NotFound, StorageError."""

    def __init__(
        self, store: Store, settings: Settings, is_running: Callable[[ConversationId], bool]
    ) -> None:
        """Refuse to plan anything again where `is_running` says that a reply is under way."""
        self._store = store
        self._settings = settings
        self._is_running = is_running
        self._conversations = Conversations(store)
        self._exchanges = Exchanges(store)
        self._passages = Passages(store)
        self._slates = CleanSlates(settings)
        self._allocate = Allocator(store.ids.message, store.ids.exchange, now)

    def ready(self, make_plan: Callable[[], Plan]) -> tuple[Plan, tuple[PassageId, ...]]:
        """Return a plan, its path cut to its segment, and the passages that it will replace."""
        plan = make_plan()
        conversation_id = plan.conversation.id
        sent = in_segment(
            plan.path,
            plan.exchange,
            lambda: path_to(plan.exchange, self._exchanges.of(conversation_id)),
        )
        plan = replace(plan, path=sent)
        return plan, self._passages.of_source(PassageKind.TURN, plan.exchange.id)

    def send(
        self,
        conversation_id: ConversationId | None,
        blocks: tuple[Block, ...],
        beginning: Beginning,
    ) -> Plan:
        """Return the plan of saying something in a conversation, or (None) in a new one."""
        blocks, model = _checked(blocks), beginning.model
        if conversation_id is None:
            conversation = new_conversation(
                self._store.ids.conversation(), now(), private=beginning.private, model=model,
                recalls=beginning.recalls,
            )  # fmt: skip
            chosen = self._model_of(conversation, model)
            return plan_send(conversation, (), (), blocks, chosen, self._allocate, is_new=True)
        conversation = self._conversations.get(conversation_id)
        if model is not None:
            conversation = replace(conversation, model=model)
        shown = shown_path(conversation, self._exchanges.of(conversation_id))
        path = self._messages(shown)
        chosen = self._model_of(conversation, model)
        return plan_send(
            conversation, shown, path, blocks, chosen, self._allocate, is_new=False,
            clean_slate=bool(shown) and self._slates.is_after(shown[-1].id),
        )  # fmt: skip

    def edit(
        self, exchange_id: ExchangeId, message_id: MessageId, blocks: tuple[Block, ...]
    ) -> Plan:
        """Return the plan of saying it differently, on a branch beside what was said."""
        return self._again(
            exchange_id,
            lambda conversation, exchange, path, model: plan_edit(
                conversation, exchange, path, message_id, _checked(blocks), model, self._allocate
            ),
        )

    def regenerate(self, exchange_id: ExchangeId) -> Plan:
        """Return the plan of another answer to the same question, on a branch of its own."""
        return self._again(
            exchange_id,
            lambda conversation, exchange, path, model: plan_regenerate(
                conversation, exchange, path, model, self._allocate
            ),
        )

    def retry(self, exchange_id: ExchangeId) -> Plan:
        """Return the plan of running it again in its place; refused once a turn follows it."""

        def plan(
            conversation: Conversation, exchange: Exchange, path: Sequence[Message], model: str
        ) -> Plan:
            continues = path[-1].role is not Role.USER
            if self._goes_on(exchange):
                raise InvalidInput(
                    "Only the last turn can be continued or tried again",
                    "Regenerate it instead: what follows stays on its own branch.",
                )
            return plan_retry(
                conversation, exchange, path, model, self._allocate, continues=continues
            )

        return self._again(exchange_id, plan)

    def _again(
        self,
        exchange_id: ExchangeId,
        plan: Callable[[Conversation, Exchange, Sequence[Message], str], Plan],
    ) -> Plan:
        exchange = self._exchanges.get(exchange_id)
        if self._is_running(exchange.conversation_id):
            raise InvalidInput("This reply is still running", "Stop it or wait for its end.")
        conversation = self._conversations.get(exchange.conversation_id)
        path = path_to(exchange, self._exchanges.of(exchange.conversation_id))
        return plan(
            conversation, exchange, self._messages(path), self._model_of(conversation, None)
        )

    def _goes_on(self, exchange: Exchange) -> bool:
        siblings = self._exchanges.of(exchange.conversation_id)
        return any(each.parent_id == exchange.id for each in siblings)

    def _messages(self, path: Sequence[Exchange]) -> tuple[Message, ...]:
        ids = [message_id for exchange in path for message_id in exchange.message_ids]
        found = self._exchanges.messages(ids)
        return tuple(found[each] for each in ids)

    def _model_of(self, conversation: Conversation, model: str | None) -> str:
        return model or conversation.model or self._settings.text("default_model")


def _checked(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    cleaned = tuple(Text(clean(b.text)) if isinstance(b, Text) else b for b in blocks)
    if not any(not isinstance(b, Text) or b.text.strip() for b in cleaned):
        raise InvalidInput("There is nothing to send", "Type a message first.")
    return cleaned
