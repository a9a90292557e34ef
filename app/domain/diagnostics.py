"""Search diagnostics: why a turn is or is not found for a question, and test questions that are run again."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from app.domain.ids import ConversationId, ExchangeId, MessageId


class ObstacleCause(StrEnum):
    """The causes that exclude a turn from the results, in the order in which they are checked."""

    UNFINISHED = "unfinished"
    PRIVATE = "private"
    TRASH = "trash"
    ARCHIVED = "archived"
    OTHER_PROJECT = "other_project"
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
    """A cause with a text for the user; `hint` says how to change it, "" when nothing can."""

    cause: ObstacleCause
    words: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class FeatureScore:
    """The contribution of one ranking feature to the score of this turn and of the best result (None: no results)."""

    feature: str
    words: str
    points: float
    best_points: float | None


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of the question and whether the message contains it; stop words are left out."""

    word: str
    is_present: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """The rank of one turn for a question, and its reasons.

    `rank` counts from 1 among the `ranked_count` results without a limit; None when the turn is not
    among them. The measurements are those of its best message, `message_id`, and None when there are
    none; `relevance` and the minimum relevance `floor` are 0-1. `points` are sorted by weight, largest
    first. `obstacles` are empty when the turn is found and visible. `notice` says why vectors were not
    used although they should have been.
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
    points: tuple[FeatureScore, ...]
    words: tuple[QueryWord, ...]
    obstacles: tuple[Obstacle, ...]
    by_meaning: bool
    notice: str


@dataclass(frozen=True, slots=True)
class Probe:
    """A test question and the turn that it should find.

    `rank` is the turn's position (from 1) among all results in the last run, `before` in the run
    before it; None when it was not found. `ran_at` and `before_at` (UTC) are the times of these runs,
    None without one. `problem` says why the question could not be run, "" if it could.
    """

    question: str
    exchange_id: ExchangeId
    rank: int | None = None
    ran_at: datetime | None = None
    before: int | None = None
    before_at: datetime | None = None
    problem: str = ""

    @property
    def rank_drop(self) -> int:
        """The number of positions lost since the previous run, negative for a gain; largest when lost."""
        if self.ran_at is None or self.before_at is None:
            return 0
        return (self.rank or _NOT_FOUND_RANK) - (self.before or _NOT_FOUND_RANK)


@dataclass(frozen=True, slots=True)
class ProbeDetails:
    """A probe with the location of its turn; `conversation_id` is None when the turn was deleted."""

    probe: Probe
    conversation_id: ConversationId | None
    conversation_title: str
    turn_number: int | None


_NOT_FOUND_RANK = 1_000_000
