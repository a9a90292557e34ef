"""The edge of the network: every foreign exception becomes a `ProviderError`, or is ours.

The vendors' SDKs let errors outside their own trees escape in mid-stream (httpx2's, JSON's,
Unicode's), and report an overload there as a status error with status 200. So the whole chain of
causes is looked at, innermost refusal first, and classified by `error.type` before the status.
"""

import json
import math
import socket
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from app.domain.provider_errors import (
    ConnectionLost,
    NonsenseReply,
    ProviderError,
    TimedOut,
    Unreachable,
)
from app.providers.refusals import Encoded, NotAStream, Oversized, Redirected, Refusal, Silent
from app.providers.subject import Subject
from app.providers.verdicts import Complaint, verdict

_SDKS = ("openai", "anthropic")


class StreamFault(Exception):
    """A wire's reader met an error event; `body` is what it holds, as `Complaint.read` takes it."""

    def __init__(self, body: object) -> None:
        super().__init__("an error event in the stream")
        self.body = body


def translate(
    error: BaseException, subject: Subject, now: datetime | None = None
) -> ProviderError | None:
    """Return what `error` means to the user; None if it is no fault of the world but a bug.

    `now` (default: the clock) is what a Retry-After given as a date is counted from.
    """
    chain = tuple(_causes(error))
    for each in chain:
        if isinstance(each, ProviderError):
            return each
        if isinstance(each, Refusal):
            return _refusal(each, subject)
        if (complaint := complaint_of(each)) is not None:
            return _from_server(each, complaint, subject, now or datetime.now(UTC))
    for each in chain:
        if (fault := _transport(each, chain, subject)) is not None:
            return fault
    return None


def is_safe_to_chain(error: BaseException, subject: Subject) -> bool:
    """Whether an exception and its causes may be kept in a traceback: none quotes the key."""
    if not subject.key:
        return True
    seen = [*_causes(error), *(each.__context__ for each in _causes(error) if each.__context__)]
    return not any(subject.key in f"{each} {each!r}" for each in seen)


def complaint_of(error: BaseException) -> Complaint | None:
    """Return what the server said if `error` carries it, else None."""
    if isinstance(error, StreamFault):
        return Complaint.read(200, error.body)
    if type(error).__module__.partition(".")[0] not in _SDKS:
        return None
    status = getattr(error, "status_code", None)
    body = getattr(error, "body", None)
    if isinstance(status, int):
        return Complaint.read(status, body if body is not None else str(error))
    return Complaint.read(200, body) if body is not None else None


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds a server asks to wait, at least 0; None if it does not, or gibberish.

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
    error: BaseException, complaint: Complaint, subject: Subject, now: datetime
) -> ProviderError:
    response = getattr(error, "response", None)
    headers: Mapping[str, str] = getattr(response, "headers", {}) or {}
    fault = verdict(complaint, subject, retry_after(headers, now))
    wish = headers.get("x-should-retry")
    if wish in ("true", "false"):
        fault.retryable = wish == "true"
    return fault


def _refusal(refusal: Refusal, subject: Subject) -> ProviderError:
    who = subject.provider
    match refusal:
        case Redirected(target=target):
            return NonsenseReply(
                f"{who} redirects to {subject.quote(target) or 'another place'}",
                "Nothing was sent there. If you trust it, make it the base URL",
                own_words=f"{who} redirects to another place. Nothing was sent there",
            )
        case Encoded(encoding=encoding):
            return NonsenseReply(
                f"{who} sent a compressed reply ({subject.quote(encoding)}), which was not asked for",
                "Check the base URL and the proxy",
                own_words=f"{who} sent a compressed reply. Check the base URL and the proxy",
            )
        case Oversized(what=what, limit_bytes=limit):
            return NonsenseReply(
                f"{who} sent {'an' if what == 'event' else 'a'} {what} of over {limit >> 20} MB",
                "The rest was not read",
            )
        case Silent(limit_s=limit_s):
            return _silence(subject, limit_s)
        case NotAStream(content_type=kind, body=body):
            return _not_a_stream(kind, body, subject)
    return NonsenseReply(f"{who} sent what cannot be read")


def _not_a_stream(kind: str, body: str, subject: Subject) -> ProviderError:
    if "json" in kind:
        try:
            decoded = json.loads(body)
        except (ValueError, RecursionError):
            decoded = None
        if isinstance(decoded, Mapping) and decoded.get("error"):
            return verdict(Complaint.read(200, decoded), subject)
    what = "a web page" if "html" in kind else kind
    return NonsenseReply(
        f"{subject.provider} answered with {what} instead of a reply",
        f"Check the base URL {subject.base_url}; a login page or a proxy may stand in between",
    )


def _silence(subject: Subject, limit_s: float | None = None) -> ProviderError:
    how_long = f" for {limit_s:.3g} s" if limit_s else " within the time limit"
    return TimedOut(
        f"{subject.provider} sent nothing{how_long}",
        "Retry; a slow local model may need a longer limit",
    )


def _lost(subject: Subject) -> ProviderError:
    return ConnectionLost(
        f"The connection to {subject.provider} ended before the reply was complete", "Retry"
    )


def _gibberish(subject: Subject) -> ProviderError:
    return NonsenseReply(
        f"{subject.provider} sent what is no reply in its protocol",
        f"Check the base URL {subject.base_url} and the kind of provider",
    )


def _transport(
    error: BaseException, chain: tuple[BaseException, ...], subject: Subject
) -> ProviderError | None:
    """Errors of the way there: httpx2's, the system's, and what the SDKs' decoders let escape."""
    import httpx2  # loaded long since: without it there is nothing to translate

    match error:
        case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return Unreachable(
                f"{subject.provider} does not answer at {subject.base_url}",
                "Check the network and the base URL",
            )
        case httpx2.TimeoutException():
            return _silence(subject)
        case httpx2.ConnectError() | ssl.SSLError() | socket.gaierror():
            return _unreachable(chain, subject)
        case httpx2.ProxyError():
            return Unreachable("The proxy refused the connection", "Check proxy_url in Settings")
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL() | httpx2.LocalProtocolError():
            return Unreachable(
                f"No request can be sent to {subject.base_url}", "Check its spelling"
            )
        case httpx2.RemoteProtocolError() if "status line" in str(error):
            return _gibberish(subject)
        case httpx2.DecodingError():
            return _gibberish(subject)
        case httpx2.TransportError() | httpx2.StreamError() | ConnectionError():
            return _lost(subject)
        case TimeoutError():
            return _silence(subject)
        case ValueError() | RecursionError():
            return _gibberish(subject)  # JSONDecodeError, UnicodeDecodeError, pydantic's
    return None


def _unreachable(chain: tuple[BaseException, ...], subject: Subject) -> ProviderError:
    words = " ".join(f"{type(each).__name__} {each}" for each in chain).casefold()
    if any(isinstance(each, ssl.SSLError) for each in chain) or "certificate" in words:
        fault = Unreachable(
            f"The certificate of {subject.base_url} cannot be trusted",
            "If your network has its own certificates, name them in Settings, Network (ca_bundle)",
        )
        fault.retryable = False
        return fault
    if any(isinstance(each, socket.gaierror) for each in chain):
        return Unreachable(
            f"There is no host for {subject.base_url}", "Check the base URL and the network"
        )
    fault = Unreachable(
        f"Nothing answers at {subject.base_url}",
        "Is the server running?" if subject.is_loopback else "Check the network and the base URL",
    )
    # Nobody listens on this machine: waiting for the network to come back would help nobody.
    fault.retryable = not subject.is_loopback
    return fault
