"""What is said to a language model and what streams back; one form for every vendor."""

from dataclasses import dataclass, field
from enum import StrEnum

from app.domain.conversations import Message, RawReply, ToolResult


@dataclass(frozen=True, slots=True)
class ModelRef:
    """A model by name, written `PROVIDER:MODEL`; `recall:` has no model name."""

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


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request. `messages` are oldest first and end with a user or tool message.

    With `tools_closed` the model may call no tool any more; `tools` then only explain the calls
    among the messages to servers that ask for that. None in `temperature`, `reasoning_effort`,
    `max_output_tokens` leaves it to the server (Anthropic, which demands a maximum, gets the
    adapter's default).

    `recalled` is what memory contributes, quoted; it is sent inside the message at `asked_at`, before
    what that says, and stored nowhere. What stands before that message stays as it is from question
    to question: a provider's prompt cache may end there. None where nothing is known of that.
    """

    model: str
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ToolSchema, ...] = ()
    temperature: float | None = None
    reasoning_effort: str | None = None
    max_output_tokens: int | None = None
    tools_closed: bool = False
    recalled: str = ""
    asked_at: int | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More words of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More of the reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallReady:
    """A complete tool call; `arguments` is the JSON text as received, maybe broken."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class TokensReported:
    """The provider's own count; the last one of a request is the truth. `input` includes `cached`."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Retrying:
    """The request failed before any output and will be sent again after `wait_s` seconds."""

    attempt: int
    wait_s: float
    reason: str


class FinishReason(StrEnum):
    """Why a model stopped, said by its server."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    FILTERED = "filtered"
    REFUSED = "refused"
    CONTEXT_EXCEEDED = "context_exceeded"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finished:
    """The terminal marker was seen: the reply is complete. Without it a reply is interrupted."""

    reason: FinishReason
    raw: RawReply | None = None


StreamEvent = TextDelta | ThinkingDelta | ToolCallReady | TokensReported | Retrying | Finished


@dataclass(frozen=True, slots=True)
class ToolAnswered:
    """A tool that was called has answered; no model says this, the exchange does."""

    result: ToolResult


@dataclass(frozen=True, slots=True)
class MemoryRecalled:
    """What memory contributes is settled, before the first request goes out.

    `injected` is how many items; `notice` says in words what went wrong with recall, "" for nothing.
    """

    injected: int
    notice: str = ""


ReplyEvent = StreamEvent | ToolAnswered | MemoryRecalled


@dataclass(frozen=True, slots=True)
class ModelCard:
    """A model as its provider lists it. None means the provider does not say."""

    ref: ModelRef
    title: str
    context_tokens: int | None = None
    is_embedding: bool = field(default=False)
