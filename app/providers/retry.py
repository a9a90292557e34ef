"""When a request is sent again: only before any output, visibly, and never against the server's word.

Exponential waits with full jitter (Brooker, "Exponential Backoff And Jitter", AWS Architecture
Blog, 2015), on top of the server's own Retry-After, which is a minimum. A wait over a minute is
not sat out but reported. Silence (`TimedOut`) is not tried again by itself: with a limit of 60 s
that would be four minutes, paid four times.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

from app.domain.chat import Retrying, StreamEvent, TextDelta, ThinkingDelta, ToolCallReady
from app.domain.provider_errors import (
    ConnectionLost,
    ProviderError,
    RateLimited,
    ServerFailed,
    Unreachable,
)

_REPEATED = (RateLimited, ServerFailed, Unreachable, ConnectionLost)
_OUTPUT = (TextDelta, ThinkingDelta, ToolCallReady)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long: `tries` in all, waits up to `base_s` doubled each time to `cap_s`.

    A server that asks for more than `patience_s` is not waited for. `chance` gives numbers in
    [0, 1); it and `sleep` are replaced in tests.
    """

    tries: int = 4
    base_s: float = 1.0
    cap_s: float = 30.0
    patience_s: float = 60.0
    chance: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    def wait_s(self, fault: ProviderError, failures: int) -> float | None:
        """Return the seconds to wait after so many failures, None if it is not worth a try."""
        asked_s = fault.retry_after_s or 0.0
        wanted_by_server = fault.retryable and not type(fault).retryable
        repeated = isinstance(fault, _REPEATED) or wanted_by_server
        if not repeated or not fault.retryable or failures >= self.tries:
            return None
        if asked_s > self.patience_s:
            return None
        return asked_s + self.chance() * min(self.cap_s, self.base_s * 2.0 ** (failures - 1))


async def with_retries(
    attempt: Callable[[], AsyncGenerator[StreamEvent]], policy: RetryPolicy
) -> AsyncGenerator[StreamEvent]:
    """Yield the events of the first attempt that comes to anything, `Retrying` before each new one.

    `Retrying.attempt` is the number of the try to come (2 for the first repetition). Raises the
    last `ProviderError`. Closing it closes the attempt under way.
    """
    failures = 0
    while True:
        produced = False
        try:
            async with aclosing(attempt()) as events:
                async for event in events:
                    produced = produced or isinstance(event, _OUTPUT)
                    yield event
        except ProviderError as fault:
            failures += 1
            wait_s = None if produced else policy.wait_s(fault, failures)
            if wait_s is None:
                raise
            reason = fault.title
        else:
            return
        yield Retrying(failures + 1, wait_s, reason)
        await policy.sleep(wait_s)
