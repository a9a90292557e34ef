"""Streaming of replies, the same for every wire: open, read, finish, translate errors, retry.

A reply is complete only when its terminal marker was read. A stream that ends without one raises,
even when the connection was closed normally.

A request is retried only before any output, and only as the server allows. Exponential waits with
full jitter (Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015) are added to the
server's Retry-After. A Retry-After of more than a minute is reported instead. A server that loads
its model is asked every 2 s for three minutes. `TimedOut` is not
retried: with a limit of 60 s that would be four minutes, paid four times.

Optional parameters that a server rejects (400 or 422) are omitted, and on success from then on for
its base URL and model (tools and temperature depend on the model) until the program ends.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from app.domain.chat import ChatRequest, ModelRef, Retrying, StreamEvent
from app.domain.conversations import Text, Thinking, ToolCall
from app.domain.errors import (
    ConnectionLost,
    ImagesRefused,
    InvalidReply,
    ProviderError,
    RateLimited,
    Repeating,
    ServerFailed,
    ServerLoading,
    Unreachable,
)
from app.domain.records.presets import ModelOptions
from app.providers.http.connection import ServerConnection
from app.providers.http.error_classification import EndpointMissing
from app.providers.http.error_translation import (
    error_response_of,
    is_safe_to_chain,
    translate,
    unstreamed_reply,
)
from app.providers.model_options import fitted
from app.providers.wire.messages import rejected_parameter, rejects_images, tools_as_text, without
from app.providers.wire.reader import RepetitionGuard, ReplyReader, Wire

_log = logging.getLogger(__name__)
_RETRIED = (RateLimited, ServerFailed, Unreachable, ConnectionLost)
_LOADING_WAIT_S, _LOADING_TRIES = 2.0, 90
IMAGES = "images"  # among rejected parameters
_OUTPUT = (Text, Thinking, ToolCall)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits of retrying.

    Attributes:
        tries: Attempts in all.
        base_s: The longest first wait, doubled each time up to `cap_s`.
        max_retry_after_s: The longest Retry-After that is waited for.
        chance: Returns numbers in [0, 1); it and `sleep` are replaced in tests.
    """

    tries: int = 4
    base_s: float = 1.0
    cap_s: float = 30.0
    max_retry_after_s: float = 60.0
    chance: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    def wait_s(self, error: ProviderError, failures: int) -> float | None:
        """Return the seconds to wait after so many failures, None for no further attempt."""
        retry_after_s = error.retry_after_s or 0.0
        server_allows = error.retryable and not type(error).retryable
        if isinstance(error, ServerLoading) and self.tries > 1:
            return _LOADING_WAIT_S if failures < _LOADING_TRIES else None
        is_retried = isinstance(error, _RETRIED) or server_allows
        if not is_retried or not error.retryable or failures >= self.tries:
            return None
        if retry_after_s > self.max_retry_after_s:
            return None
        return retry_after_s + self.chance() * min(self.cap_s, self.base_s * 2.0 ** (failures - 1))


async def with_retries(
    attempt: Callable[[], AsyncGenerator[StreamEvent]], policy: RetryPolicy
) -> AsyncGenerator[StreamEvent]:
    """Yield the events of the first attempt with output, `Retrying` before each new attempt.

    `Retrying.attempt` is the number of the next attempt (2 for the first retry). Raises the
    last `ProviderError`. Closing the iterator closes the current attempt.
    """
    failures = 0
    while True:
        has_output = False
        try:
            async with aclosing(attempt()) as events:
                async for event in events:
                    has_output = has_output or isinstance(event, _OUTPUT)
                    yield event
        except ProviderError as error:
            failures += 1
            wait_s = None if has_output else policy.wait_s(error, failures)
            if wait_s is None:
                raise
            reason = error.title
        else:
            return
        yield Retrying(failures + 1, wait_s, reason)
        await policy.sleep(wait_s)


Unsupported = dict[tuple[str, str], set[str]]  # rejected parameters by base URL and model


