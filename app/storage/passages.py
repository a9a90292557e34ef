"""Queries about passages: their words for the text index, what an index has yet to take, counts."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.domain.ids import PARTS_OF_A_PASSAGE, ConversationId, MessageId, PartId, PassageId
from app.domain.passages import PassageKind, PassageText, SearchQuery
from app.domain.turn_text import QUOTING_MODEL
from app.storage.database import Connection
from app.storage.passage_texts import PassagePlace, shown_of, texts_of
from app.storage.store import Store
from app.storage.times import to_db

Ids = npt.NDArray[np.int64]


_UNANSWERED = """WITH asked AS (
        SELECT p.id, p.conversation_id FROM passage p
        WHERE p.kind = 'turn' AND p.tokens = 0 AND NOT EXISTS (
            SELECT 1 FROM exchange_message l JOIN message m ON m.id = l.message_id
            WHERE l.exchange_id = p.exchange_id AND m.role = 'assistant' AND m.text <> ''
            AND m.model IS DISTINCT FROM ?))
    SELECT id FROM asked UNION ALL
    SELECT s.id FROM passage s WHERE s.kind = 'conversation_summary'
    AND s.conversation_id IN (SELECT conversation_id FROM asked)
    AND NOT EXISTS (SELECT 1 FROM passage t ANTI JOIN asked ON asked.id = t.id
        WHERE t.conversation_id = s.conversation_id AND t.kind = 'turn')"""


@dataclass(frozen=True, slots=True)
class IndexWork:
    """What an index has yet to do up to `position`; `is_last` when nothing is left after it."""

    added: tuple[PassageId, ...]
    removed: tuple[PassageId, ...]
    position: int
    is_last: bool


class Passages:
    """Reads passages. Blocking: for worker threads and the command line."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def work_since(self, position: int, limit: int) -> IndexWork:
        """Return what changed after the journal's `position`: about `limit` passages, oldest first.

        One write is never divided, so that an index which has done the work stands exactly at
        `IndexWork.position`.
        """

        def query(cursor: Connection) -> IndexWork:
            (until,) = cursor.execute("SELECT position FROM state").fetchone() or (0,)
            (count, end) = cursor.execute(
                "SELECT count(*), max(position) FROM (SELECT position FROM passage "
                "WHERE position > ? ORDER BY position LIMIT ?)",
                [position, limit],
            ).fetchone() or (0, None)
            is_last = count < limit
            end = until if is_last else end
            added, removed = (
                cursor.execute(
                    f"SELECT id FROM {table} WHERE position > ? AND position <= ? ORDER BY id",
                    [position, end],
                ).fetchall()
                for table in ("passage", "passage_gone")
            )
            return IndexWork(
                tuple(each for (each,) in added), tuple(each for (each,) in removed), end, is_last
            )

        return self._store.read(query)

    def texts(self, ids: Iterable[int]) -> list[PassageText]:
        """Return the words of the passages that exist among `ids`, by id."""
        wanted = list(ids)
        return self._store.read(lambda cursor: texts_of(cursor, wanted))

    def with_turns_before(self, ids: Iterable[int]) -> list[PassageId]:
        """Return passages and, of turns, the one before: what comes next is part of its context."""
        wanted = list(ids)
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT q.id FROM passage p JOIN exchange e ON e.id = p.exchange_id "
                "JOIN passage q ON q.exchange_id = e.parent_id AND q.kind = 'turn' "
                "WHERE p.kind = 'turn' AND p.id IN (SELECT unnest(?))",
                [wanted],
            ).fetchall()
        )
        return sorted({*wanted, *(each for (each,) in rows)})

    def messages_of(self, parts: Iterable[PartId]) -> Mapping[PartId, MessageId]:
        """Return the messages that parts of turns were made from; other parts are absent."""
        wanted = list(parts)
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT w.part, l.message_id FROM (SELECT unnest($1) AS part) w "
                "JOIN passage p ON p.id = w.part // $2 AND p.kind = 'turn' "
                "JOIN exchange_message l ON l.exchange_id = p.exchange_id AND l.place = w.part % $2",
                [wanted, PARTS_OF_A_PASSAGE],
            ).fetchall()
        )
        return dict(rows)

    def shown(self, ids: Iterable[int]) -> Mapping[PassageId, tuple[PassagePlace, PassageText]]:
        """Return place and words of the passages that exist among `ids`, without those beside them."""
        wanted = list(ids)
        return self._store.read(lambda cursor: shown_of(cursor, wanted))

    def places(self, ids: Iterable[int]) -> Mapping[PassageId, PassagePlace]:
        """Return the places of the passages that exist among `ids`."""
        return {each: place for each, (place, _) in self.shown(ids).items()}

    def questions(self, exchange_ids: Iterable[int]) -> Mapping[int, str]:
        """Return, by exchange, the text of the user's first message with words in it."""
        wanted = list(exchange_ids)
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT l.exchange_id, arg_min(m.text, l.place) FROM exchange_message l "
                "JOIN message m ON m.id = l.message_id WHERE l.exchange_id IN (SELECT unnest(?)) "
                "AND m.role = 'user' AND m.text <> '' GROUP BY l.exchange_id",
                [wanted],
            ).fetchall()
        )
        return dict(rows)

    def hidden(self) -> Ids:
        """Return the passages that search leaves out unless asked: archived, in the trash, private."""
        return self._ids(
            "SELECT p.id FROM passage p JOIN conversation c ON c.id = p.conversation_id "
            "WHERE c.archived OR c.private OR c.deleted_at IS NOT NULL"
        )

    def allowed(self, query: SearchQuery, kinds: Collection[PassageKind] | None) -> Ids:
        """Return the passages that a query's filters leave, in no order.

        What belongs to no conversation is among them when its kind is asked for.
        """
        return self._ids(*_filtered(query, kinds))

    def newest(self, query: SearchQuery, kinds: Collection[PassageKind]) -> list[PassageId]:
        """Return the passages of some kinds that a query's filters leave, newest first."""
        statement, values = _filtered(query, kinds)
        statement += " ORDER BY p.created_at DESC, p.id DESC"
        return [PassageId(each) for each in self._ids(statement, values).tolist()]

    def of_source(self, kind: PassageKind, source_id: int) -> tuple[PassageId, ...]:
        """Return the passages made from one record."""
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT id FROM passage WHERE kind = ? AND source_id = ?", [kind.value, source_id]
            ).fetchall()
        )
        return tuple(each for (each,) in rows)

    def of_kind(self, kind: PassageKind) -> frozenset[PassageId]:
        """Return all passages of one kind."""
        ids = self._ids("SELECT id FROM passage WHERE kind = ?", [kind.value])
        return frozenset(map(PassageId, ids.tolist()))

    def unanswered(self) -> Ids:
        """Return the turns that are nothing but a question, and summaries of nothing but such turns.

        The answer failed before it began, or Recall alone answered.
        """
        return self._ids(_UNANSWERED, [QUOTING_MODEL])

    def of_conversations(self, ids: Iterable[ConversationId]) -> Ids:
        """Return all passages of some conversations."""
        wanted = list(ids)
        return self._ids(
            "SELECT id FROM passage WHERE conversation_id IN (SELECT unnest(?))", [wanted]
        )

    def count_at(self, position: int) -> tuple[int, int]:
        """Return how many passages an index may hold that stands at `position`: least and most.

        They are equal when nothing was written since.
        """
        row = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT count(*) FILTER (position <= $1), count(*), "
                "(SELECT count(*) FROM passage_gone WHERE position > $1) FROM passage",
                [position],
            ).fetchone()
        )
        least, all_now, gone_since = row or (0, 0, 0)
        return least, all_now + gone_since

    def history_at(self, position: int) -> tuple[int, int]:
        """Return how many passages but the manual's were written up to `position`, and in all."""
        row = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT count(*) FILTER (position <= ?), count(*) FROM passage WHERE kind <> ?",
                [position, PassageKind.MAN_PAGE.value],
            ).fetchone()
        )
        held, total = row or (0, 0)
        return held, total

    def forgetting(self) -> tuple[int, int]:
        """Return (the journal's position of the last thing forgotten or 0, its position now)."""
        row = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT (SELECT value FROM meta WHERE key = 'forgotten_at'), position FROM state"
            ).fetchone()
        )
        forgotten_at, position = row or (None, 0)
        return int(forgotten_at or 0), position

    def count_by_kind(self) -> Mapping[PassageKind, int]:
        """Return how many passages there are of each kind; kinds without any are absent."""
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT kind, count(*) FROM passage GROUP BY kind ORDER BY kind"
            ).fetchall()
        )
        return {PassageKind(kind): count for kind, count in rows}

    def _ids(self, statement: str, values: Sequence[object] = ()) -> Ids:
        """Return the ids that a statement selects, (n,): as an array, 100,000 take 1 ms, not 20."""
        read = self._store.read(
            lambda cursor: cursor.execute(statement, list(values)).fetchnumpy()["id"]
        )
        return np.asarray(read, np.int64)


