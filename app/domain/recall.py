"""Recall values: what retrieval found for a question, the prompt that is stored with an answer, and recall settings.

`app.memory` retrieves and selects. Lists are best first; relevances are calibrated, 0-1; a cosine is None
without a vector; `coverage` is the idf-weighted share of the question's words. Times are UTC.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from app.domain.conversations import Conversation
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import PassageKind
from app.domain.records.documents import FileState
from app.domain.settings_schema import SETTINGS, SettingValue


def is_recall_on(conversation: Conversation | None) -> bool:
    """Return whether a conversation uses memory; None is a conversation that is not stored yet."""
    return conversation is None or conversation.recalls


class PlanPartKind(StrEnum):
    """The parts of a prompt, in the order in which they are sent.

    A compaction stands for the turns before the history; tool results in `SHORTENED` turns are one line
    each. `NOTE` holds what the program asked for within the turn, after the messages in `message_ids`.
    """

    SYSTEM_PROMPT = "system_prompt"
    PROFILE = "profile"
    CORE_MEMORY = "core_memory"
    TOOLS = "tools"
    COMPACTION = "summary"
    SHORTENED = "shortened"
    HISTORY = "window"
    DATE = "date"
    FACTS = "facts"
    RELATED = "related"
    DOCUMENTS = "documents"
    EARLIER = "earlier"
    QUESTION = "question"
    NOTE = "note"


PAST_KINDS = (PlanPartKind.SHORTENED, PlanPartKind.HISTORY)


class RecallLayer(StrEnum):
    """The search that retrieved an item.

    HINT is any of the first four that is only hinted at in one line; MENTION is the summary or a turn of a
    conversation that the message asks for: by its title after an @, or by its days, as in "yesterday".
    """

    FACT = "fact"
    CONVERSATION = "conversation"
    EXCHANGE = "exchange"
    HISTORY = "history"
    HINT = "hint"
    DOCUMENT = "document"
    EARLIER = "earlier"
    MENTION = "mention"


class Verdict(StrEnum):
    """The user's verdict on a recalled item: it ranks higher, lower, or is never used again."""

    UP = "up"
    DOWN = "down"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class PromptPiece:
    """A text of a prompt part, and the conversation and the passage that it quotes.

    They allow forgetting to remove it, and a later request to leave it out.
    """

    text: str
    conversation_id: ConversationId | None = None
    passage_id: PassageId | None = None


@dataclass(frozen=True, slots=True)
class PlanPart:
    """One part of a prompt.

    Its text is the joined `pieces`; history and question have `message_ids` of stored messages instead,
    oldest first. `tokens` is an estimate; `cacheable` parts precede the provider's cache breakpoint.
    `sources` are the passages quoted in full.
    """

    kind: PlanPartKind
    tokens: int
    cacheable: bool
    pieces: tuple[PromptPiece, ...] = ()
    message_ids: tuple[MessageId, ...] = ()
    sources: tuple[PassageId, ...] = ()

    @property
    def text(self) -> str:
        """The text of the part; "" when it consists of stored messages."""
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class RecalledItem:
    """A retrieved item and whether it was injected into the prompt; best first within its layer.

    `tokens` is its size, injected or not; `dropped_by` describes why it was not injected ("" when it
    was), such as the setting that excluded it. `exchange_id` and `message_id` are its location.
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
class StoredPrompt:
    """The prompt of one answer.

    An exchange that was retried has several, and a branch also those of the earlier questions that it shares.
    `limit_tokens` is the ceiling of the whole prompt, `result_chars` the limit of a tool result;
    `notice` describes problems with recall, one a line, "" for none.
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

    def part(self, kind: PlanPartKind) -> PlanPart:
        """Return the part of a kind, an empty one where there is none."""
        empty = PlanPart(kind, 0, cacheable=kind in PAST_KINDS)
        return next((each for each in self.parts if each.kind is kind), empty)


