"""What a transcript shows, as plain values: it asks for nothing else and knows nothing else."""

from dataclasses import dataclass, field
from datetime import datetime

from app.domain.conversations import ExchangeStatus, Message, Problem, Role, Text
from app.domain.ids import MessageId
from app.domain.usage import Usage


@dataclass(frozen=True, slots=True)
class TurnHead:
    """What must be known of a turn before its words are: enough to guess its height.

    Attributes:
        started_at: UTC. The first turn of a (local) day gets a line with the date.
        question_chars, answer_chars: Lengths of the text of both sides.
        segment_number: Where it rises, a line says that a clean slate begins.
        turn_number: Its place on the shown path, counted from 0; for screen readers.
    """

    turn_number: int
    started_at: datetime
    question_chars: int = 0
    answer_chars: int = 0
    segment_number: int = 0


@dataclass(frozen=True, slots=True)
class Footer:
    """What an answer cost and which model wrote it (`PROVIDER:MODEL`); None is unknown."""

    model: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """A place where the conversation forks: `position` of `count` siblings, counted from 1."""

    message_id: MessageId
    position: int
    count: int


@dataclass(frozen=True, slots=True)
class SourceChip:
    """Something recalled for an answer.

    `number` names it to whoever opens it; `sign` is its kind in one character, `kind` in words;
    `words` are short, `tip` says more.
    """

    number: int
    sign: str
    kind: str
    words: str
    tip: str = ""
    cited: bool = False


@dataclass(frozen=True, slots=True)
class Sources:
    """What memory contributed to an answer; `notice` says what went wrong, "" when nothing did."""

    chips: tuple[SourceChip, ...] = ()
    notice: str = ""


@dataclass(frozen=True, slots=True)
class TurnContent:
    """All of a turn.

    Attributes:
        messages: In path order. A tool result stands with its call, by `call_id`.
        status: A turn that is running shows no footer; an interrupted one offers to continue.
        branches: Forks at messages of this turn.
    """

    messages: tuple[Message, ...]
    status: ExchangeStatus = ExchangeStatus.COMPLETED
    footer: Footer = field(default_factory=Footer)
    problem: Problem | None = None
    branches: tuple[Branch, ...] = ()


@dataclass(frozen=True, slots=True)
class FindMark:
    """Found words: offsets into `searchable_text` of the turn's messages."""

    turn_index: int
    start: int
    end: int


def searchable_text(messages: tuple[Message, ...]) -> str:
    """Return the text that offsets of `FindMark` count in: all text blocks, two line ends between."""
    return "\n\n".join(text for message in messages if (text := message.text))


def answer_text(messages: tuple[Message, ...]) -> str:
    """Return the Markdown source of the answer: what its Copy copies."""
    return "\n\n".join(
        message.text for message in messages if message.role is Role.ASSISTANT and message.text
    )


def text_blocks(message: Message) -> tuple[str, ...]:
    """Return the message's text blocks that have words, in order."""
    return tuple(block.text for block in message.blocks if isinstance(block, Text) and block.text)
