"""Queries about conversations: the list, one row, tags, drafts, where imports went."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.domain.conversations import Conversation
from app.domain.errors import NotFound
from app.domain.ids import ConversationId
from app.storage.database import Connection
from app.storage.rows import CONVERSATION_COLUMNS, conversation_of
from app.storage.store import Store


@dataclass(frozen=True, slots=True)
class ListFilter:
    """Which conversations a list shows. `archived` None means both; the trash is a list of its own."""

    archived: bool | None = False
    trash: bool = False
    tag: str | None = None


class Conversations:
    """Reads conversations. Blocking: for worker threads and the command line."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, conversation_id: int) -> Conversation:
        """Return one conversation, in the trash or not; raise NotFound."""
        return self._store.read(lambda cursor: conversation_with(cursor, conversation_id))

    def listed(self, which: ListFilter = ListFilter()) -> tuple[Conversation, ...]:
        """Return the conversations of a list: pinned first, then by last change, newest first."""
        conditions = ["deleted_at IS NOT NULL" if which.trash else "deleted_at IS NULL"]
        values: list[object] = []
        if which.archived is not None and not which.trash:
            conditions.append("archived = ?")
            values.append(which.archived)
        if which.tag is not None:
            conditions.append(
                "id IN (SELECT conversation_id FROM tag WHERE lower(name) = lower(?))"
            )
            values.append(which.tag)
        statement = (
            f"SELECT {CONVERSATION_COLUMNS} FROM conversation WHERE {' AND '.join(conditions)} "
            "ORDER BY pinned DESC, updated_at DESC, id DESC"
        )
        rows = self._store.read(lambda cursor: cursor.execute(statement, values).fetchall())
        return tuple(map(conversation_of, rows))

    def by_ids(self, ids: Iterable[int]) -> Mapping[ConversationId, Conversation]:
        """Return the conversations that exist among `ids`, by id."""
        wanted = list(ids)
        statement = (
            f"SELECT {CONVERSATION_COLUMNS} FROM conversation WHERE id IN (SELECT unnest(?))"
        )
        rows = self._store.read(lambda cursor: cursor.execute(statement, [wanted]).fetchall())
        return {found.id: found for found in map(conversation_of, rows)}

    def tags_of(self, conversation_ids: Sequence[int]) -> Mapping[int, tuple[str, ...]]:
        """Return each conversation's tags, in alphabetical order; those without are absent."""
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT conversation_id, list(name ORDER BY lower(name)) FROM tag "
                "WHERE conversation_id IN (SELECT unnest(?)) GROUP BY conversation_id",
                [list(conversation_ids)],
            ).fetchall()
        )
        return {conversation_id: tuple(names) for conversation_id, names in rows}

    def draft(self, conversation_id: ConversationId | None) -> str:
        """Return the unsent words of a conversation; None is one not yet begun."""
        row = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT text FROM draft WHERE conversation_id = ?", [conversation_id or 0]
            ).fetchone()
        )
        return str(row[0]) if row else ""

    def imported_ids(self, source: str, kind: str, source_ids: Iterable[str]) -> Mapping[str, int]:
        """Return our id for each of the source's ids that was imported before.

        `kind` is "conversation" or "message".
        """
        wanted = list(source_ids)
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT source_id, local_id FROM origin WHERE source = ? AND kind = ? "
                "AND source_id IN (SELECT unnest(?))",
                [source, kind, wanted],
            ).fetchall()
        )
        return dict(rows)

    def ids_by_uid(self, uids: Iterable[str]) -> Mapping[str, ConversationId]:
        """Return the conversations that have one of these uids, by uid."""
        wanted = list(uids)
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT uid, id FROM conversation WHERE uid IN (SELECT unnest(?))", [wanted]
            ).fetchall()
        )
        return {uid: ConversationId(each) for uid, each in rows}


def conversation_with(cursor: Connection, conversation_id: int) -> Conversation:
    """Return one conversation; raise NotFound."""
    row = cursor.execute(
        f"SELECT {CONVERSATION_COLUMNS} FROM conversation WHERE id = ?", [conversation_id]
    ).fetchone()
    if row is None:
        raise NotFound(
            f"There is no conversation {conversation_id}", "The list shows those there are."
        )
    return conversation_of(row)
