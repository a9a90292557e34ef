"""Queries about summaries and about what still lacks one, for the workers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from app.domain.ids import ConversationId, ExchangeId
from app.storage.store import Store
from app.storage.times import from_db, now, to_db


@dataclass(frozen=True, slots=True)
class Summary:
    """The latest summary of an exchange or a conversation; `model` is "extractive" or PROVIDER:MODEL."""

    source_id: int
    text: str
    model: str
    made_at: datetime


@dataclass(frozen=True, slots=True)
class Tally:
    """How much of a kind of work is done."""

    done: int
    total: int


# A conversation's summary is current while no exchange of it was completed after it was made and
# its record has not grown since: the hash says of what it was made.
_CONVERSATION_STAMP = (
    "SELECT conversation_id, count(*) || ':' || max(position) AS stamp, count(*) AS exchanges "
    "FROM exchange WHERE status = 'completed' GROUP BY conversation_id"
)


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

    def exchanges_without(
        self, limit: int, min_messages: int, open_conversation: ConversationId | None
    ) -> tuple[ExchangeId, ...]:
        """Return completed exchanges that lack a summary, newest first.

        Left out: private conversations and those in the trash, the open one, exchanges with fewer
        messages than `min_messages`, and those that a worker set aside or waits for.
        """
        rows = self._store.read(
            lambda cursor: cursor.execute(
                f"SELECT e.id {_EXCHANGES_TO_DO} AND s.source_id IS NULL "
                "AND e.conversation_id IS DISTINCT FROM ? "
                "AND (a.item_id IS NULL OR a.next_at <= ?) "
                "ORDER BY e.id DESC LIMIT ?",
                [min_messages, open_conversation, to_db(now()), limit],
            ).fetchall()
        )
        return tuple(each for (each,) in rows)

    def exchange_tally(self, min_messages: int) -> Tally:
        """Return how many exchanges that should have a summary have one."""
        row = self._store.read(
            lambda cursor: cursor.execute(
                f"SELECT count(s.source_id), count(*) {_EXCHANGES_TO_DO}", [min_messages]
            ).fetchone()
        )
        return Tally(*(row or (0, 0)))

    def conversations_without(
        self, limit: int, min_exchanges: int, open_conversation: ConversationId | None
    ) -> tuple[tuple[ConversationId, str], ...]:
        """Return (id, stamp) of conversations whose summary is missing or out of date.

        The stamp goes into `SummaryPut.source_hash`. Latest changed first; left out as above.
        """
        rows = self._store.read(
            lambda cursor: cursor.execute(
                # WORKAROUND(duckdb 2.0.0): without MATERIALIZED the LIMIT is lost on the way.
                f"WITH waiting AS MATERIALIZED (SELECT c.id, t.stamp, c.updated_at "
                f"{_CONVERSATIONS_TO_DO} "
                "AND s.source_hash IS DISTINCT FROM t.stamp AND c.id IS DISTINCT FROM ? "
                "AND (a.item_id IS NULL OR a.next_at <= ?)) "
                "SELECT id, stamp FROM waiting ORDER BY updated_at DESC, id DESC LIMIT ?",
                [min_exchanges, open_conversation, to_db(now()), limit],
            ).fetchall()
        )
        return tuple(rows)

    def conversation_tally(self, min_exchanges: int) -> Tally:
        """Return how many conversations that should have a current summary have one."""
        row = self._store.read(
            lambda cursor: cursor.execute(
                f"SELECT count(*) FILTER (s.source_hash = t.stamp), count(*) {_CONVERSATIONS_TO_DO}",
                [min_exchanges],
            ).fetchone()
        )
        return Tally(*(row or (0, 0)))


_EXCHANGES_TO_DO = (
    "FROM exchange e JOIN conversation c ON c.id = e.conversation_id "
    "LEFT JOIN summary s ON s.kind = 'exchange' AND s.source_id = e.id AND s.latest "
    "LEFT JOIN attempt a ON a.worker = 'exchange_summarizer' AND a.item_id = e.id "
    "WHERE e.status = 'completed' AND NOT c.private AND c.deleted_at IS NULL "
    "AND (SELECT count(*) FROM exchange_message l WHERE l.exchange_id = e.id) >= ?"
)
_CONVERSATIONS_TO_DO = (
    f"FROM conversation c JOIN ({_CONVERSATION_STAMP}) t ON t.conversation_id = c.id "
    "LEFT JOIN summary s ON s.kind = 'conversation' AND s.source_id = c.id AND s.latest "
    "LEFT JOIN attempt a ON a.worker = 'conversation_summarizer' AND a.item_id = c.id "
    "WHERE NOT c.private AND c.deleted_at IS NULL AND t.exchanges >= ?"
)
