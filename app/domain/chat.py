"""Chat requests and stream events in one form for all providers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from app.domain.conversations import (
    ANY_RECALL,
    Block,
    Message,
    RawReply,
    RecallChoice,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.domain.records.presets import Effort

UNKNOWN_WINDOW_TOKENS = 8_192  # counted for a model whose context window is not known


@dataclass(frozen=True, slots=True)
class StoredProvider:
    """A provider that the user added, without its key. `kind` is openai, anthropic or compatible."""

    name: str
    kind: str
    base_url: str | None = None
    key_env: str | None = None
    allow_plain_http: bool = False


@dataclass(frozen=True, slots=True)
class ModelRef:
    """A model reference, written `PROVIDER:MODEL`; `recall:` has no model name."""

    provider: str
    model: str

    @classmethod
    def parse(cls, text: str) -> "ModelRef":
        """Split at the first colon; without one the whole text is the provider."""
        provider, _, model = text.partition(":")
        return cls(provider.strip(), model.strip())

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool the model may call; `parameters_json` is a JSON schema as text."""

    name: str
    description: str
    parameters_json: str


NO_IMAGES: Mapping[str, bytes] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request. `messages` are oldest first and end with a user or tool message.

    With `tools_disabled` the model may not call `tools`; they are sent all the same, since they stand
    at the beginning of what a provider caches. None in `temperature`, `reasoning_effort` or `max_output_tokens` uses the
    server's default (Anthropic requires a maximum and gets the adapter's default).

    The first `history_count` messages belong to finished turns: the next request begins with them too,
    so that a provider's prompt cache can end there.

    `images` are the files of the user's images by content hash; an image without one is sent as its name.

    `choice` is for a model that recalls by itself.

    `answer_schema_json` asks for an answer in JSON that fits a schema, "" for text; a server that
    does not enforce schemas answers without it.
    """

    model: str
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ToolSchema, ...] = ()
    temperature: float | None = None
    reasoning_effort: Effort | None = None
    max_output_tokens: int | None = None
    tools_disabled: bool = False
    history_count: int = 0
    images: Mapping[str, bytes] = field(default_factory=lambda: NO_IMAGES)
    answer_schema_json: str = ""
    choice: RecallChoice = ANY_RECALL


@dataclass(frozen=True, slots=True)
class TextWasThinking:
    """All text of this reply so far is reasoning: only the end tag of the reasoning arrived.

    It is the first thing after that text, with no other reasoning or tool call before.
    """


@dataclass(frozen=True, slots=True)
class UsageReported:
    """The provider's token count; the last one of a request is final.

    `input_tokens` include `cached_tokens`, read from the prompt cache, and `cache_write_tokens`, which
    include those written for an hour.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Retrying:
    """The request failed before any output and is retried after `wait_s` seconds."""

    attempt: int
    wait_s: float
    reason: str


class FinishReason(StrEnum):
    """The server's reason why the model stopped."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    FILTERED = "filtered"
    REFUSED = "refused"
    CONTEXT_EXCEEDED = "context_exceeded"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finished:
    """The end marker of a complete reply; a reply without it is interrupted."""

    reason: FinishReason
    raw: RawReply | None = None


StreamEvent = Text | Thinking | TextWasThinking | ToolCall | UsageReported | Retrying | Finished
"""What a model sends: the next piece of its text or reasoning, a complete call of a tool."""


@dataclass(frozen=True, slots=True)
class RecallCompleted:
    """Recall is complete; emitted before the first request is sent.

    `notice` describes problems with recall, one a line, "" for none.
    """

    notice: str = ""


def add_piece(blocks: list[Block], piece: Block | TextWasThinking) -> None:
    """Add what arrived of a reply to its blocks; text and thinking continue the last block of their kind."""
    last = blocks[-1] if blocks else None
    if isinstance(piece, Text | Thinking) and isinstance(last, type(piece)):
        blocks[-1] = type(piece)(last.text + piece.text)
    elif not isinstance(piece, TextWasThinking):
        blocks.append(piece)
    elif isinstance(last, Text):
        blocks[-1] = Thinking(last.text.strip())


ReplyEvent = StreamEvent | ToolResult | RecallCompleted
"""What an exchange emits; the results are those of tools that have run."""


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model as its provider lists it; None means that the provider gives no value."""

    ref: ModelRef
    title: str
    context_tokens: int | None = None
    is_embedding: bool = False
    sees_images: bool | None = None
