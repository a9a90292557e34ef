"""Topics: assignments of conversations, automatic names, and what the user decided.

Names and assignments are derived: written without the journal, and made again when lost. What the user
decided is in the journal, with the conversations that a topic had then, so that it is found again. A topic
loses its name when one of its conversations is forgotten or hidden, because the name may quote it.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from app.domain.change_set import ChangeSet
from app.domain.changes import TopicChosen
from app.domain.ids import ConversationId
from app.domain.passages import Space
from app.domain.records.topics import TopicChoice, TopicConversation, TopicId
from app.storage.engine.aggregate import (
    OF_CONVERSATIONS,
    Aggregate,
    Batch,
    State,
    Table,
    columns_of,
    reader,
    reference,
)
from app.storage.engine.connection import REPLACE, Connection, Row
from app.storage.engine.stamps import from_db
from app.storage.engine.store import StoreReader, in_snapshot
from app.storage.tables.passages import spaces
from app.storage.tables.passages.vector_rows import from_blobs

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_VISIBLE = "NOT c.private AND c.deleted_at IS NULL"
_CHOICES = Table("topic_choice", "id, name, is_hidden, merged_into")
_MEMBERS = Table(
    "topic_member", "conversation_id, topic_id, strength", "conversation_id", OF_CONVERSATIONS
)
_ROWS_AT_ONCE = 20_000
LEAST_CONVERSATIONS = 8
"""The fewest conversations in which topics are found."""
_NAMELESS = "UPDATE topic SET name = '', named_by = ''"

TOPIC_PLACES = (
    "(SELECT m.conversation_id, m.strength, coalesce(a.merged_into, m.topic_id) AS topic_id, "
    "coalesce(b.merged_into, t.parent_id) AS parent_id FROM topic_member m "
    "LEFT JOIN topic_choice a ON a.id = m.topic_id "
    "LEFT JOIN topic t ON t.id = coalesce(a.merged_into, m.topic_id) "
    "LEFT JOIN topic_choice b ON b.id = t.parent_id)"
)
"""The topic of each conversation and the wider one, merged topics resolved: a table."""

IN_TOPIC = (
    f"c.id IN (SELECT s.conversation_id FROM {TOPIC_PLACES} s JOIN "
    "(SELECT coalesce(o.id, t.id) AS id, coalesce(nullif(o.name, ''), t.name) AS name "
    "FROM topic t FULL JOIN topic_choice o ON o.id = t.id WHERE o.merged_into IS NULL) n "
    "ON n.id = s.topic_id OR n.id = s.parent_id JOIN (SELECT ? AS topic) q "
    "ON contains(lower(n.name), lower(q.topic)) OR n.id::VARCHAR = q.topic)"
)
"""The condition that a conversation c belongs to a topic, by a part of its name or by its number."""


# -- changes


def _chosen(batch: Batch, change: TopicChosen) -> None:
    topic_id = _CHOICES.put(batch, change.choice)
    for each in change.choice.conversations:
        batch.rows["topic_member"][each] = (each, topic_id, 1.0)
    batch.mark("found_topics")


def _write(connection: Connection, batch: Batch, state: State) -> None:
    _CHOICES.write(connection, batch.rows["topic_choice"], state)
    if members := batch.rows["topic_member"]:
        shown = connection.column_in("conversation", "id", members, rest="AND NOT private")
        _MEMBERS.write(connection, {each: members[each] for each in shown})


def clear_topic_names(connection: Connection, conversation_ids: Collection[int]) -> None:
    """Delete the automatic names that may quote conversations; inside the caller's transaction."""
    connection.execute(
        f"{_NAMELESS} WHERE id IN (SELECT topic_id FROM topic_member WHERE "
        f"{OF_CONVERSATIONS}) OR id IN (SELECT parent_id FROM topic WHERE id IN "
        f"(SELECT topic_id FROM topic_member WHERE {OF_CONVERSATIONS}))",
        [list(conversation_ids)],
    )


