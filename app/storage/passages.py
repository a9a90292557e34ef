"""Queries about passages: their words for the text index, what an index has yet to take, counts."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from app.domain.conversations import Block, Role
from app.domain.ids import (
    PARTS_OF_A_PASSAGE,
    ConversationId,
    ExchangeId,
    MessageId,
    PartId,
    PassageId,
    part_id,
)
from app.domain.passages import Part, PassageKind, PassageText, SearchQuery
from app.domain.turn_text import turn_parts
from app.storage import man_pages
from app.storage.database import Connection
from app.storage.rows import blocks_of
from app.storage.store import Store
from app.storage.times import from_db, to_db

_NEAR_PARTS = 4  # of the turn before and after: more than a context of 150 words takes


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

    Of a manual page, `conversation_title` is its own title and `source` what it is called: grep.1.
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

    def texts(self, ids: Iterable[int], *, with_neighbours: bool = True) -> list[PassageText]:
        """Return the words of the passages that exist among `ids`, by id.

        `before` and `after` are left empty without neighbours, which is faster.
        """
        wanted = list(ids)
        return self._store.read(lambda cursor: _texts(cursor, wanted, with_neighbours))

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

    def places(self, ids: Iterable[int]) -> Mapping[PassageId, PassagePlace]:
        """Return the places of the passages that exist among `ids`, by id."""
        wanted = list(ids)

        def query(cursor: Connection) -> dict[PassageId, PassagePlace]:
            rows = cursor.execute(
                "SELECT p.id, p.kind, p.conversation_id, coalesce(c.title, ''), "
                "coalesce(c.source, ''), coalesce(c.archived, false), p.exchange_id, "
                "e.turn_number, m.message_id, coalesce(e.model, c.model), p.created_at, "
                "p.source_id FROM passage p LEFT JOIN conversation c ON c.id = p.conversation_id "
                "LEFT JOIN exchange e ON e.id = p.exchange_id "
                "LEFT JOIN exchange_message m ON m.exchange_id = e.id AND m.place = 0 "
                "WHERE p.id IN (SELECT unnest(?))",
                [wanted],
            ).fetchall()
            pages = [row[11] for row in rows if row[1] == PassageKind.MAN_PAGE]
            titles = man_pages.titles_of(cursor, pages) if pages else {}
            return {row[0]: _place(row, *titles.get(row[11], row[3:5])) for row in rows}

        return self._store.read(query)

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
        """Return the passages that a query's filters leave, newest first.

        What belongs to no conversation is among them when its kind is asked for.
        """
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
        statement = (
            f"SELECT p.id FROM passage p {join} conversation c ON c.id = p.conversation_id "
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

    def of_kind(self, kind: PassageKind) -> frozenset[PassageId]:
        """Return all passages of one kind."""
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT id FROM passage WHERE kind = ?", [kind.value]
            ).fetchall()
        )
        return frozenset(each for (each,) in rows)

    def of_conversations(self, ids: Iterable[ConversationId]) -> frozenset[PassageId]:
        """Return all passages of some conversations."""
        wanted = list(ids)
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT id FROM passage WHERE conversation_id IN (SELECT unnest(?))", [wanted]
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


def _place(row: Sequence[Any], title: str, source: str) -> PassagePlace:
    return PassagePlace(
        row[0], PassageKind(row[1]), row[2], title, source, row[5], row[6], row[7], row[8], row[9],
        from_db(row[10]),
    )  # fmt: skip


def _texts(cursor: Connection, ids: list[int], with_neighbours: bool) -> list[PassageText]:
    heads = cursor.execute(
        "SELECT p.id, p.kind, p.source_id, p.conversation_id, p.exchange_id, p.created_at, c.title "
        "FROM passage p LEFT JOIN conversation c ON c.id = p.conversation_id "
        "WHERE p.id IN (SELECT unnest(?)) ORDER BY p.id",
        [ids],
    ).fetchall()
    turns = {head[4]: PassageId(head[0]) for head in heads if head[1] == PassageKind.TURN}
    around = _neighbours(cursor, list(turns)) if with_neighbours else _ALONE
    parts = _parts_by_exchange(cursor, turns | around.passages)
    sources = [head[2] for head in heads if "summary" in head[1]]
    summaries = _summary_words(cursor, sources) if sources else {}
    pages = [head[2] for head in heads if head[1] == PassageKind.MAN_PAGE]
    manual = man_pages.words_of(cursor, pages) if pages else {}
    texts = []
    for passage_id, kind, source_id, conversation_id, exchange_id, created_at, title in heads:
        text = PassageText(
            id=passage_id,
            kind=PassageKind(kind),
            conversation_id=conversation_id,
            title=title or "",
            parts=(),
            created_at=from_db(created_at),
        )
        if kind == PassageKind.TURN:
            text = replace(
                text,
                parts=parts.get(exchange_id, ()),
                before=parts.get(around.before.get(exchange_id, 0), ())[-_NEAR_PARTS:],
                after=parts.get(around.after.get(exchange_id, 0), ())[:_NEAR_PARTS],
            )
        elif words := summaries.get((kind, source_id)):
            whole = Part(part_id(passage_id, 0), Role.ASSISTANT, words)
            text = replace(text, parts=(whole,))
        elif kind == PassageKind.MAN_PAGE and source_id in manual:
            page, said = manual[source_id]
            own = (
                Part(part_id(passage_id, number), Role.ASSISTANT, words)
                for number, words in enumerate(said)
            )
            text = replace(text, title=page, parts=tuple(own))
        texts.append(text)
    return texts


@dataclass(frozen=True, slots=True)
class _Around:
    """Which exchanges stand next to others on their paths, and their passages."""

    before: dict[int, int]
    after: dict[int, int]
    passages: dict[int, PassageId]


_ALONE = _Around({}, {}, {})


def _neighbours(cursor: Connection, exchange_ids: list[int]) -> _Around:
    """Return the exchange before each, and the newest that follows it, within its segment."""
    rows = cursor.execute(
        "SELECT e.id, e.parent_id, pp.id FROM exchange e "
        "JOIN exchange q ON q.id = e.parent_id AND q.segment_number = e.segment_number "
        "JOIN passage pp ON pp.exchange_id = q.id AND pp.kind = 'turn' "
        "WHERE e.id IN (SELECT unnest(?))",
        [exchange_ids],
    ).fetchall()
    before = {each: parent for each, parent, _ in rows}
    passages = {parent: PassageId(passage) for _, parent, passage in rows}
    rows = cursor.execute(
        "SELECT q.id, max(e.id), arg_max(p.id, e.id) FROM exchange e "
        "JOIN exchange q ON q.id = e.parent_id AND q.segment_number = e.segment_number "
        "JOIN passage p ON p.exchange_id = e.id AND p.kind = 'turn' "
        "WHERE q.id IN (SELECT unnest(?)) GROUP BY q.id",
        [exchange_ids],
    ).fetchall()
    after = {each: child for each, child, _ in rows}
    passages |= {child: PassageId(passage) for _, child, passage in rows}
    return _Around(before, after, passages)


def _parts_by_exchange(
    cursor: Connection, passages: Mapping[int, PassageId]
) -> dict[int, tuple[Part, ...]]:
    links = cursor.execute(
        "SELECT exchange_id, place, message_id FROM exchange_message "
        "WHERE exchange_id IN (SELECT unnest(?)) ORDER BY exchange_id, place",
        [list(passages)],
    ).fetchall()
    # Joined in one query, DuckDB would hash the whole table of messages: 100 MB of 260,000.
    rows = cursor.execute(
        "SELECT id, role, model, text, blocks FROM message WHERE id IN (SELECT unnest(?))",
        [list({message_id for *_, message_id in links})],
    ).fetchall()
    said = {row[0]: (Role(row[1]), row[2], blocks_of(row[3], row[4])) for row in rows}
    grouped: dict[int, list[tuple[MessageId, int, Role, str | None, Sequence[Block]]]] = {}
    for exchange_id, place, message_id in links:
        if (message := said.get(message_id)) is not None:
            grouped.setdefault(exchange_id, []).append((message_id, place, *message))
    return {each: turn_parts(passages[each], messages) for each, messages in grouped.items()}


def _summary_words(cursor: Connection, source_ids: list[int]) -> dict[tuple[str, int], str]:
    rows = cursor.execute(
        "SELECT kind || '_summary', source_id, text FROM summary "
        "WHERE latest AND source_id IN (SELECT unnest(?))",
        [source_ids],
    ).fetchall()
    return {(kind, source_id): text for kind, source_id, text in rows}
