"""Conversations: conversation, message, content block, exchange and usage (see the glossary in README).

`app.storage` keeps them; `app.domain.turns` calculates the exchanges from the messages.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId


class Role(StrEnum):
    """The author of a message."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Text:
    """Text for display; Markdown when the author is a model."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """A model's reasoning; shown collapsed and not indexed."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request to run a tool; `arguments` is the JSON text as it was received."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The complete result of a tool call; it is truncated in the prompt only."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """An image attachment; `content_hash` is None when an import contained only its name.

    `sent_hash` is the smaller copy that models get; None when they get the file itself.
    """

    name: str
    media_type: str
    content_hash: str | None = None
    size_bytes: int | None = None
    width_px: int | None = None
    height_px: int | None = None
    sent_hash: str | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file from the user; `text` is the extracted text and may be empty.

    `content_hash` is None when an import contained only its name and text.
    """

    name: str
    media_type: str
    size_bytes: int | None = None
    text: str = ""
    content_hash: str | None = None


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The place of a message's content that the user deleted for good; see `MessagesForgotten`."""


FORGOTTEN = "[forgotten]"
"""What is shown and sent in place of forgotten text."""

File = Image | Attachment
Block = Text | Thinking | ToolCall | ToolResult | Image | Attachment | Forgotten


@dataclass(frozen=True, slots=True)
class RawReply:
    """A provider's raw form of an assistant message, sent back byte for byte.

    `wire` names the protocol ("anthropic.messages", "openai.responses", "openai.chat"), `model`
    is `PROVIDER:MODEL`, `items_json` the JSON text of the list of content blocks or output items.
    """

    wire: str
    model: str
    items_json: str


@dataclass(frozen=True, slots=True)
class Message:
    """A node of a conversation's message tree; immutable once stored.

    `parent_id` is None for a root. `created_at` is UTC. `model` is `PROVIDER:MODEL`, or the bare
    name an import gave, for assistant messages.
    """

    id: MessageId
    uid: str
    conversation_id: ConversationId
    parent_id: MessageId | None
    role: Role
    blocks: tuple[Block, ...]
    created_at: datetime
    model: str | None = None
    raw: RawReply | None = None

    @property
    def text(self) -> str:
        """The text blocks, joined by blank lines."""
        return plain_text(self.blocks)

    @property
    def is_forgotten(self) -> bool:
        """Whether its content was deleted for good."""
        return Forgotten() in self.blocks

    @property
    def opens_turn(self) -> bool:
        """Whether this is a real user message: it has text, an image or an attachment."""
        return self.role is Role.USER and is_real(self.blocks)


def plain_text(blocks: tuple[Block, ...]) -> str:
    """Return the text blocks joined by blank lines; thinking and tools are left out."""
    return "\n\n".join(block.text for block in blocks if isinstance(block, Text) and block.text)


def is_real(blocks: tuple[Block, ...]) -> bool:
    """Return whether blocks hold text, an image or an attachment, not only tool results.

    Forgotten content counts, so that the message keeps its place.
    """
    return any(
        isinstance(block, Image | Attachment | Forgotten)
        or (isinstance(block, Text) and block.text and not block.text.isspace())
        for block in blocks
    )


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens, cost and time of all requests of one reply.

    `input_tokens` includes `cached_tokens`, the part read from the provider's prompt cache, and
    `cache_write_tokens`, the part written to it.
    `cost_usd` is None when the price is unknown (shown as "unknown", never as 0); `price` names the
    price that was used (see `app.providers`). `estimated` marks counts that the provider did not report.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    price: str = ""
    estimated: bool = False
    first_token_ms: int | None = None
    duration_ms: int | None = None
    cache_write_tokens: int = 0


class ExchangeStatus(StrEnum):
    """The state of an exchange."""

    RUNNING = "running"
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Problem:
    """The reason why a reply failed or was interrupted, as shown in the turn."""

    kind: str
    title: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """The stored record of a turn on one branch.

    `message_ids` are its messages in path order; a message may belong to several sibling exchanges
    (a regenerated reply shares the question). `turn_number` counts from 0 along its own
    path, `segment_number` rises with each `/new`. Times are UTC. Stored without `uid`, it gets one that
    follows from its ids and its time.
    """

    id: ExchangeId
    conversation_id: ConversationId
    parent_id: ExchangeId | None
    turn_number: int
    segment_number: int
    status: ExchangeStatus
    message_ids: tuple[MessageId, ...]
    started_at: datetime
    completed_at: datetime | None = None
    model: str | None = None
    usage: Usage | None = None
    problem: Problem | None = None
    uid: str = ""

    @property
    def ended_at(self) -> datetime:
        """When it was completed; its start if it was killed before a reply came."""
        return self.completed_at or self.started_at


@dataclass(frozen=True, slots=True)
class RecallChoice:
    """What memory may bring to one message.

    Attributes:
        is_on: Whether memory is used at all.
        left_out: The passages that are not quoted.
        mentioned: The conversations that are quoted whatever their relevance.
    """

    is_on: bool = True
    left_out: frozenset[PassageId] = frozenset()
    mentioned: tuple[ConversationId, ...] = ()

    def and_also(self, later: "RecallChoice") -> "RecallChoice":
        """Return the choice for two messages that become one."""
        mentioned = dict.fromkeys((*self.mentioned, *later.mentioned))
        return RecallChoice(
            self.is_on and later.is_on, self.left_out | later.left_out, tuple(mentioned)
        )


ANY_RECALL = RecallChoice()


@dataclass(frozen=True, slots=True)
class Draft:
    """An unsent message of the composer; its `choice` is kept until the program ends."""

    text: str = ""
    files: tuple[File, ...] = ()
    choice: RecallChoice = field(default=ANY_RECALL, compare=False)

    def followed_by(self, later: "Draft") -> "Draft":
        text = "\n\n".join(filter(None, (self.text, later.text)))
        return Draft(text, (*self.files, *later.files), self.choice.and_also(later.choice))


class TitleOrigin(StrEnum):
    """The origin of a title, in rising order: a title is never replaced by one of a lower origin."""

    FIRST_WORDS = "first_words"
    SUMMARISER = "summariser"
    IMPORT = "import"
    USER = "user"


OWN_SOURCE = "commonplace"
SAMPLE_SOURCE = "sample"  # its person is not the user


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation; `visible_leaf_id` is the last message of the visible path.

    `source` is `OWN_SOURCE`, or the importer's name. `model` is None for the preset's, else the default
    model. `preset` is a uid, which may be that of a removed preset; then, as for None, the default applies.
    A private one has the model that it began with. `project` is a uid; that of a removed project counts as None.
    `deleted_at` is the time it was moved to the trash. `recalls` is whether memory contributes to its
    answers. Times are UTC.
    """

    id: ConversationId
    uid: str
    title: str
    title_origin: TitleOrigin
    source: str
    created_at: datetime
    updated_at: datetime
    visible_leaf_id: MessageId | None = None
    pinned: bool = False
    archived: bool = False
    private: bool = False
    model: str | None = None
    deleted_at: datetime | None = None
    recalls: bool = True
    preset: str | None = None
    project: str | None = None
