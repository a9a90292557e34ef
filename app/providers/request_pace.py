"""No more requests a minute than the user allows, whoever sends them."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable

from app.domain.errors import EmbedderUnavailable

_MINUTE_S = 60.0
_RESERVED_SHARE = 0.1


class RequestPace:
    """Counts the requests of the last 60 s; belongs to one event loop.

    `per_minute` gives the limit in force, None for none. A tenth of it (at least one request,
    unless there is only one) is left for questions, which cannot wait.
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

    async def turn(self, patience_s: float | None = None) -> None:
        """Return when a request may be sent, and count it.

        With `patience_s` it is a question's; raises EmbedderUnavailable at once when it would have
        to wait longer than that.
        """
        while (wait_s := self._wait_s(is_question=patience_s is not None)) > 0:
            if patience_s is not None and wait_s > patience_s:
                raise EmbedderUnavailable(
                    f"The embedder's limit of {self._per_minute()} requests a minute is used up",
                    "Wait a minute, or raise embedding_requests_per_minute.",
                )
            await self._sleep(wait_s)
        self._sent.append(self._clock())

    def _wait_s(self, *, is_question: bool) -> float:
        now = self._clock()
        while self._sent and self._sent[0] <= now - _MINUTE_S:
            self._sent.popleft()
        if (limit := self._per_minute()) is None:
            return 0.0
        if not is_question and limit > 1:
            limit -= max(1, int(limit * _RESERVED_SHARE))
        if len(self._sent) < limit:
            return 0.0
        return self._sent[len(self._sent) - limit] + _MINUTE_S - now
