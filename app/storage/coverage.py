"""What is known of exchanges as far as search is concerned: their passage, their vectors, failures."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.domain.conversations import ExchangeStatus
from app.domain.ids import ExchangeId, PassageId
from app.domain.workers import WorkerName
from app.storage import spaces
from app.storage.database import Connection
from app.storage.store import Store
from app.storage.times import from_db


@dataclass(frozen=True, slots=True)
class CoveredTurn:
    """An exchange with its passage as a turn; `passage_id` is None while it has none.

    `position` is the journal's that the passage was written at, `tokens` an estimate of its length,
    0 when it is incomplete. `has_vectors` is about one space; `is_empty` when there was nothing to
    embed. `tries`, `next_at` (UTC) and `error` are those of embedding that failed: None for
    `next_at` means that it was set aside.
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


def covered_turns(
    store: Store, exchange_ids: Collection[int], space_name: str | None
) -> tuple[CoveredTurn, ...]:
    """Return what is known of the exchanges that exist, by id; None for a space is none. Blocking."""

    def query(cursor: Connection) -> tuple[CoveredTurn, ...]:
        rows = cursor.execute(
            "SELECT e.id, e.status, c.private, c.deleted_at IS NOT NULL, p.id, "
            "coalesce(p.tokens, 0), coalesce(p.position, 0), coalesce(a.tries, 0), a.next_at, "
            "coalesce(a.error, '') FROM exchange e "
            "JOIN conversation c ON c.id = e.conversation_id "
            "LEFT JOIN passage p ON p.exchange_id = e.id AND p.kind = 'turn' "
            "LEFT JOIN attempt a ON a.worker = $worker AND a.item_id = p.id "
            "WHERE e.id IN (SELECT unnest($ids)) ORDER BY e.id",
            {"worker": WorkerName.EMBEDDING_PIPELINE.value, "ids": list(exchange_ids)},
        ).fetchall()
        has = _vectors(cursor, space_name, [row[4] for row in rows if row[4] is not None])
        return tuple(_turn(row, has.get(row[4])) for row in rows)

    return store.read(query)


def _vectors(
    cursor: Connection, space_name: str | None, passages: list[int]
) -> Mapping[int | None, bool]:
    """Return, by passage that was embedded, whether there was nothing in it to embed."""
    if not passages or space_name is None or space_name not in spaces.spaces_to_read(cursor):
        return {}
    rows = cursor.execute(
        f"SELECT passage_id, vector IS NULL FROM {spaces.table_of(space_name)} "
        "WHERE chunk_number = 0 AND passage_id IN (SELECT unnest(?))",
        [passages],
    ).fetchall()
    return dict(rows)


def _turn(row: tuple[Any, ...], is_empty: bool | None) -> CoveredTurn:
    exchange_id, status, private, trash, passage_id, tokens, position, tries, next_at, error = row
    return CoveredTurn(
        exchange_id,
        ExchangeStatus(str(status)),
        bool(private),
        bool(trash),
        passage_id,
        tokens,
        position,
        has_vectors=is_empty is False,
        is_empty=is_empty is True,
        tries=tries,
        next_at=from_db(next_at),
        error=str(error),
    )
