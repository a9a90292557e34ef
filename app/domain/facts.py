"""What was learned from conversations: facts, and what a model was asked to keep in memory.

Facts and memories are passages too, and bear their passage's id: short in a prompt, one name for
votes, links and `/facts forget ID`. How facts are found is `app.workers`; where kept, `app.storage`.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId

BY_PATTERNS = "patterns"
BY_USER = "user"


class FactCategory(StrEnum):
    """What a fact is about."""

    PREFERENCE = "preference"
    INSTRUCTION = "instruction"
    IDENTITY = "identity"
    RELATIONSHIP = "relationship"
    POSSESSION = "possession"
    EVENT = "event"
    PLAN = "plan"
    DECISION = "decision"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Fact:
    """One atomic statement, and the turn it was last learned from.

    `subject` names, in lower case, what may have one value at a time ("ann: employer"): two facts of
    one subject contradict each other, and the later one supersedes; "" where many may be true.
    `said_at` is when it was said, `valid_until` when it ended: None while it holds. The source is
    None when the user wrote it. `model` is "patterns", "user" or PROVIDER:MODEL; `made_at` is when
    this wording was made, and names the version. Times are UTC.
    """

    id: PassageId
    uid: str
    text: str
    category: FactCategory
    subject: str
    conversation_id: ConversationId | None
    exchange_id: ExchangeId | None
    message_id: MessageId | None
    said_at: datetime
    model: str
    made_at: datetime
    valid_until: datetime | None = None
    superseded_by: PassageId | None = None
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class FactVersion:
    """A wording that a fact had, and the turn it came from; newest is the one that holds."""

    fact_id: PassageId
    made_at: datetime
    text: str
    category: FactCategory
    model: str
    conversation_id: ConversationId | None
    exchange_id: ExchangeId | None
    message_id: MessageId | None
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Memory:
    """A text saved on purpose, by the `memory_save` tool or the user; `saved_at` is UTC.

    What the tool saves, a model worded: it names the conversation in which that was.
    """

    id: PassageId
    uid: str
    text: str
    saved_at: datetime
    conversation_id: ConversationId | None = None
    exchange_id: ExchangeId | None = None

    @property
    def is_worded_by_model(self) -> bool:
        """Return whether a model saved it, in words that need not be the user's."""
        return self.conversation_id is not None
