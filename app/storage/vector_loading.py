"""A space read whole, or what was written of it lately, for the index in memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from app.domain.passages import Space
from app.storage import spaces
from app.storage.database import Connection
from app.storage.store import Store
from app.storage.times import from_db, to_db
from app.storage.vector_rows import bytes_of, from_blobs

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_AT_ONCE = 5_000  # passages: some 20 MB of vectors of 384
_LONG_AGO = datetime(1970, 1, 1)  # noqa: DTZ001 - as the database has times


@dataclass(frozen=True, slots=True)
class LoadedRows:
    """Chunks as the vector index takes them, those of one passage together and in order.

    `part_ids` is int64 (n,), `spans` int32 (n, 2), `vectors` float32 (n, dim). All were written up
    to `until` (UTC), which is what `Vectors.load` takes as `after` to go on from here.
    """

    part_ids: "npt.NDArray[np.int64]"
    spans: "npt.NDArray[np.int32]"
    vectors: "npt.NDArray[np.float32]"
    until: datetime


def loaded(store: Store, space: Space, after: datetime | None) -> Iterator[LoadedRows]:
    """Yield what `Vectors.load` says. Blocking."""
    if (found := store.read(lambda cursor: _written(cursor, space, after))) is None:
        return
    for first in range(0, len(found.ids), _AT_ONCE):
        ids = found.ids[first : first + _AT_ONCE]
        if (rows := _read_rows(store, space, (int(ids[0]), int(ids[-1])), found)) is None:
            return
        if len(rows.part_ids):
            yield rows


@dataclass(frozen=True, slots=True)
class _Written:
    """Which passages have rows written after one moment and up to another, both of the database.

    `ids` is int64, ascending.
    """

    ids: "npt.NDArray[np.int64]"
    after: datetime
    until: datetime
    begun_at: datetime


def _written(cursor: Connection, space: Space, after: datetime | None) -> _Written | None:
    """Return what there is to load; None when the space is not there or has nothing new."""
    import numpy as np

    begun_at = _begun_at(cursor, space)
    if begun_at is None:
        return None
    table, since = spaces.table_of(space.name), to_db(after) or _LONG_AGO
    (until,) = cursor.execute(f"SELECT max(indexed_at) FROM {table}").fetchone() or (None,)
    if until is None or until <= since:
        return None
    columns = cursor.execute(
        f"SELECT DISTINCT passage_id FROM {table} WHERE indexed_at > ?", [since]
    ).fetchnumpy()
    ids = np.sort(np.asarray(columns["passage_id"], np.int64))
    return _Written(ids, since, until, begun_at)


def _read_rows(
    store: Store, space: Space, bounds: tuple[int, int], written: _Written
) -> LoadedRows | None:
    """Return the rows of the passages within `bounds`, None when the space is another by now."""
    import numpy as np

    def query(cursor: Connection) -> dict[str, Any] | None:
        if _begun_at(cursor, space) != written.begun_at:
            return None
        return cursor.execute(
            f'SELECT part, start, "end", vector FROM {spaces.table_of(space.name)} '
            "WHERE passage_id BETWEEN $1 AND $2 AND octet_length(vector) = $3 "
            "AND indexed_at > $4 AND indexed_at <= $5 ORDER BY passage_id, chunk_number",
            [*bounds, bytes_of(space.dimension), written.after, written.until],
        ).fetchnumpy()

    if (columns := store.read(query)) is None:
        return None
    spans = np.stack((columns["start"], columns["end"]), axis=1).astype(np.int32)
    vectors = from_blobs(columns["vector"], space.dimension)
    part_ids = np.asarray(columns["part"], np.int64)
    return LoadedRows(part_ids, spans, vectors, from_db(written.until))


def _begun_at(cursor: Connection, space: Space) -> datetime | None:
    """Return when a space began, as the database has it; None when it is not there."""
    if space.name not in spaces.spaces_to_read(cursor):
        return None
    row = cursor.execute("SELECT begun_at FROM space WHERE name = ?", [space.name]).fetchone()
    return row[0] if row else None
