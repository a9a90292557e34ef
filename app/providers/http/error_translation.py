"""Translation of exceptions at the network border to `ProviderError`.

RejectedReply            a response that this program's HTTP client refuses to read
├── ReplyTimeout         no data within the time limit
└── NotAnEventStream     another content type where events were requested
StreamError              an error event inside a stream

The SDKs let foreign errors escape in mid-stream (httpx2's, JSON's, Unicode's), and report an overload
there as a status error with status 200. Therefore the whole chain of causes is examined, and
`error.type` is classified before the status.
"""

import math
import socket
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from app.domain.errors import ConnectionLost, InvalidReply, ProviderError, TimedOut, Unreachable
from app.domain.text import sentences
from app.providers.http.endpoint import RequestTarget
from app.providers.http.error_classification import ErrorResponse, classify
from app.providers.http.json_fields import json_object

_SDKS = ("openai", "anthropic")


class RejectedReply(Exception):
    """A response that is not read any further, and what the user reads about it.

    `{provider}` in `title` becomes the provider's name, and `{quote}` the server's own words `quoted`
    as far as they can be shown, else `unquoted`; the log has `unquoted` only.
    """

    def __init__(self, title: str, hint: str, quoted: str = "", unquoted: str = "") -> None:
        super().__init__(title)
        self.title = title
        self.hint = hint
        self.quoted = quoted
        self.unquoted = unquoted


class ReplyTimeout(RejectedReply):
    """The server sent nothing for `limit_s` seconds."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"nothing for {limit_s:g} s", "")
        self.limit_s = limit_s


class NotAnEventStream(RejectedReply):
    """A success with another content type than events; `body` is its beginning."""

    def __init__(self, content_type: str, body: str) -> None:
        super().__init__(f"{content_type} instead of an event stream", "")
        self.content_type = content_type
        self.body = body


class StreamError(Exception):
    """An error event; `body` is its content in a form that `ErrorResponse.read` accepts."""

    def __init__(self, body: object) -> None:
        super().__init__("an error event in the stream")
        self.body = body


def translate(error: BaseException, target: RequestTarget) -> ProviderError | None:
    """Return `error` as a `ProviderError`; None for a bug in this program."""
    chain = tuple(_causes(error))
    for each in chain:
        if isinstance(each, ProviderError):
            return each
        if isinstance(each, RejectedReply):
            return _from_rejected_reply(each, target)
        if (response := error_response_of(each)) is not None:
            return _from_server(each, response, target)
    return next(
        (found for each in chain if (found := _from_transport(each, chain, target)) is not None),
        None,
    )


def unstreamed_reply(error: BaseException) -> Mapping[str, Any] | None:
    """Return the reply that a server sent as a JSON document although events were requested."""
    for each in _causes(error):
        if isinstance(each, NotAnEventStream) and "json" in each.content_type:
            found = json_object(each.body)
            return None if not found or found.get("error") else found
    return None


def is_safe_to_chain(error: BaseException, target: RequestTarget) -> bool:
    """Whether an exception and its causes may be kept in a traceback: none quotes the key."""
    if not target.key:
        return True
    seen = [*_causes(error), *(each.__context__ for each in _causes(error) if each.__context__)]
    return not any(target.key in f"{each} {each!r}" for each in seen)


def error_response_of(error: BaseException) -> ErrorResponse | None:
    """Return the server's error response that `error` carries, None for none."""
    if isinstance(error, StreamError):
        return ErrorResponse.read(200, error.body)
    if type(error).__module__.partition(".")[0] not in _SDKS:
        return None
    status = getattr(error, "status_code", None)
    body = getattr(error, "body", None)
    if isinstance(status, int):
        return ErrorResponse.read(status, body if body is not None else str(error))
    return ErrorResponse.read(200, body) if body is not None else None


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds a server asks to wait, at least 0; None for a missing or invalid header.

    Reads `retry-after-ms` and both forms of `Retry-After` (RFC 9110, section 10.2.3).
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            wait_s = float(headers.get(name, "")) * unit_s
        except ValueError:
            continue
        if math.isfinite(wait_s):
            return max(0.0, wait_s)
    try:
        at = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - now).total_seconds())


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _from_server(
    error: BaseException, response: ErrorResponse, target: RequestTarget
) -> ProviderError:
    headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", {}) or {}
    found = classify(response, target, retry_after(headers, datetime.now(UTC)))
    should_retry = headers.get("x-should-retry")
    if should_retry in ("true", "false"):
        found.retryable = should_retry == "true"
    return found


