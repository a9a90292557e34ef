"""Talks with a scripted model over a real store: a loop, its tools, and shorthands."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from app.chat.exchanges import ExchangeLoop, Models
from app.chat.reply import Reply
from app.chat.tools.toolbox import Tool, Toolbox, ToolContext
from app.domain.chat import (
    Finished,
    FinishReason,
    ModelRef,
    StreamEvent,
    TokensReported,
    ToolCallReady,
)
from app.domain.conversations import Exchange, Message, Text
from app.domain.ids import ConversationId
from app.storage.exchanges import Exchanges
from app.storage.settings import Settings
from app.storage.store import Store
from tests.fakes.models import ScriptedModel

MODEL = "openai:scripted"
Scripts = Sequence[Sequence[object]]


@dataclass
class ToolTalk:
    """A store and a loop over a scripted model that may call tools."""

    store: Store
    settings: Settings
    loop: ExchangeLoop
    model: ScriptedModel

    def send(self, text: str, conversation_id: int | None = None, **more: Any) -> Reply:
        """Say something; return the reply under way."""
        where = None if conversation_id is None else ConversationId(conversation_id)
        return self.loop.send(where, (Text(text),), model=MODEL, **more).result(10)

    def say(self, text: str, conversation_id: int | None = None, **more: Any) -> Exchange:
        """Say something; return the exchange as it ended."""
        return self.send(text, conversation_id, **more).done.result(10)

    def messages(self, exchange: Exchange) -> tuple[Message, ...]:
        """Return an exchange's messages as stored."""
        return Exchanges(self.store).messages_of(exchange)


@contextmanager
def talking(store: Store, scripts: Scripts, tools: Sequence[Tool] = ()) -> Iterator[ToolTalk]:
    """Open a talk in which the model plays `scripts`, one for each request."""
    model = ScriptedModel(*scripts)  # type: ignore[arg-type]
    models = Models(lambda _: model, lambda _: None, _price, _nothing_to_close)
    settings = Settings(store)
    loop = ExchangeLoop(store, settings, models, toolbox=Toolbox(tools))
    try:
        yield ToolTalk(store, settings, loop, model)
    finally:
        loop.close()


def calls(*wanted: tuple[str, str, str], tokens: tuple[int, int] = (10, 2)) -> list[StreamEvent]:
    """Return the script of a reply that calls tools: (call id, name, arguments) each."""
    ready = [ToolCallReady(*each) for each in wanted]
    return [*ready, TokensReported(*tokens), Finished(FinishReason.TOOL_CALLS)]


def tool(
    name: str,
    run: Callable[[Mapping[str, Any]], str],
    properties: Mapping[str, Any] | None = None,
    *,
    writes: bool = False,
) -> Tool:
    """Return a tool of the test's making."""

    def run_in(arguments: Mapping[str, Any], _: ToolContext) -> str:
        return run(arguments)

    schema = {"type": "object", "properties": properties or {}, "additionalProperties": False}
    return Tool(name, f"Does {name}.", schema, run_in, writes)


def _price(_: ModelRef, tokens: TokensReported) -> tuple[float | None, str]:
    return tokens.output_tokens * 0.5, "0.5 USD a token"


async def _nothing_to_close() -> None:
    """No connections here."""
