"""What a write changed, so that every open screen and worker can decide whether it matters to it."""

from collections.abc import Callable
from dataclasses import dataclass, fields

from app.domain.ids import ConversationId, ExchangeId


@dataclass(frozen=True, slots=True)
class Changed:
    """The union of what one or more writes touched; empty sets mean untouched.

    Attributes:
        conversations: Rows of the conversation list: title, pin, archive, trash, tags, new ones.
        messages_in: Conversations whose tree or shown path changed.
        turns_completed: Exchanges that have just become complete: workers wake for these.
        exchanges: Exchanges whose record changed: status, usage, problem, what they were asked with.
        settings: Keys of `appconfig`.
        providers: Names of providers added, changed or removed.
        passages: Whether search has something to add or drop.
        vectors: Names of embedding spaces that got vectors, or lost them all.
        learned: Whether facts, memories, core memory or votes changed.
        spend: Whether a request was put on record.
    """

    conversations: frozenset[ConversationId] = frozenset()
    messages_in: frozenset[ConversationId] = frozenset()
    turns_completed: frozenset[ExchangeId] = frozenset()
    exchanges: frozenset[ExchangeId] = frozenset()
    settings: frozenset[str] = frozenset()
    providers: frozenset[str] = frozenset()
    passages: bool = False
    vectors: frozenset[str] = frozenset()
    learned: bool = False
    spend: bool = False

    def __or__(self, other: "Changed") -> "Changed":
        return Changed(
            *(getattr(self, each.name) | getattr(other, each.name) for each in fields(self))
        )


ChangeListener = Callable[[Changed], None]
