"""Import history: what each import added, so that an import can be undone as a whole.

It is kept in the setting `import_history`: names of files and ids, no content.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.domain.changes import ConversationEdited, SettingPut
from app.domain.conversations import Conversation
from app.domain.errors import NotFound
from app.domain.ids import ConversationId
from app.storage.engine.store import Store
from app.storage.engine.times import now
from app.storage.tables.conversations import Conversations
from app.storage.tables.settings import stored_text

_SETTING = "import_history"
_KEPT = 50


@dataclass(frozen=True, slots=True)
class PastImport:
    """An import: its number, when (UTC), the names of its files, and the conversations it added.

    `conversations` counts those that are still there and not in the trash.
    """

    number: int
    at: datetime
    names: tuple[str, ...]
    conversations: int


class ImportHistory:
    """The last 50 imports that added conversations. Thread-safe; blocking."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._conversations = Conversations(store)

    def add(self, names: Sequence[str], added: Iterable[ConversationId]) -> int:
        """Note an import and return its number; one that added nothing is not noted: 0.

        Raises StorageError.
        """
        spans = _spans(added)
        if not spans:
            return 0
        rows = self._rows()
        number = 1 + max((int(row["number"]) for row in rows), default=0)
        row = {"number": number, "at": now().isoformat(), "names": names, "spans": spans}
        self._store.save(_put([*rows, row]))
        return number

    def listed(self) -> Sequence[PastImport]:
        """Return the imports, the newest first."""
        return [
            PastImport(
                row["number"],
                datetime.fromisoformat(row["at"]),
                tuple(row["names"]),
                len(self._present(row)),
            )
            for row in reversed(self._rows())
        ]

    def undo(self, number: int) -> Sequence[ConversationId]:
        """Move what an import added to the trash, in one transaction; return what was moved.

        Messages that it added to conversations which were there before stay. Importing the same files again
        brings back what was moved. Raises NotFound, StorageError.
        """
        rows = self._rows()
        for row in rows:
            if row["number"] == number:
                moved = self._present(row)
                at = now()
                row["undone_at"] = at.isoformat()
                edits = (ConversationEdited(each, deleted_at=at) for each in moved)
                self._store.save(*edits, _put(rows))
                return moved
        raise NotFound(f"There is no import {number}", "'commonplace imports' lists them.")

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

    def _present(self, row: Mapping[str, Any]) -> Sequence[ConversationId]:
        return [each.id for each in self._added(row) if each.deleted_at is None]

    def _added(self, row: Mapping[str, Any]) -> Iterable[Conversation]:
        ids = [number for first, last in row["spans"] for number in range(first, last + 1)]
        return self._conversations.by_ids(ids).values()


def _put(rows: Sequence[Mapping[str, Any]]) -> SettingPut:
    text = json.dumps(rows[-_KEPT:], ensure_ascii=False)
    return SettingPut(_SETTING, json.dumps(text, ensure_ascii=False))


def _spans(ids: Iterable[ConversationId]) -> list[list[int]]:
    """Return ids as [first, last] of consecutive ones."""
    spans: list[list[int]] = []
    for each in sorted(ids):
        if spans and each == spans[-1][1] + 1:
            spans[-1][1] = each
        else:
            spans.append([each, each])
    return spans
