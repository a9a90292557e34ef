"""Queries about summaries. What still lacks one is `app.storage.summary_work`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.storage.store import Store
from app.storage.times import from_db


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of an exchange or a conversation.

    `model` is "extractive", "user" or PROVIDER:MODEL; `made_at`, UTC, names the version.
    """

    source_id: int
    text: str
    model: str
    made_at: datetime


class Summaries:
    """Reads summaries. Blocking: for worker threads and the command line."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def latest(self, kind: str, source_ids: Iterable[int]) -> Mapping[int, Summary]:
        """Return the latest summaries of kind "exchange" or "conversation", by source id."""
        wanted = list(source_ids)
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT source_id, text, model, made_at FROM summary WHERE kind = ? AND latest "
                "AND source_id IN (SELECT unnest(?))",
                [kind, wanted],
            ).fetchall()
        )
        return {row[0]: Summary(row[0], row[1], row[2], from_db(row[3])) for row in rows}

    def versions(self, kind: str, source_id: int) -> Sequence[Summary]:
        """Return every summary that an exchange or a conversation had, the newest first."""
        return self.versions_of(kind, [source_id]).get(source_id, ())

    def versions_of(self, kind: str, source_ids: Iterable[int]) -> Mapping[int, Sequence[Summary]]:
        """Return the same for several, by source id."""
        wanted = list(source_ids)
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT source_id, text, model, made_at FROM summary WHERE kind = ? "
                "AND source_id IN (SELECT unnest(?)) ORDER BY source_id, latest DESC, made_at DESC",
                [kind, wanted],
            ).fetchall()
        )
        found: dict[int, list[Summary]] = {}
        for row in rows:
            found.setdefault(row[0], []).append(Summary(row[0], row[1], row[2], from_db(row[3])))
        return found
