"""A client of the loopback server: the program's own providers, and what they yield."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import httpx2

from app.domain.chat import (
    ChatRequest,
    Finished,
    Retrying,
    StreamEvent,
    TextWasThinking,
    ToolSchema,
    UsageReported,
)
from app.domain.conversations import Block, Message, RawReply, Role, Text, Thinking, ToolCall
from app.domain.ids import ConversationId, MessageId
from app.domain.ports import ChatModel
from app.providers.http.base_url import check_base_url
from app.providers.http.endpoint import Endpoint, Network, SizeLimits, TimeLimits
from app.providers.remote_provider import RemoteProvider
from app.providers.vendors import vendors
from app.providers.wire.streaming import RetryPolicy
from app.system.keys import FoundKey, KeyLocation, Secret
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import Step
from tests.fakes.loopback_wire import CHAT, MESSAGES, RESPONSES

WIRES = (CHAT, RESPONSES, MESSAGES)
KEY = "sk-canary-0123456789"
_KINDS = {CHAT: "compatible", RESPONSES: "openai", MESSAGES: "anthropic"}
SHORT = TimeLimits(connect_s=2.0, first_byte_s=0.15, idle_s=0.15, tail_s=0.1)
# For servers that answer at first: a busy machine may be slow until then.
SHORT_ONCE_BEGUN = replace(SHORT, first_byte_s=10.0)
WEATHER = ToolSchema("weather", "Tells the weather", '{"type":"object","properties":{}}')


@dataclass
class Heard:
    """Everything a stream yielded, and the error it ended with."""

    events: list[StreamEvent] = field(default_factory=list)
    error: Exception | None = None

    @property
    def text(self) -> str:
        return self._joined(Text, after=True)

    @property
    def thinking(self) -> str:
        return self._joined(Text, after=False).rstrip() + self._joined(Thinking)

    def _joined(self, kind: type[Text] | type[Thinking], after: bool | None = None) -> str:
        """The parts of a kind, of text those before or after it proved to be thinking."""
        ends = [n for n, event in enumerate(self.events) if isinstance(event, TextWasThinking)]
        end = ends[-1] if ends else 0
        return "".join(
            event.text
            for number, event in enumerate(self.events)
            if isinstance(event, kind) and after in (None, number >= end)
        )

    @property
    def calls(self) -> list[ToolCall]:
        return [event for event in self.events if isinstance(event, ToolCall)]

    @property
    def retries(self) -> list[Retrying]:
        return [event for event in self.events if isinstance(event, Retrying)]

    @property
    def tokens(self) -> UsageReported | None:
        return next((e for e in reversed(self.events) if isinstance(e, UsageReported)), None)

    @property
    def finished(self) -> Finished | None:
        last = self.events[-1] if self.events else None
        return last if isinstance(last, Finished) else None


class PatientSleeper:
    """Waits no time and remembers how long it was asked to."""

    def __init__(self) -> None:
        self.waits_s: list[float] = []

    async def __call__(self, wait_s: float) -> None:
        self.waits_s.append(wait_s)
        await asyncio.sleep(0)


def policy(sleeper: PatientSleeper | None = None, **changes: int) -> RetryPolicy:
    """Return a policy without waits and without chance."""
    return RetryPolicy(sleep=sleeper or PatientSleeper(), chance=lambda: 1.0, **changes)


def provider(
    wire: str,
    base_url: str,
    *,
    name: str = "testing",
    key: str = KEY,
    times: TimeLimits | None = None,
    sizes: SizeLimits | None = None,
    retries: RetryPolicy | None = None,
    network: Network | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> RemoteProvider:
    """Return a provider that speaks `wire`; an empty `key` is none."""
    found = FoundKey(Secret(key), KeyLocation.KEYRING) if key else None
    endpoint = Endpoint(
        provider=name, base_url=check_base_url(base_url), find_key=lambda: found,
        times=times or TimeLimits(), sizes=sizes or SizeLimits(), network=network or Network(),
        transport=transport,
    )  # fmt: skip
    return RemoteProvider(vendors()[_KINDS[wire]], endpoint, policy=retries or policy())


def message(
    role: Role, *blocks: Block, raw: RawReply | None = None, model: str | None = None
) -> Message:
    """Return a message of no conversation in particular."""
    at = datetime(2026, 1, 2, tzinfo=UTC)
    return Message(
        MessageId(1), "uid", ConversationId(1), None, role, blocks, at, model=model, raw=raw
    )


def user(words: str) -> Message:
    """Return something the user said."""
    return message(Role.USER, Text(words))


def request(*messages: Message, model: str = "test-model", **more: object) -> ChatRequest:
    """Return a request; without messages, a greeting."""
    return ChatRequest(model, messages or (user("Hello"),), **more)  # type: ignore[arg-type]


async def listen(
    model: ChatModel, asked: ChatRequest, until: Callable[[Heard], bool] = lambda _: False
) -> Heard:
    """Collect a stream's events, closing it as soon as `until` holds."""
    heard = Heard()
    try:
        async with aclosing(model.stream(asked)) as events:  # type: ignore[type-var]
            async for event in events:
                heard.events.append(event)
                if until(heard):
                    break
    except Exception as error:  # noqa: BLE001  whatever it is, the test looks at it
        heard.error = error
    return heard


def hear(
    source: RemoteProvider,
    asked: ChatRequest | None = None,
    until: Callable[[Heard], bool] = lambda _: False,
) -> Heard:
    """Ask once on an event loop of its own, and close the provider."""
    return hear_all(source, [asked or request()], until)[0]


def hear_all(
    source: RemoteProvider,
    asked: Sequence[ChatRequest],
    until: Callable[[Heard], bool] = lambda _: False,
) -> list[Heard]:
    """Ask several times, one after another."""

    async def run() -> list[Heard]:
        try:
            return [await listen(source.chat_model(), each, until) for each in asked]
        finally:
            await source.aclose()

    return asyncio.run(run())


def address(server: Loopback, wire: str) -> str:
    """Return the base URL that a provider of `wire` has at a loopback server."""
    return server.url if wire == MESSAGES else server.v1


def ask(
    server: Loopback, wire: str, *steps: Step, asked: ChatRequest | None = None, **terms: Any
) -> Heard:
    """Ask a server that always gives the same reply; `terms` are those of `provider`."""
    server.always(*steps)
    return hear(provider(wire, address(server, wire), **terms), asked)
