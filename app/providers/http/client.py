"""The HTTP client under the vendors' SDKs: no redirects, no encodings, time and size limits.

The SDKs' own clients followed a redirect and posted the whole conversation to another host, inflated
a 100 MB gzip bomb and accepted an event of 64 MB. Importing this module loads httpx2 (0.15 s); it
never logs bodies and keys.
"""

import asyncio
import logging
import re
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx2

from app.domain.errors import Unreachable
from app.providers.http.base_url import BaseUrl
from app.providers.http.endpoint import Endpoint, Network, SizeLimits, TimeLimits
from app.providers.http.error_translation import NotAnEventStream, RejectedReply, ReplyTimeout

USER_AGENT = "Commonplace"
HTTP_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError)
_PAUSE_S = 0.5  # a timer that is later: the process did not run
_VERBOSE_LOGGERS = ("openai", "anthropic", "httpx2", "httpcore2")
_BLANK_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
_NOT_A_STREAM = re.compile(
    r"(text/html|application/(?:[\w.+-]*\+)?json|application/xhtml)", re.IGNORECASE
)


def silence_vendor_logs() -> None:
    """Keep the SDKs' debug logs (bodies, headers) out of every handler, whatever its level."""
    for name in _VERBOSE_LOGGERS:
        logger = logging.getLogger(name)
        if logger.getEffectiveLevel() < logging.WARNING:
            logger.setLevel(logging.WARNING)


class GuardedClient(httpx2.AsyncClient):
    """An httpx2 client for one endpoint that follows nothing, inflates nothing and takes only so much.

    For a response that it refuses it raises a `RejectedReply` and closes the connection. It belongs to
    the event loop of its first use. Loopback never goes through a proxy. Creating one blocks (it reads
    certificates, about 20 ms); raises Unreachable when the proxy or the certificates cannot be used.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        silence_vendor_logs()
        self._times = endpoint.times
        self._sizes = endpoint.sizes
        with _network_options(endpoint.base_url, endpoint.network) as options:
            super().__init__(
                headers={"Accept-Encoding": "identity", "User-Agent": USER_AGENT},
                limits=httpx2.Limits(keepalive_expiry=30.0),
                transport=endpoint.transport,
                **options,
            )

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send as `httpx2.AsyncClient.send` does, with limits; `stream=True` requires events."""
        wants_events = bool(options.pop("stream", False))
        options["follow_redirects"] = False
        request.headers["Accept-Encoding"] = "identity"
        request.headers["User-Agent"] = USER_AGENT
        for name in [name for name in request.headers if name.startswith("x-stainless")]:
            del request.headers[name]  # the SDKs' headers about this machine
        # The connection reads this same dict again when the body is read.
        timeouts: dict[str, float | None] = {
            "connect": self._times.connect_s,
            "read": self._times.first_byte_s,
            "write": self._times.idle_s,
            "pool": self._times.connect_s,
        }
        request.extensions["timeout"] = timeouts
        response = await super().send(request, stream=True, **options)
        timeouts["read"] = None  # from here on _LimitedStream enforces the limits
        try:
            await self._guard(response, wants_events)
            if not wants_events:
                await response.aread()
        except BaseException:
            await response.aclose()
            raise
        return response

    async def _guard(self, response: httpx2.Response, wants_events: bool) -> None:
        """Reject replies that must not be read, and put limits around the others."""
        if response.is_redirect or response.status_code in (304, 305):
            raise RejectedReply(
                "{provider} redirects to {quote}",
                "Nothing was sent there. If you trust it, make it the base URL",
                response.headers.get("location", ""),
                "another address",
            )
        is_error = response.status_code >= 400
        encoding = response.headers.pop("content-encoding", "identity")
        if encoding != "identity" and not is_error:
            raise RejectedReply(
                "{provider} sent a compressed reply ({quote}) without being asked",
                "Check the base URL and the proxy",
                encoding,
                "unknown encoding",
            )
        kind = response.headers.get("content-type", "")
        unfit = wants_events and not is_error and _NOT_A_STREAM.match(kind)
        gate = _EventGate(self._sizes, as_events=wants_events and not is_error and not unfit)
        is_whole = unfit and "json" in kind  # perhaps a reply that was not streamed
        limit_bytes = self._sizes.error_bytes if is_error or (unfit and not is_whole) else None
        if encoding != "identity":
            limit_bytes = 0  # an error is classified by its status, its compressed body is not read
        stream = response.stream
        if not isinstance(stream, httpx2.AsyncByteStream):
            raise TypeError("a streamed response has no stream")
        response.stream = _LimitedStream(stream, gate, self._times, limit_bytes)
        if unfit:
            raise NotAnEventStream(
                kind.partition(";")[0], (await response.aread()).decode(errors="replace")
            )


