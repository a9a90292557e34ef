"""Chats with a scripted model over a real store: an exchange loop, its tools, and shorthands."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from app.chat.exchange_loop import ExchangeLoop
from app.chat.library import Library
from app.chat.planner import NewConversation
from app.chat.reply import Reply
from app.chat.tools.toolbox import Tool, Toolbox, ToolContext
from app.domain.chat import Finished, FinishReason, StreamEvent, UsageReported
from app.domain.conversations import ANY_RECALL, Exchange, Message, Text, ToolCall, ToolResult
from app.domain.ids import ConversationId
from app.storage.engine.store import Store
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.settings import Settings
from tests.fakes.models import FakeModels, ScriptedModel

MODEL = "openai:scripted"
Scripts = Sequence[Sequence[object]]
MakeChat = Callable[..., "Chat"]


@dataclass
class Chat:
    """A store and a loop over a scripted model that may call tools."""

    store: Store
    settings: Settings
    loop: ExchangeLoop
    model: ScriptedModel

    def send(self, text: str, conversation_id: int | None = None, **more: Any) -> Reply:
        """Send a message; return the running reply."""
        where = None if conversation_id is None else ConversationId(conversation_id)
        choice = more.pop("choice", ANY_RECALL)
        new = NewConversation(**{"model": MODEL, **more})
        return self.loop.send(where, (Text(text),), new, choice).result(10)

    def say(self, text: str, conversation_id: int | None = None, **more: Any) -> Exchange:
        """Send a message; return the exchange at its end."""
        return self.send(text, conversation_id, **more).done.result(10)

    def retry(self, exchange: Exchange) -> Exchange:
        """Retry or continue an exchange; return it at its end."""
        return end_of(self.loop.retry(exchange.id))

    @property
    def library(self) -> Library:
        """The conversations of the store."""
        return Library(self.store)

    def texts(self, conversation_id: int) -> list[str]:
        """Return the texts of the messages on the shown path."""
        path = self.library.open(conversation_id).path
        messages = self.library.messages(path)
        return [message.text for exchange in path for message in messages[exchange.id]]

    def messages(self, exchange: Exchange) -> tuple[Message, ...]:
        """Return an exchange's messages as stored."""
        return Exchanges(self.store).messages_of(exchange)

    def results(self, exchange: Exchange) -> list[ToolResult]:
        """Return an exchange's tool results as stored."""
        return results_in(self.messages(exchange))

    def release(self, event: asyncio.Event) -> None:
        """Set an event that a script waits for."""

        async def release() -> None:
            event.set()

        self.loop.call(release).result(10)


@contextmanager
def open_chat(
    store: Store,
    scripts: Scripts,
    tools: Sequence[Tool] = (),
    prepare: Any = None,
    settings: Settings | None = None,
) -> Iterator[Chat]:
    """Open a chat in which the model plays `scripts`, one for each request."""
    model = ScriptedModel(*scripts)  # type: ignore[arg-type]
    settings = settings or Settings(store)
    loop = ExchangeLoop(store, settings, FakeModels(model), prepare, Toolbox(tools))
    try:
        yield Chat(store, settings, loop, model)
    finally:
        loop.close()


def end_of(started: "Future[Reply]") -> Exchange:
    return started.result(10).done.result(10)


def wait_for_text(reply: Reply) -> None:
    """Wait until text of a reply arrives."""
    while not any(isinstance(event, Text) for event in reply.drain()):
        reply.wait(5)


def problem_kind(exchange: Exchange) -> str | None:
    return exchange.problem.kind if exchange.problem else None


def results_in(messages: Sequence[Message]) -> list[ToolResult]:
    return [block for each in messages for block in each.blocks if isinstance(block, ToolResult)]


def calls(*wanted: tuple[str, str, str], tokens: tuple[int, int] = (10, 2)) -> list[StreamEvent]:
    """Return the script of a reply that calls tools: (call id, name, arguments) each."""
    ready = [ToolCall(*each) for each in wanted]
    return [*ready, UsageReported(*tokens), Finished(FinishReason.TOOL_CALLS)]


def tool(
    name: str,
    run: Callable[[Mapping[str, Any]], str],
    properties: Mapping[str, Any] | None = None,
    *,
    writes: bool = False,
) -> Tool:
    """Return a tool that runs a function."""

    def run_in(arguments: Mapping[str, Any], _: ToolContext) -> str:
        return run(arguments)

    schema = {"type": "object", "properties": properties or {}, "additionalProperties": False}
    return Tool(name, f"Does {name}.", schema, run_in, writes)
