"""Import history: what each import did, so that an import can be undone as a whole.

What it does to a conversation is noted in the same change, so that an import which was killed can be undone, too.
The setting `import_history` has the times of imports and the names of their files.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

from app.domain import codec
from app.domain.changes import (
    Change,
    ConversationEdited,
    ConversationPut,
    ImportNoted,
    MessagesAdded,
    SettingPut,
    TagsChanged,
)
from app.domain.conversations import Conversation
from app.domain.errors import NotFound
from app.domain.ids import ConversationId, MessageId
from app.storage.deletion.forget import refuse_while_running, remove_added
from app.storage.engine.connection import grouped
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations, edited
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.imports import IMPORTS_KEPT, ImportItem, ImportItems
from app.storage.tables.settings import stored_text

_SETTING = "import_history"
_TAGS = "tags"  # among the edits of a conversation
_OWNER = "conversation_id"
_OF_MESSAGES = ("visible_leaf_id", "updated_at")  # as long as a message that others follow stays
_UNFINISHED = "unfinished"  # of an undo, in the row of an import
_TAKEN_AT = "taken_at"  # when the last undo that took tags did so; earlier versions did not note it


@dataclass(frozen=True, slots=True)
class PastImport:
    """An import: its number, when (UTC), the names of its files, and the conversations it added.

    `conversations` counts those that are still there and not in the trash, `messages` those that it
    added to others, `changed` the others whose title, date or tags it changed; 0 once that was undone.
    """

    number: int
    at: datetime
    names: tuple[str, ...]
    conversations: int
    messages: int = 0
    changed: int = 0

    @property
    def can_be_undone(self) -> bool:
        return bool(self.conversations or self.messages or self.changed)


class Undone(NamedTuple):
    """The conversations moved to the trash; how many messages of others were removed; how many others changed."""

    conversations: Sequence[ConversationId]
    messages: int = 0
    changed: int = 0


def notes_of(
    changes: Sequence[Change],
    before: Conversation | None,
    tags: Collection[str],
    *,
    is_restored: bool,
) -> list[ImportNoted]:
    """Return what changes of an import do to a new conversation and to the one that was here `before` with `tags`.

    The number of the import is missing. `is_restored` when they take that out of the trash. Tags are noted also
    where there are none, so that `ImportHistory.tags` knows it.
    """
    made = [each.conversation.id for each in changes if isinstance(each, ConversationPut)]
    if before is not None and is_restored:
        made.append(before.id)
    edits = json.dumps({_TAGS: [[], _tags_in(changes)]})
    notes = [ImportNoted(0, each, is_new=True, edits=edits) for each in made]
    if before is not None and not is_restored:
        note = _note(
            before, tags, [e for e in changes if getattr(e, _OWNER, before.id) == before.id]
        )
        notes += [note] if note != ImportNoted(0, before.id) else []
    return notes


def _tags_in(changes: Iterable[Change]) -> list[str]:
    return [tag for each in changes if isinstance(each, TagsChanged) for tag in each.added]


def _note(before: Conversation, tags: Collection[str], changes: Sequence[Change]) -> ImportNoted:
    own = [each for each in changes if isinstance(each, ConversationEdited)]
    plain, after = _plain(before), _plain(edited(before, own))
    names = (name for name in plain | after if plain.get(name) != after.get(name))
    edits = {name: [plain.get(name), after.get(name)] for name in names}
    if found := _tags_in(changes):
        edits[_TAGS] = [[each for each in found if each in tags], found]
    added = [
        message.id
        for each in changes
        if isinstance(each, MessagesAdded)
        for message in each.messages
        if message.conversation_id == before.id
    ]
    note = ImportNoted(0, before.id, edits=json.dumps(edits))
    return replace(note, first_message=added[0], last_message=added[-1]) if added else note


class ImportHistory:
    """The last 50 imports that changed conversations. Thread-safe; blocking."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._conversations = Conversations(store)
        self._exchanges = Exchanges(store)
        self._items = ImportItems(store)

    def begin(self, names: Sequence[str]) -> int:
        """Note an import of files with these names; return its number. Raises StorageError."""
        rows = self._rows()
        number = 1 + max((int(row["number"]) for row in rows), default=0)
        self._store.save(_put([*rows, {"number": number, "at": now().isoformat(), "names": names}]))
        return number

    def listed(self) -> Sequence[PastImport]:
        """Return the imports, the newest first."""
        rows = self._rows()
        items: dict[int, list[ImportItem]] = {}
        for each in self._items.of([row["number"] for row in rows]):
            items.setdefault(each.number, []).append(each)
        return [
            self._past_import(row, items[row["number"]])
            for row in reversed(rows)
            if any(map(_did_something, items.get(row["number"], ())))
        ]

    def get(self, number: int) -> PastImport:
        """Return an import; raise NotFound."""
        return self._past_import(*self._import(self._rows(), number))

    def undo(self, number: int) -> Undone:
        """Move conversations that an import added to the trash; take back what it did to others.

        Of each conversation all or none. Messages that others follow, such as an answer given here, stay, and so
        does what was edited since. After a kill the rest can be undone. Importing the same files again brings
        everything back. Raises NotFound, InvalidInput while a reply is being written in one of the
        conversations, StorageError.
        """
        row, every = self._import(self._rows(), number)
        at, is_changed = now(), _is_changed(row)
        undone = Undone((), 0, _changed(row, every))
        items = grouped(every, attrgetter("conversation_id"))
        refuse_while_running(self._store, items)
        rows = self._note_undo(number, at, unfinished=is_changed)
        for part in self._conversations.in_parts(items):
            own = [item for each in part for item in items[each]]
            moved = self._present(own)
            edits = [ConversationEdited(each, deleted_at=at) for each in moved]
            restored = self._taken_back(own, rows) if is_changed else ()
            removed = remove_added(self._store, self._messages(own), *edits, *restored)
            undone = Undone(
                [*undone.conversations, *moved], undone.messages + len(removed), undone.changed
            )
        self._note_undo(number, at, unfinished=False)
        return undone

    def _note_undo(
        self, number: int, at: datetime, *, unfinished: bool
    ) -> Sequence[Mapping[str, Any]]:
        rows = self._rows()  # read again: another import may have begun
        for row in rows:
            if row["number"] == number:
                row["undone_at"] = list(dict.fromkeys([*_undone_at(row), at.isoformat()]))
                row[_UNFINISHED] = unfinished
                if unfinished:
                    row[_TAKEN_AT] = at.isoformat()
        self._store.save(_put(rows))
        return rows

    def undone(self) -> Sequence[ConversationId]:
        """Return the conversations that are in the trash because an import was undone."""
        at = {row["number"]: times for row in self._rows() if (times := _undone_at(row))}
        items = [each for each in self._items.of(at) if each.is_new]
        found = self._conversations.by_ids(each.conversation_id for each in items)
        return [
            here.id
            for each in items
            if (here := found.get(each.conversation_id)) is not None
            and here.deleted_at is not None
            and here.deleted_at.isoformat() in at[each.number]
        ]

    def tags(self, conversation_ids: Collection[int]) -> Mapping[int, Collection[str]]:
        """Return the tags that imports found for conversations, of those where the first one noted them.

        Tags that an undo took are left out, also of what a later import had found before that undo.
        """
        rows = {row["number"]: row for row in self._rows()}
        found: dict[int, set[str]] = {}
        given: dict[int, list[tuple[str, set[str]]]] = {}  # with the time of the undo
        for item in self._items.about(conversation_ids):
            edits, own = json.loads(item.edits), item.conversation_id
            if _TAGS not in edits or not (item.is_new or own in found):
                continue
            row = rows.get(item.number, {})
            taken_at = row.get(_TAKEN_AT, next(iter(_undone_at(row)), ""))
            undone_at = "" if item.is_new else taken_at
            before, after = edits[_TAGS]
            later = (tags for at, tags in given.get(own, ()) if at > row.get("at", ""))
            taken = set[str]().union(*later) - _given_tags(edits)
            found.setdefault(own, set()).update({*(before if undone_at else after)} - taken)
            given.setdefault(own, []).append((undone_at, _given_tags(edits)))
        return found

    def _rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(stored_text(self._store, _SETTING) or "[]")
        return rows

    def _import(
        self, rows: Sequence[dict[str, Any]], number: int
    ) -> tuple[dict[str, Any], Sequence[ImportItem]]:
        row = next((each for each in rows if each["number"] == number), None)
        if row is None or not (items := self._items.of([number])):
            raise NotFound(f"There is no import {number}", "'commonplace imports' lists them.")
        return row, items

    def _past_import(self, row: Mapping[str, Any], items: Sequence[ImportItem]) -> PastImport:
        at, names = datetime.fromisoformat(row["at"]), tuple(row["names"])
        counts = len(self._present(items)), len(self._messages(items))
        return PastImport(row["number"], at, names, *counts, _changed(row, items))

    def _present(self, items: Iterable[ImportItem]) -> Sequence[ConversationId]:
        found = self._conversations.by_ids(each.conversation_id for each in items if each.is_new)
        return [each.id for each in found.values() if each.deleted_at is None]

    def _messages(self, items: Iterable[ImportItem]) -> frozenset[MessageId]:
        ids = [
            message_id
            for each in _of_others(items)
            if each.first_message is not None and each.last_message is not None
            for message_id in range(each.first_message, each.last_message + 1)
        ]
        return self._exchanges.unforgotten(ids)

    def _taken_back(
        self, items: Iterable[ImportItem], rows: Sequence[Mapping[str, Any]]
    ) -> Iterable[Change]:
        """Yield what restores the conversations that were here, as far as they are as the import left them.

        `rows` say which imports were undone: what an earlier one of them set does not return, and what a later
        one of the others set stays.
        """
        others = _of_others(items)
        found = self._conversations.by_ids(each.conversation_id for each in others)
        as_now = {each: _plain(conversation) for each, conversation in found.items()}
        undone = {row["number"] for row in rows if "undone_at" in row}
        every = grouped(self._items.about(found), attrgetter("conversation_id"))
        for item in reversed(others):
            edits, items_here = json.loads(item.edits), every.get(item.conversation_id, ())
            earlier = [each for each in items_here if each.number < item.number]
            later = [
                json.loads(each.edits)
                for each in items_here
                if each.number > item.number and each.number not in undone
            ]
            if tags := _given_tags(edits).difference(*map(_given_tags, later)):
                yield TagsChanged(item.conversation_id, removed=tuple(sorted(tags)))
            plain = as_now.get(item.conversation_id, {})
            for name, (before, after) in edits.items():
                if plain.get(name) == after and not any(name in each for each in later):
                    plain[name] = _before_undone(name, before, earlier, undone)
        leaves = [plain.get("visible_leaf_id") for plain in as_now.values()]
        present = self._store.column_in("message", "id", leaves)
        for own, plain in as_now.items():
            given = {name: value for name, value in plain.items() if value is not None}
            restored, current = codec.from_json_value(Conversation, given), found[own]
            if restored.visible_leaf_id not in present:
                restored = replace(restored, visible_leaf_id=current.visible_leaf_id)
            if restored != current:
                yield ConversationPut(restored)
            if restored.title != current.title:  # the text index has it
                title, origin = restored.title, restored.title_origin
                yield ConversationEdited(own, title=title, title_origin=origin)


