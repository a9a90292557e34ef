"""Import history: what each import added, so that an import can be undone as a whole.

It is kept in the setting `import_history`: names of files and ids, no content.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from app.domain.changes import ConversationEdited, SettingPut
from app.domain.conversations import Conversation
from app.domain.errors import NotFound
from app.domain.ids import ConversationId, MessageId
from app.storage.deletion.forget import remove_added
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.settings import stored_text

_SETTING = "import_history"
_KEPT = 50


@dataclass(frozen=True, slots=True)
class PastImport:
    """An import: its number, when (UTC), the names of its files, and the conversations it added.

    `conversations` counts those that are still there and not in the trash, `messages` those that it
    added to others.
    """

    number: int
    at: datetime
    names: tuple[str, ...]
    conversations: int
    messages: int = 0


class Undone(NamedTuple):
    """The conversations moved to the trash, and the number of messages removed from others."""

    conversations: Sequence[ConversationId]
    messages: int = 0


class ImportHistory:
    """The last 50 imports that added conversations or messages. Thread-safe; blocking."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._conversations = Conversations(store)
        self._exchanges = Exchanges(store)

    def add(
        self,
        names: Sequence[str],
        added: Iterable[ConversationId],
        messages: Collection[MessageId] = (),
        leaves: Iterable[MessageId] = (),
    ) -> int:
        """Note an import and return its number; one that added nothing is not noted: 0.

        `messages` are those that it added to conversations which were there, `leaves` the last ones that
        these showed before. Raises StorageError.
        """
        spans, message_spans = _spans(added), _spans(messages)
        if not spans and not message_spans:
            return 0
        rows = self._rows()
        number = 1 + max((int(row["number"]) for row in rows), default=0)
        row = {"number": number, "at": now().isoformat(), "names": names, "spans": spans}
        if message_spans:
            row |= {"messages": message_spans, "leaves": _spans({*leaves}.difference(messages))}
        self._store.save(_put([*rows, row]))
        return number

    def listed(self) -> Sequence[PastImport]:
        """Return the imports, the newest first."""
        return [self._past_import(row) for row in reversed(self._rows())]

    def get(self, number: int) -> PastImport:
        """Return an import; raise NotFound."""
        return self._past_import(_row(self._rows(), number))

    def undo(self, number: int) -> Undone:
        """Move conversations that an import added to the trash, and remove messages it added to others.

        All or none. Messages that others follow, such as an answer given here, stay. Importing the
        same files again brings everything back. Raises NotFound, InvalidInput while a reply is
        being written in one of the conversations, StorageError.
        """
        rows = self._rows()
        row = _row(rows, number)
        moved, at = self._present(row), now()
        row["undone_at"] = at.isoformat()
        edits = (ConversationEdited(each, deleted_at=at) for each in moved)
        leaves = {*_ids(row.get("leaves", ()))}
        removed = remove_added(self._store, self._messages(row), leaves, *edits, _put(rows))
        return Undone(moved, len(removed))

    def undone(self) -> Sequence[ConversationId]:
        """Return the conversations that are in the trash because an import was undone."""
        moved: list[ConversationId] = []
        for row in self._rows():
            if "undone_at" in row:
                at = datetime.fromisoformat(row["undone_at"])
                moved += [each.id for each in self._added(row) if each.deleted_at == at]
        return moved

    def _rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(stored_text(self._store, _SETTING) or "[]")
        return rows

    def _past_import(self, row: Mapping[str, Any]) -> PastImport:
        return PastImport(
            row["number"],
            datetime.fromisoformat(row["at"]),
            tuple(row["names"]),
            len(self._present(row)),
            len(self._messages(row)),
        )

    def _present(self, row: Mapping[str, Any]) -> Sequence[ConversationId]:
        return [each.id for each in self._added(row) if each.deleted_at is None]

    def _messages(self, row: Mapping[str, Any]) -> Sequence[MessageId]:
        ids = _ids(row.get("messages", ()))
        return self._exchanges.unforgotten(ids) if ids else ()

    def _added(self, row: Mapping[str, Any]) -> Iterable[Conversation]:
        return self._conversations.by_ids(_ids(row["spans"])).values()


def _put(rows: Sequence[Mapping[str, Any]]) -> SettingPut:
    text = json.dumps(rows[-_KEPT:], ensure_ascii=False)
    return SettingPut(_SETTING, json.dumps(text, ensure_ascii=False))


def _row(rows: Sequence[dict[str, Any]], number: int) -> dict[str, Any]:
    for row in rows:
        if row["number"] == number:
            return row
    raise NotFound(f"There is no import {number}", "'commonplace imports' lists them.")


def _ids(spans: Iterable[Sequence[int]]) -> list[int]:
    return [number for first, last in spans for number in range(first, last + 1)]


def _spans(ids: Iterable[int]) -> list[list[int]]:
    """Return ids as [first, last] of consecutive ones."""
    spans: list[list[int]] = []
    for each in sorted(ids):
        if spans and each == spans[-1][1] + 1:
            spans[-1][1] = each
        else:
            spans.append([each, each])
    return spans
