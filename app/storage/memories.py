"""Queries about archival memory: texts saved on purpose."""

from dataclasses import dataclass

from app.domain.errors import NotFound
from app.domain.facts import Memory
from app.domain.ids import PassageId
from app.storage.learned import MEMORY_COLUMNS
from app.storage.rows import Row
from app.storage.store import Store
from app.storage.times import from_db


@dataclass(frozen=True, slots=True)
class KnownMemory:
    """A saved text with what a screen shows of it: its source's title and turn, "" and None for none."""

    memory: Memory
    conversation_title: str = ""
    turn_number: int | None = None


class ArchivalMemories:
    """Reads saved texts. Blocking: for worker threads and the command line."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, memory_id: int) -> Memory:
        """Return one; raise NotFound."""
        rows = self._where("id = ?", memory_id)
        if not rows:
            raise NotFound(f"There is no memory {memory_id}", "memory list shows those there are.")
        return rows[0]

    def listed(self) -> tuple[Memory, ...]:
        """Return all, newest first."""
        return self._where("true")

    def known(self) -> tuple[KnownMemory, ...]:
        """Return all with their sources, newest first."""
        sources = "SELECT m.id, c.title, e.turn_number FROM memory m "
        sources += "LEFT JOIN conversation c ON c.id = m.conversation_id "
        sources += "LEFT JOIN exchange e ON e.id = m.exchange_id"
        rows = self._store.read(lambda cursor: cursor.execute(sources).fetchall())
        of = {row[0]: (row[1] or "", row[2]) for row in rows}
        return tuple(KnownMemory(each, *of.get(each.id, ("", None))) for each in self.listed())

    def _where(self, condition: str, *values: object) -> tuple[Memory, ...]:
        rows = self._store.read(
            lambda cursor: cursor.execute(
                f"SELECT {MEMORY_COLUMNS} FROM memory WHERE {condition} "
                "ORDER BY saved_at DESC, id DESC",
                list(values),
            ).fetchall()
        )
        return tuple(map(_memory, rows))


def _memory(row: Row) -> Memory:
    return Memory(PassageId(row[0]), row[1], row[2], from_db(row[3]), row[4], row[5])
