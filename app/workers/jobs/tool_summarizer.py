"""The tool-call summarizer: one searchable line for each tool call."""

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.changes import Change, PassagesPut, SpendAdded, ToolSummaryPut
from app.domain.passages import PassageKind
from app.domain.text import clean, one_line
from app.domain.turns import text_passage
from app.domain.workers import WorkerName
from app.language.extractive import MODEL
from app.storage.engine.stamps import now
from app.storage.work.queue import Tally
from app.storage.work.tool_call_work import ToolCallWork, WaitingCall
from app.workers.background_model import MODEL_KEYS
from app.workers.job_interface import CONVERSATIONS, IsCancelled, Job, Pace, Saved
from app.workers.jobs import JobParts
from app.workers.progress import total_usage
from app.workers.prompts_and_answers import Quoted, fill_prompt, list_schema

LINE_LIMIT_CHARS = 240
_ARGUMENT_LIMIT_CHARS = 60
_MOST_ARGUMENTS = 4
_SHORT_RESULT_CHARS = 80
_RESULT_READS_CHARS = 1_500
_ARGUMENTS_READ_CHARS = 800
# Their results come from memory: a summary would be recalled as if it were new.
_OF_MEMORY = frozenset(
    ("fetch_conversation_details", "conversation_search", "memory_search", "memory_save",
     "core_memory_append", "core_memory_replace")
)  # fmt: skip
_SCHEMA = list_schema("lines", call={"type": "integer"}, text={"type": "string"})


def extractive_line(call: WaitingCall) -> str:
    """Return "read_file path=notes.txt -> 120 lines"."""
    asked = one_line(f"{call.call.name} {_arguments(call.call.arguments)}".strip(), 180)
    return one_line(clean(f"{asked} -> {_result_text(call)}"), LINE_LIMIT_CHARS)


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


def _result_text(call: WaitingCall) -> str:
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
    result = call.result
    if result is None or call.call.name in _OF_MEMORY:
        answer = _result_text(call)
    else:
        answer = f"{'error: ' if result.is_error else ''}{result.text[:_RESULT_READS_CHARS]}"
    return f"{call.call.name} {call.call.arguments[:_ARGUMENTS_READ_CHARS]}\n-> {answer}"


_BATCH = 10


@dataclass(frozen=True, slots=True)
class Summed:
    """Calls, their lines with the author of each, and the cost."""

    calls: tuple[WaitingCall, ...]
    lines: tuple[tuple[str, str], ...]
    spent: tuple[SpendAdded, ...] = ()


class ToolSummarizer(Job[WaitingCall, Summed]):
    """A `Job`: ten calls at a time, in one request if a model is chosen, stored before the next.

    In the open conversation, calls wait until 50 messages have followed.
    """

    name = WorkerName.TOOL_SUMMARIZER
    pace = Pace(_BATCH, save_items=1)
    wakes_on = CONVERSATIONS | MODEL_KEYS.union(("summarizer_quiet_minutes",))

    def __init__(self, parts: JobParts) -> None:
        self._store = parts.store
        self._model = parts.model
        self._opened = parts.open_conversation
        self._work = ToolCallWork(parts.store)

    def find(self, at: datetime) -> Sequence[WaitingCall]:
        """Return the newest calls without a line, at most ten."""
        return self._work.calls(_BATCH, self._opened.skipped(at), at)

    def content(self, item: WaitingCall) -> Hashable:
        return item if self._model is not None and self._model.model else None

    def describe(self, item: WaitingCall) -> str:
        return one_line(item.call.name, 60)

    def make(self, items: Sequence[WaitingCall], is_cancelled: IsCancelled) -> Summed:
        """Return a line for each call; the extractive one for a call that the model leaves out.

        Raises as `ModelClient.ask`.
        """
        calls, model = tuple(items), self._model
        own = tuple((extractive_line(call), MODEL) for call in calls)
        if model is None or not model.model:
            return Summed(calls, own)
        quoted = [Quoted(f"call {number}", _shown(call)) for number, call in enumerate(calls, 1)]
        prompt = fill_prompt("tool_calls", quoted)
        answer = model.ask(prompt, self.name, is_cancelled, _SCHEMA)
        found = {
            each["call"]: one_line(clean(each["text"]), LINE_LIMIT_CHARS)
            for each in answer.fields["lines"]
        }
        lines = tuple(
            (found[number], answer.model) if found.get(number) else line
            for number, line in enumerate(own, 1)
        )
        return Summed(calls, lines, (answer.spent,))

    def save(self, results: Sequence[Summed]) -> Saved:
        """Store lines and passages of calls that are still part of their exchange."""
        spent = [each for result in results for each in result.spent]
        pairs = [
            pair for result in results for pair in zip(result.calls, result.lines, strict=True)
        ]

        def commit() -> Saved:
            exchanges = {call.exchange_id for call, _ in pairs}
            there = self._work.existing_calls(exchanges)
            kept = [pair for pair in pairs if (pair[0].exchange_id, pair[0].message_id) in there]
            changes: list[Change] = [*spent]
            if old := self._work.orphaned_summaries(exchanges):
                changes.append(PassagesPut(replaced=old))
            for call, (line, model) in kept:
                own, of = self._store.ids.passage(), (call.conversation_id, call.exchange_id)
                put = ToolSummaryPut(own, *of, call.message_id, call.number, line, model, now())
                kind = PassageKind.TOOL_SUMMARY
                passage = text_passage(own, kind, own, *of, line, call.called_at)
                changes += [put, PassagesPut((passage,))]
            if changes:
                self._store.commit_now(*changes)
            return Saved(len(kept), len(pairs) - len(kept), total_usage(spent))

        return self._store.on_writer(commit).result()

    def tally(self) -> Tally:
        """Return the counts of calls and of those with a line."""
        return self._work.tally()


build = ToolSummarizer
