"""Answers that a test has the loopback server give.

A reply is a list of steps: `server.reply(thinking("hm"), text("Hello", chunks=5), usage(10, 5))`.
The steps up to `Finish` can be sent over each wire; those below it are faults.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Text:
    """A text, in so many deltas."""

    text: str
    chunks: int = 1


@dataclass(frozen=True)
class Thinking:
    """Thinking; the signature is part of Anthropic's wire, the encrypted content of Responses."""

    text: str
    chunks: int = 1
    signature: str = "c2ln"


@dataclass(frozen=True)
class Call:
    """A call of a tool; arguments given as text are sent unchanged, valid or not."""

    name: str
    arguments: dict[str, Any] | str
    call_id: str = "call_1"
    pieces: int = 1

    @property
    def arguments_text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class UsageSaid:
    """A report of tokens; `input_tokens` includes `cached` and `written`, which includes `hour`."""

    input_tokens: int
    output_tokens: int
    cached: int = 0
    written: int = 0
    hour: int = 0


@dataclass(frozen=True)
class Finish:
    """`reason` is one of ours (stop, length, tool_calls, filtered, refused, context) or any word."""

    reason: str


@dataclass(frozen=True)
class Raw:
    """Bytes put into the stream as they are, whatever the wire."""

    data: bytes


@dataclass(frozen=True)
class ErrorEvent:
    """An error in mid-stream."""

    type: str
    message: str = "something is wrong"
    code: str = ""


@dataclass(frozen=True)
class Stall:
    """Silence until the client hangs up; with `before_headers`, from the beginning."""

    before_headers: bool = False


@dataclass(frozen=True)
class Pace:
    """Milliseconds before each event."""

    delay_ms: float


@dataclass(frozen=True)
class Pieces:
    """Cut the body into network pieces of so many bytes."""

    size_bytes: int


@dataclass(frozen=True)
class CutAfter:
    """Close the connection after so many bytes of the body; `reset` sends RST instead of FIN."""

    body_bytes: int
    reset: bool = False


@dataclass(frozen=True)
class NoMarker:
    """End cleanly, without the terminal marker."""


@dataclass(frozen=True)
class Http:
    """A whole answer that is no stream; `error` is put into the wire's own shape."""

    status: int
    body: bytes | None = None
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    error: dict[str, Any] | None = None


@dataclass(frozen=True)
class HangUp:
    """Close before any header; `reset` sends RST."""

    reset: bool = False


@dataclass(frozen=True)
class Garbage:
    """Bytes in place of an HTTP answer."""

    data: bytes = b"SSH-2.0-OpenSSH_9.7\r\n\r\n"


@dataclass(frozen=True)
class Vectors:
    """A vector for each text of a request for embeddings, of so many numbers.

    `change` gives what is sent in place of the list of entries; `tokens` None reports none, -1
    eight for each text.
    """

    dimension: int = 8
    change: Callable[[list[dict[str, Any]]], object] | None = None
    tokens: int | None = -1


Step = (
    Text | Thinking | Call | UsageSaid | Finish | Raw | ErrorEvent | Stall | Pace | Pieces
    | CutAfter | NoMarker | Http | HangUp | Garbage | Vectors
)  # fmt: skip
# As a test writes them.
text, thinking, tool_call, usage, finish, vectors = Text, Thinking, Call, UsageSaid, Finish, Vectors
raw, error_event, cut_after, no_marker, hang_up = Raw, ErrorEvent, CutAfter, NoMarker, HangUp
stall, slow, pieces, garbage = Stall, Pace, Pieces, Garbage


def error(
    status: int,
    kind: str = "",
    *,
    code: str | None = None,
    message: str = "something is wrong",
    param: str | None = None,
    retry_after: float | None = None,
    headers: tuple[tuple[str, str], ...] = (),
) -> Http:
    """Answer with an error in the wire's own shape."""
    if retry_after is not None:
        headers = (*headers, ("Retry-After", str(retry_after)))
    fields = {"type": kind, "code": code, "message": message, "param": param}
    return Http(status, headers=headers, error=fields)


def html(status: int = 200) -> Http:
    """Answer with a web page, as a captive portal or a proxy does."""
    return Http(status, b"<html><title>Please log in</title></html>", "text/html")


def json_reply(value: object, status: int = 200) -> Http:
    """Answer with JSON instead of a stream."""
    return Http(status, json.dumps(value).encode())


def empty() -> Http:
    """Answer 200 with an empty stream."""
    return Http(200, b"", "text/event-stream")


def redirect(target: str, status: int = 307) -> Http:
    """Send the client elsewhere."""
    return Http(status, b"", "text/plain", (("Location", target),))


def compressed(data: bytes, encoding: str = "gzip") -> Http:
    """Answer with a compressed body, asked for or not."""
    return Http(200, data, "text/event-stream", (("Content-Encoding", encoding),))