TOPICS = Aggregate(
    (_CHOICES, _MEMBERS),
    {TopicChosen: _chosen},
    write=_write,
    erase=lambda connection, ids, _: clear_topic_names(connection, ids),
    rules=(
        reference("topic_member.conversation_id", "conversation", "delete", label="topic"),
        reference("topic_choice.merged_into", "topic_choice", "clear", label="topic"),
    ),
)


# -- reading and writing


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """A topic as it is stored; its name is "" until it is named again.

    `named_by` is the model that named it, "" for none.
    """

    id: TopicId
    name: str
    parent_id: TopicId | None
    named_by: str = ""


@dataclass(frozen=True, slots=True)
class TopicMember:
    """A conversation's stored topic, merged ones not resolved; `strength` is its cosine to the centroid."""

    conversation_id: ConversationId
    topic_id: TopicId
    strength: float


@dataclass(frozen=True, slots=True)
class TopicWork:
    """The number of conversations that can have a topic, of those without one, and of nameless topics.

    `fitted` is how many conversations there were when topics were last found; 0 for never. `model` is the one that
    was last asked for names, "" for none.
    """

    conversations: int
    unassigned: int
    nameless: int
    fitted: int
    model: str = ""


@dataclass(frozen=True, slots=True)
class MemberTexts:
    """What a topic is named from: a conversation's title, and the beginnings of what the user wrote."""

    conversation_id: ConversationId
    title: str
    words: str


