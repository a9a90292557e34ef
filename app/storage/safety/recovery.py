"""Recovery at startup: opening a data directory in whatever state it is, one step after the other.

0. Finish a restore that the user requested and a kill interrupted.
1. Open the file; if that fails, quarantine its write-ahead log and open it again.
2. Refuse a newer schema and leave it unchanged. After an unclean end, or periodically, read every table.
3. Quarantine what cannot be used (never delete it) and restore the newest verified backup; without
   one, start with an empty database.
4. Migrate the schema, after a backup.
5. Replay the journal past the database's position; end interrupted replies and settle reservations.
`Store.notices` says what was done.
"""

import logging

from app.domain.errors import DiskFull, KnownError
from app.domain.translation import tr, trn
from app.storage.apply import apply_records
from app.storage.deletion.tombstones import Tombstones
from app.storage.engine.aggregate import read_state
from app.storage.engine.database import Database
from app.storage.engine.errors import from_os_error
from app.storage.engine.journal import Journal, first_position
from app.storage.engine.space import disk_is_full, fill_reserve, release_reserve
from app.storage.engine.stamps import IdAllocator
from app.storage.engine.store import Store
from app.storage.safety import fallbacks
from app.storage.safety.backup import backups_of, try_backup
from app.storage.safety.fallbacks import OpenedDatabase, OpeningState
from app.storage.safety.interrupted import end_running_replies
from app.storage.safety.replay import Replayed, quarantine_foreign_segments, replay
from app.storage.safety.restore import finish_restoring
from app.storage.tables.passages.spaces import forget_lost
from app.storage.tables.spending import settle_reservations
from app.system.paths import DataPaths, fsync_folder

_log = logging.getLogger(__name__)


def open_store(paths: DataPaths) -> Store:
    """Return the opened store of `paths`, its writer running; the caller holds the lock.

    Blocking: a second for an ordinary library, longer after damage. Raises DatabaseTooNew,
    ReadOnlyStorage, DiskFull, AlreadyOpen, or DatabaseUnreadable when every step fails.
    """
    opening = OpeningState(paths)
    if finish_restoring(paths) is not None:
        opening.notices.append(tr("The interrupted restore of a backup was completed."))
    try:
        store = _opened(opening)
    except DiskFull:
        if not release_reserve(paths):
            raise
        store = _opened(opening)
    if opening.has_log or (paths.reserve.exists() and not fill_reserve(paths)):
        store.is_disk_full = True
        opening.notices.append(disk_is_full().display_text)
    store.start()
    try:
        _end_running(store, opening)
        # What neither a backup nor the journal could restore came from elsewhere, or the journal was lost.
        is_unprotected = first_position(paths.journal) != 1 and store.read(read_state).position > 0
        if is_unprotected and not backups_of(paths.backups, store.uid):
            try_backup(store)
    except BaseException:
        store.close()
        raise
    store.notices = tuple(opening.notices)
    return store


def _opened(opening: OpeningState) -> Store:
    return fallbacks.open_with_fallbacks(opening, lambda opened: _up_to_date(opening, opened))


def _up_to_date(opening: OpeningState, opened: OpenedDatabase) -> Store:
    """Replay the journal and mark the database as open; raises DatabaseDamaged."""
    paths = opening.paths
    database = Database(paths.database, paths.backups, opened.connection)
    try:
        if quarantine_foreign_segments(paths, opened.uid):
            opening.notices.append(
                tr("The journal of another database was found and moved to the folder 'damaged'.")
            )
        database.write(forget_lost)
        replayed = replay(database, paths, opened.uid)
        opening.notices += _notices(replayed, opening.restored)
        _, *highest = database.read(read_state)
        try:
            paths.closed.unlink(missing_ok=True)
            fsync_folder(paths.root)
        except OSError as error:
            raise from_os_error(error, f"The data directory '{paths.root}'") from error
    except BaseException:
        database.close()
        raise
    return Store(
        paths, opened.uid, opened.generation, database,
        Journal(paths.journal, opened.uid, replayed.last), IdAllocator(*highest), apply_records,
        Tombstones(), is_dirty=opening.has_log or bool(replayed.records),
    )  # fmt: skip


def _notices(replayed: Replayed, restored: bool) -> list[str]:
    notices = []
    if lost := replayed.lost:
        notices.append(
            trn(
                "{count} change could not be read from the journal, which is damaged.",
                "{count} changes could not be read from the journal, which is damaged.",
                lost,
            )
        )
    if refused := replayed.refused:
        notices.append(
            trn(
                "{count} change of the journal could not be applied.",
                "{count} changes of the journal could not be applied.",
                refused,
            )
        )
    if replayed.records and restored:
        notices.append(
            trn(
                "{count} later change was taken from the journal.",
                "{count} later changes were taken from the journal.",
                replayed.records,
            )
        )
    return notices


def _end_running(store: Store, opening: OpeningState) -> None:
    try:
        ended = end_running_replies(store)
        settle_reservations(store)
    except KnownError as error:
        _log.warning("interrupted replies cannot be ended now: %s", error)
        return
    if ended:
        opening.notices.append(
            trn(
                "{count} reply was interrupted when the program ended; the part received was kept.",
                "{count} replies were interrupted when the program ended; the parts received were kept.",
                ended,
            )
        )
