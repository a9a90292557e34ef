"""The words in which a test says what the loopback server answers.

A reply is a list of steps. Steps that say something go over any wire; those below the line are
what can go wrong. `server.reply(thinking("hm"), text("Hello", chunks=5), usage(10, 5))`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Text:
    text: str
    chunks: int


@dataclass(frozen=True)
class Thinking:
    text: str
    chunks: int
    signature: str


@dataclass(frozen=True)
class Call:
    name: str
    arguments: str
    call_id: str
    pieces: int


@dataclass(frozen=True)
class UsageSaid:
    input_tokens: int
    output_tokens: int
    cached_tokens: int


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
    type: str
    message: str
    code: str


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
    """A whole answer that is no stream."""

    status: int
    body: bytes | None = None
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    error: dict[str, Any] | None = field(default=None)


@dataclass(frozen=True)
class HangUp:
    """Close before any header; `reset` sends RST."""

    reset: bool = False


@dataclass(frozen=True)
class Garbage:
    """Bytes in place of an HTTP answer."""

    data: bytes


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


def text(words: str, chunks: int = 1) -> Text:
    """Say words, in so many deltas."""
    return Text(words, chunks)


def thinking(words: str, chunks: int = 1, signature: str = "c2ln") -> Thinking:
    """Think words; the signature goes over Anthropic's wire, or as encrypted content."""
    return Thinking(words, chunks, signature)


def tool_call(
    name: str, arguments: dict[str, Any] | str, call_id: str = "call_1", pieces: int = 1
) -> Call:
    """Call a tool; arguments given as text are sent as they are, broken or not."""
    shown = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return Call(name, shown, call_id, pieces)


def usage(input_tokens: int, output_tokens: int, cached: int = 0) -> UsageSaid:
    """Report tokens; `input_tokens` includes `cached`."""
    return UsageSaid(input_tokens, output_tokens, cached)


def finish(reason: str) -> Finish:
    """End for another reason than the obvious one."""
    return Finish(reason)


def vectors(
    dimension: int = 8,
    change: Callable[[list[dict[str, Any]]], object] | None = None,
    tokens: int | None = -1,
) -> Vectors:
    """Answer a request for embeddings; `change` makes something else of its list of entries."""
    return Vectors(dimension, change, tokens)


# ---- what can go wrong


def cut_after(body_bytes: int, *, reset: bool = False) -> CutAfter:
    """Drop the connection after so many bytes of the body."""
    return CutAfter(body_bytes, reset)


def no_marker() -> NoMarker:
    """End cleanly without saying that it is complete."""
    return NoMarker()


def error(
    status: int,
    kind: str = "",
    *,
    code: str | None = None,
    message: str = "something is wrong",
    param: str | None = None,
    retry_after: str | float | None = None,
    headers: tuple[tuple[str, str], ...] = (),
) -> Http:
    """Answer with an error in the wire's own shape."""
    if retry_after is not None:
        headers = (*headers, ("Retry-After", str(retry_after)))
    said = {"type": kind, "code": code, "message": message, "param": param}
    return Http(status, headers=headers, error=said)


def error_event(kind: str, message: str = "something is wrong", code: str = "") -> ErrorEvent:
    """Report an error in mid-stream."""
    return ErrorEvent(kind, message, code)


def stall(*, before_headers: bool = False) -> Stall:
    """Say nothing more until the client hangs up."""
    return Stall(before_headers)


def slow(delay_ms: float) -> Pace:
    """Wait before each event."""
    return Pace(delay_ms)


def pieces(size_bytes: int) -> Pieces:
    """Send the body in pieces of so many bytes."""
    return Pieces(size_bytes)


def raw(data: bytes) -> Raw:
    """Put bytes into the stream."""
    return Raw(data)


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


def hang_up(*, reset: bool = False) -> HangUp:
    """Close before any header."""
    return HangUp(reset)


def garbage(data: bytes = b"SSH-2.0-OpenSSH_9.7\r\n\r\n") -> Garbage:
    """Speak something that is not HTTP."""
    return Garbage(data)
