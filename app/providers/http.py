"""Our own HTTP client under the vendors' SDKs: what leaves, how long we wait, how much we take.

Measured before it existed: the SDKs' own clients followed a redirect and posted the whole
conversation to another host, inflated a 100 MB gzip bomb and took an event of 64 MB. Importing
this module loads httpx2 (0.15 s); bodies and keys are never logged here.
"""

import asyncio
import logging
import re
import ssl
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from app.domain.provider_errors import Unreachable
from app.providers.base_url import BaseUrl
from app.providers.limits import Network, SizeLimits, TimeLimits
from app.providers.refusals import Encoded, NotAStream, Oversized, Redirected, Silent

USER_AGENT = "Commonplace"
HTTP_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError)
_CHATTY_LOGGERS = ("openai", "anthropic", "httpx2", "httpcore2")
_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_NOT_A_STREAM = re.compile(
    r"(text/html|application/(?:[\w.+-]*\+)?json|application/xhtml)", re.IGNORECASE
)


def guarded_client(
    base_url: BaseUrl,
    *,
    network: Network | None = None,
    times: TimeLimits | None = None,
    sizes: SizeLimits | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> "GuardedClient":
    """Return a client for one provider; blocking (it reads certificates, some 20 ms).

    It belongs to the event loop it is first used on. Loopback never goes through a proxy.
    Raises Unreachable when the proxy or the certificates of `network` cannot be used.
    """
    silence_vendor_logs()
    network = network or Network()
    times = times or TimeLimits()
    proxy = None if base_url.is_loopback else network.proxy_url
    try:
        verify: ssl.SSLContext | bool = True
        if network.ca_bundle:
            verify = ssl.create_default_context(cafile=network.ca_bundle)
        elif base_url.origin.startswith("http://"):
            verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # never used, and reads no files
        return GuardedClient(
            times=times,
            sizes=sizes or SizeLimits(),
            proxy=proxy,
            verify=verify,
            trust_env=not base_url.is_loopback,
            transport=transport,
        )
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


def silence_vendor_logs() -> None:
    """Keep the SDKs' debug logs (bodies, headers) out of every handler, whatever its level."""
    for name in _CHATTY_LOGGERS:
        logger = logging.getLogger(name)
        if logger.getEffectiveLevel() < logging.WARNING:
            logger.setLevel(logging.WARNING)


class GuardedClient(httpx2.AsyncClient):
    """An httpx2 client that follows nothing, inflates nothing and takes only so much.

    What it refuses it raises as a `Refusal`, closing the connection.
    """

    def __init__(self, *, times: TimeLimits, sizes: SizeLimits, **options: Any) -> None:
        super().__init__(
            follow_redirects=False,
            headers={"Accept-Encoding": "identity", "User-Agent": USER_AGENT},
            limits=httpx2.Limits(keepalive_expiry=30.0),
            **options,
        )
        self._times = times
        self._sizes = sizes

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send as `httpx2.AsyncClient.send` does, guarded; `stream=True` demands events."""
        wants_events = bool(options.pop("stream", False))
        options["follow_redirects"] = False
        _strip_headers(request)
        # The connection looks at this very dict again when the body is read.
        waits: dict[str, float | None] = {
            "connect": self._times.connect_s,
            "read": self._times.first_byte_s,
            "write": self._times.idle_s,
            "pool": self._times.connect_s,
        }
        request.extensions["timeout"] = waits
        response = await super().send(request, stream=True, **options)
        waits["read"] = None  # from here on _LimitedStream keeps the time
        try:
            await self._guard(response, wants_events)
            if not wants_events:
                await response.aread()
        except BaseException:
            await response.aclose()
            raise
        return response

    async def _guard(self, response: httpx2.Response, wants_events: bool) -> None:
        """Refuse what must not be read, and put the limits around what may."""
        if response.is_redirect or response.status_code in (304, 305):
            raise Redirected(response.status_code, response.headers.get("location", "nowhere"))
        failed = response.status_code >= 400
        encoding = response.headers.pop("content-encoding", "identity")
        if encoding != "identity" and not failed:
            raise Encoded(encoding)
        kind = response.headers.get("content-type", "")
        unfit = wants_events and not failed and _NOT_A_STREAM.match(kind)
        gate = _Gate(self._sizes, as_events=wants_events and not failed and not unfit)
        limit_bytes = self._sizes.error_bytes if failed or unfit else None
        if encoding != "identity":
            limit_bytes = 0  # an error counts by its status, its compressed words are not read
        stream = response.stream
        if not isinstance(stream, httpx2.AsyncByteStream):
            raise TypeError("a streamed response has no stream")
        response.stream = _LimitedStream(stream, gate, self._times, limit_bytes)
        if unfit:
            raise NotAStream(
                kind.partition(";")[0], (await response.aread()).decode(errors="replace")
            )


def _strip_headers(request: httpx2.Request) -> None:
    """Ask for identity, and do not tell every server about this machine."""
    request.headers["Accept-Encoding"] = "identity"
    request.headers["User-Agent"] = USER_AGENT
    for name in [name for name in request.headers if name.startswith("x-stainless")]:
        del request.headers[name]


class _Gate:
    """Counts what comes in, and passes server-sent events on in whole lines only.

    Whole lines, because the SDKs' decoders join what they get piece by piece: an event of 1 MB
    in pieces of one byte would cost them minutes. A line left unfinished at the end is dropped,
    it belongs to no event.
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
        """Return what may be passed on, maybe nothing; raise Oversized."""
        self._total_bytes += len(chunk)
        if self._total_bytes > self._sizes.reply_bytes:
            raise Oversized("reply", self._sizes.reply_bytes)
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
        """Take complete lines into account: an event ends at a blank one."""
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
            raise Oversized("event", self._sizes.event_bytes)


class _LimitedStream(httpx2.AsyncByteStream):
    """A response's body with our limits around it; `limit_bytes` cuts it off without complaint."""

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        gate: _Gate,
        times: TimeLimits,
        limit_bytes: int | None = None,
    ) -> None:
        self._inner = inner
        self._gate = gate
        self._times = times
        self._limit_bytes = limit_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = aiter(self._inner)
        wait_s = self._times.first_byte_s
        taken_bytes = 0
        while self._limit_bytes is None or taken_bytes < self._limit_bytes:
            try:
                async with asyncio.timeout(wait_s):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                raise Silent(wait_s) from error
            wait_s = self._times.idle_s
            if passed := self._gate.feed(chunk):
                yield passed
            taken_bytes += len(chunk)

    async def aclose(self) -> None:
        """Close the connection below, at once when the body was not read to its end."""
        await self._inner.aclose()