class TopicRows(StoreReader):
    """Reads and writes topics. Blocking: for worker threads and the command line."""

    def stored(self) -> tuple[StoredTopic, ...]:
        """Return the topics with automatic names, by id."""
        rows = self._store.rows(f"SELECT {columns_of(StoredTopic)} FROM topic ORDER BY id")
        return tuple(StoredTopic(*row) for row in rows)

    def choices(self) -> Mapping[TopicId, TopicChoice]:
        """Return what the user decided, by topic, without conversations."""
        rows = self._store.rows(f"SELECT {_CHOICES.columns} FROM topic_choice")
        return {row[0]: TopicChoice(*row) for row in rows}

    def names_wanted(self, model: str) -> int:
        """Return how many topics a model would be asked to name; before any was found, about how many."""
        ((found, unnamed, asked, conversations),) = self._store.rows(
            "SELECT (SELECT count(*) FROM topic), (SELECT count(*) FROM topic t LEFT JOIN topic_choice o "
            "ON o.id = t.id WHERE t.named_by = '' AND coalesce(o.name, '') = '' AND o.merged_into IS NULL), "
            "(SELECT max(value) FROM meta WHERE key = 'topics_model'), "
            f"(SELECT count(*) FROM conversation c WHERE {_VISIBLE})"
        )
        if found:
            return 0 if asked == model else int(unnamed)
        enough = conversations >= LEAST_CONVERSATIONS
        return round(math.sqrt(conversations / 2)) if enough else 0  # as `clusters` has it

    def members(self) -> tuple[TopicMember, ...]:
        """Return the stored topics of conversations that are not hidden."""
        rows = self._store.rows(
            f"SELECT m.{_MEMBERS.columns.replace(', ', ', m.')} FROM topic_member m "
            f"JOIN conversation c ON c.id = m.conversation_id WHERE {_VISIBLE}"
        )
        return tuple(TopicMember(*row) for row in rows)

    def spans(self) -> Sequence[Row]:
        """Return the topics with listed conversations.

        Each is (topic, wider topic, mean strength, count, first, last, title of the last conversation).
        """
        return self._store.rows(
            "SELECT s.topic_id, s.parent_id, avg(s.strength), count(*), min(c.created_at), max(c.updated_at), "
            f"max_by(c.title, c.updated_at) FROM {TOPIC_PLACES} s JOIN conversation c "
            f"ON c.id = s.conversation_id WHERE {_VISIBLE} AND NOT c.archived "
            "GROUP BY s.topic_id, s.parent_id"
        )

    def decisions(self) -> Mapping[TopicId, tuple[str, datetime]]:
        """Return what was last decided in each topic with such a fact, and when it was said."""
        rows = self._store.rows(
            f"SELECT s.topic_id, max_by(f.text, f.said_at), max(f.said_at) FROM {TOPIC_PLACES} s "
            "JOIN conversation c ON c.id = s.conversation_id JOIN fact f ON "
            "f.conversation_id = c.id AND f.category = 'decision' AND f.valid_until IS NULL "
            f"WHERE {_VISIBLE} AND NOT c.archived GROUP BY s.topic_id"
        )
        return {topic_id: (text, from_db(said_at)) for topic_id, text, said_at in rows}

    def conversations(self, topic_id: TopicId) -> tuple[TopicConversation, ...]:
        """Return the listed conversations of a topic and of those below it, oldest first."""
        rows = self._store.rows(
            "SELECT c.id, c.title, c.created_at, c.updated_at, o.uid "
            f"FROM {TOPIC_PLACES} s JOIN conversation c ON c.id = s.conversation_id "
            f"LEFT JOIN project o ON o.uid = c.project WHERE {_VISIBLE} AND NOT c.archived AND $1 IN (s.topic_id, s.parent_id) "
            "ORDER BY c.created_at, c.id",
            [topic_id],
        )
        return tuple(map(reader(TopicConversation), rows))

    def place(self, conversation_id: ConversationId) -> tuple[TopicId, float, float, int] | None:
        """Return a conversation's topic, its strength, the mean strength there and the count; None without."""
        row = self._store.row(
            f"SELECT p.topic_id, p.strength, avg(s.strength), count(*) FROM {TOPIC_PLACES} p "
            f"JOIN {TOPIC_PLACES} s ON s.topic_id = p.topic_id WHERE p.conversation_id = ? "
            "GROUP BY p.topic_id, p.strength",
            [conversation_id],
        )
        return None if row is None else (row[0], row[1], row[2], row[3])

    # -- for the worker

    @in_snapshot
    def work(self, cursor: Connection, space: Space) -> TopicWork:
        if space.name not in spaces.space_names(cursor):
            return TopicWork(0, 0, 0, 0)
        ((conversations, assigned),) = cursor.rows(
            "SELECT count(*), count(m.conversation_id) FROM (SELECT DISTINCT p.conversation_id AS id "
            f"FROM {_embedded(space)}) c LEFT JOIN topic_member m ON m.conversation_id = c.id"
        )
        (nameless,) = cursor.column(
            "SELECT count(*) FROM topic WHERE name = '' AND (id IN (SELECT topic_id FROM topic_member m "
            f"JOIN conversation c ON c.id = m.conversation_id WHERE {_VISIBLE}) OR id IN "
            "(SELECT parent_id FROM topic))"
        )
        meta: dict[str, str] = dict(
            cursor.select_in("meta", "key, value", ["topics_fitted", "topics_model"], "key")
        )
        fitted, model = int(meta.get("topics_fitted", 0)), meta.get("topics_model", "")
        return TopicWork(conversations, conversations - assigned, nameless, fitted, model)

    def vectors(self, space: Space) -> "tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]":
        """Return the ids (n,) and vectors (n, dim) of conversations, by id: the mean of their turns.

        Of each turn the first chunk counts, which has the question.
        """
        import numpy as np

        turns = self._store.read(_turns, space)
        found: list[npt.NDArray[np.int64]] = []
        sums: list[npt.NDArray[np.float32]] = []
        start = 0
        while start < len(turns):
            last = turns[min(start + _ROWS_AT_ONCE, len(turns)) - 1]
            some = self._store.read(_means, space, int(turns[start]), int(last))
            found.append(some[0])
            sums.append(some[1])
            start = int(np.searchsorted(turns, last, "right"))
        if not found:
            return turns, np.empty((0, space.dimension), np.float32)
        return np.concatenate(found), np.concatenate(sums)

    def texts(
        self, limit_chars: int, messages: int, ids: Sequence[ConversationId]
    ) -> tuple[MemberTexts, ...]:
        """Return what topics are named from, of those of some conversations that are not hidden.

        Of each, its title and the beginnings of the user's first messages.
        """
        rows = self._store.rows(
            "SELECT c.id, c.title, coalesce(w.words, '') FROM conversation c LEFT JOIN "
            "(SELECT conversation_id, string_agg(left(text, $1), chr(10) ORDER BY id) AS words FROM "
            "(SELECT conversation_id, id, text FROM message WHERE role = 'user' AND text <> '' "
            "QUALIFY row_number() OVER (PARTITION BY conversation_id ORDER BY id) <= $2) "
            f"GROUP BY conversation_id) w ON w.conversation_id = c.id "
            f"WHERE {_VISIBLE} AND c.id IN (SELECT unnest($3)) ORDER BY c.id",
            [limit_chars, messages, list(ids)],
        )
        return tuple(MemberTexts(*row) for row in rows)

    def replace(
        self,
        topics: Iterable[StoredTopic],
        members: Iterable[TopicMember],
        fitted: int | None = None,
        model: str | None = None,
    ) -> None:
        """Store the topics in the place of all earlier ones, and topics of some conversations.

        Conversations that are gone or hidden meanwhile are left out. `fitted` is the number of conversations
        that topics were found from; None if they were not found anew. `model` is the one that was asked for names;
        None leaves the one before.
        """
        rows = list(map(astuple, topics))
        meta = (("topics_fitted", fitted), ("topics_model", model))
        placed = {each.conversation_id: astuple(each) for each in members}

        def write(connection: Connection) -> None:
            visible = connection.column_in(
                "conversation c", "c.id", placed, "c.id", f"AND {_VISIBLE}"
            )
            connection.execute("DELETE FROM topic")
            connection.insert_rows("topic", columns_of(StoredTopic), rows)
            _MEMBERS.write(connection, {each: placed[each] for each in visible})
            if len(visible) < len(placed):
                connection.execute(_NAMELESS)
            given = [(key, str(value)) for key, value in meta if value is not None]
            connection.insert_rows("meta", "key, value", given, REPLACE)

        self._store.write_derived(write, ChangeSet(found_topics=True)).result()


