"""Queries about passages: their text, the work that indexes have yet to do, filters, counts."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.domain.ids import PARTS_PER_PASSAGE, ConversationId, MessageId, PartId, PassageId
from app.domain.passages import PassageKind, PassageText, SearchQuery
from app.domain.records.sources import SourceName
from app.domain.turns import RECALL_MODEL
from app.storage.engine.connection import Connection
from app.storage.engine.stamps import to_db
from app.storage.engine.store import StoreReader, in_snapshot
from app.storage.tables.exchanges import not_shown
from app.storage.tables.passages.texts import (
    PassagePlace,
    PassageTexts,
    questions_of,
    shown_of,
    texts_of,
)
from app.storage.tables.topics import IN_TOPIC

Ids = npt.NDArray[np.int64]
_FIRST_PAGE = 500  # of the newest passages
_EXCHANGES_PER_QUESTION = 3  # some questions are repeated

_NAMED_PROJECT = "coalesce(c.project, f.project) IN (SELECT uid FROM project WHERE contains(lower(name), lower(?)))"
_FILES = (
    "LEFT JOIN (SELECT k.id, d.title, d.project FROM document_chunk k "
    "JOIN document d ON d.id = k.document_id) f ON p.kind = 'document' AND f.id = p.source_id "
)
_FILES_NAMED = """SELECT id FROM document WHERE kind = 'document' AND (ends_with(lower(name), '/' || $1)
    OR regexp_replace(lower(title), '[.][^.]+$', '') = $1)"""
_FIRST_PASSAGES = """SELECT arg_min(p.id, k.place) AS id FROM document_chunk k
    JOIN passage p ON p.kind = 'document' AND p.source_id = k.id
    WHERE k.document_id IN (SELECT unnest(?)) GROUP BY k.document_id"""
_SOURCES = ", ".join(f"'{each.value}'" for each in SourceName)
_FOLDER = (
    f"(c.source IN ({_SOURCES}) AND NOT EXISTS (SELECT 1 FROM project WHERE uid = c.project) AND c.id IN "
    "(SELECT conversation_id FROM tag WHERE lower(name) = lower(?) AND NOT automatic))"
)
"""A tag of a session that is in no project is the name of its folder."""

_UNANSWERED = """WITH unanswered AS (
        SELECT p.id, p.conversation_id FROM passage p
        WHERE p.kind = 'turn' AND p.tokens = 0 AND NOT EXISTS (
            SELECT 1 FROM exchange_message l JOIN message m ON m.id = l.message_id
            WHERE l.exchange_id = p.exchange_id AND m.role = 'assistant' AND m.text <> ''
            AND m.model IS DISTINCT FROM ?))
    SELECT id FROM unanswered UNION ALL
    SELECT s.id FROM passage s WHERE s.kind = 'conversation_summary'
    AND s.conversation_id IN (SELECT conversation_id FROM unanswered)
    AND NOT EXISTS (SELECT 1 FROM passage t ANTI JOIN unanswered ON unanswered.id = t.id
        WHERE t.conversation_id = s.conversation_id AND t.kind = 'turn')"""


@dataclass(frozen=True, slots=True)
class IndexWork:
    """What an index has yet to do up to `position`; `is_last` when nothing is left after it."""

    added: tuple[PassageId, ...]
    removed: tuple[PassageId, ...]
    position: int
    is_last: bool


class Passages(StoreReader):
    """Reads passages. Blocking: for worker threads and the command line."""

    @in_snapshot
    def work_since(self, cursor: Connection, position: int, limit: int) -> IndexWork:
        """Return what changed after the journal's `position`: about `limit` passages, oldest first.

        One write is never divided, so that an index that has done the work is exactly at
        `IndexWork.position`.
        """
        (until,) = cursor.column("SELECT position FROM state")
        ((count, end),) = cursor.rows(
            "SELECT count(*), max(position) FROM (SELECT position FROM passage "
            "WHERE position > ? ORDER BY position LIMIT ?)",
            [position, limit],
        )
        is_last = count < limit
        end = until if is_last else end
        added, removed = (
            tuple(
                cursor.column(
                    f"SELECT id FROM {table} WHERE position > ? AND position <= ? ORDER BY id",
                    [position, end],
                )
            )
            for table in ("passage", "passage_gone")
        )
        return IndexWork(added, removed, end, is_last)

    def texts(self, ids: Iterable[int]) -> PassageTexts:
        """Return the texts of the passages that exist among `ids`, by id."""
        return self._store.read(texts_of, list(ids))

    def hashes(self, ids: Iterable[int]) -> Mapping[PassageId, str]:
        """Return the content hash of the passages that exist among `ids`."""
        return dict(self._store.select_in("passage", "id, content_hash", list(ids)))

    def with_turns_before(self, ids: Iterable[int]) -> list[PassageId]:
        """Return passages and the turn before each turn, whose context includes the next turn."""
        wanted = list(ids)
        before = self._store.column(
            "SELECT q.id FROM passage p JOIN exchange e ON e.id = p.exchange_id "
            "JOIN passage q ON q.exchange_id = e.parent_id AND q.kind = 'turn' "
            "WHERE p.kind = 'turn' AND p.id IN (SELECT unnest(?))",
            [wanted],
        )
        return sorted({*wanted, *before})

    @in_snapshot
    def shown_after(self, cursor: Connection, ids: Iterable[int]) -> Mapping[PassageId, PassageId]:
        """Return, by turn, the one after it on the shown path of its conversation, in its segment."""
        rows = cursor.rows(
            "SELECT p.id, e.id, n.id FROM passage p JOIN exchange q ON q.id = p.exchange_id "
            "JOIN exchange e ON e.parent_id = q.id AND e.segment_number = q.segment_number "
            "JOIN passage n ON n.exchange_id = e.id AND n.kind = 'turn' "
            "WHERE p.kind = 'turn' AND p.id IN (SELECT unnest(?))",
            [list(ids)],
        )
        hidden = not_shown(cursor, [exchange for _, exchange, _ in rows]) if rows else ()
        return {own: after for own, exchange, after in rows if exchange not in hidden}

    def messages_of(self, parts: Iterable[PartId]) -> Mapping[PartId, MessageId]:
        """Return the messages that parts of turns were made from; other parts are absent."""
        rows = self._store.rows(
            "SELECT w.part, l.message_id FROM (SELECT unnest($1) AS part) w "
            "JOIN passage p ON p.id = w.part // $2 AND p.kind = 'turn' "
            "JOIN exchange_message l ON l.exchange_id = p.exchange_id AND l.place = w.part % $2",
            [list(parts), PARTS_PER_PASSAGE],
        )
        return dict(rows)

    def shown(self, ids: Iterable[int]) -> Mapping[PassageId, tuple[PassagePlace, PassageText]]:
        """Return place and text of the passages that exist among `ids`, without neighbors."""
        return self._store.read(shown_of, list(ids))

    def places(self, ids: Iterable[int]) -> Mapping[PassageId, PassagePlace]:
        """Return the places of the passages that exist among `ids`."""
        return {each: place for each, (place, _) in self.shown(ids).items()}

    def questions(self, exchange_ids: Iterable[int]) -> Mapping[int, str]:
        """Return, by exchange, the text of the user's first message that has any."""
        return self._store.read(questions_of, exchange_ids)

    def recent_questions(self, limit: int) -> tuple[str, ...]:
        """Return the last questions, newest first, each once; none of hidden conversations."""
        ids = self._store.column(
            "SELECT e.id FROM exchange e JOIN conversation c ON c.id = e.conversation_id "
            "WHERE NOT c.private AND c.deleted_at IS NULL "
            "ORDER BY e.started_at DESC, e.id DESC LIMIT ?",
            [limit * _EXCHANGES_PER_QUESTION],
        )
        texts = self.questions(ids)
        questions = (" ".join(texts.get(each, "").split()) for each in ids)
        return tuple(dict.fromkeys(filter(None, questions)))[:limit]

    def sample_messages(self, exchanges: int) -> list[str]:
        """Return the messages of a sample of exchanges, always the same; none of hidden conversations."""
        return self._store.column(
            "SELECT m.text FROM (SELECT e.id FROM exchange e "
            "JOIN conversation c ON c.id = e.conversation_id "
            "WHERE NOT c.private AND c.deleted_at IS NULL ORDER BY hash(e.id) LIMIT ?) s "
            "JOIN exchange_message l ON l.exchange_id = s.id JOIN message m ON m.id = l.message_id "
            "WHERE m.role IN ('user', 'assistant') AND m.text <> ''",
            [exchanges],
        )

    def hidden(self) -> Ids:
        """Return the passages that search excludes by default: archived, in the trash, private."""
        return self._ids(
            "SELECT p.id FROM passage p JOIN conversation c ON c.id = p.conversation_id "
            "WHERE c.archived OR c.private OR c.deleted_at IS NOT NULL"
        )

    def allowed(self, query: SearchQuery, kinds: Collection[PassageKind] | None) -> Ids:
        """Return the passages that pass a query's filters, in no order.

        Passages without a conversation, except documents, are included when their kind is requested.
        """
        return self._ids(*_filtered(query, kinds))

    def of_file(self, name: str) -> Sequence[PassageId]:
        """Return the first passage of each document with a file name, with or without ending or folders."""
        found = self._store.column(_FILES_NAMED, [name.strip("/").lower()])
        return self._store.column(_FIRST_PASSAGES, [found]) if found else []

    def newest(self, query: SearchQuery, kinds: Collection[PassageKind]) -> Iterator[PassageId]:
        """Yield the passages of some kinds that pass a query's filters, newest first.

        Of a document the first. They are read in pages of growing size: of a million only a few are wanted.
        """
        statement, values = _filtered(query, kinds)
        if PassageKind.DOCUMENT in kinds:
            first = "p.source_id IN (SELECT id FROM document_chunk WHERE place = 0)"
            statement += f" AND (p.kind <> 'document' OR {first})"
        statement += " ORDER BY p.created_at DESC, p.id DESC LIMIT ? OFFSET ?"
        offset, size = 0, _FIRST_PAGE
        while True:
            page: list[PassageId] = self._ids(statement, [*values, size, offset]).tolist()
            yield from page
            if len(page) < size:
                return
            offset, size = offset + size, size * 4

    def of_source(self, kind: PassageKind, source_id: int) -> tuple[PassageId, ...]:
        """Return the passages made from one record."""
        return tuple(self.of_sources(kind, [source_id]).get(source_id, ()))

    def of_sources(
        self, kind: PassageKind, source_ids: Sequence[int]
    ) -> Mapping[int, Sequence[PassageId]]:
        """Return the passages made from some records, by record; those without any are left out."""
        columns, rest = "source_id, list(id ORDER BY id)", f"AND kind = '{kind}' GROUP BY source_id"
        return dict(self._store.select_in("passage", columns, source_ids, "source_id", rest))

    def of_kind(self, kind: PassageKind) -> frozenset[PassageId]:
        ids = self._ids("SELECT id FROM passage WHERE kind = ?", [kind.value])
        return frozenset(map(PassageId, ids.tolist()))

    def unanswered(self) -> Ids:
        """Return the turns without an answer, and the summaries of conversations with only such turns.

        The answer failed before it began, or only Recall answered.
        """
        return self._ids(_UNANSWERED, [RECALL_MODEL])

    def of_conversations(self, ids: Iterable[ConversationId]) -> Ids:
        return self._ids(
            "SELECT id FROM passage WHERE conversation_id IN (SELECT unnest(?))", [list(ids)]
        )

    @in_snapshot
    def by_project(self, cursor: Connection) -> Mapping[str, Ids]:
        """Return the passages of the conversations and documents in projects, by the project's uid."""
        rows = cursor.execute(
            "SELECT c.project, p.id FROM passage p JOIN conversation c "
            "ON c.id = p.conversation_id WHERE c.project IS NOT NULL "
            "UNION ALL SELECT d.project, p.id FROM passage p "
            "JOIN document_chunk k ON p.kind = 'document' AND k.id = p.source_id "
            "JOIN document d ON d.id = k.document_id WHERE d.project IS NOT NULL ORDER BY 1"
        ).fetchnumpy()
        ids = np.asarray(rows["id"], np.int64)
        uids, starts = np.unique(np.asarray(rows["project"], object), return_index=True)
        return dict(zip(uids.tolist(), np.split(ids, starts[1:]), strict=False))

    def count_at(self, position: int) -> tuple[int, int]:
        """Return the minimum and maximum number of passages in an index that is at `position`.

        They are equal when nothing was written since.
        """
        ((least, all_now, gone_since),) = self._store.rows(
            "SELECT count(*) FILTER (position <= $1), count(*), "
            "(SELECT count(*) FROM passage_gone WHERE position > $1) FROM passage",
            [position],
        )
        return least, all_now + gone_since

    def history_at(self, position: int) -> tuple[int, int]:
        """Return how many passages were written up to `position` and in total, without the manual."""
        ((written, total),) = self._store.rows(
            "SELECT count(*) FILTER (position <= ?), count(*) FROM passage WHERE kind <> ?",
            [position, PassageKind.MAN_PAGE.value],
        )
        return written, total

    def forgetting(self) -> tuple[int, int]:
        """Return (the journal position of the last deletion of indexed words or 0, the present one)."""
        ((forgotten_at, position),) = self._store.rows(
            "SELECT coalesce((SELECT value FROM meta WHERE key = 'unindexed_at'), "
            "(SELECT value FROM meta WHERE key = 'forgotten_at'), '0'), position FROM state"
        )
        return int(forgotten_at), position

    def count_by_kind(self) -> Mapping[PassageKind, int]:
        """Return how many passages there are of each kind; kinds without any are absent."""
        rows = self._store.rows("SELECT kind, count(*) FROM passage GROUP BY kind ORDER BY kind")
        return {PassageKind(kind): count for kind, count in rows}

    @in_snapshot
    def _ids(self, cursor: Connection, statement: str, values: Sequence[object] = ()) -> Ids:
        """Return the ids that a statement selects, (n,): as an array, 100,000 take 1 ms, not 20."""
        return np.asarray(cursor.execute(statement, list(values)).fetchnumpy()["id"], np.int64)


