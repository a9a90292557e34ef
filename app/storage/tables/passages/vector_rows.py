"""Rows of vectors: validation, float16 encoding, writing to and loading from a space's table.

numpy is imported on first use, so that opening the program does not wait for it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from app.domain.errors import EmbedderUnavailable, KnownError
from app.domain.ids import PARTS_PER_PASSAGE, PartId, PassageId, part_id
from app.domain.passages import Space
from app.storage.engine.connection import Connection
from app.storage.engine.stamps import from_db, now, to_db
from app.storage.engine.store import Store
from app.storage.tables.passages import spaces
from app.storage.tables.passages.spaces import bytes_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_MIN_LENGTH = 1e-6
_ENCODING = "<f2"
_COLUMNS = 'passage_id, chunk_number, part, start, "end", vector, indexed_at'
_PASSAGES_AT_ONCE = 5_000  # some 20 MB of vectors of 384
_LONG_AGO = datetime(1970, 1, 1)  # noqa: DTZ001 - as the database has times


# -- validation and encoding


class BadVectors(KnownError):
    """An embedder returned no valid vectors for some texts; it may for others."""


def validated_vectors(vectors: object, count: int, space: Space) -> "npt.NDArray[np.float32]":
    """Return an embedder's vectors of `count` texts as float32, (count, dim), rows of unit length.

    Raises `BadVectors` when some are missing, zero or not finite, which a text may cause, and
    `EmbedderUnavailable` when their shape is not the space's.
    """
    import numpy as np

    try:
        given = np.asarray(vectors, np.float32)
    except (TypeError, ValueError) as error:
        raise _unfit(space, "no table of numbers") from error
    if given.ndim != 2:
        raise _unfit(space, f"an answer of shape {given.shape}")
    if given.shape[1] != space.dimension and len(given):
        raise _unfit(space, f"vectors of {given.shape[1]} numbers, not of {space.dimension}")
    if len(given) != count:
        raise BadVectors(
            f"The embedder of “{space.name}” gave {len(given)} vectors for {count} texts",
            "Choose another embedder if this goes on.",
        )
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(given.astype(np.float64), axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise BadVectors(
            f"The embedder of “{space.name}” gave vectors that are not finite",
            "Choose another embedder if this goes on.",
        )
    if (lengths < _MIN_LENGTH).any():
        raise BadVectors(
            f"The embedder of “{space.name}” gave vectors without a direction",
            "Choose another embedder if this goes on.",
        )
    unit: npt.NDArray[np.float32] = (given / lengths).astype(np.float32)
    return unit


def to_blobs(vectors: "npt.NDArray[np.float32]") -> list[bytes]:
    return [row.tobytes() for row in vectors.astype(_ENCODING)]


def from_blobs(blobs: Sequence[bytes], dimension: int) -> "npt.NDArray[np.float32]":
    """Return the rows of blobs, all of that dimension: float32, (n, dim)."""
    import numpy as np

    return _stored(blobs, dimension).astype(np.float32)


def _stored(blobs: Sequence[bytes], dimension: int) -> "npt.NDArray[np.float16]":
    import numpy as np

    return np.frombuffer(b"".join(blobs), _ENCODING).reshape(len(blobs), dimension)


def _unfit(space: Space, what: str) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        f"The embedder of “{space.name}” gave {what}",
        "Check the embedder's settings or choose another one.",
    )


# -- writing


@dataclass(frozen=True, slots=True)
class EmbeddedPassage:
    """A passage's chunks in reading order, ready to be stored; none when it had nothing to embed.

    `parts` and `spans` say what each chunk is: text[start:end] of that part. `vectors` is float32,
    (chunks, dim), rows of unit length. `content_hash` is the passage's when it was read.
    """

    id: PassageId
    content_hash: str
    parts: Sequence[PartId]
    spans: Sequence[tuple[int, int]]
    vectors: "npt.NDArray[np.float32]"


@dataclass(frozen=True, slots=True)
class EmbeddingCandidate:
    """A passage before it is embedded.

    `twin` is a passage of the same kind and hash that has vectors, or the passage itself when it has.
    """

    id: PassageId
    content_hash: str
    twin: PassageId | None


def write_vectors(
    connection: Connection,
    space: Space,
    embedded: Sequence[EmbeddedPassage],
    twins: Sequence[EmbeddingCandidate],
) -> int:
    """Store vectors as `Vectors.put` describes; return how many passages have theirs now.

    The space exists, and each of `twins` has a twin. Inside a transaction of the writer thread.
    """
    wanted = {each.id: each.content_hash for each in embedded}
    wanted |= {each.id: each.content_hash for each in twins}
    present = connection.select_in("passage", "id, content_hash", wanted)
    valid = {each for each, content_hash in present if wanted[each] == content_hash}
    table, stamp = spaces.table_of(space.name), _stamp(connection, space)
    connection.delete_in(table, "passage_id", valid)
    rows = [row for each in embedded if each.id in valid for row in _rows(each, stamp)]
    connection.insert_rows(table, _COLUMNS, rows)
    count = sum(each.id in valid for each in embedded)
    return count + _copy(connection, table, [t for t in twins if t.id in valid], stamp)


def _stamp(connection: Connection, space: Space) -> datetime:
    """Return the time of a write: later than any before it, even if the clock was set back."""
    (last,) = connection.column(f"SELECT max(indexed_at) FROM {spaces.table_of(space.name)}")
    present = to_db(now())
    return present if last is None else max(present, last + timedelta(microseconds=1))


def _rows(embedded: EmbeddedPassage, stamp: datetime) -> list[tuple[Any, ...]]:
    if not embedded.parts:
        return [(embedded.id, 0, part_id(embedded.id, 0), 0, 0, None, stamp)]
    chunks = zip(embedded.parts, embedded.spans, to_blobs(embedded.vectors), strict=True)
    return [
        (embedded.id, number, part, start, end, blob, stamp)
        for number, (part, (start, end), blob) in enumerate(chunks)
    ]


def _copy(
    connection: Connection, table: str, twins: Sequence[EmbeddingCandidate], stamp: datetime
) -> int:
    """Give passages the chunks of their twins; return how many got any."""
    if not twins:
        return 0
    connection.execute(
        f"INSERT INTO {table} ({_COLUMNS}) SELECT w.id, e.chunk_number, "
        f'w.id * {PARTS_PER_PASSAGE} + e.part % {PARTS_PER_PASSAGE}, e.start, e."end", '
        f"e.vector, $3 FROM (SELECT unnest($1::BIGINT[]) AS id, unnest($2::BIGINT[]) AS twin) w "
        f"JOIN {table} e ON e.passage_id = w.twin",
        [[each.id for each in twins], [each.twin for each in twins], stamp],
    )
    ids, first = [each.id for each in twins], "AND chunk_number = 0"
    return len(connection.select_in(table, "passage_id", ids, "passage_id", first))


# -- loading


@dataclass(frozen=True, slots=True)
class LoadedRows:
    """Chunks as the vector index takes them, those of one passage together and in order.

    `part_ids` is int64 (n,), `vectors` float16 (n, dim). All were written up to `until` (UTC), which
    is what `Vectors.load` takes as `after` to go on from here.
    """

    part_ids: "npt.NDArray[np.int64]"
    vectors: "npt.NDArray[np.float16]"
    until: datetime


def load_vectors(store: Store, space: Space, after: datetime | None) -> Iterator[LoadedRows]:
    """Yield rows as `Vectors.load` describes. Blocking."""
    import numpy as np

    table, since = spaces.table_of(space.name), to_db(after) or _LONG_AGO

    def written(cursor: Connection) -> tuple[datetime, datetime, Any] | None:
        """Return when the space was begun and last written, and the passages with newer rows."""
        begun_at = _begun_at(cursor, space)
        (until,) = (
            (None,) if begun_at is None else cursor.column(f"SELECT max(indexed_at) FROM {table}")
        )
        if begun_at is None or until is None or until <= since:
            return None
        statement = f"SELECT DISTINCT passage_id FROM {table} WHERE indexed_at > ?"
        ids = cursor.execute(statement, [since]).fetchnumpy()["passage_id"]
        return begun_at, until, np.sort(np.asarray(ids, np.int64))

    def rows(cursor: Connection, first: int, last: int) -> dict[str, Any] | None:
        if _begun_at(cursor, space) != begun_at:
            return None  # it was rebuilt meanwhile
        return cursor.execute(
            f"SELECT passage_id, chunk_number, part, vector FROM {table} "
            "WHERE passage_id BETWEEN $1 AND $2 AND octet_length(vector) = $3 "
            "AND indexed_at > $4 AND indexed_at <= $5",
            [first, last, bytes_of(space.dimension), since, until],
        ).fetchnumpy()

    if (found := store.read(written)) is None:
        return
    begun_at, until, ids = found
    for start in range(0, len(ids), _PASSAGES_AT_ONCE):
        some = ids[start : start + _PASSAGES_AT_ONCE]
        if (columns := store.read(rows, int(some[0]), int(some[-1]))) is None:
            return
        if len(columns["part"]):
            # Sorted here, DuckDB does not copy the vectors: half of its time.
            order = np.lexsort((columns["chunk_number"], columns["passage_id"]))
            vectors = _stored(columns["vector"][order], space.dimension)
            part_ids = np.asarray(columns["part"][order], np.int64)
            yield LoadedRows(part_ids, vectors, from_db(until))


def _begun_at(cursor: Connection, space: Space) -> datetime | None:
    """Return when a space was begun, as the database has it; None when it is missing."""
    begun_at = cursor.column("SELECT begun_at FROM space WHERE name = ?", [space.name])
    return begun_at[0] if begun_at else None
