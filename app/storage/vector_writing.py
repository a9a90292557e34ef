"""The vectors of passages into the table of a space, or copied from passages that say the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from app.domain.ids import PARTS_OF_A_PASSAGE, PartId, PassageId, part_id
from app.domain.passages import Space
from app.storage import spaces
from app.storage.database import Connection
from app.storage.rows import insert_rows
from app.storage.times import now, to_db
from app.storage.vector_rows import to_blobs

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_COLUMNS = 'passage_id, chunk_number, part, start, "end", vector, indexed_at'


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
class Unembedded:
    """What there is to know of a passage before it is embedded.

    `twin` is a passage of the same kind and hash that has its vectors; it is itself when it has.
    """

    id: PassageId
    content_hash: str
    twin: PassageId | None


def stored(
    connection: Connection,
    space: Space,
    embedded: Sequence[EmbeddedPassage],
    twins: Sequence[Unembedded],
) -> int:
    """Store what `Vectors.put` says; return how many passages have their vectors now.

    The space is there, and each of `twins` has a twin. For the writer's thread, in a transaction.
    """
    wanted = {each.id: each.content_hash for each in embedded}
    wanted |= {each.id: each.content_hash for each in twins}
    valid = _still_so(connection, wanted)
    table, stamp = spaces.table_of(space.name), _stamp(connection, space)
    connection.execute(f"DELETE FROM {table} WHERE passage_id IN (SELECT unnest(?))", [list(valid)])
    rows = [row for each in embedded if each.id in valid for row in _rows(each, stamp)]
    insert_rows(connection, table, _COLUMNS, rows)
    count = sum(each.id in valid for each in embedded)
    return count + _copy(connection, table, [t for t in twins if t.id in valid], stamp)


def _stamp(connection: Connection, space: Space) -> datetime:
    """Return the time of a write: later than any before it, though the clock was set back."""
    (last,) = connection.execute(
        f"SELECT max(indexed_at) FROM {spaces.table_of(space.name)}"
    ).fetchone() or (None,)
    present = to_db(now())
    return present if last is None else max(present, last + timedelta(microseconds=1))


def _still_so(connection: Connection, wanted: Mapping[PassageId, str]) -> set[PassageId]:
    """Return the passages that are there and have the hash that is given with them."""
    rows = connection.execute(
        "SELECT id, content_hash FROM passage WHERE id IN (SELECT unnest(?))", [list(wanted)]
    ).fetchall()
    return {each for each, content_hash in rows if wanted[each] == content_hash}


def _rows(embedded: EmbeddedPassage, stamp: datetime) -> list[tuple[Any, ...]]:
    if not embedded.parts:
        return [(embedded.id, 0, part_id(embedded.id, 0), 0, 0, None, stamp)]
    chunks = zip(embedded.parts, embedded.spans, to_blobs(embedded.vectors), strict=True)
    return [
        (embedded.id, number, part, start, end, blob, stamp)
        for number, (part, (start, end), blob) in enumerate(chunks)
    ]


def _copy(connection: Connection, table: str, twins: Sequence[Unembedded], stamp: datetime) -> int:
    """Give passages the chunks of their twins; return how many got any."""
    if not twins:
        return 0
    connection.execute(
        f"INSERT INTO {table} ({_COLUMNS}) SELECT w.id, e.chunk_number, "
        f'w.id * {PARTS_OF_A_PASSAGE} + e.part % {PARTS_OF_A_PASSAGE}, e.start, e."end", '
        f"e.vector, $3 FROM (SELECT unnest($1::BIGINT[]) AS id, unnest($2::BIGINT[]) AS twin) w "
        f"JOIN {table} e ON e.passage_id = w.twin",
        [[each.id for each in twins], [each.twin for each in twins], stamp],
    )
    row = connection.execute(
        f"SELECT count(*) FROM {table} WHERE chunk_number = 0 AND passage_id IN (SELECT unnest(?))",
        [[each.id for each in twins]],
    ).fetchone()
    return int(row[0]) if row else 0
