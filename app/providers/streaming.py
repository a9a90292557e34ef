"""The one loop around every reply, whatever its wire: open, read, finish, translate, retry.

A wire knows how a request is written and how events are read; here is what all of them share. A
reply is complete only when its terminal marker was seen. A stream that ends without one raises,
however politely the connection was closed.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Protocol

from app.domain.chat import ChatRequest, Finished, StreamEvent
from app.domain.provider_errors import ConnectionLost, NonsenseReply, ProviderError
from app.providers.connection import Connection
from app.providers.dialect import Dialects, refused_parameter, without
from app.providers.faults import complaint_of, is_safe_to_chain, translate
from app.providers.retry import RetryPolicy, with_retries
from app.providers.transcript import in_words


class Reader(Protocol):
    """Reads the events of one reply. `finished` is None until the terminal marker was seen."""

    finished: Finished | None

    def feed(self, event: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Yield what an event means, maybe nothing; raises StreamFault for an error event."""
        ...

    def flush(self) -> Iterator[StreamEvent]:
        """Yield what was held back; called once, when nothing more comes."""
        ...


class Wire(Protocol):
    """A vendor's protocol. `path` is relative to the base URL, `optional` what may be left out."""

    path: str
    optional: tuple[str, ...]

    def body(self, request: ChatRequest, provider: str) -> dict[str, Any]:
        """Return the request's JSON."""
        ...

    def reader(self, request: ChatRequest, provider: str) -> Reader:
        """Return a reader for one reply to it."""
        ...


class StreamingModel:
    """A `ChatModel` over a connection and a wire; belongs to the connection's event loop."""

    def __init__(
        self, connection: Connection, wire: Wire, policy: RetryPolicy, dialects: Dialects
    ) -> None:
        self._connection = connection
        self._wire = wire
        self._policy = policy
        self._dialects = dialects

    async def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent]:
        """Yield the reply as it comes, `Finished` last; raises `ProviderError`.

        Without `Finished` the reply is interrupted: what was yielded is all there is. Closing the
        iterator, or cancelling the task that awaits it, closes the connection at once.
        """
        attempts = with_retries(lambda: self._attempt(request), self._policy)
        async with aclosing(attempts) as events:
            async for event in events:
                yield event

    async def _attempt(self, request: ChatRequest) -> AsyncGenerator[StreamEvent]:
        """One try, repeated without a parameter that the server does not know."""
        base_url = self._connection.base_url.text
        dropped = set(self._dialects.refused(base_url, request.model))
        while True:
            if "tools" in dropped:
                request = replace(request, messages=in_words(request.messages), tools=())
            body = without(self._wire.body(request, self._connection.provider), dropped)
            begun = False
            try:
                async with aclosing(self._read(request, body)) as events:
                    async for event in events:
                        if not begun and dropped:
                            self._dialects.remember(base_url, request.model, dropped)
                        begun = True
                        yield event
            except Exception as caught:  # noqa: BLE001  the edge: foreign errors have no one root
                error = caught
            else:
                return
            refused = refused_parameter(complaint_of(error), body, self._wire.optional)
            if begun or refused is None:
                raise translated(error, self._connection, request.model)
            dropped.add(refused)

    async def _read(
        self, request: ChatRequest, body: dict[str, Any]
    ) -> AsyncGenerator[StreamEvent]:
        reader = self._wire.reader(request, self._connection.provider)
        count = 0
        failure: Exception | None = None
        async with aclosing(self._connection.events(self._wire.path, body)) as events:
            try:
                async for event in events:
                    count += 1
                    for said in reader.feed(event):
                        yield said
                    if reader.finished:
                        break
            except Exception as error:  # noqa: BLE001  raised again below, after the last words
                failure = error
            if reader.finished:
                for said in await self._tail(events, reader):
                    yield said
        for said in reader.flush():
            yield said
        if reader.finished:
            yield reader.finished
        else:
            raise failure or self._unfinished(count)

    async def _tail(
        self, events: AsyncGenerator[Mapping[str, Any]], reader: Reader
    ) -> list[StreamEvent]:
        """Return what follows the terminal marker (usage), if it comes soon and is sound.

        Reading to the end also leaves the connection fit for the next request.
        """
        said: list[StreamEvent] = []
        try:
            async with asyncio.timeout(self._connection.times.tail_s):
                async for event in events:
                    said.extend(reader.feed(event))
        except Exception as error:
            if translate(error, self._connection.subject()) is None:
                raise
            # The reply was complete before this; only its token count may be missing.
        return said

    def _unfinished(self, count: int) -> ProviderError:
        who = self._connection.provider
        if not count:
            return NonsenseReply(
                f"{who} sent an empty reply", "Check the base URL, or choose another model"
            )
        return ConnectionLost(
            f"{who} ended the reply before it was complete", "Retry, or continue the reply"
        )


def translated(error: Exception, connection: Connection, model: str = "") -> Exception:
    """Return what `error` means to the user, ready to raise; a bug of ours is returned as it is.

    To be raised outside the except clause: a context that quotes the key would stay in tracebacks.
    """
    subject = connection.subject(model)
    fault = translate(error, subject)
    if fault is None or fault is error:
        return error
    fault.__cause__ = error if is_safe_to_chain(error, subject) else None
    return fault