def _from_rejected_reply(reply: RejectedReply, target: RequestTarget) -> ProviderError:
    match reply:
        case ReplyTimeout(limit_s=limit_s):
            return _timed_out(target, limit_s)
        case NotAnEventStream(content_type=content_type, body=body):
            return _not_a_stream(content_type, body, target)
    quote = target.quote(reply.quoted) or reply.unquoted
    title, logged = (
        reply.title.format(provider=target.provider, quote=each) for each in (quote, reply.unquoted)
    )
    return InvalidReply(title, reply.hint, log_text=sentences(logged, reply.hint))


def _not_a_stream(content_type: str, body: str, target: RequestTarget) -> ProviderError:
    if "json" in content_type and (decoded := json_object(body)).get("error"):
        return classify(ErrorResponse.read(200, decoded), target)
    return InvalidReply(
        f"{target.provider} answered with a web page instead of a reply"
        if "html" in content_type
        else f"{target.provider} answered with {content_type} instead of a reply",
        f"Check the base URL {target.base_url}, and whether a login page or a proxy intervenes",
    )


def _timed_out(target: RequestTarget, limit_s: float | None = None) -> ProviderError:
    key = "local_reply_timeout" if target.is_near else "reply_timeout"
    return TimedOut(
        f"{target.provider} sent nothing for {limit_s:.3g} s"
        if limit_s
        else f"{target.provider} sent nothing within the time limit",
        f"Retry, or raise the reply timeout in Settings, Network ({key})",
    )


def _invalid(target: RequestTarget) -> ProviderError:
    return InvalidReply(
        f"{target.provider} sent a reply that does not follow its protocol",
        f"Check the base URL {target.base_url} and the kind of provider",
    )


def _from_transport(
    error: BaseException, chain: tuple[BaseException, ...], target: RequestTarget
) -> ProviderError | None:
    """Translate errors of httpx2, of the system, and of the SDKs' decoders."""
    import httpx2  # already loaded: without it there is no request

    match error:
        case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return Unreachable(
                f"{target.provider} does not answer at {target.base_url}",
                "Check the network and the base URL",
            )
        case httpx2.TimeoutException():
            return _timed_out(target)
        case httpx2.ConnectError() | ssl.SSLError() | socket.gaierror():
            return _unreachable(chain, target)
        case httpx2.ProxyError():
            return Unreachable("The proxy refused the connection", "Check proxy_url in Settings")
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL() | httpx2.LocalProtocolError():
            return Unreachable(f"No request can be sent to {target.base_url}", "Check its spelling")
        case httpx2.RemoteProtocolError() if "status line" in str(error):
            return _invalid(target)
        case httpx2.DecodingError():
            return _invalid(target)
        case httpx2.TransportError() | httpx2.StreamError() | ConnectionError():
            return ConnectionLost(
                f"The connection to {target.provider} ended before the reply was complete",
                "Retry, or continue the reply",
            )
        case TimeoutError():
            return _timed_out(target)
        case ValueError() | RecursionError():
            return _invalid(target)  # JSONDecodeError, UnicodeDecodeError, pydantic's
    return None


def _unreachable(chain: tuple[BaseException, ...], target: RequestTarget) -> ProviderError:
    text = " ".join(f"{type(each).__name__} {each}" for each in chain).casefold()
    if any(isinstance(each, ssl.SSLError) for each in chain) or "certificate" in text:
        found = Unreachable(
            f"The certificate of {target.base_url} cannot be trusted",
            "If your network has its own certificates, name them in Settings, Network (ca_bundle)",
        )
        found.retryable = False
        return found
    if any(isinstance(each, socket.gaierror) for each in chain):
        return Unreachable(
            f"The host of {target.base_url} cannot be found", "Check the base URL and the network"
        )
    found = Unreachable(
        f"Nothing answers at {target.base_url}",
        "Is the server running?" if target.is_loopback else "Check the network and the base URL",
    )
    # Nothing listens on this machine: waiting for the network would not help.
    found.retryable = not target.is_loopback
    return found
