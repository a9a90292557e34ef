"""Vectors of passages, one table for each space: what lacks them, writing, loading.

Vectors are derived: written without the journal, and made again by the embedding pipeline when lost.
Vectors of two spaces are never mixed. `app.index` searches them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from app.domain.change_set import ChangeSet
from app.domain.errors import EmbedderUnavailable
from app.domain.ids import PassageId
from app.domain.passages import PassageKind, Space
from app.domain.workers import WorkerName
from app.storage.engine.connection import Connection
from app.storage.engine.stamps import from_db, now, to_db
from app.storage.engine.store import StoreReader, in_snapshot
from app.storage.tables.passages import spaces
from app.storage.tables.passages.vector_rows import (
    EmbeddedPassage,
    EmbeddingCandidate,
    LoadedRows,
    load_vectors,
    write_vectors,
)
from app.storage.work.queue import POSTPONED, Tally, WorkQuery

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

T = TypeVar("T")
_SPACE = "name, dimension, max_tokens, model, begun_at, traits"


@dataclass(frozen=True, slots=True)
class StoredSpace:
    """A space of the database.

    `model` describes what makes its vectors. `begun_at` (UTC) changes when all vectors are deleted:
    those loaded before are invalid. `traits` is what was measured of it, as text, None before that.
    """

    space: Space
    model: str
    begun_at: datetime
    traits: str | None = None


# Private conversations have no passages; those in the trash wait.
_PASSAGES = "FROM passage p LEFT JOIN conversation c ON c.id = p.conversation_id "
_THAT_SHOULD = (
    "WHERE p.tokens > 0 AND (p.kind <> 'turn' OR p.tokens >= $least) "
    "AND (p.conversation_id IS NULL OR (NOT c.private AND c.deleted_at IS NULL)) "
)
_NO_TABLE = "(SELECT NULL::BIGINT AS passage_id, 0 AS chunk_number, NULL AS vector WHERE false)"
_NEWEST_FIRST = "ORDER BY p.created_at DESC, p.id DESC"


def _work(table: str) -> WorkQuery:
    return WorkQuery(
        WorkerName.EMBEDDING_PIPELINE.value,
        _PASSAGES,
        "p.id",
        _THAT_SHOULD,
        f"{table} d ON d.passage_id = p.id AND d.chunk_number = 0",
        "passage_id",
    )


class Vectors(StoreReader):
    """Reads and writes the vectors of one store. Blocking: for worker threads and the command line.

    Listeners of the store get the names of spaces whose rows changed in `ChangeSet.vectors`, but not
    for removed passages.
    """

    # -- spaces

    def ensure(self, space: Space, model: str) -> None:
        """Create a space unless it exists.

        Raises EmbedderUnavailable when it has vectors of another dimension.
        """
        known = {kept.space.name: kept.space for kept in self.spaces()}
        if (kept := known.get(space.name)) is None:
            # Never in one transaction; a table without its row is empty.
            self._store.write_derived(lambda c: spaces.create_table(c, space.name)).result()
            row = (space.name, space.dimension, space.max_tokens, model, to_db(now()), None)
            self._write(
                space.name, lambda c: c.insert_rows("space", _SPACE, [row], "INSERT OR REPLACE")
            )
        elif kept.dimension != space.dimension:
            raise EmbedderUnavailable(
                f"The embedder of “{space.name}” gives {space.dimension} numbers for a text; "
                f"its vectors so far have {kept.dimension}",
                "Choose another embedder, or rebuild the embeddings.",
            )

    @in_snapshot
    def spaces(self, cursor: Connection) -> tuple[StoredSpace, ...]:
        """Return the spaces, by name."""
        return tuple(
            StoredSpace(Space(*row[:3]), row[3], from_db(row[4]), *row[5:])
            for row in cursor.rows(f"SELECT {_SPACE} FROM space ORDER BY name")
        )

    def drop(self, space_name: str) -> None:
        """Delete a space with all its vectors, if it exists."""

        def empty(connection: Connection) -> None:
            if space_name in spaces.space_names(connection):
                connection.execute(f"DELETE FROM {spaces.table_of(space_name)}")
            connection.execute("DELETE FROM space WHERE name = ?", [space_name])

        # A kill between the two leaves an empty table, without anything forgotten.
        self._write(space_name, empty)
        self._store.write_derived(lambda c: spaces.drop_table(c, space_name)).result()

    def drop_kinds(self, space_name: str, kinds: Collection[PassageKind]) -> None:
        """Delete the vectors of some kinds of passages; vectors loaded before are invalid."""

        def empty(connection: Connection) -> None:
            if space_name not in spaces.space_names(connection):
                return
            connection.execute(
                f"DELETE FROM {spaces.table_of(space_name)} WHERE passage_id IN "
                "(SELECT id FROM passage WHERE kind IN (SELECT unnest(?)))",
                [[kind.value for kind in kinds]],
            )
            connection.execute(
                "UPDATE space SET begun_at = greatest(?, begun_at + INTERVAL 1 MICROSECOND) "
                "WHERE name = ?",
                [to_db(now()), space_name],
            )

        self._write(space_name, empty)

    def set_traits(self, space: Space, traits: str) -> None:
        """Store what was measured of a space."""
        statement = "UPDATE space SET traits = ? WHERE name = ?"
        self._write(space.name, lambda c: c.execute(statement, [traits, space.name]))

    def _write(self, space_name: str, work: Callable[[Connection], T]) -> T:
        """Write to a space and tell listeners which one."""
        news = ChangeSet(vectors=frozenset((space_name,)))
        return self._store.write_derived(work, news).result()

    # -- work

    @in_snapshot
    def missing(
        self, cursor: Connection, space: Space, least_tokens: int, limit: int, at: datetime
    ) -> tuple[PassageId, ...]:
        """Return passages that lack their vectors in a space, newest first; call `ensure` before.

        Left out: those of private conversations and of those in the trash, incomplete turns, turns
        of fewer tokens than `least_tokens`, abandoned ones, and those whose next try comes after `at`.
        """
        work, rest = _work(spaces.table_of(space.name)), f"{_NEWEST_FIRST} LIMIT $limit"
        rows = work.missing(cursor, "p.id", rest, at, least=least_tokens, limit=limit)
        return tuple(each for (each,) in rows)

    @in_snapshot
    def embedded(
        self, cursor: Connection, space: Space, least_tokens: int, at: datetime
    ) -> "npt.NDArray[np.int64]":
        """Return the passages that should have vectors in a space and do, (n,), newest first.

        Left out are those whose next try comes after `at`, as for `missing`. 0.3 s for a million.
        """
        import numpy as np

        if space.name not in spaces.space_names(cursor):
            return np.empty(0, np.int64)
        statement = (
            f"SELECT p.id {_PASSAGES} JOIN {spaces.table_of(space.name)} d "
            f"ON d.passage_id = p.id AND d.chunk_number = 0 {_THAT_SHOULD} "
            "AND p.id NOT IN (SELECT item_id FROM attempt a "
            f"WHERE a.worker = '{WorkerName.EMBEDDING_PIPELINE.value}' AND {POSTPONED}) {_NEWEST_FIRST}"
        )
        values = {"least": least_tokens, "at": to_db(at)}
        return np.asarray(cursor.execute(statement, values).fetchnumpy()["id"], np.int64)

    @in_snapshot
    def before_embedding(
        self, cursor: Connection, space: Space, ids: Collection[int]
    ) -> Mapping[int, EmbeddingCandidate]:
        """Return the passages that exist among `ids`, by id, as embedding needs them."""
        columns = "id, kind, content_hash"
        own = cursor.select_in("passage", columns, ids)
        hashes = {digest for _, _, digest in own}
        alike = sorted(cursor.select_in("passage", columns, hashes, "content_hash"))
        has: set[int] = set()
        if len(alike) > len(own):
            # A join would read the whole table: 120 ms for a million rows.
            table, others = spaces.table_of(space.name), [each for each, *_ in alike]
            first = "AND chunk_number = 0"
            has = cursor.column_in(table, "passage_id", others, "passage_id", first)
        twins = {(kind, digest): each for each, kind, digest in alike if each in has}
        return {
            each: EmbeddingCandidate(each, digest, twins.get((kind, digest)))
            for each, kind, digest in own
        }

    @in_snapshot
    def tally(self, cursor: Connection, space_name: str | None, least_tokens: int) -> Tally:
        """Return how many passages should have vectors, and how many have them in a space.

        For None, an unknown space, none have.
        """
        return _work(_table_to_read(cursor, space_name)).tally(cursor, least=least_tokens)

    def tokens(self, least_tokens: int) -> int:
        """Return the estimated tokens of all that should have vectors."""
        statement = f"SELECT coalesce(sum(p.tokens), 0) {_PASSAGES}{_THAT_SHOULD}"
        (tokens,) = self._store.column(statement, {"least": least_tokens})
        return int(tokens)

    @in_snapshot
    def amount(
        self, cursor: Connection, space_name: str, least_tokens: int, kinds: Collection[PassageKind]
    ) -> tuple[int, int, int]:
        """Return (vectors, passages that should have some, their tokens) of some kinds, or (empty) all."""
        wanted = [kind.value for kind in kinds or PassageKind]
        (vectors,) = cursor.column(
            f"SELECT count(e.vector) FROM {_table_to_read(cursor, space_name)} e "
            "JOIN passage p ON p.id = e.passage_id WHERE p.kind IN (SELECT unnest(?))",
            [wanted],
        )
        ((passages, tokens),) = cursor.rows(
            f"SELECT count(*), coalesce(sum(p.tokens), 0) {_PASSAGES}{_THAT_SHOULD}"
            "AND p.kind IN (SELECT unnest($kinds))",
            {"least": least_tokens, "kinds": wanted},
        )
        return int(vectors), int(passages), int(tokens)

    # -- writing

    def put(
        self,
        space: Space,
        embedded: Sequence[EmbeddedPassage],
        copies: Mapping[PassageId, EmbeddingCandidate] | None = None,
    ) -> int:
        """Store the chunks of passages, all or none; return how many passages have theirs now.

        Earlier vectors are replaced. `copies` are passages that get the vectors of their twins,
        whose parts must have the same numbers. Left out are passages that meanwhile are gone or say
        something else, twins that have none any more, and all when the space is gone.
        """
        twins = [each for each in (copies or {}).values() if each.twin is not None]

        def write(connection: Connection) -> int:
            if space.name not in spaces.space_names(connection):
                return 0
            return write_vectors(connection, space, embedded, twins)

        return self._write(space.name, write)

    # -- loading

    @in_snapshot
    def count(self, cursor: Connection, space_name: str) -> tuple[int, int]:
        """Return how many passages have a vector in a space, and how many vectors there are."""
        ((passages, vectors),) = cursor.rows(
            "SELECT count(DISTINCT passage_id), count(*) "
            f"FROM {_table_to_read(cursor, space_name)} WHERE vector IS NOT NULL"
        )
        return passages, vectors

    def load(self, space: Space, after: datetime | None = None) -> Iterator[LoadedRows]:
        """Yield all vectors of a space by passage, or those written after the moment `after`.

        Some thousand passages at a time, read in short queries between which others may write; what is
        written meanwhile is left for the next time, what leaves meanwhile may or may not be among
        them. It ends early when the space is thrown away. 0.2 s for 100,000 vectors of 384.
        """
        return load_vectors(self._store, space, after)


def _table_to_read(cursor: Connection, space_name: str | None) -> str:
    """Return the table of a space, an empty one for a space that is not there."""
    if space_name is None or space_name not in spaces.space_names(cursor):
        return _NO_TABLE
    return spaces.table_of(space_name)
