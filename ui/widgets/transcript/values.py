"""Values shown by a transcript."""

from dataclasses import dataclass, field
from datetime import datetime

from app.domain.conversations import ExchangeStatus, Message, Problem, Role, Usage
from app.domain.ids import MessageId


@dataclass(frozen=True, slots=True)
class TurnHeader:
    """What is known of a turn before its content is loaded: enough to estimate its height.

    Attributes:
        turn_number: The position on the shown path, from 0.
        started_at: UTC. A divider with the date is above the first turn of a local day.
        question_chars, answer_chars: Text lengths.
        segment_number: A divider is above the first turn of a segment.
    """

    turn_number: int
    started_at: datetime
    question_chars: int = 0
    answer_chars: int = 0
    segment_number: int = 0


@dataclass(frozen=True, slots=True)
class Footer:
    """The model of an answer (PROVIDER:MODEL) and its cost; None is unknown."""

    model: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """A fork at a message: `position` of `count` siblings, counted from 1."""

    message_id: MessageId
    position: int
    count: int


@dataclass(frozen=True, slots=True)
class SourceChip:
    """A recalled source of an answer.

    `number` identifies it, `symbol` is its kind as one character and `kind` as text; `text` is
    short, `tip` longer.
    """

    number: int
    icon: str
    kind: str
    text: str
    tip: str = ""
    cited: bool = False


@dataclass(frozen=True, slots=True)
class Sources:
    """What recall contributed to an answer; `notice` is its problem, or ""."""

    chips: tuple[SourceChip, ...] = ()
    notice: str = ""


@dataclass(frozen=True, slots=True)
class WrittenLine:
    """What a model wrote to memory in a turn: its text, and (action, label) of what can be done."""

    uid: str
    text: str
    actions: tuple[tuple[str, str], ...] = ()
    needs_answer: bool = False


@dataclass(frozen=True, slots=True)
class TurnContent:
    """The content of a turn.

    Attributes:
        messages: In path order. A tool result is shown with its call, by `call_id`.
        status: A running turn shows no footer; an interrupted one can be continued.
        branches: Forks at messages of this turn.
    """

    messages: tuple[Message, ...]
    status: ExchangeStatus = ExchangeStatus.COMPLETED
    footer: Footer = field(default_factory=Footer)
    problem: Problem | None = None
    branches: tuple[Branch, ...] = ()


@dataclass(frozen=True, slots=True)
class FindMark:
    """A match: indexes into `searchable_text` of the turn's messages."""

    turn_index: int
    start: int
    end: int


def searchable_text(messages: tuple[Message, ...]) -> str:
    """Return the text of all messages, separated by blank lines."""
    return "\n\n".join(text for message in messages if (text := message.text))


def answer_text(messages: tuple[Message, ...]) -> str:
    """Return the Markdown source of the answer."""
    answers = (message.text for message in messages if message.role is Role.ASSISTANT)
    return "\n\n".join(text for text in answers if text)
