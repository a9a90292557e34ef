"""Failed attempts of workers: when an item is tried again, and what it is.

The rows are derived: losing them costs a few more tries. `error` never quotes a conversation.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.workers import WORKERS, FailedItem, ItemKind, WorkerName
from app.storage.engine.aggregate import OF_CONVERSATIONS, Aggregate, reader
from app.storage.engine.connection import Connection
from app.storage.engine.stamps import from_db, to_db
from app.storage.engine.store import Store, StoreReader

CALLS_PER_MESSAGE = 1_000  # a tool call's item id is its message's id times this, plus its number
_VISIBLE = "NOT c.private AND c.deleted_at IS NULL"


_CONVERSATION = "JOIN conversation c ON c.id ="


@dataclass(frozen=True, slots=True)
class _Items:
    """What the items of one kind are, as expressions.

    `joins` joins the table of attempts (a) to what `title` and `detail` are read from; `erased` selects
    the attempts at items of forgotten conversations, whose ids are $1.
    """

    title: str = "c.title"
    detail: str = "''"
    joins: str = ""
    erased: str = "false"

    @property
    def listed(self) -> str:
        """The attempts with their items, as a query."""
        return f"SELECT a.*, {self.title} AS title, {self.detail} AS detail FROM attempt a {self.joins}"


_ITEMS: Mapping[ItemKind, _Items] = {
    ItemKind.EXCHANGE: _Items(
        detail="'turn ' || (e.turn_number + 1)",
        joins="JOIN exchange e ON e.id = a.item_id "
        f"{_CONVERSATION} e.conversation_id AND {_VISIBLE}",
        erased=f"item_id IN (SELECT id FROM exchange WHERE {OF_CONVERSATIONS})",
    ),
    ItemKind.CONVERSATION: _Items(
        joins=f"{_CONVERSATION} a.item_id AND {_VISIBLE}", erased="item_id IN (SELECT unnest($1))"
    ),
    ItemKind.PASSAGE: _Items(
        "coalesce(c.title, w.name, '')",
        "replace(p.kind, '_', ' ')",
        f"JOIN passage p ON p.id = a.item_id LEFT {_CONVERSATION} p.conversation_id "
        "LEFT JOIN document_chunk d ON p.kind IN ('man_page', 'document') AND d.id = p.source_id "
        "LEFT JOIN document w ON w.id = d.document_id "
        f"WHERE p.conversation_id IS NULL OR ({_VISIBLE})",
        f"item_id IN (SELECT id FROM passage WHERE {OF_CONVERSATIONS})",
    ),
    ItemKind.TOOL_CALL: _Items(
        detail="'tool call'",
        joins=f"JOIN message m ON m.id = a.item_id // {CALLS_PER_MESSAGE} "
        f"{_CONVERSATION} m.conversation_id AND {_VISIBLE}",
        erased=f"item_id // {CALLS_PER_MESSAGE} IN (SELECT id FROM message WHERE {OF_CONVERSATIONS})",
    ),
    **dict.fromkeys(
        (ItemKind.MANUAL_PAGE, ItemKind.DOCUMENT),
        _Items("coalesce(w.name, 'The list')", joins="LEFT JOIN document w ON w.id = a.item_id"),
    ),
    ItemKind.PROFILE: _Items("'The profile'"),
    ItemKind.SESSION_FILE: _Items("'A session file'"),
    ItemKind.ROUTINE: _Items("'A routine'"),
}
_UNKNOWN = _Items("'Item ' || a.item_id").listed
_LISTED: Mapping[str, str] = {name: _ITEMS[spec.items].listed for name, spec in WORKERS.items()}


def _erase(connection: Connection, ids: list[int], _position: int) -> None:
    """Delete the attempts at items of conversations.

    Of a worker whose items are not known here all attempts go, since any may be such an item.
    """
    for kind, items in _ITEMS.items():
        workers = [name.value for name, spec in WORKERS.items() if spec.items is kind]
        connection.execute(
            f"DELETE FROM attempt WHERE worker IN (SELECT unnest($2)) AND ({items.erased}) "
            "AND len($1) > 0",
            [ids, workers],
        )
    connection.execute(
        "DELETE FROM attempt WHERE worker NOT IN (SELECT unnest(?))", [list(_LISTED)]
    )


ATTEMPTS = Aggregate((), erase=_erase)


class Attempts:
    """The failed attempts of one worker, by item. Blocking: for worker threads, the command line."""

    def __init__(self, store: Store, worker: str) -> None:
        self._store = store
        self._worker = worker

    def tries(self) -> Mapping[int, int]:
        """Return how often each item has failed; those that never did are absent."""
        return dict(
            self._store.rows("SELECT item_id, tries FROM attempt WHERE worker = ?", [self._worker])
        )

    def next_try(self, item_id: int) -> tuple[datetime | None] | None:
        """Return when a failed item is tried again (UTC), (None,) for never; None if it never failed."""
        statement = "SELECT next_at FROM attempt WHERE worker = ? AND item_id = ?"
        found = self._store.column(statement, [self._worker, item_id])
        return (from_db(found[0]),) if found else None

    def is_postponed(self, item_id: int, at: datetime) -> bool:
        """Return whether an item is not to be tried at some time (UTC), or never."""
        retry = self.next_try(item_id)
        return retry is not None and (retry[0] is None or retry[0] > at)

    def failed(self, item_id: int, tries: int, next_at: datetime | None, error: str) -> None:
        """Record a failure; with `next_at` (UTC) None the item is abandoned."""
        statement = "INSERT OR REPLACE INTO attempt VALUES (?, ?, ?, ?, ?)"
        self._execute(statement, item_id, tries, to_db(next_at), error)

    def settle(self, item_ids: Collection[int]) -> None:
        """Delete the failures of items that succeeded in the end."""
        chosen = "DELETE FROM attempt WHERE worker = ? AND item_id IN (SELECT unnest(?))"
        self._execute(chosen, list(item_ids))

    def retry_now(self, at: datetime) -> None:
        """Let items that wait for their next try have it `at` (UTC); abandoned items stay so."""
        waiting = "UPDATE attempt SET next_at = $2 WHERE worker = $1 AND next_at IS NOT NULL"
        self._execute(waiting, to_db(at))

    def clear_failures(self) -> None:
        """Let every item be tried again at once, as if it had never failed."""
        self._execute("DELETE FROM attempt WHERE worker = ?")

    def _execute(self, statement: str, *values: object) -> None:
        given = [self._worker, *values]
        self._store.write_derived(lambda connection: connection.execute(statement, given)).result()


class FailedItems(StoreReader):
    """Reads the retry queue. Blocking."""

    def of(self, worker: WorkerName, limit: int) -> Sequence[FailedItem]:
        """Return what a worker failed at: what is tried again first, then abandoned items.

        Items that are deleted, in the trash or private are left out.
        """
        rows = self._store.rows(
            "SELECT item_id, title, detail, tries, next_at, error "
            f"FROM ({_LISTED.get(worker, _UNKNOWN)}) WHERE worker = $worker "
            "ORDER BY next_at NULLS LAST, item_id DESC LIMIT $limit",
            {"worker": worker, "limit": limit},
        )
        return tuple(map(reader(FailedItem), rows))
