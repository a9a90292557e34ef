"""The embedder that uses a server: OpenAI's, or any with a compatible `/v1/embeddings`.

The SDK returns plain JSON (see `connection`): its typed call requests base64 from every server
unless told otherwise, and misreads the plain numbers that some send. Nothing is retried here; errors
carry the server's Retry-After to the caller.
"""

import asyncio
import copy
import math
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from app.domain.errors import Cancelled, ContextTooLong, EmbedderUnavailable
from app.domain.passages import Space
from app.domain.workers import UsageTotals
from app.providers.embedders.chunks import Span, chunk_spans, encodable
from app.providers.embedders.remote_models import (
    RemoteModel,
    Vectors,
    reported_tokens,
    unit_vectors,
)
from app.providers.http.connection import OPENAI_SDK, ServerConnection
from app.providers.http.endpoint import Endpoint, SizeLimits
from app.providers.http.error_translation import ReplyTimeout
from app.providers.http.loop_thread import EventLoopThread
from app.providers.pricing.usage import estimated_spans, estimated_tokens, first_tokens
from app.providers.wire.streaming import to_provider_error

BATCH_LIMIT_S = 300.0  # a slow machine may read 32,768 tokens at 110 a second
QUERY_LIMIT_S = 2.0  # after that a search uses the text index alone
MAX_INPUTS = 2048  # platform.openai.com/docs/api-reference/embeddings/create
_USED_SHARE = 0.875  # of a limit in tokens, since tokens are estimated
_ESTIMATE_MARGIN = 1.3  # for a spend limit
_SHORTENED_SHARE, _SHORTENINGS = 0.6, 4
_REPLY_BYTES = 256 << 20  # 2,048 vectors of 4,096 numbers in decimals are 180 MB
_PROBE = "dimension"


_MINUTE_S = 60.0
_RESERVED_SHARE = 0.1