@asynccontextmanager
async def time_limit(limit_s: float) -> AsyncIterator[None]:
    """Raise TimeoutError in what takes longer; after a pause of the process the time begins anew.

    What arrived while it was stopped, or the computer slept, has not been read when the time is over.
    """
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle
    async with asyncio.timeout(None) as limit:

        def begin() -> asyncio.TimerHandle:
            return loop.call_later(limit_s, end, loop.time() + limit_s)

        def end(due: float) -> None:
            nonlocal timer
            if loop.time() - due > _PAUSE_S:
                timer = begin()
            else:
                limit.reschedule(due)

        timer = begin()
        try:
            yield
        finally:
            timer.cancel()


def service_client(
    base_url: BaseUrl, network: Network, headers: Mapping[str, str], timeout_s: float
) -> httpx2.AsyncClient:
    """Return a client for another service than a model's, without limits of size.

    Raises Unreachable when the proxy or the certificates cannot be used.
    """
    silence_vendor_logs()
    with _network_options(base_url, network) as options:
        return httpx2.AsyncClient(headers=dict(headers), timeout=timeout_s, **options)


@contextmanager
def _network_options(base_url: BaseUrl, network: Network) -> Iterator[dict[str, Any]]:
    """Yield a client's options for a network; raise Unreachable where making it fails for them."""
    try:
        verify: ssl.SSLContext | bool = True
        if network.ca_bundle:
            verify = ssl.create_default_context(cafile=network.ca_bundle)
        elif base_url.origin.startswith("http://"):
            verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # never used, and reads no files
        yield {
            "follow_redirects": False,
            "proxy": None if base_url.is_loopback else network.proxy_url,
            "verify": verify,
            "trust_env": not base_url.is_loopback,
        }
    except (OSError, ssl.SSLError) as error:
        raise Unreachable(
            f"The certificates in '{network.ca_bundle}' cannot be read",
            "Check ca_bundle in Settings, Network",
        ) from error
    except (ValueError, ImportError, httpx2.InvalidURL) as error:
        # The proxy's URL is not quoted: it may hold a password.
        raise Unreachable(
            "The proxy cannot be used", "Check proxy_url in Settings, Network (http:// or https://)"
        ) from error


class _EventGate:
    """Enforces the size limits, and passes server-sent events on in complete lines only.

    The SDKs' decoders join their input piece by piece: an event of 1 MB in pieces of one byte would
    take them minutes. An incomplete line at the end is dropped: it belongs to no event.
    """

    def __init__(self, sizes: SizeLimits, *, as_events: bool) -> None:
        self._sizes = sizes
        self._as_events = as_events
        self._total_bytes = 0
        self._event_bytes = 0
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._last_three = b""

    def feed(self, chunk: bytes) -> bytes:
        """Return the bytes to pass on, possibly none; raise RejectedReply."""
        self._total_bytes += len(chunk)
        if self._total_bytes > self._sizes.reply_bytes:
            raise _oversized("a reply", self._sizes.reply_bytes)
        if not self._as_events:
            return chunk
        line_end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
        if not line_end:
            self._hold(chunk)
            return b""
        lines = b"".join((*self._pending, chunk[:line_end]))
        self._pending.clear()
        self._pending_bytes = 0
        self._count(lines)
        if line_end < len(chunk):
            self._hold(chunk[line_end:])
        return lines

    def _hold(self, part: bytes) -> None:
        self._pending.append(part)
        self._pending_bytes += len(part)
        self._check(self._event_bytes + self._pending_bytes)

    def _count(self, lines: bytes) -> None:
        """Count complete lines: an event ends at a blank one."""
        seen = self._last_three + lines
        begin = -len(self._last_three)
        for match in _BLANK_LINE.finditer(seen):
            end = match.end() - len(self._last_three)
            self._check(self._event_bytes + end - max(begin, 0))
            self._event_bytes = 0
            begin = end
        self._event_bytes += len(lines) - max(begin, 0)
        self._check(self._event_bytes)
        self._last_three = seen[-3:]

    def _check(self, size_bytes: int) -> None:
        if size_bytes > self._sizes.event_bytes:
            raise _oversized("an event", self._sizes.event_bytes)


def _oversized(name: str, limit_bytes: int) -> RejectedReply:
    return RejectedReply(
        f"{{provider}} sent {name} of over {limit_bytes >> 20} MB", "The rest was not read"
    )


class _LimitedStream(httpx2.AsyncByteStream):
    """A response's body within the limits; `limit_bytes` truncates it without an error."""

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        gate: _EventGate,
        times: TimeLimits,
        limit_bytes: int | None = None,
    ) -> None:
        self._inner = inner
        self._gate = gate
        self._times = times
        self._limit_bytes = limit_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = aiter(self._inner)
        limit_s = self._times.first_byte_s
        read_bytes = 0
        while self._limit_bytes is None or read_bytes < self._limit_bytes:
            try:
                async with time_limit(limit_s):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                raise ReplyTimeout(limit_s) from error
            limit_s = self._times.idle_s
            if passed := self._gate.feed(chunk):
                yield passed
            read_bytes += len(chunk)

    async def aclose(self) -> None:
        """Close the underlying connection."""
        await self._inner.aclose()
