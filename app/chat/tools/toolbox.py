"""The box of tools: what is offered, and a call turned into a result, whatever it holds.

What a model sends is never trusted: arguments are checked against the tool's schema, and every
failure is a result in words that the model can act on. When tools run is `app.chat.tool_rounds`.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from app.chat.tools.arguments import checked_arguments
from app.domain.chat import ToolSchema
from app.domain.conversations import Conversation, ToolCall, ToolResult
from app.domain.errors import InvalidInput, KnownError
from app.domain.ids import ExchangeId
from app.domain.text import clean, one_line

_log = logging.getLogger(__name__)
_MOST_CHARS = 100_000
_NAME_SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Where a tool is called, and by which model (PROVIDER:MODEL)."""

    conversation: Conversation
    exchange_id: ExchangeId
    model: str


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    `parameters` is a JSON schema of an object; `run` takes arguments that fit it, may block, and
    raises KnownError for what the model should hear. `writes` when it changes what is remembered.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Callable[[Mapping[str, Any], ToolContext], str]
    writes: bool = False

    @property
    def schema(self) -> ToolSchema:
        """What a model is told of it."""
        return ToolSchema(self.name, self.description, json.dumps(self.parameters))


class Toolbox:
    """All tools there are. Thread-safe."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def offered_in(self, conversation: Conversation) -> tuple[ToolSchema, ...]:
        """Return what a model may call; in a private conversation nothing that writes."""
        return tuple(tool.schema for tool in self._of(conversation).values())

    def writes(self, call: ToolCall) -> bool:
        """Return whether a call may change what later ones find."""
        tool = self._tools.get(call.name)
        return tool is not None and tool.writes

    def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Run a call; never raises. Blocking: for a thread of its own."""
        started = time.perf_counter()
        is_error = True
        try:
            text, is_error = self._run(call, context), False
        except KnownError as error:
            text = str(error)
        except Exception as error:  # noqa: BLE001 - the edge of a tool: the turn goes on without it
            _log.exception("the tool %s failed in a way we did not foresee", call.name)
            text = f"The tool failed ({type(error).__name__}). Go on without it."
        took_ms = round((time.perf_counter() - started) * 1000)
        return ToolResult(call.call_id, call.name, _bounded(text), is_error, took_ms)

    def _run(self, call: ToolCall, context: ToolContext) -> str:
        offered = self._of(context.conversation)
        if (tool := offered.get(call.name)) is None:
            raise _unknown(call.name, offered)
        arguments = checked_arguments(call.arguments, tool.parameters)
        return tool.run(arguments, context)

    def _of(self, conversation: Conversation) -> dict[str, Tool]:
        return {
            name: tool
            for name, tool in self._tools.items()
            if not (tool.writes and conversation.private)
        }


def _unknown(name: str, offered: Mapping[str, Tool]) -> InvalidInput:
    near = get_close_matches(name, offered, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(offered)}."
    return InvalidInput(f"There is no tool '{one_line(name, _NAME_SHOWN_CHARS)}' here", hint)


def _bounded(text: str) -> str:
    """Return `text` fit for storing: clean, and no longer than anything here needs to be."""
    text = clean(text)
    if len(text) <= _MOST_CHARS:
        return text
    return f"{text[:_MOST_CHARS]}\n[The rest was left out: {len(text):,} characters in all.]"
