"""Change sets: what one or more writes touched, for the screens and workers that follow it."""

from collections.abc import Callable
from dataclasses import dataclass, fields

from app.domain.ids import ConversationId, ExchangeId


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Everything that one or more writes touched; empty sets mean untouched.

    Attributes:
        conversations: Rows of the conversation list: title, pin, archive, trash, tags, new ones; not
            those that only got a message.
        messages_in: Conversations whose tree or visible path changed.
        turns_ended: Exchanges that have just ended, with a whole reply or not; they wake workers.
        exchanges: Exchanges whose record changed: status, usage, problem or stored prompt.
        settings: Keys of `appconfig`.
        providers: Names of providers added, changed or removed.
        presets: Uids of presets added, changed or removed.
        projects: Uids of projects added, changed or removed.
        routines: Uids of routines that were added, changed, removed or have a new state of a run.
        passages: Whether passages were added or removed.
        replaced_passages: Whether passages were replaced or changed, so that vectors are outdated.
        vectors: Names of embedding spaces that got vectors or were emptied.
        memory: Whether facts, memories, core memory, the profile or verdicts changed.
        found_topics: Whether topics of conversations were found, named or chosen.
        spend: Whether a request was recorded.
    """

    conversations: frozenset[ConversationId] = frozenset()
    messages_in: frozenset[ConversationId] = frozenset()
    turns_ended: frozenset[ExchangeId] = frozenset()
    exchanges: frozenset[ExchangeId] = frozenset()
    settings: frozenset[str] = frozenset()
    providers: frozenset[str] = frozenset()
    presets: frozenset[str] = frozenset()
    projects: frozenset[str] = frozenset()
    routines: frozenset[str] = frozenset()
    passages: bool = False
    replaced_passages: bool = False
    vectors: frozenset[str] = frozenset()
    memory: bool = False
    found_topics: bool = False
    spend: bool = False

    @property
    def topics(self) -> frozenset[str]:
        """The names of the fields that are not empty, and the keys of the settings."""
        touched = (each.name for each in fields(self) if getattr(self, each.name))
        return self.settings.union(touched)

    def __or__(self, other: "ChangeSet") -> "ChangeSet":
        return ChangeSet(
            *(getattr(self, each.name) | getattr(other, each.name) for each in fields(self))
        )


ChangeListener = Callable[[ChangeSet], None]
