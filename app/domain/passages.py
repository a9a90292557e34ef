"""Passages: the unit that is ranked, its parts and text, embedding spaces and their status, search queries and hits."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from app.domain.conversations import Role
from app.domain.ids import ConversationId, ExchangeId, MessageId, PartId, PassageId


class PassageKind(StrEnum):
    """The kind of record that a passage comes from."""

    TURN = "turn"
    EXCHANGE_SUMMARY = "exchange_summary"
    CONVERSATION_SUMMARY = "conversation_summary"
    FACT = "fact"
    MEMORY = "memory"
    TOOL_SUMMARY = "tool_summary"
    MAN_PAGE = "man_page"
    DOCUMENT = "document"


DOCUMENT_KINDS = (PassageKind.MAN_PAGE, PassageKind.DOCUMENT)
"""The kinds that are from files, not from conversations."""

KIND_TITLES: Mapping[PassageKind, str] = {
    PassageKind.TURN: "Turns",
    PassageKind.EXCHANGE_SUMMARY: "Turn summaries",
    PassageKind.CONVERSATION_SUMMARY: "Conversation summaries",
    PassageKind.FACT: "Facts",
    PassageKind.MEMORY: "Memories",
    PassageKind.TOOL_SUMMARY: "Tool summaries",
    PassageKind.MAN_PAGE: "Manual pages",
    PassageKind.DOCUMENT: "Documents",
}


@dataclass(frozen=True, slots=True)
class Passage:
    """A ranked unit. Its text is not stored again but read from its source.

    `source_id` is the id of the source within its kind (for `turn` and `exchange_summary` the exchange,
    for `conversation_summary` the conversation, for `man_page` and `document` the chunk). `content_hash` is the first
    32 hex digits of the text's SHA-256. `tokens` is an estimate; 0 marks a turn that is incomplete or
    that only Recall answered, which is in the text index only.
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
class PassagePart:
    """One message of a turn, the summary or the text of a manual page, or the whole of another passage.

    Parts are ranked; a passage has the rank of its best part. `text` is the message, `calls` are tool
    calls with truncated arguments, of a document the headings above it, `results` are tool results (both weigh less). Results belong to the
    message before them. Manual pages have two parts, other passages than turns one, with the role assistant;
    instructions of a conversation have the role system. `pieces` are the text of a message with files: the
    name of the file that each is from, "" for the writer's own words.
    """

    id: PartId
    role: Role
    text: str
    calls: str = ""
    results: str = ""
    message_id: MessageId | None = None
    pieces: tuple[tuple[str, str], ...] = ()

    @property
    def by_source(self) -> tuple[tuple[str, str], ...]:
        """The text as `pieces`; whole without files."""
        return self.pieces or (("", self.text or self.shown),)

    @property
    def embedded(self) -> str:
        """The text to embed: message and calls, without reasoning and tool results."""
        return "\n\n".join(part for part in (self.text, self.calls) if part)

    @property
    def shown(self) -> str:
        """The whole text, for snippets."""
        return "\n".join(part for part in (self.text, self.calls, self.results) if part)


@dataclass(frozen=True, slots=True)
class PassageText:
    """The text of a passage by parts, as the indexes receive it.

    `title` is that of the conversation or the manual page. `before` and `after` are a few parts of the
    neighboring turns on its path, in reading order: context for the first and last parts.
    """

    id: PassageId
    kind: PassageKind
    conversation_id: ConversationId | None
    title: str
    parts: tuple[PassagePart, ...]
    created_at: datetime
    before: tuple[PassagePart, ...] = ()
    after: tuple[PassagePart, ...] = ()

    @property
    def said(self) -> tuple[PassagePart, ...]:
        """The parts but for a conversation's instructions, which are found and never quoted."""
        return tuple(each for each in self.parts if each.role is not Role.SYSTEM)


@dataclass(frozen=True, slots=True)
class Space:
    """An embedding space; vectors of different spaces are never ranked together.

    `name` consists of lower-case letters, digits and underscores, so that it can name a table.
    `max_tokens` is the longest input of the model, in its own tokens.
    """

    name: str
    dimension: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What the search box asks for; `app.index.query` reads it from text.

    `words` rank, in the order typed and those of phrases among them, so they are also the sentence
    to embed. Each of `phrases` must occur as it stands, nothing of `excluded` (words or phrases)
    may. `titles`, `tags`, `models`, `sources`, `projects` and `topics` must all hold. Times are UTC: `after` is the
    first moment allowed, `before` the first not allowed. `archived` and `pinned` ask for such conversations
    alone; archived ones are left out otherwise. `is_message` is true for the text of a chat message,
    whose words are not keywords, however few they are.
    """

    words: str = ""
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    after: datetime | None = None
    before: datetime | None = None
    archived: bool = False
    pinned: bool = False
    is_message: bool = False
    limit: int = 20

    @property
    def is_list(self) -> bool:
        """Whether there is nothing to rank by: what the filters leave is listed by date."""
        return not self.words and not self.phrases


@dataclass(frozen=True, slots=True)
class VectorHit:
    """One line of the vector index's ranking: a part by its best chunk."""

    part_id: PartId
    cosine: float


class SpaceUse(StrEnum):
    """The use of a space: it answers searches, is being filled, or is kept."""

    ANSWERS = "answers"
    FILLS = "fills"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class SpaceStatus:
    """An embedding space: the number of embedded passages, their share (0-1) of all, and the vectors' size.

    `choice` is the value of the setting `embedder` that selects it, `model` its display name.
    """

    name: str
    choice: str
    model: str
    passages: int
    share: float
    size_bytes: int
    use: SpaceUse


@dataclass(frozen=True, slots=True)
class EmbeddingStatus:
    """The status of search by meaning.

    `chosen` is the setting `embedder`, `chosen_title` its display name; `previous_title` names the
    embedder that still answers, "" once the chosen one does. `share` (0-1) is the embedded share of
    `total` passages. `problem` says why search by meaning is not available, "" when it is.
    """

    chosen: str
    chosen_title: str
    previous_title: str
    share: float
    total: int
    rows: tuple[SpaceStatus, ...]
    problem: str


@dataclass(frozen=True, slots=True)
class EmbeddingEstimate:
    """An estimate for embedding passages with an embedder, the `choice`.

    `cost_usd` is None when the price is unknown. `sent_to` is the server that history would be sent
    to, "" when it stays on this computer; `needs_consent` when the user has not agreed to that.
    """

    choice: str
    passages: int
    tokens: int
    minutes: float
    cost_usd: float | None
    sent_to: str
    needs_consent: bool
