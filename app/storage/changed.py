"""Which screens and workers a change concerns: changes in, `Changed` out."""

from collections.abc import Iterable

from app.domain.changes import (
    Change,
    ConversationEdited,
    ConversationForgotten,
    ConversationPut,
    CoreMemoryPut,
    ExchangePut,
    FactForgotten,
    FactPut,
    FeedbackPut,
    MemoryForgotten,
    MemoryPut,
    MessagesAdded,
    PassagesPut,
    PromptKept,
    ProviderPut,
    SettingPut,
    SpendAdded,
    TagsChanged,
)
from app.domain.conversations import ExchangeStatus
from app.domain.events import Changed
from app.domain.ids import ConversationId, ExchangeId
from app.storage.mentions import PROBES


def changed_by(changes: Iterable[Change]) -> Changed:
    """Return the union of what `changes` touch."""
    conversations: set[ConversationId] = set()
    messages_in: set[ConversationId] = set()
    exchanges: set[ExchangeId] = set()
    completed: set[ExchangeId] = set()
    settings: set[str] = set()
    providers: set[str] = set()
    passages = learned = spend = False
    for change in changes:
        match change:
            case ConversationPut(conversation=row):
                conversations.add(row.id)
            case ConversationEdited(conversation_id=edited, visible_leaf_id=leaf, title=title):
                conversations.add(edited)
                passages = passages or title is not None  # the index holds it with each of them
                if change.deleted_at is not None or change.private is not None or change.restored:
                    passages = learned = True  # facts that it had ended hold, or no more
                if leaf is not None:
                    messages_in.add(edited)
            case MessagesAdded(messages=added):
                messages_in.update(message.conversation_id for message in added)
            case ExchangePut(exchange=exchange):
                exchanges.add(exchange.id)
                messages_in.add(exchange.conversation_id)
                if exchange.status is ExchangeStatus.COMPLETED:
                    completed.add(exchange.id)
            case PromptKept(prompt=prompt):
                exchanges.add(prompt.exchange_id)
            case PassagesPut():
                passages = True
            case TagsChanged(conversation_id=tagged):
                conversations.add(tagged)
            case SettingPut(key=key):
                settings.add(key)
            case ProviderPut(name=name):
                providers.add(name)
            case ConversationForgotten(conversation_id=forgotten):
                conversations.add(forgotten)
                messages_in.add(forgotten)
                settings.add(PROBES)
                passages = learned = True
            case FactForgotten() | MemoryForgotten():
                passages = learned = True
            case FactPut() | MemoryPut() | CoreMemoryPut() | FeedbackPut():
                learned = True
            case SpendAdded():
                spend = True
            case _:
                pass
    return Changed(
        frozenset(conversations), frozenset(messages_in), frozenset(completed),
        frozenset(exchanges), frozenset(settings), frozenset(providers), passages, learned=learned,
        spend=spend,
    )  # fmt: skip
