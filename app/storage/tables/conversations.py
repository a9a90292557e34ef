"""Conversations: their rows, tags, drafts and the origins of imported records."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce

from app.domain import codec
from app.domain.changes import (
    ConversationEdited,
    ConversationPut,
    DraftPut,
    OriginsAdded,
    TagsChanged,
)
from app.domain.conversations import Conversation, Draft, File, TitleOrigin
from app.domain.errors import NotFound
from app.domain.ids import ConversationId, MessageId
from app.storage.engine.aggregate import (
    OF_CONVERSATIONS,
    Aggregate,
    Batch,
    Rule,
    State,
    Table,
    columns_of,
    reader,
    reference,
    row_of,
    unique_uid,
)
from app.storage.engine.connection import Connection, Queries
from app.storage.engine.stamps import from_db
from app.storage.engine.store import StoreReader

CONVERSATION_COLUMNS = columns_of(Conversation)
_FOUND = "WITH found AS (SELECT id, source, project FROM conversation WHERE NOT private AND deleted_at IS NULL)"
_SUBAGENTS = (
    "FROM origin s JOIN origin own ON own.kind = 'conversation' AND own.source = s.source "
    "AND own.local_id = s.local_id JOIN origin parent ON parent.kind = 'conversation' "
    "AND parent.source = s.source AND parent.source_id || '/' || own.source_id = s.source_id "
    "AND parent.local_id <> s.local_id WHERE s.kind = 'subagent'"
)
# From 0.2 to 0.5 s, by how much of it is text; a longer conversation takes longer, some 0.2 s for each MB.
_PART_MESSAGES, _PART_CONVERSATIONS, _MESSAGE_BYTES = 4_000, 200, 500
_NO_CONVERSATION = 0  # the draft of a conversation that has not begun

_CONVERSATION = Table(
    "conversation", CONVERSATION_COLUMNS, erased="id IN (SELECT unnest($1))", counter="conversation"
)
_TAG = Table("tag", "conversation_id, name, automatic", "conversation_id, name", OF_CONVERSATIONS)
_DRAFT = Table(
    "draft", "conversation_id, text, saved_at, files", "conversation_id", OF_CONVERSATIONS
)
_ORIGIN = Table(
    "origin",
    "source, kind, source_id, local_id",
    "source, kind, source_id",
    "(kind <> 'message' AND local_id IN (SELECT unnest($1))) OR (kind = 'message' AND "
    f"local_id IN (SELECT id FROM message WHERE {OF_CONVERSATIONS}))",
)

_TITLE_RANKS = {origin: rank for rank, origin in enumerate(TitleOrigin)}
_SET = ("visible_leaf_id", "pinned", "archived", "private", "recalls", "deleted_at")
_CHOSEN = ("model", "preset", "project")


# -- changes


def _put(batch: Batch, change: ConversationPut) -> None:
    each = _CONVERSATION.put(batch, change.conversation)
    batch.rows["edits"].pop(each, None)
    batch.announce("conversations", each)


def _edited(batch: Batch, change: ConversationEdited) -> None:
    each = change.conversation_id
    if change.title is not None:
        batch.rows["titled"][each] = batch.position
        batch.mark("passages")  # the text index holds the title with each passage
    batch.rows["edits"].setdefault(each, []).append(change)
    leaf, at = change.visible_leaf_id, change.updated_at
    is_message = at is not None and change == ConversationEdited(each, None, None, leaf, at)
    if not is_message:
        batch.announce("conversations", each)
    if hides(change):
        batch.mark("memory", "passages")
    if leaf is not None:
        batch.announce("messages_in", each)


def hides(edit: ConversationEdited) -> bool:
    """Return whether an edit hides or shows a conversation, and so what was extracted from it."""
    return edit.deleted_at is not None or edit.private is not None or edit.restored


def _edited_once(conversation: Conversation, edit: ConversationEdited) -> Conversation:
    given = {name: value for name in _SET if (value := getattr(edit, name)) is not None}
    for name in _CHOSEN:
        if (value := getattr(edit, name)) is not None:
            given[name] = value or None
    origin = edit.title_origin or TitleOrigin.USER
    if edit.title is not None and _TITLE_RANKS[origin] >= _TITLE_RANKS[conversation.title_origin]:
        given |= {"title": edit.title, "title_origin": origin}
    if edit.updated_at is not None:
        given["updated_at"] = max(conversation.updated_at, edit.updated_at)
    if edit.restored:
        given["deleted_at"] = None
    return replace(conversation, **given)


def edited(conversation: Conversation, edits: Iterable[ConversationEdited]) -> Conversation:
    """Return a conversation after edits of it."""
    return reduce(_edited_once, edits, conversation)


def _tags(batch: Batch, change: TagsChanged) -> None:
    each, rows = change.conversation_id, batch.rows["tag"]
    rows |= {(each, name): None for name in change.removed}
    rows |= {(each, name): (each, name, change.automatic) for name in change.added}
    batch.announce("conversations", each)


def _draft(batch: Batch, change: DraftPut) -> None:
    key = change.conversation_id or _NO_CONVERSATION
    _DRAFT.put(batch, change, conversation_id=key, saved_at=change.at)


def _origins(batch: Batch, change: OriginsAdded) -> None:
    for source_id, local_id in change.pairs:
        key = (change.source, change.kind, source_id)
        batch.rows["origin"][key] = (*key, local_id)


# -- writing


def _write(connection: Connection, batch: Batch, state: State) -> None:
    _CONVERSATION.write(connection, batch.rows["conversation"], state)
    edits, columns = batch.rows["edits"], CONVERSATION_COLUMNS
    rows = connection.select_in("conversation", columns, edits) if edits else ()
    changed = [row_of(edited(conversation_of(row), edits[row[0]]), columns) for row in rows]
    connection.update_rows("conversation", columns, changed)
    _TAG.write(connection, batch.rows["tag"])
    _DRAFT.write(connection, batch.rows["draft"])


def _write_origins(connection: Connection, batch: Batch, _state: State) -> None:
    """Leave out the origins of records that were forgotten after the change was journalled."""
    rows = batch.rows["origin"]
    for table, is_message in (("message", True), ("conversation", False)):
        named = {row[3] for row in rows.values() if (row[1] == "message") is is_message}
        present = connection.existing_ids(table, batch.rows[table], named)
        rows = {
            key: row
            for key, row in rows.items()
            if (row[1] == "message") is not is_message or row[3] in present
        }
    _ORIGIN.write(connection, rows)


CONVERSATIONS = Aggregate(
    (_CONVERSATION, _TAG, _DRAFT),
    {ConversationPut: _put, ConversationEdited: _edited, TagsChanged: _tags, DraftPut: _draft},
    _write,
    rules=(
        unique_uid("conversation"),
        Rule(
            "conversation.visible_leaf_id",
            "The conversation {} shows a message that is not its own.",
            "SELECT c.id FROM conversation c ANTI JOIN message m "
            "ON m.id = c.visible_leaf_id AND m.conversation_id = c.id "
            "WHERE c.visible_leaf_id IS NOT NULL OR c.id IN (SELECT conversation_id FROM message)",
            "UPDATE conversation SET visible_leaf_id = (SELECT max(m.id) FROM message m "
            "WHERE m.conversation_id = conversation.id) WHERE id IN (SELECT unnest($1))",
        ),
        reference("tag.conversation_id", "conversation", "delete"),
        reference("draft.conversation_id", "conversation", "delete", where="conversation_id <> 0"),
    ),
)
ORIGINS = Aggregate(
    (_ORIGIN,),
    {OriginsAdded: _origins},
    _write_origins,
    rules=tuple(
        reference(
            "origin.local_id", table, "delete", where=f"kind {sign} 'message'", label="imported id"
        )
        for table, sign in (("conversation", "<>"), ("message", "="))
    ),
)


# -- queries


@dataclass(frozen=True, slots=True)
class ListFilter:
    """Which conversations a list shows. `archived` None means both; the trash is a separate list."""

    archived: bool | None = False
    trash: bool = False
    tag: str | None = None
    project: str | None = None


@dataclass(frozen=True, slots=True)
class FilterValues:
    """What search can filter by: (value, number of conversations) each, most frequent first."""

    tags: tuple[tuple[str, int], ...] = ()
    models: tuple[tuple[str, int], ...] = ()
    sources: tuple[tuple[str, int], ...] = ()
    projects: tuple[tuple[str, int], ...] = ()


class Conversations(StoreReader):
    """Reads conversations. Blocking: for worker threads and the command line."""

    def get(self, conversation_id: int) -> Conversation:
        """Return one conversation, in the trash or not; raise NotFound."""
        return conversation_with(self._store, conversation_id)

    def exists(self, conversation_id: int) -> bool:
        """Return whether there is such a conversation, in the trash or not."""
        return bool(self._store.column_in("conversation", "id", [conversation_id]))

    def listed(self, which: ListFilter = ListFilter()) -> tuple[Conversation, ...]:
        """Return the conversations of a list: pinned first, then by last change, newest first."""
        tagged = "id IN (SELECT conversation_id FROM tag WHERE lower(name) = lower(?))"
        conditions = {
            "archived = ?": None if which.trash else which.archived,
            tagged: which.tag,
            "project = ?": which.project,
        }
        given = {each: value for each, value in conditions.items() if value is not None}
        rows = self._store.rows(
            f"SELECT {CONVERSATION_COLUMNS} FROM conversation WHERE (deleted_at IS NOT NULL) = ? "
            f"{' '.join(f'AND {each}' for each in given)} "
            "ORDER BY pinned DESC, updated_at DESC, id DESC",
            [which.trash, *given.values()],
        )
        return tuple(map(conversation_of, rows))

    def titles(self) -> Sequence[tuple[ConversationId, str, datetime]]:
        """Return id, title and last change of what can be quoted elsewhere, newest first.

        Private conversations and those in the trash are left out.
        """
        rows = self._store.rows(
            "SELECT id, title, updated_at FROM conversation "
            "WHERE NOT private AND deleted_at IS NULL ORDER BY updated_at DESC, id DESC"
        )
        return [(each, title, from_db(at)) for each, title, at in rows]

    def by_ids(self, ids: Iterable[int]) -> Mapping[ConversationId, Conversation]:
        """Return the conversations that exist among `ids`, by id."""
        rows = self._store.select_in("conversation", CONVERSATION_COLUMNS, ids)
        return {found.id: found for found in map(conversation_of, rows)}

    def in_parts(self, ids: Iterable[int]) -> Iterator[list[ConversationId]]:
        """Yield conversations in lists that one transaction deletes so fast that other writes hardly wait."""
        own, part, size = "conversation_id", list[ConversationId](), 0
        given = [*dict.fromkeys(ids)]
        columns = f"{own}, count(*) + sum(strlen(text)) // {_MESSAGE_BYTES}"
        rows = self._store.select_in("message", columns, given, own, f"GROUP BY {own}")
        counts: dict[int, int] = dict(rows)
        for each in given:
            if size and size + counts.get(each, 0) >= _PART_MESSAGES:
                yield part
                part, size = [], 0
            part.append(ConversationId(each))
            size += counts.get(each, 0) + _PART_MESSAGES // _PART_CONVERSATIONS
        if part:
            yield part

    def tags_of(self, conversation_ids: Sequence[int]) -> Mapping[int, tuple[str, ...]]:
        """Return each conversation's tags, in alphabetical order; those without are absent."""
        own, names = "conversation_id", "list(name ORDER BY lower(name))"
        given = ("tag", f"{own}, {names}", conversation_ids, own, f"GROUP BY {own}")
        return {each: tuple(found) for each, found in self._store.select_in(*given)}

    def filter_values(self) -> FilterValues:
        """Return the values of conversations that are searched: neither private nor in the trash."""
        return FilterValues(
            self.tag_counts(),
            self._counted(
                "SELECT e.model, count(DISTINCT found.id) FROM exchange e "
                "JOIN found ON found.id = e.conversation_id WHERE e.model IS NOT NULL"
            ),
            self._counted("SELECT source, count(*) FROM found"),
            self._counted(
                "SELECT p.name, count(found.id) FROM project p LEFT JOIN found ON found.project = p.uid"
            ),
        )

    def tag_counts(self) -> tuple[tuple[str, int], ...]:
        """Return the tags of conversations that are searched, with their numbers, most frequent first."""
        return self._counted(
            "SELECT t.name, count(*) FROM tag t JOIN found ON found.id = t.conversation_id"
        )

    def _counted(self, statement: str) -> tuple[tuple[str, int], ...]:
        return tuple(self._store.rows(f"{_FOUND} {statement} GROUP BY ALL ORDER BY 2 DESC, 1"))

    def draft(self, conversation_id: ConversationId | None) -> Draft:
        """Return the unsent message of a conversation; None is one that has not begun."""
        key = conversation_id or _NO_CONVERSATION
        row = self._store.row("SELECT text, files FROM draft WHERE conversation_id = ?", [key])
        return Draft(row[0], codec.loads(tuple[File, ...], row[1])) if row else Draft()

    def imported_ids(self, source: str, kind: str, source_ids: Iterable[str]) -> Mapping[str, int]:
        """Return our id for each of the source's ids that was imported before.

        `kind` is one of `OriginsAdded`.
        """
        rows = self._store.rows(
            "SELECT source_id, local_id FROM origin WHERE source = ? AND kind = ? "
            "AND source_id IN (SELECT unnest(?))",
            [source, kind, list(source_ids)],
        )
        return dict(rows)

    def started_by(self, conversation_id: ConversationId) -> Conversation | None:
        """Return the conversation whose agent started this one, if it is here and not in the trash."""
        found = self._linked("parent.local_id", "s.local_id", conversation_id)
        return found[0] if found else None

    def subagents(self, conversation_id: ConversationId) -> tuple[Conversation, ...]:
        """Return the conversations that agents started from this one and that are not in the trash, oldest first."""
        return self._linked("s.local_id", "parent.local_id", conversation_id)

    def _linked(
        self, wanted: str, given: str, conversation_id: ConversationId
    ) -> tuple[Conversation, ...]:
        rows = self._store.rows(
            f"SELECT {CONVERSATION_COLUMNS} FROM conversation WHERE deleted_at IS NULL AND id IN "
            f"(SELECT {wanted} {_SUBAGENTS} AND {given} = ?) ORDER BY created_at, id",
            [conversation_id],
        )
        return tuple(map(conversation_of, rows))

    def source_id_of(self, source: str, message_id: MessageId | None) -> str | None:
        """Return the source's id of a message, as `imported_ids` takes it; None if it was not imported."""
        rows = self._store.rows(
            "SELECT source_id FROM origin WHERE source = ? AND kind = 'message' AND local_id = ?",
            [source, message_id],
        )
        return rows[0][0] if rows else None

    def are_imported(self, message_ids: Collection[MessageId]) -> bool:
        """Return whether all of some messages were imported, none written or generated here."""
        (count,) = self._store.row(
            "SELECT count(DISTINCT local_id) FROM origin WHERE kind = 'message' "
            "AND local_id IN (SELECT unnest(?))",
            [list(message_ids)],
        ) or (0,)
        return bool(count == len(message_ids))

    def ids_by_uid(self, uids: Iterable[str]) -> Mapping[str, ConversationId]:
        """Return the conversations that have one of these uids, by uid."""
        return dict(self._store.select_in("conversation", "uid, id", uids, "uid"))


conversation_of = reader(Conversation)
"""Of a row of CONVERSATION_COLUMNS."""


def conversation_with(cursor: Queries, conversation_id: int) -> Conversation:
    """Return one conversation; raise NotFound."""
    rows = cursor.select_in("conversation", CONVERSATION_COLUMNS, [conversation_id])
    if not rows:
        raise NotFound(
            f"There is no conversation {conversation_id}", "The list shows the existing ones."
        )
    return conversation_of(rows[0])
