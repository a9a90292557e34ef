"""Memories: texts saved on purpose, and the core memory that goes into every prompt."""

from dataclasses import dataclass
from datetime import datetime

from app.domain.changes import CoreMemoryPut, MemoryForgotten, MemoryPut
from app.domain.errors import NotFound
from app.domain.facts import Memory
from app.storage.engine.aggregate import (
    OF_CONVERSATIONS,
    Aggregate,
    Batch,
    Table,
    reader,
    reference,
    row_of,
)
from app.storage.engine.store import Store
from app.storage.engine.times import from_db, to_db
from app.storage.tables.passage_rows import passage_source

MEMORY_COLUMNS = "id, uid, text, saved_at, conversation_id, exchange_id"


def _put(batch: Batch, change: MemoryPut) -> None:
    batch.rows["memory"][change.memory.id] = row_of(change.memory, MEMORY_COLUMNS)
    batch.mark("memory")


def _forgotten(batch: Batch, change: MemoryForgotten) -> None:
    if (row := batch.rows["memory"].pop(change.memory_id, None)) is not None:
        batch.rows["unwritten_texts"][row[2]] = None
    batch.rows["forgotten_memory"][change.memory_id] = batch.position
    batch.mark("memory", "passages")


def _core(batch: Batch, change: CoreMemoryPut) -> None:
    made_at = to_db(change.made_at)
    batch.rows["core_memory"][made_at] = (made_at, change.text, change.author)
    batch.mark("memory")


MEMORIES = Aggregate(
    (
        Table("memory", MEMORY_COLUMNS, erased=OF_CONVERSATIONS),
        Table("core_memory", "made_at, text, author", "made_at"),
    ),
    {MemoryPut: _put, MemoryForgotten: _forgotten, CoreMemoryPut: _core},
    rules=(
        reference("memory.conversation_id", "conversation", "delete", by_row=True),
        passage_source("memory", "memory"),
    ),
)


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
            raise NotFound(
                f"There is no memory {memory_id}", "'memory list' shows the existing ones."
            )
        return rows[0]

    def listed(self) -> tuple[Memory, ...]:
        """Return all, newest first."""
        return self._where("true")

    def known(self) -> tuple[KnownMemory, ...]:
        """Return all with their sources, newest first."""
        sources = "SELECT m.id, c.title, e.turn_number FROM memory m "
        sources += "LEFT JOIN conversation c ON c.id = m.conversation_id "
        sources += "LEFT JOIN exchange e ON e.id = m.exchange_id"
        rows = self._store.rows(sources)
        of = {row[0]: (row[1] or "", row[2]) for row in rows}
        return tuple(KnownMemory(each, *of.get(each.id, ("", None))) for each in self.listed())

    def _where(self, condition: str, *values: object) -> tuple[Memory, ...]:
        rows = self._store.rows(
            f"SELECT {MEMORY_COLUMNS} FROM memory WHERE {condition} "
            "ORDER BY saved_at DESC, id DESC",
            list(values),
        )
        return tuple(map(_memory, rows))


_memory = reader(Memory)


@dataclass(frozen=True, slots=True)
class CoreMemoryText:
    """A version of the core memory.

    `author` is "user" or PROVIDER:MODEL, `made_at` is UTC; both are None before the first version.
    """

    text: str = ""
    author: str | None = None
    made_at: datetime | None = None


class CoreMemory:
    """Reads the core memory. Blocking: for worker threads and the command line."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def now(self) -> CoreMemoryText:
        """Return the newest text."""
        found = self.versions(1)
        return found[0] if found else CoreMemoryText()

    def versions(self, limit: int = 100) -> tuple[CoreMemoryText, ...]:
        """Return its versions, newest first."""
        rows = self._store.rows(
            "SELECT text, author, made_at FROM core_memory ORDER BY made_at DESC LIMIT ?",
            [limit],
        )
        return tuple(CoreMemoryText(text, author, from_db(at)) for text, author, at in rows)
