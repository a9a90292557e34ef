"""Toolbox: the tools that a model may call, the check of arguments, and results.

Arguments from a model are never trusted: they are checked against the tool's schema, and every
failure becomes a result that tells the model what to do. `app.chat.running_exchange` runs the
calls.
"""

import json
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from app.domain.chat import ToolSchema
from app.domain.conversations import Conversation, ToolCall, ToolResult
from app.domain.errors import InvalidInput, KnownError
from app.domain.ids import ExchangeId
from app.domain.text import clean, one_line, parse_whole_number

_log = logging.getLogger(__name__)
_MAX_CHARS = 100_000  # of arguments, and of a result
_SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The exchange in which a tool is called, and the model (PROVIDER:MODEL).

    `allowed` are the names of the tools that were offered; None for all of the conversation's.
    `is_over` is whether the exchange has ended or was stopped meanwhile.
    """

    conversation: Conversation
    exchange_id: ExchangeId
    model: str
    allowed: Collection[str] | None = None
    is_over: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    Attributes:
        parameters: A JSON schema (draft 2020-12) of an object, with the keywords that
            `check_arguments` knows.
        run: Takes arguments that match the schema; may block; raises KnownError with a message for
            the model.
        writes: Whether it changes memory.
        is_usable: Whether it is of use in a conversation now; it is not offered otherwise.
        is_checked: Whether arguments are checked by the schema; else `run` gets any object.
        ask: Waits for the user's permission to run; raises KnownError if it is refused. None where
            nobody is asked.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Callable[[Mapping[str, Any], ToolContext], str]
    writes: bool = False
    is_usable: Callable[[Conversation], bool] = lambda _: True
    is_checked: bool = True
    ask: Callable[[Mapping[str, Any], ToolContext], object] | None = None

    @property
    def is_unattended(self) -> bool:
        """Whether it may be called while nobody watches: it neither writes nor asks."""
        return not self.writes and self.ask is None


class Toolbox:
    """All tools. Thread-safe."""

    def __init__(
        self, tools: Sequence[Tool], more: Callable[[], Sequence[Tool]] = lambda: ()
    ) -> None:
        """`more` returns tools that may change; their names are others than those of `tools`."""
        self._own, self._more = tools, more

    def descriptions(self) -> Mapping[str, str]:
        return {name: tool.description for name, tool in self._tools().items()}

    def offered_in(
        self,
        conversation: Conversation,
        allowed: Collection[str] | None = None,
        *,
        is_unattended: bool = False,
    ) -> tuple[ToolSchema, ...]:
        """Return the usable tools of a conversation among those allowed (None: all).

        In a private conversation there is none that writes; in an exchange that is unattended, none
        that writes or waits for the user. May block.
        """
        return tuple(
            ToolSchema(each.name, each.description, json.dumps(each.parameters))
            for each in self._of(conversation, allowed).values()
            if not is_unattended or each.is_unattended
        )

    def writes(self, call: ToolCall) -> bool:
        """Return whether a call may change what later calls find."""
        tool = self._tools().get(call.name)
        return tool is not None and tool.writes

    def waits_for_user(self, call: ToolCall) -> bool:
        tool = self._tools().get(call.name)
        return tool is not None and tool.ask is not None

    def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Run a call; never raises. Blocking: for a worker thread."""
        started = time.perf_counter()
        is_error = True
        try:
            tool, arguments = self._prepared(call, context)
            if tool.ask is not None:
                tool.ask(arguments, context)
                started = time.perf_counter()
            text, is_error = tool.run(arguments, context), False
        except KnownError as error:
            text = str(error)
        except Exception as error:  # noqa: BLE001 - the edge of a tool: the turn goes on without it
            _log.exception("the tool %s failed unexpectedly", call.name)
            text = f"The tool failed ({type(error).__name__}). Continue without it."
        took_ms = round((time.perf_counter() - started) * 1000)
        return ToolResult(call.call_id, call.name, _limited(text), is_error, took_ms)

    def _prepared(self, call: ToolCall, context: ToolContext) -> tuple[Tool, dict[str, Any]]:
        offered = self._of(context.conversation, context.allowed)
        if (tool := offered.get(call.name)) is None:
            raise _unknown(call.name, offered)
        if not tool.is_checked:
            return tool, _decoded(call.arguments)
        return tool, check_arguments(call.arguments, tool.parameters)

    def _tools(self) -> Mapping[str, Tool]:
        return {tool.name: tool for tool in (*self._own, *self._more())}

    def _of(
        self, conversation: Conversation, allowed: Collection[str] | None
    ) -> Mapping[str, Tool]:
        return {
            name: tool
            for name, tool in self._tools().items()
            if (allowed is None or name in allowed)
            and not (conversation.private and tool.writes)
            and tool.is_usable(conversation)
        }


