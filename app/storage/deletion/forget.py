"""Forgetting: removing conversations, turns and messages from the database file, journal and backups.

Deleting rows leaves their text in the file (reliability F6); only copying the database into a new
file removes it. A kill may come after any step: the database records what is pending, and
`finish_forgetting` continues from there.
"""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from app.domain.changes import ConversationForgotten, ExchangePut, MessagesForgotten
from app.domain.conversations import Exchange, ExchangeStatus, ToolCall, ToolResult
from app.domain.errors import DiskFull, InvalidInput, NotFound
from app.domain.ids import ConversationId, MessageId
from app.language.titles import first_words
from app.storage.engine.database import Connection, Database
from app.storage.engine.store import Store
from app.storage.engine.times import to_db
from app.storage.safety import image
from app.storage.safety.attachments import (
    count_as_unused,
    hashes_of_messages,
    hashes_to_forget,
    remove_unreferenced,
)
from app.storage.safety.backup import backup_from
from app.storage.safety.image import fsync_path
from app.storage.safety.interrupted import grown_since, running_exchanges
from app.storage.safety.replay import replay
from app.storage.tables.exchanges import Exchanges
from app.system.paths import fsync_folder

_UNTITLED = "New conversation"
_REST_NOT_ERASED = (
    "Summaries, facts and saved texts of its turn were removed too, and quotes by tools and Recall. What "
    "you or a model wrote in other turns, core memory, and forks of the conversation were not changed."
)
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


def forget_turn(store: Store, exchange_id: int) -> tuple[str, ...]:
    """Erase the content of a turn with every other answer to its question, and what came from it.

    Returns what remains elsewhere, as sentences for the user. Blocking like `forget`. Raises NotFound,
    InvalidInput while a reply is being written in the conversation, StorageError.
    """
    turn = Exchanges(store).get(exchange_id)
    every = Exchanges(store).of(turn.conversation_id)
    shared = [each for each in every if not {*each.message_ids}.isdisjoint(turn.message_ids)]
    ids = {message for each in shared for message in each.message_ids}
    others = [each for each in every if each.parent_id == turn.parent_id and each not in shared]
    left = _forget_messages(store, turn.conversation_id, every, ids)
    if not others:
        return left
    versions = "1 other version" if len(others) == 1 else f"{len(others):,} other versions"
    return (f"The conversation still has {versions} of this turn.", *left)


def forget_message(store: Store, message_id: int) -> tuple[str, ...]:
    """Erase the content of a message, the results of its tool calls, and what came from its turn.

    As `forget_turn`.
    """
    stored = Exchanges(store)
    message = stored.messages([message_id]).get(MessageId(message_id))
    if message is None:
        raise NotFound(
            f"There is no message {message_id}", "'show ID --json' shows the message IDs."
        )
    every = stored.of(message.conversation_id)
    calls = {block.call_id for block in message.blocks if isinstance(block, ToolCall)}
    own = [each for each in every if message.id in each.message_ids] if calls else []
    around = stored.messages(each for exchange in own for each in exchange.message_ids)
    results = {
        each.id
        for each in around.values()
        if any(isinstance(block, ToolResult) and block.call_id in calls for block in each.blocks)
    }
    return _forget_messages(store, message.conversation_id, every, {message.id, *results})


def _forget_messages(
    store: Store,
    conversation_id: ConversationId,
    every: Iterable[Exchange],
    message_ids: Iterable[MessageId],
) -> tuple[str, ...]:
    ids = frozenset(message_ids)
    if any(each.status is ExchangeStatus.RUNNING for each in every):
        raise InvalidInput(
            "A reply is being written in this conversation", "Stop it or wait for it, then forget."
        )
    messages = Exchanges(store).messages_in(conversation_id)
    title = first_words(each.text for each in messages if each.opens_turn and each.id not in ids)
    files = store.read(hashes_of_messages, ids)
    count_as_unused(store.paths, files)
    store.save(MessagesForgotten(conversation_id, tuple(sorted(ids)), title or _UNTITLED))
    finish_forgetting(store)
    if files:
        remove_unreferenced(store, files)
    copies, *damaged = remains_of_files(store)
    return (copies, _REST_NOT_ERASED, *damaged)


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
