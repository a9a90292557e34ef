"""Queries about passages: their words for the text index, what an index has yet to take, counts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.domain.conversations import Role
from app.domain.ids import ConversationId, ExchangeId, PassageId
from app.domain.passages import PassageKind, PassageText
from app.domain.turn_text import turn_text
from app.storage.database import Connection
from app.storage.rows import blocks_of
from app.storage.store import Store
from app.storage.times import from_db

IntColumn = NDArray[np.int64]
TextColumn = NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class PassageRef:
    """A passage's place, without its words."""

    id: PassageId
    kind: PassageKind
    source_id: int
    conversation_id: ConversationId | None
    exchange_id: ExchangeId | None


@dataclass(frozen=True, slots=True)
class IndexWork:
    """What an index has yet to do up to `position`; `is_last` when nothing is left after it."""

    added: tuple[PassageId, ...]
    removed: tuple[PassageId, ...]
    position: int
    is_last: bool


@dataclass(frozen=True, slots=True)
class PassageTable:
    """All passages as columns, by ascending id: int64 ids and conversations (0: none), kinds."""

    ids: IntColumn
    conversations: IntColumn
    kinds: TextColumn


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

    def refs(self, ids: Iterable[int]) -> Mapping[PassageId, PassageRef]:
        """Return the places of the passages that exist among `ids`, by id."""
        wanted = list(ids)
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT id, kind, source_id, conversation_id, exchange_id FROM passage "
                "WHERE id IN (SELECT unnest(?))",
                [wanted],
            ).fetchall()
        )
        found = (PassageRef(row[0], PassageKind(row[1]), *row[2:]) for row in rows)
        return {ref.id: ref for ref in found}

    def table(self) -> PassageTable:
        """Return every passage's place, as columns: 100,000 in a few milliseconds."""
        columns = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT id, coalesce(conversation_id, 0) AS conversation, kind FROM passage "
                "ORDER BY id"
            ).fetchnumpy()
        )
        return PassageTable(
            np.asarray(columns["id"], np.int64),
            np.asarray(columns["conversation"], np.int64),
            np.asarray(columns["kind"], np.str_),
        )

    def of_source(self, kind: PassageKind, source_id: int) -> tuple[PassageId, ...]:
        """Return the passages made from one record."""
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT id FROM passage WHERE kind = ? AND source_id = ?", [kind.value, source_id]
            ).fetchall()
        )
        return tuple(each for (each,) in rows)

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
        "ORDER BY l.exchange_id, l.place",
        [exchange_ids],
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
