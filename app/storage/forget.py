"""Forget: conversations leave every byte we keep: the database's file, the journal, the backups.

Deleting rows leaves their text in the file (reliability F6): only copying the database into a new
file removes it. Any step may be the last before a kill: the database says what is still owed, and
`finish_forgetting` goes on from there.
"""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from app.domain.changes import ConversationForgotten, ExchangePut
from app.domain.errors import DiskFull
from app.domain.ids import ConversationId
from app.storage import image
from app.storage.backup import backup_from, fsync_path
from app.storage.database import Connection, Database
from app.storage.interrupted import grown_since, running_exchanges
from app.storage.replay import replay
from app.storage.store import Store
from app.storage.times import to_db
from app.system.paths import fsync_folder

_OWN_WORDS = (
    "What tools and Recall quoted of it in other conversations is gone too. What you or a model said "
    "there in words of their own, core memory, and forks of it were not touched."
)


def forget(store: Store, conversation_ids: Iterable[ConversationId]) -> tuple[str, ...]:
    """Erase conversations and all that came from them; return what remains elsewhere, in words.

    Blocking, for seconds on a large library; other writes wait only for the last step, and what
    workers derive meanwhile (`Store.write_derived`) is derived again. Indexes drop what
    `Passages.work_since` says is gone. Raises StorageError; then the conversations are deleted at
    least, and the caretaker does the rest later.
    """
    ids = dict.fromkeys(conversation_ids)
    if ids:
        store.save(*map(ConversationForgotten, ids))
        finish_forgetting(store)
    return remains(store)


def purge_trash(store: Store, before: datetime) -> int:
    """Forget the conversations that went to the trash before that time; return how many."""
    rows = store.read(
        lambda cursor: cursor.execute(
            "SELECT id FROM conversation WHERE deleted_at < ? ORDER BY id", [to_db(before)]
        ).fetchall()
    )
    forget(store, (ConversationId(each) for (each,) in rows))
    return len(rows)


def finish_forgetting(store: Store) -> bool:
    """Remove the bytes of what was forgotten; return whether there was anything to do. Blocking."""
    with store.backing_up:
        owed = store.read(_owed)
        if owed is None:
            return False
        last = store.on_writer(lambda: _begin_clean_segment(store)).result()
        _rewrite(store)
        _renew_backups(store)
        store.on_writer(lambda: store.journal.cut_behind(last)).result()
        store.write_derived(lambda connection: _settle(connection, owed)).result()
    return True


def remains(store: Store) -> tuple[str, ...]:
    """Return where the text of a forgotten conversation may still be, in words for the user."""
    copies, *damaged = remains_of_files(store)
    return (copies, _OWN_WORDS, *damaged)


def remains_of_files(store: Store) -> tuple[str, ...]:
    """Return which files may still hold anything that was forgotten, in words for the user."""
    words = ["Exports and backups that you copied elsewhere were not touched."]
    damaged = store.paths.damaged
    if damaged.exists() and any(damaged.iterdir()):
        words.append(
            f"The folder '{damaged}' keeps damaged files, which may hold the text; "
            "delete it once you miss nothing."
        )
    return tuple(words)


def _owed(cursor: Connection) -> int | None:
    """Return the journal's position of the last thing forgotten whose bytes are still there."""
    rows = cursor.execute(
        "SELECT key, value FROM meta WHERE key IN ('forgotten_at', 'erased_until')"
    ).fetchall()
    at = {key: int(value) for key, value in rows}
    forgotten_at = at.get("forgotten_at", 0)
    return forgotten_at if forgotten_at > at.get("erased_until", 0) else None


def _settle(connection: Connection, owed: int) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('erased_until', ?)", [str(owed)])


def _begin_clean_segment(store: Store) -> int:
    """Start a segment that can stand without the earlier ones; return the last position of those.

    What recovery would still need of them, replies under way, is written once more.
    """
    running = running_exchanges(store)
    grown = grown_since(store, running) if running else {}
    store.journal.begin_segment()
    last = store.journal.last_position
    for exchange, _ in running:
        store.commit_now(ExchangePut(exchange), *grown[exchange.id])
    return last


def _rewrite(store: Store) -> None:
    """Put a copy in the place of the database's file."""
    target = store.paths.backups / "rewritten.duckdb"
    image.remove(target)
    with store.database.snapshot_cursor() as cursor:
        _, counts = image.copy_into(cursor, target)
    image.verify(target, counts)
    store.on_writer(lambda: _swap(store, target)).result()


def _swap(store: Store, target: Path) -> None:
    """On the writer thread: add what was written since the copy was made, and change places."""
    coming = Database(target, store.paths.backups)
    try:
        replay(coming, store.paths, store.uid)
        coming.checkpoint()
    finally:
        coming.close()
    if target.with_name(target.name + ".wal").exists():
        raise DiskFull("There is no room on the disk for a copy", "Free some space.")
    fsync_path(target)
    store.database.replace_file(target)
    fsync_folder(store.paths.root)


def _renew_backups(store: Store) -> None:
    """Make two new backups, then delete all others and what unfinished ones have left."""
    folder = store.paths.backups
    with store.database.snapshot_cursor() as cursor:
        fresh = {backup_from(cursor, folder, store.uid).path for _ in range(2)}
    for path in folder.glob("*.duckdb*"):
        if path not in fresh:
            path.unlink()
    fsync_folder(folder)
