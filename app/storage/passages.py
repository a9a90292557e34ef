"""Queries about passages: their words for the text index, what an index has yet to take, counts."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.conversations import Role
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import PassageKind, PassageText, SearchQuery
from app.domain.turn_text import QUOTING_MODEL, turn_text
from app.storage.database import Connection
from app.storage.rows import blocks_of
from app.storage.store import Store
from app.storage.times import from_db, to_db


@dataclass(frozen=True, slots=True)
class IndexWork:
    """What an index has yet to do up to `position`; `is_last` when nothing is left after it."""

    added: tuple[PassageId, ...]
    removed: tuple[PassageId, ...]
    position: int
    is_last: bool


@dataclass(frozen=True, slots=True)
class PassagePlace:
    """Where a passage stands, for a result: its conversation and, of a turn, its exchange.

    `first_message_id` is the message that began the turn; `turn_number` its place on its path.
    """

    id: PassageId
    kind: PassageKind
    conversation_id: ConversationId | None
    conversation_title: str
    source: str
    archived: bool
    exchange_id: ExchangeId | None
    turn_number: int | None
    first_message_id: MessageId | None
    model: str | None
    created_at: datetime


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
        return self._store.read(lambda cursor: _texts(cursor, wanted))

    def places(self, ids: Iterable[int]) -> Mapping[PassageId, PassagePlace]:
        """Return the places of the passages that exist among `ids`, by id."""
        wanted = list(ids)
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT p.id, p.kind, p.conversation_id, coalesce(c.title, ''), "
                "coalesce(c.source, ''), coalesce(c.archived, false), p.exchange_id, "
                "e.turn_number, m.message_id, coalesce(e.model, c.model), p.created_at "
                "FROM passage p LEFT JOIN conversation c ON c.id = p.conversation_id "
                "LEFT JOIN exchange e ON e.id = p.exchange_id "
                "LEFT JOIN exchange_message m ON m.exchange_id = e.id AND m.place = 0 "
                "WHERE p.id IN (SELECT unnest(?))",
                [wanted],
            ).fetchall()
        )
        found = (
            PassagePlace(
                row[0],
                PassageKind(row[1]),
                row[2],
                row[3],
                row[4],
                row[5],
                row[6],
                row[7],
                row[8],
                row[9],
                from_db(row[10]),
            )
            for row in rows
        )
        return {place.id: place for place in found}

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

    def hidden(self) -> frozenset[PassageId]:
        """Return the passages that search leaves out unless asked: archived, in the trash, private."""
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT p.id FROM passage p JOIN conversation c ON c.id = p.conversation_id "
                "WHERE c.archived OR c.private OR c.deleted_at IS NOT NULL"
            ).fetchall()
        )
        return frozenset(each for (each,) in rows)

    def allowed(
        self, query: SearchQuery, kinds: Collection[PassageKind] | None
    ) -> Sequence[PassageId]:
        """Return the passages that a query's filters leave, newest first."""
        conditions = ["NOT c.private", "c.deleted_at IS NULL"]
        conditions.append("c.archived" if query.archived else "NOT c.archived")
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
        statement = (
            "SELECT p.id FROM passage p JOIN conversation c ON c.id = p.conversation_id "
            "LEFT JOIN exchange e ON e.id = p.exchange_id "
            f"WHERE {' AND '.join(conditions)} ORDER BY p.created_at DESC, p.id DESC"
        )
        rows = self._store.read(lambda cursor: cursor.execute(statement, values).fetchall())
        return [each for (each,) in rows]

    def of_source(self, kind: PassageKind, source_id: int) -> tuple[PassageId, ...]:
        """Return the passages made from one record."""
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT id FROM passage WHERE kind = ? AND source_id = ?", [kind.value, source_id]
            ).fetchall()
        )
        return tuple(each for (each,) in rows)

    def of_conversation(self, conversation_id: ConversationId) -> frozenset[PassageId]:
        """Return all passages of one conversation."""
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT id FROM passage WHERE conversation_id = ?", [conversation_id]
            ).fetchall()
        )
        return frozenset(each for (each,) in rows)

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


def _texts(cursor: Connection, ids: list[int]) -> list[PassageText]:
    heads = cursor.execute(
        "SELECT p.id, p.kind, p.source_id, p.conversation_id, p.exchange_id, p.created_at, c.title "
        "FROM passage p LEFT JOIN conversation c ON c.id = p.conversation_id "
        "WHERE p.id IN (SELECT unnest(?)) ORDER BY p.id",
        [ids],
    ).fetchall()
    turns = _turn_words(cursor, [head[4] for head in heads if head[1] == PassageKind.TURN])
    summaries = _summary_words(cursor, [head[2] for head in heads if "summary" in head[1]])
    texts = []
    for passage_id, kind, source_id, conversation_id, exchange_id, created_at, title in heads:
        if kind == PassageKind.TURN:
            user, assistant, tools = turns.get(exchange_id, ("", "", ""))
        else:
            user, assistant, tools = "", summaries.get((kind, source_id), ""), ""
        texts.append(
            PassageText(
                id=passage_id, kind=PassageKind(kind), conversation_id=conversation_id,
                title=title or "", user=user, assistant=assistant, tools=tools,
                created_at=from_db(created_at),
            )
        )  # fmt: skip
    return texts


def _turn_words(cursor: Connection, exchange_ids: list[int]) -> dict[int, tuple[str, str, str]]:
    rows = cursor.execute(
        "SELECT l.exchange_id, m.role, m.text, m.blocks FROM exchange_message l "
        "JOIN message m ON m.id = l.message_id WHERE l.exchange_id IN (SELECT unnest(?)) "
        "AND NOT (m.role = 'assistant' AND m.model IS NOT DISTINCT FROM ?) "
        "ORDER BY l.exchange_id, l.place",
        [exchange_ids, QUOTING_MODEL],
    ).fetchall()
    grouped: dict[int, list[tuple[str, str, str | None]]] = {}
    for exchange_id, role, text, blocks in rows:
        grouped.setdefault(exchange_id, []).append((role, text, blocks))
    words = {}
    for exchange_id, messages in grouped.items():
        turn = turn_text((Role(role), blocks_of(text, blocks)) for role, text, blocks in messages)
        tools = "\n".join(part for part in (turn.calls, turn.results) if part)
        words[exchange_id] = (turn.user, turn.assistant, tools)
    return words


def _summary_words(cursor: Connection, source_ids: list[int]) -> dict[tuple[str, int], str]:
    rows = cursor.execute(
        "SELECT kind || '_summary', source_id, text FROM summary "
        "WHERE latest AND source_id IN (SELECT unnest(?))",
        [source_ids],
    ).fetchall()
    return {(kind, source_id): text for kind, source_id, text in rows}