@dataclass(frozen=True, slots=True)
class RecalledItemDetails:
    """A recalled item with the fields that a chip shows.

    `title` is that of its conversation, "" for none. `exchange_id` is the turn to open (for a
    conversation, the one that matched), `turn_number` its number on its own path, `said_at` its start.
    `text` is the fact, the memory or the question of the turn; "" when that was deleted. `file` is what
    became of the file since its passage was recalled.
    """

    item: RecalledItem
    title: str
    turn_number: int | None
    text: str
    exchange_id: ExchangeId | None = None
    said_at: datetime | None = None
    file: FileState = FileState.SAME


@dataclass(frozen=True, slots=True)
class MatchScore:
    """How well a passage matches the question, and the user's verdict on it."""

    kind: PassageKind
    passage_id: PassageId
    relevance: float
    cosine: float | None
    coverage: float
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class SegmentContext:
    """The segment of the question: its path since the last `/new`.

    `exchange_ids` precede the question; `held` are the messages that are known to be in the prompt
    anyway. An empty segment is not searched. `quoted` passages already stand in the request from earlier
    turns and are never recalled again. `recent` are the user's messages of the last turns, newest last: what
    a follow-up refers to. `mentioned` are the conversations after an @, recalled whatever their relevance.
    `project` is the uid of the conversation's project, whose recall rule applies; None for none.
    """

    exchange_ids: frozenset[ExchangeId] = frozenset()
    held: frozenset[MessageId] = frozenset()
    quoted: frozenset[PassageId] = frozenset()
    recent: tuple[str, ...] = ()
    mentioned: tuple[ConversationId, ...] = ()
    project: str | None = None


@dataclass(frozen=True, slots=True)
class QuoteUnit:
    """The least that is quoted of a text: a sentence, a row of a table or a line of code, as written.

    Units of the same `line` are joined by a space. `needs` are the places of the units that are quoted with
    it, such as the head of its table. `worth` (0-2) is how much of the question it answers.
    """

    text: str
    line: int
    needs: tuple[int, ...] = ()
    worth: float = 0.0


@dataclass(frozen=True, slots=True)
class RetrievedFact:
    """A current fact; `is_shown` when its turn is on the visible path, `replaces` the turns that state former ones."""

    match: MatchScore
    text: str
    said_at: datetime
    conversation_id: ConversationId | None
    exchange_id: ExchangeId | None
    message_id: MessageId | None
    is_shown: bool = True
    replaces: frozenset[ExchangeId] = frozenset()


@dataclass(frozen=True, slots=True)
class QuotableText:
    """A message that can be quoted, or the text of its file of a name, as units in reading order."""

    is_user: bool
    units: tuple[QuoteUnit, ...]
    file: str = ""


@dataclass(frozen=True, slots=True)
class RetrievedExchange:
    """A past turn; `texts` are its messages. `is_shown` when it is on the visible path of its conversation."""

    match: MatchScore
    conversation_id: ConversationId
    exchange_id: ExchangeId
    message_id: MessageId | None
    turn_number: int
    started_at: datetime
    texts: tuple[QuotableText, ...]
    is_shown: bool = True


@dataclass(frozen=True, slots=True)
class RetrievedConversation:
    """A past conversation, ranked by its summary or its best turn, whichever is better.

    `exchanges` are its best ones, more than are selected; `exchange_count` counts all. `summary` has the
    units of its summary.
    """

    match: MatchScore
    conversation_id: ConversationId
    title: str
    started_at: datetime
    summary: tuple[QuoteUnit, ...]
    exchange_count: int
    exchanges: tuple[RetrievedExchange, ...] = ()


@dataclass(frozen=True, slots=True)
class RetrievedDocument:
    """A passage of a document; `title` names the file, and the page and headings of the passage."""

    match: MatchScore
    title: str
    changed_at: datetime
    units: tuple[QuoteUnit, ...]


