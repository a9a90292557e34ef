"""Passages, the unit that ranks, and what a search gives back."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from app.domain.conversations import Role
from app.domain.ids import ConversationId, ExchangeId, MessageId, PartId, PassageId


class PassageKind(StrEnum):
    """What a passage is a chunk of."""

    TURN = "turn"
    EXCHANGE_SUMMARY = "exchange_summary"
    CONVERSATION_SUMMARY = "conversation_summary"
    FACT = "fact"
    MEMORY = "memory"
    TOOL_SUMMARY = "tool_summary"
    MAN_PAGE = "man_page"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class Passage:
    """What is ranked. Its text is not stored twice: it is read from where it comes from.

    `source_id` is the id of that record within its kind (for `turn` and `exchange_summary` the
    exchange, for `conversation_summary` the conversation, for `man_page` the page). `content_hash` is the SHA-256 of the
    text, hex, first 32 digits. `tokens` is an estimate of the text's length; 0 marks a turn
    that is incomplete or that Recall alone answered, which only the text index holds.
    """

    id: PassageId
    kind: PassageKind
    source_id: int
    conversation_id: ConversationId | None
    exchange_id: ExchangeId | None
    content_hash: str
    created_at: datetime
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """The words of one message of a turn, of a manual page's line or text, or all of another passage.

    Parts are what ranks; a passage takes the rank of its best. `text` is what was said, `calls` the
    tools called with their arguments cut, `results` what tools answered (both weigh less). Results
    stand with the message before them. Passages that are no turns have one part, an assistant's, manual pages two.
    """

    id: PartId
    role: Role
    text: str
    calls: str = ""
    results: str = ""
    message_id: MessageId | None = None

    @property
    def embedded(self) -> str:
        """What is embedded: the text and the calls; not thinking, not tool results."""
        return "\n\n".join(part for part in (self.text, self.calls) if part)

    @property
    def shown(self) -> str:
        """All words, for a snippet."""
        return "\n".join(part for part in (self.text, self.calls, self.results) if part)


@dataclass(frozen=True, slots=True)
class PassageText:
    """A passage's words by part, as the indexes take them.

    `title` is the conversation's, or the manual page's. `before` and `after` are parts of the turns that stand next to it
    on its path, in reading order: a few, for the context of the first and last parts.
    """

    id: PassageId
    kind: PassageKind
    conversation_id: ConversationId | None
    title: str
    parts: tuple[Part, ...]
    created_at: datetime
    before: tuple[Part, ...] = ()
    after: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Space:
    """An embedding model's space; vectors of two spaces are never mixed in one ranking.

    `name` is lower-case letters, digits and underscores, fit for a table's name. `max_tokens` is
    the longest text, in the model's own tokens, that one vector can stand for.
    """

    name: str
    dimension: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What the search box asks for; `app.index.query` reads it from text.

    `words` rank, in the order typed and those of phrases among them, so they are also the sentence
    to embed. Each of `phrases` must occur as it stands, nothing of `excluded` (words or phrases)
    may. `titles`, `tags` and `models` must all hold. Times are UTC: `after` is the first moment
    allowed, `before` the first not allowed. `archived` and `pinned` ask for such conversations
    alone; archived ones are left out otherwise.
    """

    words: str = ""
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    after: datetime | None = None
    before: datetime | None = None
    archived: bool = False
    pinned: bool = False
    limit: int = 20

    @property
    def is_list(self) -> bool:
        """Whether there is nothing to rank by: what the filters leave is listed by date."""
        return not self.words and not self.phrases


@dataclass(frozen=True, slots=True)
class TextHit:
    """One line of the text index's ranking.

    `coverage` is the idf-weighted share (0-1) of the query's words that the part holds.
    """

    part_id: PartId
    score: float
    coverage: float


@dataclass(frozen=True, slots=True)
class VectorHit:
    """One line of the vector index's ranking: a part by its best chunk, which is text[start:end]."""

    part_id: PartId
    cosine: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One line of a search, ready to be shown.

    `relevance` is 0-1, `is_weak` when recall would not take it for an answer; `cosine` is None where
    no vector took part. `message_id` is the turn's message that was found. `marks` are (start, end) offsets
    of matching words in `snippet`. `turn_number` is the place on the exchange's own path,
    `is_shown` whether that is the one its conversation shows. Times are UTC.
    """

    kind: PassageKind
    passage_id: PassageId
    source: str
    conversation_id: ConversationId | None
    conversation_title: str
    archived: bool
    turn_number: int | None
    exchange_id: ExchangeId | None
    message_id: MessageId | None
    relevance: float
    is_weak: bool
    cosine: float | None
    user_question: str
    snippet: str
    marks: tuple[tuple[int, int], ...]
    created_at: datetime
    model: str | None
    is_shown: bool = True


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """All a search gives back: results best first, how long it took, what share was searchable.

    `by_meaning` when vectors took part; if they should have and could not, `notice` says why.
    """

    query: str
    results: tuple[SearchResult, ...]
    took_ms: float
    covered_share: float = 1.0
    by_meaning: bool = False
    notice: str = ""
