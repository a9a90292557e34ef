"""One line for each tool call: what was asked of which tool and what came back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.domain.changes import SpendAdded
from app.domain.text import clean, one_line
from app.domain.workers import WorkerName
from app.providers.extractive import MODEL
from app.storage.tool_call_work import WaitingCall
from app.workers.background_model import AsksModel
from app.workers.job import IsCancelled
from app.workers.prompts import Quoted, prompt
from app.workers.structured import Schema

LINE_LIMIT_CHARS = 240
_ARGUMENT_LIMIT_CHARS = 60
_MOST_ARGUMENTS = 4
_SHORT_RESULT_CHARS = 80
_RESULT_READS_CHARS = 1_500
_ARGUMENTS_READ_CHARS = 800
# What these bring back is memory's own: summed up, it would be recalled as if it were new.
_OF_MEMORY = frozenset(
    ("fetch_conversation_details", "conversation_search", "memory_search", "memory_save",
     "core_memory_append", "core_memory_replace")
)  # fmt: skip
_SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"call": {"type": "integer"}, "text": {"type": "string"}},
                "required": ["call", "text"],
            },
        }
    },
    "required": ["lines"],
}


@dataclass(frozen=True, slots=True)
class Lines:
    """A line for each call, with who wrote it; what that did cost."""

    lines: tuple[tuple[str, str], ...]
    spent: tuple[SpendAdded, ...] = field(default=())


class ToolLines:
    """Writes lines: extractive ones, or a model's where one is given and chosen. Blocking."""

    def __init__(self, model: AsksModel | None = None) -> None:
        self._model = model

    def of(self, calls: Sequence[WaitingCall], is_cancelled: IsCancelled) -> Lines:
        """Return one line for each call, in order. Raises as `AsksModel.ask`.

        A call that the model says nothing about gets the extractive line.
        """
        own = tuple((extractive_line(call), MODEL) for call in calls)
        if self._model is None or not self._model.model:
            return Lines(own)
        quoted = [Quoted(f"call {number}", _shown(call)) for number, call in enumerate(calls, 1)]
        asked = prompt("tool_calls", quoted)
        answer = self._model.ask(asked, WorkerName.TOOL_SUMMARIZER, is_cancelled, _SCHEMA)
        told = _told(answer.fields)
        lines = tuple(
            (told[number], answer.model) if told.get(number) else line
            for number, line in enumerate(own, 1)
        )
        return Lines(lines, (answer.spent,))


def extractive_line(call: WaitingCall) -> str:
    """Return "read_file path=notes.txt -> 120 lines"."""
    asked = one_line(f"{call.call.name} {_arguments(call.call.arguments)}".strip(), 180)
    return one_line(clean(f"{asked} -> {_came_back(call)}"), LINE_LIMIT_CHARS)


def _arguments(text: str) -> str:
    try:
        given = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return one_line(text, _ARGUMENT_LIMIT_CHARS)
    if not isinstance(given, dict):
        return one_line(str(given), _ARGUMENT_LIMIT_CHARS)
    shown = [
        f"{key}={one_line(str(value), _ARGUMENT_LIMIT_CHARS)}"
        for key, value in list(given.items())[:_MOST_ARGUMENTS]
    ]
    return ", ".join([*shown, "…"] if len(given) > _MOST_ARGUMENTS else shown)


def _came_back(call: WaitingCall) -> str:
    result = call.result
    if result is None:
        return "no answer"
    text = result.text.strip()
    if result.is_error:
        return f"error: {one_line(text, _SHORT_RESULT_CHARS)}" if text else "error"
    if not text:
        return "nothing"
    lines = text.count("\n") + 1
    if call.call.name not in _OF_MEMORY and lines == 1 and len(text) <= _SHORT_RESULT_CHARS:
        return text
    return f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"


def _shown(call: WaitingCall) -> str:
    """Return a call as a model reads it."""
    result = call.result
    if result is None or call.call.name in _OF_MEMORY:
        answer = _came_back(call)
    else:
        answer = f"{'error: ' if result.is_error else ''}{result.text[:_RESULT_READS_CHARS]}"
    return f"{call.call.name} {call.call.arguments[:_ARGUMENTS_READ_CHARS]}\n-> {answer}"


def _told(fields: Mapping[str, Any]) -> dict[int, str]:
    return {
        each["call"]: one_line(clean(each["text"]), LINE_LIMIT_CHARS) for each in fields["lines"]
    }
