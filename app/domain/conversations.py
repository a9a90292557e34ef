"""Conversations as values: conversation, exchange, message, block (see the glossary in README).

How they are stored is `app.storage`; how turns are calculated is `app.domain.turns`.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.usage import Usage


class Role(StrEnum):
    """Who speaks in a message."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Text:
    """Words meant to be read, in Markdown when the speaker is a model."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """A model's reasoning; shown folded, in neither index."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request to run a tool; `arguments` is the JSON text as it was received."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered, whole; it is cut only in the prompt."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """A picture among the attachments; `content_hash` is None when an import named it only."""

    name: str
    media_type: str
    content_hash: str | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file the user gave; `text` is what could be extracted from it, maybe empty."""

    name: str
    media_type: str
    size_bytes: int | None = None
    text: str = ""
    content_hash: str | None = None


Block = Text | Thinking | ToolCall | ToolResult | Image | Attachment


@dataclass(frozen=True, slots=True)
class RawReply:
    """A provider's own form of an assistant message, to be sent back byte for byte.

    `wire` names the protocol ("anthropic.messages", "openai.responses", "openai.chat"), `model`
    is `PROVIDER:MODEL`, `items_json` the JSON text of the list of content blocks or output items.
    """

    wire: str
    model: str
    items_json: str


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a conversation's tree; never changed once stored.

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
        """The words meant to be read: text blocks only, joined by blank lines."""
        return plain_text(self.blocks)

    @property
    def opens_turn(self) -> bool:
        """Whether this is a real user message: it has text, an image or an attachment."""
        return self.role is Role.USER and is_real(self.blocks)


def plain_text(blocks: tuple[Block, ...]) -> str:
    """Return the text blocks joined by blank lines; thinking and tools are left out."""
    return "\n\n".join(block.text for block in blocks if isinstance(block, Text) and block.text)


def is_real(blocks: tuple[Block, ...]) -> bool:
    """Return whether blocks hold text, an image or an attachment, not only tool results."""
    return any(
        isinstance(block, Image | Attachment) or (isinstance(block, Text) and block.text.strip())
        for block in blocks
    )


class ExchangeStatus(StrEnum):
    """Where the record of a turn stands."""

    RUNNING = "running"
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a reply failed or broke off, as it is shown in the turn."""

    kind: str
    title: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """The stored record of a turn on one branch.

    `message_ids` are its messages in path order, a message may belong to several sibling
    exchanges (a regenerated reply shares the question). `turn_number` counts from 0 along its own
    path, `segment_number` rises with each `/new`. Times are UTC.
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


class TitleOrigin(StrEnum):
    """Who gave a conversation its title; a later origin in this list is never overwritten by an earlier one."""

    FIRST_WORDS = "first_words"
    SUMMARISER = "summariser"
    IMPORT = "import"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Conversation:
    """A titled thread; `visible_leaf_id` is the last message of the path that is shown.

    `source` is "commonplace" for our own, else the importer's name. `model` is None where the
    default model applies. `deleted_at` is when it went to the trash. `recalls` is whether memory
    contributes to its answers. Times are UTC.
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