def _undone_at(row: Mapping[str, Any]) -> list[str]:
    """Return when an import was undone; earlier versions noted the last time only."""
    times = row.get("undone_at", [])
    return [times] if isinstance(times, str) else list(times)


def _before_undone(
    name: str, value: Any, earlier: Sequence[ImportItem], undone: Collection[int]
) -> Any:
    """Return the value of a field before imports that were undone gave it; `earlier` are oldest first."""
    for item in reversed(earlier if name not in _OF_MESSAGES else ()):
        if (edit := json.loads(item.edits).get(name)) is not None:
            if item.number not in undone or edit[1] != value:
                break
            value = edit[0]
    return value


def _given_tags(edits: Mapping[str, Any]) -> set[str]:
    before, after = edits.get(_TAGS, ((), ()))
    return set(after).difference(before)


def _plain(conversation: Conversation) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(codec.dumps(conversation))
    return plain


def _of_others(items: Iterable[ImportItem]) -> list[ImportItem]:
    """Return what was done to conversations that were there before the import."""
    every = list(items)
    new = {each.conversation_id for each in every if each.is_new}
    return [each for each in every if each.conversation_id not in new]


def _did_something(item: ImportItem) -> bool:
    """Return whether an import did more to a conversation than to find tags that were there."""
    edits = json.loads(item.edits)
    return (
        item.is_new
        or item.first_message is not None
        or [*edits] != [_TAGS]
        or bool(_given_tags(edits))
    )


def _changed(row: Mapping[str, Any], items: Iterable[ImportItem]) -> int:
    """Return how many conversations that were here have edits of an import that was not undone."""
    edited_here = {
        each.conversation_id
        for each in _of_others(items)
        if any(before != after for before, after in json.loads(each.edits).values())
    }
    return len(edited_here) if _is_changed(row) else 0


def _is_changed(row: Mapping[str, Any]) -> bool:
    """Return whether what an import changed was not taken back, or not all of it before a kill."""
    return "undone_at" not in row or row.get(_UNFINISHED, False)


def _put(rows: Sequence[Mapping[str, Any]]) -> SettingPut:
    text = json.dumps(rows[-IMPORTS_KEPT:], ensure_ascii=False)
    return SettingPut(_SETTING, json.dumps(text, ensure_ascii=False))
