"""What retrieval found for one question, before anyone decides what of it goes into the prompt.

Found by `app.memory.recall`, chosen by `app.memory.context_plan`. Every list is best first. All
relevances are calibrated, 0-1; a cosine is None where no vector took part; `coverage` is the
idf-weighted share of the question's words. Times are UTC.
"""

from dataclasses import dataclass, field
from datetime import datetime

from app.domain.facts import FactCategory
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import PassageKind
from app.domain.recalls import Verdict


@dataclass(frozen=True, slots=True)
class Match:
    """How well a passage answers the question, and what the user said of it before."""

    kind: PassageKind
    passage_id: PassageId
    relevance: float
    cosine: float | None
    coverage: float
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """Where the question is asked: the part of its path since the last `/new`.

    `exchange_ids` are those before the question, `held` the messages that the prompt holds anyway,
    as far as that is known. Nothing of a segment that is empty is looked for.
    """

    exchange_ids: frozenset[ExchangeId] = frozenset()
    held: frozenset[MessageId] = frozenset()


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """How much is looked for, after the settings of the same names; more comes back, to choose from.

    `is_related_wanted` asks for facts and other conversations, `is_earlier_wanted` for the segment's own
    messages. `half_life_days` is 0 for none: after so many days a relevance counts half.
    """

    conversation_limit: int = 3
    exchange_limit: int = 2
    history_limit: int = 2
    fact_limit: int = 3
    earlier_limit: int = 3
    half_life_days: float = 0.0
    is_related_wanted: bool = True
    is_earlier_wanted: bool = True
    with_archived: bool = False


@dataclass(frozen=True, slots=True)
class FoundFact:
    """A fact that holds now; `is_shown` when its turn is on the path that is shown."""

    match: Match
    text: str
    category: FactCategory
    said_at: datetime
    conversation_id: ConversationId | None
    exchange_id: ExchangeId | None
    message_id: MessageId | None
    is_shown: bool = True


@dataclass(frozen=True, slots=True)
class FoundExchange:
    """A past turn; `user` and `assistant` are cuts of what both sides said (200 characters).

    `is_shown` is whether the path that its conversation shows holds it.
    """

    match: Match
    conversation_id: ConversationId
    exchange_id: ExchangeId
    message_id: MessageId | None
    turn_number: int
    started_at: datetime
    user: str
    assistant: str
    is_shown: bool = True


@dataclass(frozen=True, slots=True)
class FoundConversation:
    """A past conversation, ranked by the better of its summary and its best turn.

    `exchanges` are its best, more than will be taken; `exchange_count` all it has. `summary` is cut.
    """

    match: Match
    conversation_id: ConversationId
    title: str
    started_at: datetime
    summary: str
    exchange_count: int
    exchanges: tuple[FoundExchange, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """An earlier message of the same segment; `text` is whole."""

    match: Match
    exchange_id: ExchangeId
    message_id: MessageId
    turn_number: int
    said_at: datetime
    is_user: bool
    text: str


@dataclass(frozen=True, slots=True)
class Retrieved:
    """All that was found; `notice` says in words what kept a part of it from being looked for."""

    facts: tuple[FoundFact, ...] = ()
    conversations: tuple[FoundConversation, ...] = ()
    history: tuple[FoundExchange, ...] = ()
    earlier: tuple[FoundMessage, ...] = ()
    titles: dict[ConversationId, str] = field(default_factory=dict)
    took_ms: float = 0.0
    notice: str = ""