class StreamingModel:
    """A `ChatModel` over a connection; belongs to the connection's event loop.

    `wires` are tried in order: one whose address the server does not have is dropped.
    """

    def __init__(
        self,
        connection: ServerConnection,
        wires: Sequence[Wire],
        policy: RetryPolicy,
        unsupported: Unsupported,
        options: Callable[[str], ModelOptions],
    ) -> None:
        self._connection = connection
        self._wires = list(wires)
        self._policy = policy
        self._unsupported = unsupported
        self._options = options

    async def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent]:
        """Yield the reply as it comes, `Finished` last; raises `ProviderError`.

        Without `Finished` the reply is interrupted: what was yielded is all of it. Closing the
        iterator, or cancelling the task that awaits it, closes the connection at once. Options that
        the model does not have are left out.
        """
        request = fitted(request, self._options(request.model))
        while True:
            wire, has_started = self._wires[0], False
            attempts = with_retries(partial(self._attempt, wire, request), self._policy)
            try:
                async with aclosing(attempts) as events:
                    async for event in events:
                        has_started = has_started or not isinstance(event, Retrying)
                        yield event
            except EndpointMissing:
                if has_started or wire is self._wires[-1]:
                    raise
                self._wires = [each for each in self._wires if each is not wire]
            else:
                return

    async def _attempt(self, wire: Wire, request: ChatRequest) -> AsyncGenerator[StreamEvent]:
        """One attempt, repeated without each parameter that the server rejects."""
        endpoint = self._connection.endpoint
        key = (endpoint.base_url.text, request.model)
        dropped = set(self._unsupported.get(key, ()))
        while True:
            if "tools" in dropped:
                request = replace(request, messages=tools_as_text(request.messages), tools=())
            model = str(ModelRef(endpoint.provider, request.model))
            body = without(wire.body(request, model), dropped)
            has_started = False
            try:
                async with aclosing(self._read(wire, body, model)) as events:
                    async for event in events:
                        if not has_started and dropped - self._unsupported.get(key, set()):
                            _log.info("%s does not accept %s for %s", key[0], dropped, key[1])
                            self._unsupported[key] = self._unsupported.get(key, set()) | dropped
                        has_started = True
                        yield event
            except Exception as caught:  # noqa: BLE001  the edge: foreign errors have no one root
                error = caught
            else:
                return
            refused = rejected_parameter(error_response_of(error), body, wire.optional)
            if request.images and refused is None and rejects_images(error_response_of(error)):
                self._unsupported.setdefault(key, set()).add(IMAGES)
                raise _images_refused(self._connection, request.model, error)
            if has_started or refused is None:
                raise to_provider_error(error, self._connection, request.model)
            dropped.add(refused)

    def sees_images(self, model: str) -> bool | None:
        """Return False once the server has refused images for a model, else None."""
        key = (self._connection.endpoint.base_url.text, model)
        return False if IMAGES in self._unsupported.get(key, ()) else None

    async def _read(
        self, wire: Wire, body: dict[str, Any], model: str
    ) -> AsyncGenerator[StreamEvent]:
        reader = wire.reader(model)
        guard = RepetitionGuard()
        count = 0
        failure: Exception | None = None
        async with aclosing(self._events(wire, body)) as events:
            try:
                async for event in events:
                    count += 1
                    parts = [*reader.feed(event)]
                    for part in parts:
                        yield part
                    if guard.repeats(parts):
                        failure = _repeating(body["model"])
                    if reader.finished or failure:
                        break
            except Exception as error:  # noqa: BLE001  raised again below, after held-back text
                failure = error
            if reader.finished:
                for part in await self._tail(events, reader):
                    yield part
        for part in reader.flush():
            yield part
        if reader.finished:
            yield reader.finished
        else:
            raise failure or self._unfinished(count)

    async def _events(self, wire: Wire, body: dict[str, Any]) -> AsyncGenerator[Mapping[str, Any]]:
        """Yield the events of a reply, also of one that the server did not stream."""
        try:
            async with aclosing(self._connection.events(wire.path, body)) as events:
                async for event in events:
                    yield event
        except Exception as error:
            if (reply := unstreamed_reply(error)) is None:
                raise
            refused, whole = error, reply
        else:
            return
        has_event = False
        for event in wire.events_of(whole):
            has_event = True
            yield event
        if not has_event:
            raise refused

    async def _tail(
        self, events: AsyncGenerator[Mapping[str, Any]], reader: ReplyReader
    ) -> list[StreamEvent]:
        """Return the events after the terminal marker (usage), if they arrive soon and are valid.

        Reading to the end also makes the connection reusable.
        """
        parts: list[StreamEvent] = []
        try:
            async with asyncio.timeout(self._connection.endpoint.times.tail_s):
                async for event in events:
                    parts.extend(reader.feed(event))
        except Exception as error:
            if translate(error, self._connection.target()) is None:
                raise
            # The reply is complete; only its usage may be missing.
        return parts

    def _unfinished(self, count: int) -> ProviderError:
        provider = self._connection.endpoint.shown_name
        if not count:
            return InvalidReply(
                f"{provider} sent an empty reply", "Check the base URL, or choose another model"
            )
        return ConnectionLost(
            f"{provider} ended the reply before it was complete", "Retry, or continue the reply"
        )


def _repeating(model: str) -> ProviderError:
    return Repeating(
        f"'{model}' repeats itself without end, so the reply was stopped",
        "Regenerate it, or choose another model.",
    )


def _images_refused(connection: ServerConnection, model: str, error: Exception) -> ImagesRefused:
    detail = to_provider_error(error, connection, model)
    return ImagesRefused(
        f"'{model}' at {connection.endpoint.shown_name} does not read images",
        "Choose a model that does, or retry: it then gets the names of the images only.",
        log_text=detail.log_text if isinstance(detail, ProviderError) else "",
    )


def to_provider_error(error: Exception, connection: ServerConnection, model: str = "") -> Exception:
    """Return `error` as a `ProviderError` to raise; a bug in this program is returned unchanged.

    Raise it outside the except clause: a context that quotes the key would stay in tracebacks.
    """
    target = connection.target(model)
    translated = translate(error, target)
    if translated is None or translated is error:
        return error
    translated.__cause__ = error if is_safe_to_chain(error, target) else None
    return translated