def _unknown(name: str, offered: Mapping[str, Tool]) -> InvalidInput:
    near = get_close_matches(name, offered, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"The tools are: {', '.join(offered)}."
    return InvalidInput(f"There is no tool '{one_line(name, _SHOWN_CHARS)}' here", hint)


def _limited(text: str) -> str:
    text = clean(text)
    if len(text) <= _MAX_CHARS:
        return text
    return f"{text[:_MAX_CHARS]}\n[The rest was left out: {len(text):,} characters in all.]"


def check_arguments(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with defaults; raise InvalidInput that tells the model what is wrong.

    Of JSON Schema it knows what our tools use: an object's `properties` and `required`, `default`,
    `string` with minLength and maxLength, `integer` with minimum and maximum, `boolean`.
    Arguments that are not in the schema are refused.

    Null counts as absent for an optional argument, since some models write it so.
    """
    given = _decoded(text)
    properties: Mapping[str, Mapping[str, Any]] = schema["properties"]
    required = schema.get("required", ())
    for name in given:
        if name not in properties:
            raise _unexpected(name, properties)
    checked = {}
    for name, property_schema in properties.items():
        value = given.get(name)
        if value is None:
            if name in required:
                raise InvalidInput(f"The argument '{name}' is missing", "It is required.")
            value = property_schema.get("default")
        else:
            value = _CHECKS[property_schema["type"]](name, value, property_schema)
        checked[name] = value
    return checked


def _decoded(text: str) -> dict[str, Any]:
    if len(text) > _MAX_CHARS:
        raise InvalidInput(
            f"The arguments are {len(text):,} characters long",
            f"Send at most {_MAX_CHARS:,} characters.",
        )
    try:
        decoded = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"The arguments are not valid JSON: {one_line(str(error), _SHOWN_CHARS)}",
            "Send one JSON object.",
        ) from error
    if not isinstance(decoded, dict):
        raise InvalidInput(f"The arguments are {_shown(decoded)}", "Send one JSON object.")
    return decoded


def _unexpected(name: str, properties: Mapping[str, Any]) -> InvalidInput:
    near = get_close_matches(name, properties, n=1)
    allowed = f"The arguments are: {', '.join(properties)}." if properties else "It takes none."
    hint = f"Did you mean '{near[0]}'?" if near else allowed
    return InvalidInput(f"There is no argument '{one_line(name, _SHOWN_CHARS)}'", hint)


def _string(name: str, value: Any, schema: Mapping[str, Any]) -> str:
    if not isinstance(value, str):
        raise _refusal(name, value, "a string")
    least, most = schema.get("minLength", 0), schema.get("maxLength", _MAX_CHARS)
    words = clean(value)
    if len(words.strip()) < least or len(words) > most:
        raise _refusal(name, words, f"a string of {least:,} to {most:,} characters")
    return words


def _integer(name: str, value: Any, schema: Mapping[str, Any]) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 5.0 is an integer in JSON Schema
    if isinstance(value, str) and (number := parse_whole_number(value)) is not None:
        value = number  # small models quote numbers
    least, most = schema["minimum"], schema["maximum"]
    if type(value) is not int or not least <= value <= most:
        raise _refusal(name, value, f"a whole number from {least} to {most}")
    return value


def _boolean(name: str, value: Any, _: Mapping[str, Any]) -> bool:
    if not isinstance(value, bool):
        raise _refusal(name, value, "true or false")
    return value


_CHECKS: Mapping[str, Callable[[str, Any, Mapping[str, Any]], Any]] = {
    "string": _string,
    "integer": _integer,
    "boolean": _boolean,
}


def _refusal(name: str, value: Any, wanted: str) -> InvalidInput:
    return InvalidInput(f"'{name}' cannot be {_shown(value)}", f"Give {wanted}.")


def _shown(value: Any) -> str:
    return one_line(json.dumps(value, ensure_ascii=False), _SHOWN_CHARS)