def _filtered(
    query: SearchQuery, kinds: Collection[PassageKind] | None
) -> tuple[str, Sequence[object]]:
    """Return the statement that selects what a query's filters leave, and its values."""
    conditions = ["NOT coalesce(c.private, false)", "c.deleted_at IS NULL"]
    conditions.append("c.archived" if query.archived else "NOT coalesce(c.archived, false)")
    values: list[object] = []

    def require(condition: str, value: object) -> None:
        conditions.append(condition)
        values.append(value)

    if query.pinned:
        conditions.append("c.pinned")
    for title in query.titles:
        require("contains(lower(c.title), lower(?))", title)
    for tag in query.tags:
        require("c.id IN (SELECT conversation_id FROM tag WHERE lower(name) = lower(?))", tag)
    for model in query.models:
        require("contains(lower(coalesce(e.model, c.model, '')), lower(?))", model)
    if query.after is not None:
        require("p.created_at >= ?", to_db(query.after))
    if query.before is not None:
        require("p.created_at < ?", to_db(query.before))
    if kinds is not None:
        require("p.kind IN (SELECT unnest(?))", [kind.value for kind in kinds])
    join = "JOIN" if kinds is None else "LEFT JOIN"
    exchanges = "LEFT JOIN exchange e ON e.id = p.exchange_id " if query.models else ""
    statement = (
        f"SELECT p.id FROM passage p {join} conversation c ON c.id = p.conversation_id "
        f"{exchanges}WHERE {' AND '.join(conditions)}"
    )
    return statement, values
