"""What memory contributed to one answer, and exactly what was sent, part by part.

The plan that decides it is `app.memory.context_plan`; this is what of it is kept and shown.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from app.domain.conversations import Conversation
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import PassageKind


def is_recall_on(conversation: Conversation | None) -> bool:
    """Return whether anything of the past may be used in a conversation; None is not stored yet."""
    return conversation is None or conversation.recalls


class PlanPartKind(StrEnum):
    """The parts of a prompt, in the order of the specification (section 4)."""

    SYSTEM_PROMPT = "system_prompt"
    CORE_MEMORY = "core_memory"
    SUMMARY = "summary"
    FACTS = "facts"
    RELATED = "related"
    EARLIER = "earlier"
    WINDOW = "window"
    TOOLS = "tools"
    QUESTION = "question"


class RecallLayer(StrEnum):
    """Which search an item was retrieved by."""

    FACT = "fact"
    CONVERSATION = "conversation"
    EXCHANGE = "exchange"
    HISTORY = "history"
    EARLIER = "earlier"


class Verdict(StrEnum):
    """What the user thinks of a recalled item: it weighs more, less, or is never used again."""

    UP = "up"
    DOWN = "down"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Piece:
    """Words of a part, and the conversation they quote: what is forgotten there goes here too."""

    text: str
    conversation_id: ConversationId | None = None


@dataclass(frozen=True, slots=True)
class PlanPart:
    """One part of a prompt.

    `pieces`, joined, are its text. Of the window and the question `message_ids` name the stored
    messages instead, oldest first. `tokens` is an estimate; `cacheable` parts stand before the
    provider's cache breakpoint. `sources` are the passages it quotes.
    """

    kind: PlanPartKind
    tokens: int
    cacheable: bool
    pieces: tuple[Piece, ...] = ()
    message_ids: tuple[MessageId, ...] = ()
    sources: tuple[PassageId, ...] = ()

    @property
    def text(self) -> str:
        """The words of the part; "" where it is made of stored messages."""
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class RecalledItem:
    """One thing that was retrieved, best first within its layer, and what became of it.

    `relevance` is calibrated, 0-1; `cosine` is None without a vector, `coverage` the share of the
    question's words it holds. `tokens` is what it takes, injected or not; `dropped_by` says in words
    what kept it out ("" when injected), such as the setting it fell short of. `exchange_id`,
    `turn_number` and `message_id` are the place to jump to.
    """

    layer: RecallLayer
    kind: PassageKind
    passage_id: PassageId
    conversation_id: ConversationId | None
    exchange_id: ExchangeId | None
    message_id: MessageId | None
    relevance: float
    cosine: float | None
    coverage: float
    tokens: int
    injected: bool
    dropped_by: str = ""


@dataclass(frozen=True, slots=True)
class KeptPrompt:
    """What one answer was asked with. An exchange that ran again has several; times are UTC.

    `limit_tokens` is what the model reads, the reply's share taken off; `result_chars` how long a
    tool's result might be; `notice` what went wrong with recall, in words, "" when nothing did.
    """

    exchange_id: ExchangeId
    conversation_id: ConversationId
    sent_at: datetime
    model: str
    limit_tokens: int
    result_chars: int
    parts: tuple[PlanPart, ...]
    items: tuple[RecalledItem, ...]
    notice: str = ""


@dataclass(frozen=True, slots=True)
class RecalledPlace:
    """A recalled item as a chip shows it.

    `title` is its conversation's, "" where it belongs to none. `exchange_id` is the turn to jump to,
    of a conversation the one it was found by; `turn_number` its place on its own path, `said_at` when
    it began (UTC). `text` is the fact, the memory, or the question that began the turn; "" where that
    is gone.
    """

    item: RecalledItem
    title: str
    turn_number: int | None
    text: str
    exchange_id: ExchangeId | None = None
    said_at: datetime | None = None
