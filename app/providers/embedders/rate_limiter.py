"""The limit of embedding requests a minute."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable

from app.domain.errors import EmbedderUnavailable

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
