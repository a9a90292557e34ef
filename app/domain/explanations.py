"""Why a turn is, or is not, found for a question: what `app.memory.explain` says, as values."""

from dataclasses import dataclass
from enum import StrEnum

from app.domain.ids import ConversationId, ExchangeId, MessageId


class Cause(StrEnum):
    """What can keep a turn out of the results, the most final first."""

    UNFINISHED = "unfinished"
    PRIVATE = "private"
    TRASH = "trash"
    ARCHIVED = "archived"
    FILTER = "filter"
    NOT_INDEXED = "not_indexed"
    EXCLUDED_WORD = "excluded_word"
    PHRASE = "phrase"
    NO_VECTOR = "no_vector"
    NOT_A_CANDIDATE = "not_a_candidate"
    OTHER_BRANCH = "other_branch"
    LIMIT = "limit"
    WEAK = "weak"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One cause, in words for the user; `hint` says what would change it, "" when nothing would."""

    cause: Cause
    words: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Points:
    """What one feature adds to the score, of this turn and of the best result (None: no results)."""

    feature: str
    words: str
    points: float
    best_points: float | None


@dataclass(frozen=True, slots=True)
class AskedWord:
    """A word of the question, and whether the message holds it; small words count for nothing."""

    word: str
    is_held: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a question finds one turn.

    `rank` counts from 1 among the `ranked_count` results there would be without a limit; None when
    the turn is not among them. The numbers are those of its best message, `message_id`, and None
    when nothing could be measured; `relevance` and `floor` are 0-1. `points` are sorted, what
    counts most first. `obstacles` are empty when the turn is found and shown. `notice` says why
    meaning took no part, if it should have.
    """

    question: str
    exchange_id: ExchangeId
    conversation_id: ConversationId
    conversation_title: str
    turn_number: int
    user_question: str
    rank: int | None
    ranked_count: int
    message_id: MessageId | None
    score: float | None
    relevance: float | None
    cosine: float | None
    coverage: float | None
    floor: float
    points: tuple[Points, ...]
    words: tuple[AskedWord, ...]
    obstacles: tuple[Obstacle, ...]
    by_meaning: bool
    notice: str
