"""Which screens and workers a change concerns: changes in, `Changed` out."""

from collections.abc import Iterable
from dataclasses import dataclass, field

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
    touched = _Touched()
    for change in changes:
        touched.add(change)
    return touched.all()


@dataclass(slots=True)
class _Touched:
    """The fields of `Changed` as they grow: a union at each of an import's changes would be slow."""

    conversations: set[ConversationId] = field(default_factory=set)
    messages_in: set[ConversationId] = field(default_factory=set)
    turns_completed: set[ExchangeId] = field(default_factory=set)
    exchanges: set[ExchangeId] = field(default_factory=set)
    settings: set[str] = field(default_factory=set)
    providers: set[str] = field(default_factory=set)
    passages: bool = False
    learned: bool = False
    spend: bool = False

    def add(self, change: Change) -> None:
        match change:
            case ConversationPut(conversation=row):
                self.conversations.add(row.id)
            case ConversationEdited():
                self._add_edit(change)
            case MessagesAdded(messages=added):
                self.messages_in.update(message.conversation_id for message in added)
            case ExchangePut(exchange=exchange):
                self.exchanges.add(exchange.id)
                self.messages_in.add(exchange.conversation_id)
                if exchange.status is ExchangeStatus.COMPLETED:
                    self.turns_completed.add(exchange.id)
            case PromptKept(prompt=prompt):
                self.exchanges.add(prompt.exchange_id)
            case PassagesPut():
                self.passages = True
            case TagsChanged(conversation_id=tagged):
                self.conversations.add(tagged)
            case SettingPut(key=key):
                self.settings.add(key)
            case ProviderPut(name=name):
                self.providers.add(name)
            case ConversationForgotten(conversation_id=forgotten):
                self.conversations.add(forgotten)
                self.messages_in.add(forgotten)
                self.settings.add(PROBES)
                self.passages = self.learned = True
            case FactForgotten() | MemoryForgotten():
                self.passages = self.learned = True
            case FactPut() | MemoryPut() | CoreMemoryPut() | FeedbackPut():
                self.learned = True
            case SpendAdded():
                self.spend = True

    def _add_edit(self, edit: ConversationEdited) -> None:
        self.conversations.add(edit.conversation_id)
        if edit.title is not None:
            self.passages = True  # the index holds it with each of them
        if edit.deleted_at is not None or edit.private is not None or edit.restored:
            self.passages = self.learned = True  # facts that it had ended hold, or no more
        if edit.visible_leaf_id is not None:
            self.messages_in.add(edit.conversation_id)

    def all(self) -> Changed:
        return Changed(
            frozenset(self.conversations), frozenset(self.messages_in), frozenset(self.turns_completed),
            frozenset(self.exchanges), frozenset(self.settings), frozenset(self.providers),
            self.passages, learned=self.learned, spend=self.spend,
        )  # fmt: skip