def _embedded(space: Space) -> str:
    """Return the FROM clause of the turns with vectors, as p, of conversations that can have a topic."""
    return (
        f"passage p JOIN {spaces.table_of(space.name)} v ON v.passage_id = p.id "
        "AND v.chunk_number = 0 AND v.vector IS NOT NULL JOIN conversation c "
        f"ON c.id = p.conversation_id WHERE p.kind = 'turn' AND {_VISIBLE}"
    )


def _turns(cursor: Connection, space: Space) -> "npt.NDArray[np.int64]":
    """Return the conversation of each turn with a vector, in order."""
    import numpy as np

    if space.name not in spaces.space_names(cursor):
        return np.empty(0, np.int64)
    statement = f"SELECT p.conversation_id AS id FROM {_embedded(space)} ORDER BY 1"
    return np.asarray(cursor.execute(statement).fetchnumpy()["id"], np.int64)


def _means(
    cursor: Connection, space: Space, first: int, last: int
) -> "tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]":
    import numpy as np

    columns = cursor.execute(
        f"SELECT p.conversation_id AS id, v.vector FROM {_embedded(space)} "
        "AND p.conversation_id BETWEEN ? AND ? AND octet_length(v.vector) = ? ORDER BY 1",
        [first, last, spaces.bytes_of(space.dimension)],
    ).fetchnumpy()
    vectors = from_blobs(columns["vector"].tolist(), space.dimension)
    found, starts = np.unique(np.asarray(columns["id"], np.int64), return_index=True)
    sums = np.add.reduceat(vectors, starts, axis=0) if len(found) else vectors
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return found, (sums / np.maximum(lengths, 1e-12)).astype(np.float32)
