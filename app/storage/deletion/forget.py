"""Forgetting: removing conversations from the database file, the journal and the backups.

Deleting rows leaves their text in the file (reliability F6); only copying the database into a new
file removes it. A kill may come after any step: the database records what is pending, and
`finish_forgetting` continues from there.
"""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from app.domain.changes import ConversationForgotten, ExchangePut
from app.domain.errors import DiskFull
from app.domain.ids import ConversationId
from app.storage.engine.database import Connection, Database
from app.storage.engine.store import Store
from app.storage.engine.times import to_db
from app.storage.safety import image
from app.storage.safety.attachments import (
    count_as_unused,
    hashes_to_forget,
    remove_unreferenced,
)
from app.storage.safety.backup import backup_from
from app.storage.safety.image import fsync_path
from app.storage.safety.interrupted import grown_since, running_exchanges
from app.storage.safety.replay import replay
from app.system.paths import fsync_folder

_NOT_ERASED = (
    "Quotes of it by tools and Recall in other conversations were removed too. What you or a model "
    "wrote there, core memory, and forks of the conversation were not changed."
)


def forget(store: Store, conversation_ids: Iterable[ConversationId]) -> tuple[str, ...]:
    """Erase conversations and all that was derived from them; return what remains elsewhere.

    Blocking, for seconds on a large library; other writes wait only for the last step, and what
    workers derive meanwhile (`Store.write_derived`) is derived again. Indexes drop what
    `Passages.work_since` reports as removed. Raises StorageError; then at least the rows are deleted,
    and maintenance does the rest later.
    """
    ids = dict.fromkeys(conversation_ids)
    if ids:
        files = store.read(hashes_to_forget, ids)
        count_as_unused(store.paths, files)
        store.save(*map(ConversationForgotten, ids))
        finish_forgetting(store)
        if files:
            remove_unreferenced(store, files)
    return remains(store)


def purge_trash(store: Store, before: datetime) -> int:
    """Forget the conversations that were moved to the trash before a time; return how many."""
    rows = store.rows(
        "SELECT id FROM conversation WHERE deleted_at < ? ORDER BY id", [to_db(before)]
    )
    forget(store, (ConversationId(each) for (each,) in rows))
    return len(rows)


def finish_forgetting(store: Store) -> bool:
    """Remove the bytes of what was forgotten; return whether any were pending. Blocking."""
    with store.backup_lock:
        pending = store.read(_pending)
        if pending is None:
            return False
        last = store.on_writer(lambda: _begin_clean_segment(store)).result()
        _rewrite(store)
        _renew_backups(store)
        store.on_writer(lambda: store.journal.cut_behind(last)).result()
        store.write_derived(lambda connection: _record_erased(connection, pending)).result()
    return True


def remains(store: Store) -> tuple[str, ...]:
    """Return where the text of a forgotten conversation may remain, as sentences for the user."""
    copies, *damaged = remains_of_files(store)
    return (copies, _NOT_ERASED, *damaged)


def remains_of_files(store: Store) -> tuple[str, ...]:
    """Return which files may still contain forgotten text, as sentences for the user."""
    sentences = ["Exports and backups that you copied elsewhere were not changed."]
    damaged = store.paths.damaged
    if damaged.exists() and any(damaged.iterdir()):
        sentences.append(
            f"The folder '{damaged}' contains damaged files, which may include the text; "
            "delete it when you are sure that nothing is missing."
        )
    return tuple(sentences)


def _pending(cursor: Connection) -> int | None:
    """Return the journal position of the last deletion whose bytes have not been removed."""
    rows = cursor.execute(
        "SELECT key, value FROM meta WHERE key IN ('forgotten_at', 'erased_until')"
    ).fetchall()
    at = {key: int(value) for key, value in rows}
    forgotten_at = at.get("forgotten_at", 0)
    return forgotten_at if forgotten_at > at.get("erased_until", 0) else None


def _record_erased(connection: Connection, pending: int) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('erased_until', ?)", [str(pending)])


def _begin_clean_segment(store: Store) -> int:
    """Start a segment that does not need the earlier ones; return the last position of those.

    Running replies, which recovery would still need, are written once more.
    """
    running = running_exchanges(store)
    grown = grown_since(store, running) if running else {}
    store.journal.begin_segment()
    last = store.journal.last_position
    for exchange, _ in running:
        store.commit_now(ExchangePut(exchange), *grown[exchange.id])
    return last


def _rewrite(store: Store) -> None:
    """Replace the database file by a copy."""
    target = store.paths.backups / "rewritten.duckdb"
    image.remove(target)
    with store.database.snapshot_cursor() as cursor:
        _, counts = image.copy_into(cursor, target)
    image.verify(target, counts)
    store.on_writer(lambda: _swap(store, target)).result()


def _swap(store: Store, target: Path) -> None:
    """On the writer thread: replay what was written since the copy was made, then replace the file."""
    coming = Database(target, store.paths.backups)
    try:
        replay(coming, store.paths, store.uid)
        coming.checkpoint()
    finally:
        coming.close()
    if target.with_name(target.name + ".wal").exists():
        raise DiskFull("There is not enough disk space for a copy", "Free some space.")
    fsync_path(target)
    store.database.replace_file(target)
    fsync_folder(store.paths.root)


def _renew_backups(store: Store) -> None:
    """Make two new backups, then delete all others, including unfinished ones."""
    folder = store.paths.backups
    with store.database.snapshot_cursor() as cursor:
        fresh = {backup_from(cursor, folder, store.uid).path for _ in range(2)}
    for path in folder.glob("*.duckdb*"):
        if path not in fresh:
            path.unlink()
    fsync_folder(folder)
