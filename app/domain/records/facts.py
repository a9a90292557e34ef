"""Facts extracted from conversations, and texts saved to memory by the user or a model.

Facts and memories are passages too and share their passage's id, which is short in a prompt and serves
votes, links and `/facts forget ID`. `app.workers` extracts facts, `app.storage` keeps them.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId

BY_PATTERNS = "patterns"
BY_USER = "user"
BY_IMPORT = "import"


class FactCategory(StrEnum):
    """The category of a fact."""

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
    """One atomic statement and the turn that it was last extracted from.

    `subject`, in lower case, names an attribute with one value at a time ("ann: employer"): of two
    facts with one subject the later supersedes the earlier; "" when several may be true. `said_at` is
    the time of the statement, `valid_until` its end, None while it is current. The source is None when
    the user wrote the fact. `model` is "patterns", "user" or PROVIDER:MODEL; `made_at` is the time of
    this version and identifies it. Times are UTC.
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
    """A version of a fact's text and the turn that it came from; the newest is current."""

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
    """A text saved by the user or by the `memory_save` tool; `saved_at` is UTC.

    One saved by the tool was written by a model and has the conversation of that call.
    """

    id: PassageId
    uid: str
    text: str
    saved_at: datetime
    conversation_id: ConversationId | None = None
    exchange_id: ExchangeId | None = None

    @property
    def is_written_by_model(self) -> bool:
        """Return whether a model saved it, so that the text need not be the user's."""
        return self.conversation_id is not None


class WriteState(StrEnum):
    """The state of what a model wrote to memory; a proposal is not in force until it is kept."""

    IN_FORCE = "in_force"
    PROPOSED = "proposed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class MemoryWrite:
    """What a model wrote to memory in an exchange, or proposed to write; `written_at` is UTC.

    `memory_id` is the saved text, which is kept there alone; None for core memory, in which `new`
    took the place of `old`, or was added where `old` is "": words, or whole lines where undoing needs
    them. `outside` names what the model had read that nobody had typed, "" for nothing. `text` is what
    a screen shows of it.
    """

    uid: str
    conversation_id: ConversationId
    exchange_id: ExchangeId
    model: str
    written_at: datetime
    state: WriteState = WriteState.IN_FORCE
    memory_id: PassageId | None = None
    old: str = ""
    new: str = ""
    outside: str = ""

    @property
    def text(self) -> str:
        return self.new or self.old


def text_until(text: str, until: datetime | None, at: datetime) -> str:
    """Return the text of a fact that is current `at` a time; an end that is still to come stands in it."""
    if until is None or until <= at or str(until.year) in text:
        return text
    return f"{text.rstrip('.')} (\N{EN DASH} {until:%Y-%m-%d})."
