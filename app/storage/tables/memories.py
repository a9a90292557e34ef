"""Memories: texts saved on purpose, the core memory of every prompt, and what models wrote to them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

from app.domain.changes import CoreMemoryPut, MemoryPut, MemoryWritePut
from app.domain.conversations import OWN_SOURCE
from app.domain.deletions import CoreMemoryForgotten
from app.domain.errors import NotFound
from app.domain.ids import ExchangeId
from app.domain.records.facts import Memory, MemoryWrite, WriteState
from app.storage.engine.aggregate import (
    OF_CONVERSATIONS,
    Aggregate,
    Table,
    columns_of,
    reader,
    reference,
)
from app.storage.engine.connection import Connection, grouped
from app.storage.engine.stamps import to_db
from app.storage.engine.store import StoreReader
from app.storage.tables.passages.rows import passage_source

_MEMORY = Table("memory", columns_of(Memory), erased=OF_CONVERSATIONS)
_CORE = Table("core_memory", columns_of(CoreMemoryPut), "made_at")
_WRITE = Table("memory_write", columns_of(MemoryWrite), "uid", OF_CONVERSATIONS)


def delete_wordings(connection: Connection, changes: Iterable[CoreMemoryForgotten]) -> None:
    """Delete versions of the core memory, and the lines that only they had from prompts and writes.

    Inside the caller's transaction.
    """
    made_at = [to_db(each) for change in changes for each in change.made_at]
    gone = connection.column_in("core_memory", "text", made_at, "made_at")
    connection.delete_in("core_memory", "made_at", made_at)
    kept = {
        line
        for text in connection.column("SELECT text FROM core_memory")
        for line in text.splitlines()
    }
    lines = {line for text in gone for line in text.splitlines() if line.strip()} - kept
    named = "SELECT 1 FROM (SELECT unnest($1::VARCHAR[]) AS line) WHERE"
    connection.execute(
        "DELETE FROM prompt_text p WHERE conversation_id = 0 AND EXISTS "
        f"({named} contains(chr(10) || p.text || chr(10), chr(10) || line || chr(10)))",
        [list(lines)],
    )
    connection.execute(
        "DELETE FROM memory_write w WHERE memory_id IS NULL AND EXISTS "
        f"({named} contains(line, nullif(w.old, '')) OR contains(line, nullif(w.new, '')) "
        "OR contains(w.old, line) OR contains(w.new, line))",
        [list(lines)],
    )


MEMORIES = Aggregate(
    (_MEMORY, _CORE, _WRITE),
    {
        MemoryPut: _MEMORY.puts("memory", mark=["memory"]),
        CoreMemoryPut: _CORE.puts(mark=["memory"]),
        MemoryWritePut: _WRITE.puts("write", mark=["memory"]),
    },
    rules=(
        reference("memory.conversation_id", "conversation", "delete", by_row=True),
        passage_source("memory", "memory"),
        reference("memory_write.conversation_id", "conversation", "delete"),
    ),
)


@dataclass(frozen=True, slots=True)
class KnownMemory:
    """A saved text with what a screen shows of it: its source's title and turn, "" and None for none."""

    memory: Memory
    conversation_title: str = ""
    turn_number: int | None = None


class ArchivalMemories(StoreReader):
    """Reads saved texts. Blocking: for worker threads and the command line."""

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
        rows = self._store.rows(
            "SELECT m.id, coalesce(c.title, ''), e.turn_number FROM memory m "
            "LEFT JOIN conversation c ON c.id = m.conversation_id "
            "LEFT JOIN exchange e ON e.id = m.exchange_id"
        )
        of = {row[0]: row[1:] for row in rows}
        return tuple(KnownMemory(each, *of.get(each.id, ())) for each in self.listed())

    def _where(self, condition: str, *values: object) -> tuple[Memory, ...]:
        rows = self._store.rows(
            f"SELECT {_MEMORY.columns} FROM memory WHERE {condition} "
            "ORDER BY saved_at DESC, id DESC",
            list(values),
        )
        return tuple(map(reader(Memory), rows))


@dataclass(frozen=True, slots=True)
class CoreMemoryText:
    """A version of the core memory.

    `author` is "user" or PROVIDER:MODEL, `made_at` is UTC; both are None before the first version.
    """

    text: str = ""
    author: str | None = None
    made_at: datetime | None = None


class CoreMemory(StoreReader):
    """Reads the core memory. Blocking: for worker threads and the command line."""

    def now(self) -> CoreMemoryText:
        found = self.versions(1)
        return found[0] if found else CoreMemoryText()

    def versions(self, limit: int = 100) -> tuple[CoreMemoryText, ...]:
        """Return its versions, newest first."""
        rows = self._store.rows(
            f"SELECT {_CORE.columns} FROM core_memory ORDER BY made_at DESC LIMIT ?", [limit]
        )
        return tuple(map(reader(CoreMemoryText), rows))


# The text of a saved text is kept in its own row, and may be forgotten there.
_WRITES = (
    "FROM (SELECT w.uid, w.conversation_id, w.exchange_id, model, written_at, CASE WHEN memory_id IS NULL "
    f"OR m.id IS NOT NULL THEN state ELSE '{WriteState.REMOVED}' END AS state, memory_id, old, "
    "coalesce(m.text, new) AS new, outside FROM memory_write w LEFT JOIN memory m "
    "ON m.id = w.memory_id) t"
)


class MemoryWrites(StoreReader):
    """Reads what models wrote to memory, in conversations that are shown. Blocking."""

    def get(self, uid: str) -> MemoryWrite:
        """Return the one whose uid ends so; raise NotFound for none or several."""
        if len(found := self._where("ends_with(uid, ?)", uid)) != 1:
            raise NotFound(
                f"No model wrote '{uid}' to memory", "'memory written' shows what models wrote."
            )
        return found[0]

    def of_exchanges(
        self, exchange_ids: Iterable[int]
    ) -> Mapping[ExchangeId, Sequence[MemoryWrite]]:
        """Return what was written in exchanges, oldest first."""
        found = self._where("exchange_id IN (SELECT unnest(?))", list(exchange_ids))
        return grouped(found, attrgetter("exchange_id"))

    def listed(self) -> Sequence[MemoryWrite]:
        """Return what is in force or proposed: proposals first, then the newest first."""
        found = self._where(f"state <> '{WriteState.REMOVED}'")[::-1]
        return sorted(found, key=lambda each: each.state is not WriteState.PROPOSED)

    def recalled_exchanges(self, conversation_id: int) -> Sequence[ExchangeId]:
        """Return the exchanges that were quoted from memory in a conversation's prompts."""
        return self._store.column(
            "SELECT DISTINCT source_exchange_id FROM recalled WHERE asked_in = ? AND injected "
            "AND source_exchange_id IS NOT NULL",
            [conversation_id],
        )

    def recalls_import(self, conversation_id: int) -> bool:
        """Return whether prompts of a conversation quoted an imported one, or its summary."""
        rows = self._store.rows(
            "SELECT 1 FROM recalled JOIN conversation ON conversation.id = recalled.conversation_id "
            "WHERE asked_in = ? AND injected AND source <> ? LIMIT 1",
            [conversation_id, OWN_SOURCE],
        )
        return bool(rows)

    def _where(self, condition: str, *values: object) -> Sequence[MemoryWrite]:
        rows = self._store.rows(
            f"SELECT {_WRITE.columns} {_WRITES} WHERE {condition} ORDER BY written_at, uid",
            list(values),
        )
        return list(map(reader(MemoryWrite), rows))