@dataclass(frozen=True, slots=True)
class RetrievedMessage:
    """An earlier message of the same segment; `text` is complete.

    If it has files, `text` is its own or that of its `file` by this name, whichever answers.
    """

    match: MatchScore
    exchange_id: ExchangeId
    message_id: MessageId
    turn_number: int
    said_at: datetime
    is_user: bool
    text: str
    file: str = ""


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """All retrieved items; `notice` describes why parts of the search did not run, one a line.

    `mentioned` and `asked_facts` are what the message asks for, whatever the relevance: conversations after
    an @ or of the days that it is about, and facts.
    """

    facts: tuple[RetrievedFact, ...] = ()
    conversations: tuple[RetrievedConversation, ...] = ()
    history: tuple[RetrievedExchange, ...] = ()
    earlier: tuple[RetrievedMessage, ...] = ()
    titles: dict[ConversationId, str] = field(default_factory=dict)
    took_ms: float = 0.0
    notice: str = ""
    mentioned: tuple[RetrievedConversation, ...] = ()
    asked_facts: tuple[RetrievedFact, ...] = ()
    documents: tuple[RetrievedDocument, ...] = ()

    @property
    def turns(self) -> tuple[RetrievedExchange, ...]:
        """All turns found."""
        talks = (*self.mentioned, *self.conversations)
        return (*(turn for talk in talks for turn in talk.exchanges), *self.history)

    @property
    def quoted_conversations(self) -> frozenset[ConversationId]:
        """The other conversations that anything found comes from."""
        found = (each.conversation_id for each in (*self.facts, *self.asked_facts))
        facts = {each for each in found if each is not None}
        mentioned = {each.conversation_id for each in self.mentioned}
        return frozenset(self.titles) | facts | mentioned

    def of_conversations(self, kept: Collection[ConversationId | None]) -> "RetrievalResult":
        """Return what comes from some other conversations, or from none (None), and all of this one's."""
        return replace(
            self,
            facts=tuple(each for each in self.facts if each.conversation_id in kept),
            conversations=tuple(
                each for each in self.conversations if each.conversation_id in kept
            ),
            history=tuple(each for each in self.history if each.conversation_id in kept),
            titles={each: title for each, title in self.titles.items() if each in kept},
            mentioned=tuple(each for each in self.mentioned if each.conversation_id in kept),
            asked_facts=tuple(each for each in self.asked_facts if each.conversation_id in kept),
        )


def _default(key: str) -> Any:
    return SETTINGS[key].default


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """Every value that tunes what is recalled: limits are counts, relevances 0-1, budgets tokens.

    A setting of the page `SettingPage.RECALL` is a field here under its own key; its label, range and
    default are in `settings_schema`. A new one needs a row there and a field here.
    """

    rag_enabled: bool = _default("rag_enabled")
    rag_conversation_limit: int = _default("rag_conversation_limit")
    rag_exchange_limit_per_conversation: int = _default("rag_exchange_limit_per_conversation")
    rag_min_similarity: float = _default("rag_min_similarity")
    rag_hint_similarity: float = _default("rag_hint_similarity")
    rag_fact_limit: int = _default("rag_fact_limit")
    rag_history_limit: int = _default("rag_history_limit")
    rag_max_tokens: int = _default("rag_max_tokens")
    rag_document_max_tokens: int = _default("rag_document_max_tokens")
    rag_recency_half_life_days: float = _default("rag_recency_half_life_days")
    auto_rag_enabled: bool = _default("auto_rag_enabled")
    auto_rag_top_k: int = _default("auto_rag_top_k")
    auto_rag_max_tokens: int = _default("auto_rag_max_tokens")
    auto_rag_relevance_threshold: float = _default("auto_rag_relevance_threshold")
    core_memory_max_tokens: int = _default("core_memory_max_tokens")
    profile_enabled: bool = _default("profile_enabled")
    profile_max_tokens: int = _default("profile_max_tokens")

    @classmethod
    def read(cls, value_of: Callable[[str], SettingValue]) -> Self:
        """Return the current values; `value_of` returns the value of a key."""
        values: dict[str, Any] = {each.name: value_of(each.name) for each in fields(cls)}
        return cls(**values)

    def widest(self) -> Self:
        """Return these with everything switched on and each limit at its maximum."""
        limits: dict[str, Any] = {
            key: int(SETTINGS[key].maximum or 0)
            for key in (
                "rag_conversation_limit",
                "rag_exchange_limit_per_conversation",
                "rag_history_limit",
                "rag_fact_limit",
            )
        }
        # More earlier messages than are ranked: those already in the prompt are left out later.
        limits["auto_rag_top_k"] = 1_000
        return replace(self, rag_enabled=True, auto_rag_enabled=True, **limits)
