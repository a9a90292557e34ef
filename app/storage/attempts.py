"""What a worker failed at: tried again at a time that outlives the program, or set aside."""

from collections.abc import Collection, Mapping
from datetime import datetime

from app.storage.database import Connection
from app.storage.rows import insert_rows
from app.storage.store import Store
from app.storage.times import to_db


class Attempts:
    """The failures of one worker, by item. Blocking: for worker threads and the command line.

    They are derived: losing them costs a few tries more. `error` never quotes a conversation.
    """

    def __init__(self, store: Store, worker: str) -> None:
        self._store = store
        self._worker = worker

    def tries(self) -> Mapping[int, int]:
        """Return how often each item has failed; those that never did are absent."""
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT item_id, tries FROM attempt WHERE worker = ?", [self._worker]
            ).fetchall()
        )
        return dict(rows)

    def failed(self, item_id: int, tries: int, next_at: datetime | None, error: str) -> None:
        """Note a failure; `next_at` (UTC) None sets the item aside."""
        row = (self._worker, item_id, tries, to_db(next_at), error)

        def write(connection: Connection) -> None:
            columns = "worker, item_id, tries, next_at, error"
            insert_rows(connection, "attempt", columns, [row], "INSERT OR REPLACE")

        self._store.write_derived(write).result()

    def settle(self, item_ids: Collection[int]) -> None:
        """Drop what is known of items that came through after all."""
        wanted = list(item_ids)
        self._store.write_derived(
            lambda connection: connection.execute(
                "DELETE FROM attempt WHERE worker = ? AND item_id IN (SELECT unnest(?))",
                [self._worker, wanted],
            )
        ).result()

    def hasten(self, at: datetime) -> None:
        """Let what waits for its next try have it `at` (UTC); what was set aside stays so."""
        self._store.write_derived(
            lambda connection: connection.execute(
                "UPDATE attempt SET next_at = ? WHERE worker = ? AND next_at IS NOT NULL",
                [to_db(at), self._worker],
            )
        ).result()

    def forgive(self) -> None:
        """Let every item be tried again at once, as if it had never failed."""
        self._store.write_derived(
            lambda connection: connection.execute(
                "DELETE FROM attempt WHERE worker = ?", [self._worker]
            )
        ).result()
