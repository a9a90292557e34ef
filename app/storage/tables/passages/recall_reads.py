"""Reads for recall: passages, headers of conversations, and the search coverage of turns."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from app.domain.conversations import ExchangeStatus
from app.domain.ids import ConversationId, ExchangeId, PassageId
from app.domain.passages import Passage
from app.domain.workers import WorkerName
from app.storage.engine.aggregate import columns_of, reader
from app.storage.engine.connection import Connection
from app.storage.engine.stamps import from_db
from app.storage.engine.store import StoreReader, in_snapshot
from app.storage.tables.passages import spaces


@dataclass(frozen=True, slots=True)
class ConversationHeader:
    """A conversation as recall shows it; `summary` is "" for none."""

    title: str
    started_at: datetime
    summary: str
    exchange_count: int


class RecallReads(StoreReader):
    """Reads for recall; each table is read by ids, nothing is joined. Blocking."""

    def heads(self, ids: Iterable[int]) -> Mapping[PassageId, Passage]:
        """Return the passages that exist among `ids`."""
        rows = self._store.select_in("passage", columns_of(Passage), ids)
        return {each.id: each for each in map(reader(Passage), rows)}

    @in_snapshot
    def talks(
        self, cursor: Connection, ids: Iterable[int]
    ) -> Mapping[ConversationId, ConversationHeader]:
        """Return the headers of the conversations that exist among `ids`."""
        wanted, latest, key = list(ids), "AND latest AND kind = 'conversation'", "conversation_id"
        texts: dict[int, str] = dict(
            cursor.select_in("summary", "source_id, text", wanted, "source_id", latest)
        )
        counts: dict[int, int] = dict(
            cursor.select_in("exchange", f"{key}, count(*)", wanted, key, "GROUP BY 1")
        )
        headers = cursor.select_in("conversation", "id, title, created_at", wanted)
        return {
            each: ConversationHeader(title, from_db(at), texts.get(each, ""), counts.get(each, 0))
            for each, title, at in headers
        }

    def turns_of(self, exchange_ids: Iterable[int]) -> frozenset[PassageId]:
        turns = "AND kind = 'turn'"
        given = ("passage", "id", exchange_ids, "exchange_id", turns)
        return frozenset(self._store.column_in(*given))


# -- coverage


@dataclass(frozen=True, slots=True)
class CoveredTurn:
    """An exchange with its passage as a turn; `passage_id` is None while it has none.

    `position` is the journal's that the passage was written at, `tokens` an estimate of its length,
    0 when it is incomplete. `has_vectors` is about one space; `is_empty` when there was nothing to
    embed. `tries`, `next_at` (UTC) and `error` are those of embedding that failed: None for
    `next_at` means that it was abandoned.
    """

    exchange_id: ExchangeId
    status: ExchangeStatus
    is_private: bool
    is_in_trash: bool
    passage_id: PassageId | None
    tokens: int
    position: int
    has_vectors: bool = False
    is_empty: bool = False
    tries: int = 0
    next_at: datetime | None = None
    error: str = ""


_turn = reader(CoveredTurn)


def covered_turns(
    cursor: Connection, exchange_ids: Collection[int], space_name: str | None
) -> tuple[CoveredTurn, ...]:
    """Return the search coverage of the exchanges that exist, by id.

    `space_name` is None when no space is in use.
    """
    rows = cursor.rows(
        "SELECT e.id, e.status, c.private, c.deleted_at IS NOT NULL, p.id, "
        "coalesce(p.tokens, 0), coalesce(p.position, 0), coalesce(a.tries, 0), a.next_at, "
        "coalesce(a.error, '') FROM exchange e "
        "JOIN conversation c ON c.id = e.conversation_id "
        "LEFT JOIN passage p ON p.exchange_id = e.id AND p.kind = 'turn' "
        "LEFT JOIN attempt a ON a.worker = $worker AND a.item_id = p.id "
        "WHERE e.id IN (SELECT unnest($ids)) ORDER BY e.id",
        {"worker": WorkerName.EMBEDDING_PIPELINE.value, "ids": list(exchange_ids)},
    )
    passages = [row[4] for row in rows if row[4] is not None]
    has: dict[int | None, bool] = {}  # whether there was nothing in it to embed
    if passages and space_name is not None and space_name in spaces.space_names(cursor):
        table, rest = spaces.table_of(space_name), "AND chunk_number = 0"
        columns = "passage_id, vector IS NULL"
        has = dict(cursor.select_in(table, columns, passages, "passage_id", rest))
    return tuple(
        _turn((*row[:7], has.get(row[4]) is False, has.get(row[4]) is True, *row[7:]))
        for row in rows
    )
