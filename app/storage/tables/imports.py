"""Changes of imports to conversations, for undoing: those added, their messages, and edits."""

from collections.abc import Collection
from dataclasses import dataclass

from app.domain.changes import ImportNoted
from app.domain.ids import ConversationId, MessageId
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
from app.storage.engine.connection import Connection, Values
from app.storage.engine.store import StoreReader

IMPORTS_KEPT = 50


@dataclass(frozen=True, slots=True)
class ImportItem:
    """What an import did to a conversation: `ImportNoted`, as it is stored."""

    number: int
    conversation_id: ConversationId
    is_new: bool
    first_message: MessageId | None
    last_message: MessageId | None
    edits: str


_COLUMNS = columns_of(ImportItem)
_ITEMS = Table("import_item", f"position, place, {_COLUMNS}", "position, place", OF_CONVERSATIONS)


def _noted(batch: Batch, change: ImportNoted) -> None:
    _ITEMS.put(batch, change, position=batch.position, place=batch.place)


def _write(connection: Connection, batch: Batch, _state: State) -> None:
    if rows := batch.rows["import_item"]:
        _ITEMS.write(connection, rows)
        newest = max(row[2] for row in rows.values())
        connection.execute("DELETE FROM import_item WHERE number <= ?", [newest - IMPORTS_KEPT])


IMPORTS = Aggregate(
    (_ITEMS,),
    {ImportNoted: _noted},
    _write,
    rules=(reference("import_item.conversation_id", "conversation", "delete"),),
)


def forget_edits(connection: Connection, condition: str, values: Values) -> None:
    """Forget earlier titles, which may quote what is being forgotten; inside the caller's transaction."""
    connection.execute(f"UPDATE import_item SET edits = '{{}}' WHERE {condition}", values)


class ImportItems(StoreReader):
    """Reads what imports did. Blocking."""

    def of(self, numbers: Collection[int]) -> tuple[ImportItem, ...]:
        """Return what some imports did, in the order in which they did it."""
        return self._items(numbers, "number")

    def about(self, conversation_ids: Collection[int]) -> tuple[ImportItem, ...]:
        """Return what all imports did to some conversations, in that order."""
        return self._items(conversation_ids, "conversation_id")

    def _items(self, values: Collection[int], key: str) -> tuple[ImportItem, ...]:
        given = ("import_item", _COLUMNS, values, key, "ORDER BY position, place")
        return tuple(map(reader(ImportItem), self._store.select_in(*given)))
