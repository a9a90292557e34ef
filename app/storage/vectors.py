"""The vectors of passages, one table a space: what lacks them, writing, and loading them whole.

All of it is derived: written without the journal, made again by the embedding pipeline when lost.
Vectors of two spaces are never mixed. Searching among them is `app.index`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.domain.errors import EmbedderUnavailable
from app.domain.events import Changed
from app.domain.ids import PassageId
from app.domain.passages import PassageKind, Space
from app.domain.workers import WorkerName
from app.storage import spaces
from app.storage.database import Connection
from app.storage.rows import insert_rows
from app.storage.store import Store
from app.storage.tally import Tally
from app.storage.times import from_db, now, to_db
from app.storage.vector_loading import LoadedRows, loaded
from app.storage.vector_writing import EmbeddedPassage, Unembedded, stored

_SPACE = "name, dimension, max_tokens, model, begun_at, background_mean, background_deviation"


@dataclass(frozen=True, slots=True)
class KeptSpace:
    """A space that the database holds vectors of, or may.

    `model` says in words who makes them. `begun_at` (UTC) changes when all its vectors were thrown
    away: what was loaded of an earlier one is void. `background_mean` and `background_deviation`
    are those of the cosines of unrelated texts, None until they were measured.
    """

    space: Space
    model: str
    begun_at: datetime
    background_mean: float | None = None
    background_deviation: float | None = None


# Private ones have no passages; those in the trash wait there.
_PASSAGES = "FROM passage p LEFT JOIN conversation c ON c.id = p.conversation_id "
_THAT_SHOULD = (
    "WHERE p.tokens > 0 AND (p.kind <> 'turn' OR p.tokens >= $least) "
    "AND (p.conversation_id IS NULL OR (NOT c.private AND c.deleted_at IS NULL)) "
)
# WORKAROUND(duckdb 2.0.0): as in `summary_work`, NOT EXISTS because a LEFT JOIN may lose the LIMIT.
_LACKS_THEM = (
    "AND NOT EXISTS (SELECT 1 FROM {table} e WHERE e.passage_id = p.id) "
    "AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.worker = $worker AND a.item_id = p.id "
    "AND (a.next_at IS NULL OR (a.next_at > $at AND a.next_at <= $at + INTERVAL 1 DAY))) "
)
_NO_TABLE = "(SELECT NULL::BIGINT AS passage_id, 0 AS chunk_number WHERE false)"
_WORKER = WorkerName.EMBEDDING_PIPELINE.value


class Vectors:
    """Reads and writes the vectors of one store. Blocking: for worker threads and the command line.

    Whoever subscribed to the store hears of a space whose rows changed, in `Changed.vectors`;
    passages that leave are heard of as such.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    # -- spaces

    def ensure(self, space: Space, model: str) -> None:
        """Make room for a space unless there is.

        Raises EmbedderUnavailable when the space holds vectors of another dimension, which only an
        embedder can be to blame for.
        """
        known = {kept.space.name: kept.space for kept in self.spaces()}
        if (kept := known.get(space.name)) is None:
            # Never in one transaction; a table without its row holds nothing.
            self._store.write_derived(
                lambda connection: spaces.create_table(connection, space.name)
            ).result()
            row = (space.name, space.dimension, space.max_tokens, model, to_db(now()), None, None)
            self._store.write_derived(
                lambda connection: insert_rows(
                    connection, "space", _SPACE, [row], "INSERT OR REPLACE"
                ),
                Changed(vectors=frozenset((space.name,))),
            ).result()
        elif kept.dimension != space.dimension:
            raise EmbedderUnavailable(
                f"The embedder of “{space.name}” gives {space.dimension} numbers for a text; "
                f"its vectors so far have {kept.dimension}",
                "Choose another embedder, or rebuild the embeddings.",
            )

    def spaces(self) -> tuple[KeptSpace, ...]:
        """Return the spaces there are, by name."""

        def query(cursor: Connection) -> tuple[KeptSpace, ...]:
            there = set(spaces.spaces_to_read(cursor))
            rows = cursor.execute(f"SELECT {_SPACE} FROM space ORDER BY name").fetchall()
            return tuple(
                KeptSpace(Space(*row[:3]), row[3], from_db(row[4]), *row[5:])
                for row in rows
                if row[0] in there
            )

        return self._store.read(query)

    def drop(self, space_name: str) -> None:
        """Throw a space away with all its vectors; one that is not there is none to miss."""

        def empty(connection: Connection) -> None:
            if space_name in spaces.space_names(connection):
                connection.execute(f"DELETE FROM {spaces.table_of(space_name)}")
            connection.execute("DELETE FROM space WHERE name = ?", [space_name])

        # A kill between the two leaves a table that is empty, so nothing of the forgotten in it.
        self._store.write_derived(empty, Changed(vectors=frozenset((space_name,)))).result()
        self._store.write_derived(
            lambda connection: spaces.drop_table(connection, space_name)
        ).result()

    def drop_kinds(self, space_name: str, kinds: Collection[PassageKind]) -> None:
        """Throw away the vectors of these kinds of passages; what was loaded of the space is void."""

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

        self._store.write_derived(empty, Changed(vectors=frozenset((space_name,)))).result()

    def set_background(self, space: Space, mean: float, deviation: float) -> None:
        """Keep what cosines unrelated texts have in a space."""
        self._store.write_derived(
            lambda connection: connection.execute(
                "UPDATE space SET background_mean = ?, background_deviation = ? WHERE name = ?",
                [mean, deviation, space.name],
            ),
            Changed(vectors=frozenset((space.name,))),
        ).result()

    # -- what is to be done

    def missing(
        self, space: Space, least_tokens: int, limit: int, at: datetime
    ) -> tuple[PassageId, ...]:
        """Return passages that lack their vectors in a space, newest first; `ensure` comes before.

        Left out: those of private conversations and of those in the trash, incomplete turns, turns
        of fewer tokens than `least_tokens`, those set aside, and those whose next try comes after
        `at` (UTC), unless by so much that the clock must have been set back.
        """
        lacks = _LACKS_THEM.format(table=spaces.table_of(space.name))
        values = {"least": least_tokens, "worker": _WORKER, "at": to_db(at), "limit": limit}
        rows = self._store.read(
            lambda cursor: cursor.execute(
                f"SELECT p.id {_PASSAGES}{_THAT_SHOULD}{lacks}"
                "ORDER BY p.created_at DESC, p.id DESC LIMIT $limit",
                values,
            ).fetchall()
        )
        return tuple(each for (each,) in rows)

    def before_embedding(self, space: Space, ids: Collection[int]) -> Mapping[int, Unembedded]:
        """Return by id what is known of those passages among `ids` that exist."""

        def query(cursor: Connection) -> dict[int, Unembedded]:
            own = _alike(cursor, "id IN (SELECT unnest(?))", list(ids))
            hashes = list({said for _, _, said in own})
            alike = _alike(cursor, "content_hash IN (SELECT unnest(?))", hashes)
            # Joined to the table, all of that would be read: 120 ms of a million.
            has = _embedded(cursor, space, [each for each, *_ in alike] if alike != own else [])
            twins = {(kind, said): each for each, kind, said in alike if each in has}
            return {
                each: Unembedded(each, said, twins.get((kind, said))) for each, kind, said in own
            }

        return self._store.read(query)

    def tally(self, space_name: str | None, least_tokens: int) -> Tally:
        """Return how many passages should have vectors, and how many have them in a space.

        None is a space that is not known: none have. What keeps the others is in it too.
        """

        def query(cursor: Connection) -> Tally:
            has_table = space_name is not None and space_name in spaces.spaces_to_read(cursor)
            table = spaces.table_of(space_name) if space_name and has_table else _NO_TABLE
            row = cursor.execute(
                "SELECT count(e.passage_id), count(*), count(a.next_at), "
                "count(a.item_id) - count(a.next_at), min(a.next_at) "
                f"{_PASSAGES}LEFT JOIN {table} e ON e.passage_id = p.id AND e.chunk_number = 0 "
                "LEFT JOIN attempt a ON a.worker = $worker AND a.item_id = p.id "
                f"AND e.passage_id IS NULL {_THAT_SHOULD}",
                {"least": least_tokens, "worker": _WORKER},
            ).fetchone()
            done, total, waiting, aside, next_at = row or (0, 0, 0, 0, None)
            return Tally(done, total, waiting, aside, from_db(next_at))

        return self._store.read(query)

    def tokens(self, least_tokens: int) -> int:
        """Return the estimated tokens of all that should have vectors."""
        row = self._store.read(
            lambda cursor: cursor.execute(
                f"SELECT coalesce(sum(p.tokens), 0) {_PASSAGES}{_THAT_SHOULD}",
                {"least": least_tokens},
            ).fetchone()
        )
        return int(row[0]) if row else 0

    def amount(
        self, space_name: str, least_tokens: int, kinds: Collection[PassageKind]
    ) -> tuple[int, int, int]:
        """Return the vectors there are of these kinds, the passages that should have some, their tokens."""
        wanted = [kind.value for kind in kinds]

        def query(cursor: Connection) -> tuple[int, int, int]:
            has_table = space_name in spaces.spaces_to_read(cursor)
            table = spaces.table_of(space_name) if has_table else _NO_TABLE
            (vectors,) = cursor.execute(
                f"SELECT count(*) FROM {table} e JOIN passage p ON p.id = e.passage_id "
                "WHERE p.kind IN (SELECT unnest(?))",
                [wanted],
            ).fetchone() or (0,)
            passages, tokens = cursor.execute(
                f"SELECT count(*), coalesce(sum(p.tokens), 0) {_PASSAGES}{_THAT_SHOULD}"
                "AND p.kind IN (SELECT unnest($kinds))",
                {"least": least_tokens, "kinds": wanted},
            ).fetchone() or (0, 0)
            return int(vectors), int(passages), int(tokens)

        return self._store.read(query)

    # -- writing

    def put(
        self,
        space: Space,
        embedded: Sequence[EmbeddedPassage],
        copies: Mapping[PassageId, Unembedded] | None = None,
    ) -> int:
        """Store the chunks of passages, all or none; return how many passages have theirs now.

        What they had before is replaced. `copies` are passages that get the vectors of their twins,
        whose parts must have the same numbers. Left out are passages that meanwhile are gone or say
        something else, twins that have none any more, and all when the space is gone.
        """
        twins = [each for each in (copies or {}).values() if each.twin is not None]

        def write(connection: Connection) -> int:
            if space.name not in spaces.space_names(connection):
                return 0
            return stored(connection, space, embedded, twins)

        return self._store.write_derived(write, Changed(vectors=frozenset((space.name,)))).result()

    # -- reading

    def count(self, space_name: str) -> tuple[int, int]:
        """Return how many passages have a vector in a space, and how many vectors there are."""

        def query(cursor: Connection) -> tuple[int, int]:
            if space_name not in spaces.spaces_to_read(cursor):
                return 0, 0
            row = cursor.execute(
                "SELECT count(DISTINCT passage_id), count(*) "
                f"FROM {spaces.table_of(space_name)} WHERE vector IS NOT NULL"
            ).fetchone()
            return row or (0, 0)

        return self._store.read(query)

    def load(self, space: Space, after: datetime | None = None) -> Iterator[LoadedRows]:
        """Yield all vectors of a space by passage, or those written after the moment `after`.

        Some thousand passages at a time, read in short queries between which others may write; what is
        written meanwhile is left for the next time, what leaves meanwhile may or may not be among
        them. It ends early when the space is thrown away. 0.2 s for 100,000 vectors of 384.
        """
        yield from loaded(self._store, space, after)


def _alike(
    cursor: Connection, condition: str, values: list[Any]
) -> list[tuple[PassageId, str, str]]:
    """Return (id, kind, content hash) of the passages that meet a condition, by id."""
    return cursor.execute(
        f"SELECT id, kind, content_hash FROM passage WHERE {condition} ORDER BY id", [values]
    ).fetchall()


def _embedded(cursor: Connection, space: Space, ids: list[int]) -> set[int]:
    """Return which of some passages have their vectors."""
    if not ids:
        return set()
    rows = cursor.execute(
        f"SELECT passage_id FROM {spaces.table_of(space.name)} "
        "WHERE chunk_number = 0 AND passage_id IN (SELECT unnest(?))",
        [ids],
    ).fetchall()
    return {each for (each,) in rows}
