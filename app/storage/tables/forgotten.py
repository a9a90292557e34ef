"""Uids of what was forgotten, kept for ever, so that an older export does not bring it back unasked.

They are those of conversations, facts and saved texts, and of an imported conversation also the key that
its source gives it. Messages that were forgotten alone keep their rows, and so their uids.
"""

from collections.abc import Iterable

from app.domain.changes import UidsRestored
from app.storage.engine.aggregate import Aggregate, Table
from app.storage.engine.connection import IGNORE, Connection
from app.storage.engine.store import Store

_FORGOTTEN = Table("forgotten_uid", "uid", "uid", how=IGNORE)
_KEEP = "INSERT OR IGNORE INTO forgotten_uid SELECT uid FROM "


FORGOTTEN_UIDS = Aggregate((_FORGOTTEN,), {UidsRestored: _FORGOTTEN.removes(of="uids")})


def source_key(source: str, source_id: str) -> str:
    """Return the key of a conversation of another program."""
    return f"{source}/{source_id}"


def keep_uids_of_conversations(connection: Connection, ids: list[int]) -> None:
    """Keep the uids of conversations, and of what was derived from them, while their rows exist."""
    for table, column in (
        ("conversation", "id"), ("fact", "conversation_id"), ("memory", "conversation_id")
    ):  # fmt: skip
        connection.execute(f"{_KEEP}{table} WHERE {column} IN (SELECT unnest(?))", [ids])
    connection.execute(
        "INSERT OR IGNORE INTO forgotten_uid SELECT source || '/' || source_id FROM origin "
        "WHERE kind = 'conversation' AND local_id IN (SELECT unnest(?))",
        [ids],
    )


def keep_uids(connection: Connection, table: str, ids: list[int]) -> None:
    """Keep the uids of facts or memories while their rows exist."""
    connection.execute(f"{_KEEP}{table} WHERE id IN (SELECT unnest(?))", [ids])


def forgotten_uids(store: Store, among: Iterable[str]) -> frozenset[str]:
    """Return which uids and keys are of something that was forgotten. Blocking."""
    return frozenset(store.column_in("forgotten_uid", "uid", among, "uid"))
