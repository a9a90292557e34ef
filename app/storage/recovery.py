"""Opening a data directory, whatever is found in it: a ladder, each rung only when needed.

0. A restore that the user asked for and a kill broke off is finished.
1. Open the file. A failure: set its write-ahead log aside, open again.
2. Refuse a newer schema, untouched. After an unclean end, or once in a while, read every table.
3. What cannot be used is set aside (never deleted) and the newest verified backup takes its place;
   without one, an empty database.
4. Bring the schema up to date, with a backup first.
5. Replay the journal past the image's position; end the replies that were running, and count what
   requests under way may have cost.
What was done is told in `Store.notices`.
"""

import logging

from app.domain.errors import KnownError
from app.storage import ladder
from app.storage.apply import read_state
from app.storage.backup import backups_of, try_backup
from app.storage.database import Database
from app.storage.faults import of_system
from app.storage.held_spend import end_held_spend
from app.storage.ids import IdAllocator
from app.storage.interrupted import end_running_replies
from app.storage.journal import Journal, first_position
from app.storage.ladder import Opened, Opening
from app.storage.replay import Replayed, replay, set_foreign_segments_aside
from app.storage.restore import finish_restoring
from app.storage.store import Store
from app.system.paths import DataPaths, fsync_folder

_log = logging.getLogger(__name__)


def open_store(paths: DataPaths) -> Store:
    """Return the opened store of `paths`, its writer running; the caller holds the lock.

    Blocking: a second for an ordinary library, longer after damage. Raises DatabaseTooNew,
    ReadOnlyStorage, DiskFull, AlreadyOpen, or DatabaseUnreadable when no rung of the ladder holds.
    """
    opening = Opening(paths)
    if finish_restoring(paths) is not None:
        opening.notices.append("The backup that was being restored is in place now.")
    store = ladder.climb(opening, lambda opened: _caught_up(opening, opened))
    store.start()
    try:
        _end_running(store, opening)
        _secure(store)
    except BaseException:
        store.close()
        raise
    store.notices = tuple(opening.notices)
    return store


def _caught_up(opening: Opening, opened: Opened) -> Store:
    """Apply what only the journal knows, and mark the database as open; raises DatabaseDamaged."""
    paths = opening.paths
    database = Database(paths.database, paths.backups, opened.connection)
    try:
        return _with_journal(opening, database, opened.uid, opened.generation)
    except BaseException:
        database.close()
        raise


def _with_journal(opening: Opening, database: Database, uid: str, generation: str) -> Store:
    paths = opening.paths
    if set_foreign_segments_aside(paths, uid):
        opening.notices.append(
            "A journal of another database lay beside this one; it is kept in the folder 'damaged'."
        )
    replayed = replay(database, paths, uid)
    opening.notices += _told(replayed, opening.restored)
    journal = Journal(paths.journal, uid, replayed.last)
    _, *highest = database.read(read_state)
    try:
        paths.unclean.touch(0o600)
        fsync_folder(paths.root)
    except OSError as error:
        raise of_system(error, f"The data directory '{paths.root}'") from error
    store = Store(paths, uid, generation, database, journal, IdAllocator(*highest))
    if replayed.records:
        store.note_write()
    return store


def _secure(store: Store) -> None:
    """Make a backup at once of what neither a backup nor the journal could bring back.

    So it is when the file came from elsewhere, or the journal was lost.
    """
    paths, first = store.paths, first_position(store.paths.journal)
    is_empty = int(store.read(read_state)[0]) == 0
    if not is_empty and first != 1 and not backups_of(paths.backups, store.uid):
        try_backup(store)


def _told(replayed: Replayed, restored: bool) -> list[str]:
    told = []
    if replayed.lost:
        told.append(
            f"{replayed.lost} changes could not be read from the journal, which is damaged."
        )
    if replayed.refused:
        told.append(f"{replayed.refused} changes of the journal could not be applied.")
    if replayed.records and restored:
        told.append(f"{replayed.records} later changes were taken from the journal.")
    return told


def _end_running(store: Store, opening: Opening) -> None:
    try:
        ended = end_running_replies(store)
        end_held_spend(store)
    except KnownError as error:
        _log.warning("what was under way cannot be ended now: %s", error)
        return
    if ended:
        words = "A reply was" if ended == 1 else f"{ended} replies were"
        opening.notices.append(
            f"{words} interrupted when the program ended; what had arrived is kept."
        )