def _filtered(
    query: SearchQuery, kinds: Collection[PassageKind] | None
) -> tuple[str, Sequence[object]]:
    """Return the statement that selects what a query's filters leave, and its values."""
    conditions = ["NOT coalesce(c.private, false)", "c.deleted_at IS NULL"]
    conditions.append("c.archived" if query.archived else "NOT coalesce(c.archived, false)")
    values: list[object] = []

    def require(condition: str, value: object) -> None:
        conditions.append(condition)
        values.extend([value] * condition.count("?"))

    if kinds is None:
        conditions.append("(c.id IS NOT NULL OR p.kind = 'document')")
    if query.pinned:
        conditions.append("c.pinned")
    for title in query.titles:
        require("contains(lower(coalesce(c.title, f.title)), lower(?))", title)
    for tag in query.tags:
        require("c.id IN (SELECT conversation_id FROM tag WHERE lower(name) = lower(?))", tag)
    for model in query.models:
        require("contains(lower(coalesce(e.model, c.model, '')), lower(?))", model)
    for source in query.sources:
        require("contains(lower(c.source), lower(?))", source)
    for project in query.projects:
        require(f"({_NAMED_PROJECT} OR {_FOLDER})", project)
    for topic in query.topics:
        require(IN_TOPIC, topic)
    if query.after is not None:
        require("p.created_at >= ?", to_db(query.after))
    if query.before is not None:
        require("p.created_at < ?", to_db(query.before))
    if kinds is not None:
        require("p.kind IN (SELECT unnest(?))", [kind.value for kind in kinds])
    joined = "LEFT JOIN exchange e ON e.id = p.exchange_id " if query.models else ""
    joined += _FILES if query.titles or query.projects else ""
    statement = (
        "SELECT p.id FROM passage p LEFT JOIN conversation c ON c.id = p.conversation_id "
        f"{joined}WHERE {' AND '.join(conditions)}"
    )
    return statement, values
