"""After a kill: requests that were under way may have been paid for, and count as if they had been.

Only one process works on a database at a time (`app.system`'s lock), so what a start finds here is
nobody's.
"""

from app.domain.changes import SpendAdded
from app.storage.database import Connection
from app.storage.store import Store
from app.storage.times import from_db


def end_held_spend(store: Store) -> int:
    """Put on record the most that requests may have cost which no answer ended; return how many.

    In one commit, so that a kill in between counts none twice. Blocking; raises StorageError.
    """
    ended = store.read(_as_spend)
    if ended:
        store.save(*ended)
    return len(ended)


def _as_spend(cursor: Connection) -> list[SpendAdded]:
    rows = cursor.execute(
        "SELECT held_at, purpose, model, input_tokens, output_tokens, cost_usd, uid FROM spend_held "
        "ORDER BY position, uid"
    ).fetchall()
    return [
        SpendAdded(
            from_db(at), purpose, model, given, made, 0, cost_usd, held=uid, is_estimated=True
        )
        for at, purpose, model, given, made, cost_usd, uid in rows
    ]
