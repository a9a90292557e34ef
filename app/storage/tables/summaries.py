"""Summaries of exchanges, conversations and tool calls: rows and queries.

What still lacks a summary is in `app.storage.work`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

from app.domain.changes import SummaryPut, ToolSummaryPut
from app.domain.ids import summary_uid
from app.storage.engine.aggregate import (
    OF_CONVERSATIONS,
    Aggregate,
    Batch,
    Rule,
    State,
    Table,
    columns_of,
    reader,
    reference,
    row_of,
)
from app.storage.engine.connection import Connection, grouped
from app.storage.engine.store import StoreReader
from app.storage.tables.passages.rows import passage_source

_SUMMARY = Table(
    "summary",
    "kind, source_id, made_at, conversation_id, text, model, source_hash, uid, latest",
    "kind, source_id, made_at",
    OF_CONVERSATIONS,
)
_TOOL_SUMMARY = Table("tool_summary", columns_of(ToolSummaryPut), erased=OF_CONVERSATIONS)


def _put(batch: Batch, change: SummaryPut) -> None:
    uid = change.uid or summary_uid(change.kind, change.source_id, change.made_at)
    row = row_of(change, _SUMMARY.columns.removesuffix(", latest"), uid=uid)
    batch.rows["summary"][row[:3]] = row
    batch.rows["latest_summary"][row[:2]] = row[2]


def _write(connection: Connection, batch: Batch, _state: State) -> None:
    """Keep every version; mark the newest of each source as the latest."""
    _TOOL_SUMMARY.write(connection, batch.rows["tool_summary"])
    if not (latest := batch.rows["latest_summary"]):
        return
    connection.execute(
        "UPDATE summary SET latest = false WHERE latest AND (kind, source_id) IN "
        "(SELECT (unnest($1), unnest($2)))",
        [list(part) for part in zip(*latest, strict=True)],
    )
    rows = batch.rows["summary"].items()
    _SUMMARY.write(connection, {key: (*row, latest[row[0], row[1]] == row[2]) for key, row in rows})


SUMMARIES = Aggregate(
    (_SUMMARY, _TOOL_SUMMARY),
    {SummaryPut: _put, ToolSummaryPut: _TOOL_SUMMARY.puts()},
    _write,
    rules=(
        reference("summary.conversation_id", "conversation", "delete"),
        reference("summary.source_id", "exchange", "delete", where="kind = 'exchange'"),
        Rule(
            "summary.latest",
            "The summaries of {} have no latest one, or several.",
            "SELECT kind || ' ' || source_id FROM summary GROUP BY kind, source_id "
            "HAVING count(*) FILTER (latest) <> 1",
            "UPDATE summary SET latest = made_at = (SELECT max(s.made_at) FROM summary s "
            "WHERE s.kind = summary.kind AND s.source_id = summary.source_id) "
            "WHERE kind || ' ' || source_id IN (SELECT unnest($1))",
        ),
        Rule(
            "passage.summary",
            "The passage {} belongs to a summary that does not exist.",
            "SELECT p.id FROM passage p ANTI JOIN summary s "
            "ON s.kind || '_summary' = p.kind AND s.source_id = p.source_id AND s.latest "
            "WHERE p.kind IN ('exchange_summary', 'conversation_summary')",
            drops_passages=True,
        ),
        reference("tool_summary.exchange_id", "exchange", "delete", by_row=True),
        reference("tool_summary.message_id", "message", "delete", by_row=True),
        passage_source("tool_summary", "tool_summary"),
    ),
)


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of an exchange or a conversation.

    `model` is "extractive", "user" or PROVIDER:MODEL; `made_at`, UTC, names the version.
    """

    source_id: int
    text: str
    model: str
    made_at: datetime


class Summaries(StoreReader):
    """Reads summaries. Blocking: for worker threads and the command line."""

    def latest(self, kind: str, source_ids: Iterable[int]) -> Mapping[int, Summary]:
        """Return the latest summaries of kind "exchange" or "conversation", by source id."""
        found = self.versions_of(kind, source_ids, "AND latest")
        return {each: versions[0] for each, versions in found.items()}

    def versions(self, kind: str, source_id: int) -> Sequence[Summary]:
        """Return every summary that an exchange or a conversation had, the newest first."""
        return self.versions_of(kind, [source_id]).get(source_id, ())

    def versions_of(
        self, kind: str, source_ids: Iterable[int], condition: str = ""
    ) -> Mapping[int, Sequence[Summary]]:
        """Return the same for several, by source id; `condition` is a clause of ours."""
        rows = self._store.rows(
            f"SELECT source_id, text, model, made_at FROM summary WHERE kind = ? {condition} "
            "AND source_id IN (SELECT unnest(?)) ORDER BY source_id, latest DESC, made_at DESC",
            [kind, list(source_ids)],
        )
        return grouped(map(reader(Summary), rows), attrgetter("source_id"))
