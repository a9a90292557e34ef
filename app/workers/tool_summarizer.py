"""The tool-call summariser: a line for each tool call, so that what was done can be found."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.changes import Change, PassagesPut, SpendAdded, ToolSummaryPut
from app.domain.events import Changed
from app.domain.ids import PassageId
from app.domain.passages import Passage, PassageKind
from app.domain.text import one_line
from app.domain.turn_text import content_hash, estimate_tokens
from app.domain.workers import WorkerName
from app.storage.store import Store
from app.storage.tally import Tally
from app.storage.times import now
from app.storage.tool_call_work import ToolCallWork, WaitingCall
from app.workers.background_model import MODEL_KEYS
from app.workers.job import IsCancelled, Pace, Saved
from app.workers.open_conversation import OpenConversation
from app.workers.summary_records import ledger_of
from app.workers.tool_lines import ToolLines

_AT_ONCE = 10
_POLL_S = 60.0
_CONCERNED = frozenset(("summarizer_quiet_minutes",)) | MODEL_KEYS


@dataclass(frozen=True, slots=True)
class Summed:
    """Calls, their lines with who wrote each, and what that did cost."""

    calls: tuple[WaitingCall, ...]
    lines: tuple[tuple[str, str], ...]
    spent: tuple[SpendAdded, ...]


class ToolSummarizer:
    """A `Job`: ten calls at a time, in one request where a model writes, stored before the next.

    In the open conversation calls wait until 50 messages came after them.
    """

    name = WorkerName.TOOL_SUMMARIZER
    pace = Pace(_AT_ONCE, save_items=1)

    def __init__(self, store: Store, lines: ToolLines, opened: OpenConversation) -> None:
        self._store = store
        self._lines = lines
        self._opened = opened
        self._work = ToolCallWork(store)

    def find(self, at: datetime) -> Sequence[WaitingCall]:
        """Return the newest calls without a line, at most ten."""
        return self._work.calls(_AT_ONCE, self._opened.left_alone(at), at)

    def item_id(self, item: WaitingCall) -> int:
        """Return the call's number."""
        return item.id

    def describe(self, item: WaitingCall) -> str:
        """Return the tool's name."""
        return one_line(item.call.name, 60)

    def make(self, items: Sequence[WaitingCall], is_cancelled: IsCancelled) -> Summed:
        """Return a line for each call."""
        made = self._lines.of(items, is_cancelled)
        return Summed(tuple(items), made.lines, made.spent)

    def save(self, results: Sequence[Summed]) -> Saved:
        """Store lines and passages of calls that still are part of their exchange."""
        spent = [each for result in results for each in result.spent]
        pairs = [
            pair for result in results for pair in zip(result.calls, result.lines, strict=True)
        ]

        def commit() -> Saved:
            exchanges = {call.exchange_id for call, _ in pairs}
            there = self._work.still_there(exchanges)
            kept = [pair for pair in pairs if (pair[0].exchange_id, pair[0].message_id) in there]
            changes: list[Change] = [*spent]
            if old := self._work.left_behind(exchanges):
                changes.append(PassagesPut(replaced=old))
            for call, (line, model) in kept:
                changes += _records(self._store.ids.passage(), call, line, model)
            if changes:
                self._store.commit_now(*changes)
            return Saved(len(kept), len(pairs) - len(kept), ledger_of(spent))

        return self._store.on_writer(commit).result()

    def tally(self) -> Tally:
        """Return how many calls there are and how many have their line."""
        return self._work.tally()

    def poll_interval_s(self) -> float:
        """Return a minute."""
        return _POLL_S

    def wakes_for(self, changed: Changed) -> bool:
        """Return whether an exchange ended, or a conversation left the trash or changed."""
        return bool(
            changed.turns_completed
            or changed.conversations
            or changed.providers
            or changed.settings & _CONCERNED
        )

    def waiting_words(self, count: int) -> str:
        """Return how many calls wait, in words."""
        return (
            "1 tool call waits to be summed up"
            if count == 1
            else (f"{count:,} tool calls wait to be summed up")
        )


def _records(passage_id: PassageId, call: WaitingCall, line: str, model: str) -> list[Change]:
    put = ToolSummaryPut(
        passage_id, call.conversation_id, call.exchange_id, call.message_id, call.number, line,
        model, now(),
    )  # fmt: skip
    passage = Passage(
        id=passage_id,
        kind=PassageKind.TOOL_SUMMARY,
        source_id=passage_id,
        conversation_id=call.conversation_id,
        exchange_id=call.exchange_id,
        content_hash=content_hash(line),
        created_at=call.called_at,
        tokens=estimate_tokens(line),
    )
    return [put, PassagesPut((passage,))]