class RateLimiter:
    """Limits the requests in any 60 s; belongs to one event loop.

    `per_minute` returns the current limit, None for none. A tenth of it (at least one request,
    unless the limit is one) is reserved for queries.
    """

    def __init__(
        self,
        per_minute: Callable[[], int | None],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._sleep = sleep
        self._sent: deque[float] = deque()

    async def acquire(self, max_wait_s: float | None = None) -> None:
        """Wait until a request may be sent, and count it.

        `max_wait_s` marks a query; raises EmbedderUnavailable at once if it had to wait longer.
        """
        while (wait_s := self._wait_s(is_query=max_wait_s is not None)) > 0:
            if max_wait_s is not None and wait_s > max_wait_s:
                raise EmbedderUnavailable(
                    f"The embedder's limit of {self._per_minute()} requests a minute is used up",
                    "Wait a minute, or raise embedding_requests_per_minute.",
                )
            await self._sleep(wait_s)
        self._sent.append(self._clock())

    def _wait_s(self, *, is_query: bool) -> float:
        now = self._clock()
        while self._sent and self._sent[0] <= now - _MINUTE_S:
            self._sent.popleft()
        if (limit := self._per_minute()) is None:
            return 0.0
        if not is_query and limit > 1:
            limit -= max(1, int(limit * _RESERVED_SHARE))
        if len(self._sent) < limit:
            return 0.0
        return self._sent[len(self._sent) - limit] + _MINUTE_S - now


@dataclass(slots=True)
class _SharedState:
    """What an embedder and its copies for queries find out; `dimension` None is unknown."""

    dimension: int | None
    tokens: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class RemoteEmbedder:
    """The embedder of a server; thread-safe. Requests run on `loop`, whose closing ends them.

    `cost_of` returns the USD of a number of tokens, None when unknown. `batch_limit_s` limits each
    request, `query_limit_s` each request of the embedder for queries (`for_queries`).

    Attributes:
        limit_s: The time limit of each request if this is an embedder for queries, None for batches.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: RemoteModel,
        loop: EventLoopThread,
        rate_limiter: RateLimiter,
        *,
        cost_of: Callable[[int], float | None] = lambda _: None,
        batch_limit_s: float = BATCH_LIMIT_S,
        query_limit_s: float = QUERY_LIMIT_S,
    ) -> None:
        times = replace(endpoint.times, first_byte_s=batch_limit_s)
        sizes = SizeLimits(reply_bytes=_REPLY_BYTES)
        self._connection = ServerConnection(replace(endpoint, times=times, sizes=sizes), OPENAI_SDK)
        self._model = model
        self._loop = loop
        self._rate_limiter = rate_limiter
        self._cost_of = cost_of
        self._batch_limit_s = batch_limit_s
        self._question_limit_s = query_limit_s
        self._known = _SharedState(model.dimension)
        self.limit_s: float | None = None
        loop.at_close(self._connection.aclose)

    @property
    def space(self) -> Space:
        """The space of the model. Blocks for a request while the dimension is unknown.

        Raises as `embed` does.
        """
        if self._known.dimension is None:
            self.embed([_PROBE])
        return Space(self._model.space_name, self._known.dimension or 0, self._model.max_tokens)

    @property
    def space_name(self) -> str:
        """The name of `space`; sends no request."""
        return self._model.space_name

    @property
    def knows_space(self) -> bool:
        """Whether `space` needs no request."""
        return self._known.dimension is not None

    def for_queries(self) -> "RemoteEmbedder":
        """Return the same embedder with a short time limit, for queries of a waiting user."""
        return self.within(self._question_limit_s)

    def within(self, limit_s: float) -> "RemoteEmbedder":
        """Return the same embedder for queries, with another time limit for each request."""
        other = copy.copy(self)
        other.limit_s = limit_s
        return other

    def embed(
        self,
        texts: Sequence[str],
        cancelled: Callable[[], bool] | None = None,
        *,
        as_queries: bool = False,  # noqa: ARG002 - the protocol of servers does not tell the two apart
    ) -> Vectors:
        """Return float32, (n, dim), rows of unit length, in the order of `texts`. Blocks.

        Text beyond `space.max_tokens` (estimated) is ignored. Raises `Cancelled` within 50 ms of
        `cancelled()`, also during a request; `ProviderError` for errors of the server and the
        network, with its Retry-After; `EmbedderUnavailable` for invalid vectors.
        """
        if not texts:
            return np.empty((0, self.space.dimension), np.float32)
        sendable = [self._sendable(text) for text in texts]
        parts: list[Vectors] = []
        for batch in self._batches(sendable):
            if cancelled is not None and cancelled():
                raise Cancelled("Embedding was stopped")
            request = partial(self._request, batch)
            parts.append(self._loop.call(request, cancelled))
        return np.concatenate(parts)

    def chunks(self, text: str, max_tokens: int, overlap_tokens: int) -> list[Span]:
        """Return the (start, end) offsets of the pieces of `text` that get a vector each.

        As `LocalEmbedder.chunks`, with estimated tokens; sends no request.
        """
        room = int(self._model.max_tokens * _USED_SHARE)
        if max_tokens > room:
            max_tokens, overlap_tokens = room, min(overlap_tokens, room // 10)
        return chunk_spans(
            text, estimated_spans(text, self._model.name), max_tokens, overlap_tokens
        )

    def take_usage(self) -> UsageTotals | None:
        """Return the usage since the last call, queries included; None for none.

        May block: the first price takes 0.25 s.
        """
        with self._known.lock:
            tokens, self._known.tokens = self._known.tokens, 0
        return UsageTotals(tokens, self._cost_of(tokens)) if tokens else None

    def max_usage(self, texts: Sequence[str]) -> tuple[int, float | None]:
        """Return the maximum tokens and USD for embedding texts; None is an unknown price.

        May block, as `take_usage`.
        """
        longest = self._model.max_tokens
        tokens = sum(min(longest, estimated_tokens(text, self._model.name)) for text in texts)
        tokens = math.ceil(tokens * _ESTIMATE_MARGIN)
        return tokens, self._cost_of(tokens)

    def _sendable(self, text: str) -> str:
        """The text in a form that JSON and servers accept: never empty."""
        cut = first_tokens(text, self._model.name, self._model.max_tokens)
        return encodable(cut).replace("\0", " ") or " "

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """The texts in order, each batch within the limits of one request."""
        batch: list[str] = []
        batch_tokens = 0
        for text in texts:
            tokens = estimated_tokens(text, self._model.name)
            if batch and (
                len(batch) == MAX_INPUTS
                or batch_tokens + tokens > self._model.request_tokens * _USED_SHARE
            ):
                yield batch
                batch, batch_tokens = [], 0
            batch.append(text)
            batch_tokens += tokens
        yield batch

    async def _request(self, texts: list[str]) -> Vectors:
        """One request. Texts that are too long are shortened: their tokens are estimates."""
        longest = max(estimated_tokens(text, self._model.name) for text in texts)
        for shortening in range(_SHORTENINGS + 1):
            try:
                return await self._request_once(texts)
            except ContextTooLong:
                if shortening == _SHORTENINGS or self.limit_s is not None:
                    raise
            longest = max(1, int(longest * _SHORTENED_SHARE))
            texts = [first_tokens(text, self._model.name, longest) or " " for text in texts]
        raise AssertionError("unreachable")

    async def _request_once(self, texts: list[str]) -> Vectors:
        await self._rate_limiter.acquire(self.limit_s)
        body: dict[str, Any] = {"model": self._model.name, "input": texts}
        if self._model.sends_base64:
            body["encoding_format"] = "base64"
        try:
            return self._read(await self._post(body), texts)
        except EmbedderUnavailable:
            raise
        except Exception as caught:  # noqa: BLE001  the edge: foreign errors have no one root
            error = caught
        raise to_provider_error(error, self._connection, self._model.name)

    async def _post(self, body: dict[str, Any]) -> object:
        """The answer within the limit. For a batch, loading the SDK does not count."""
        if self.limit_s is None:
            await self._connection.load()
        limit_s = self.limit_s or self._batch_limit_s
        try:
            async with asyncio.timeout(limit_s):
                return await self._connection.post_json("/embeddings", body)
        except TimeoutError as error:
            raise ReplyTimeout(limit_s) from error

    def _read(self, reply: object, texts: list[str]) -> Vectors:
        """The vectors of a reply; its tokens count as used even if the vectors are invalid."""
        tokens = reported_tokens(reply)
        if tokens is None:
            tokens = sum(estimated_tokens(text, self._model.name) for text in texts)
        with self._known.lock:
            self._known.tokens += tokens
        source = f"'{self._model.name}' at {self._connection.endpoint.provider}"
        vectors = unit_vectors(reply, len(texts), self._known.dimension, source)
        self._known.dimension = vectors.shape[1]
        return vectors
