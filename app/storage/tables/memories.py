"""Memories: texts saved on purpose, the core memory of every prompt, and what models wrote to them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.changes import (
    CoreMemoryForgotten,
    CoreMemoryPut,
    MemoryForgotten,
    MemoryPut,
    MemoryWritePut,
)
from app.domain.conversations import OWN_SOURCE
from app.domain.errors import NotFound
from app.domain.facts import Memory, MemoryWrite, WriteState
from app.domain.ids import ExchangeId
from app.storage.engine.aggregate import (
    OF_CONVERSATIONS,
    Aggregate,
    Batch,
    Table,
    delete_where_in,
    reader,
    reference,
    row_of,
    select_in,
)
from app.storage.engine.database import Connection
from app.storage.engine.store import StoreReader
from app.storage.engine.times import from_db, to_db
from app.storage.tables.passage_rows import passage_source

MEMORY_COLUMNS = "id, uid, text, saved_at, conversation_id, exchange_id"
WRITE_COLUMNS = (
    "uid, conversation_id, exchange_id, model, written_at, state, memory_id, old, new, outside"
)


def _put(batch: Batch, change: MemoryPut) -> None:
    batch.rows["memory"][change.memory.id] = row_of(change.memory, MEMORY_COLUMNS)
    batch.mark("memory")


def _forgotten(batch: Batch, change: MemoryForgotten) -> None:
    if (row := batch.rows["memory"].pop(change.memory_id, None)) is not None:
        batch.rows["unwritten_texts"][row[2]] = None
        batch.rows["unwritten_uids"][row[1]] = None
    batch.rows["forgotten_memory"][change.memory_id] = batch.position
    batch.mark("memory", "passages")


def _core(batch: Batch, change: CoreMemoryPut) -> None:
    made_at = to_db(change.made_at)
    batch.rows["core_memory"][made_at] = (made_at, change.text, change.author)
    batch.mark("memory")


def _core_forgotten(batch: Batch, change: CoreMemoryForgotten) -> None:
    for made_at in map(to_db, change.made_at):
        if (row := batch.rows["core_memory"].pop(made_at, None)) is not None:
            batch.rows["unwritten_texts"][row[1]] = None
        batch.rows["forgotten_core_memory"][made_at] = batch.position
    batch.mark("memory")


def delete_wordings(
    connection: Connection, made_at: Iterable[datetime], unwritten: Iterable[str]
) -> None:
    """Delete versions of the core memory, and the lines that only they had from prompts and writes.

    `unwritten` are texts of them that have no row. Inside the caller's transaction.
    """
    rows = select_in(connection, "core_memory", "text", made_at, "made_at")
    delete_where_in(connection, "core_memory", "made_at", made_at)
    kept = {
        line
        for (text,) in connection.execute("SELECT text FROM core_memory").fetchall()
        for line in text.splitlines()
    }
    texts = (*unwritten, *(text for (text,) in rows))
    lines = {line for text in texts for line in text.splitlines() if line.strip()} - kept
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


def _written(batch: Batch, change: MemoryWritePut) -> None:
    batch.rows["memory_write"][change.write.uid] = row_of(change.write, WRITE_COLUMNS)
    batch.mark("memory")


MEMORIES = Aggregate(
    (
        Table("memory", MEMORY_COLUMNS, erased=OF_CONVERSATIONS),
        Table("core_memory", "made_at, text, author", "made_at"),
        Table("memory_write", WRITE_COLUMNS, "uid", OF_CONVERSATIONS),
    ),
    {
        MemoryPut: _put,
        MemoryForgotten: _forgotten,
        CoreMemoryPut: _core,
        CoreMemoryForgotten: _core_forgotten,
        MemoryWritePut: _written,
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


class CoreMemory(StoreReader):
    """Reads the core memory. Blocking: for worker threads and the command line."""

    def now(self) -> CoreMemoryText:
        """Return the newest text."""
        found = self.versions(1)
        return found[0] if found else CoreMemoryText()

    def versions(self, limit: int = 100) -> tuple[CoreMemoryText, ...]:
        """Return its versions, newest first."""
        rows = self._store.rows(
            "SELECT text, author, made_at FROM core_memory ORDER BY made_at DESC LIMIT ?", [limit]
        )
        return tuple(CoreMemoryText(text, author, from_db(at)) for text, author, at in rows)


_write = reader(MemoryWrite)
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
        found: dict[ExchangeId, list[MemoryWrite]] = {}
        for write in self._where("exchange_id IN (SELECT unnest(?))", list(exchange_ids)):
            found.setdefault(write.exchange_id, []).append(write)
        return found

    def listed(self) -> Sequence[MemoryWrite]:
        """Return what is in force or proposed: proposals first, then the newest first."""
        found = self._where(f"state <> '{WriteState.REMOVED}'")[::-1]
        return sorted(found, key=lambda each: each.state is not WriteState.PROPOSED)

    def recalled_exchanges(self, conversation_id: int) -> Sequence[ExchangeId]:
        """Return the exchanges that were quoted from memory in a conversation's prompts."""
        rows = self._store.rows(
            "SELECT DISTINCT source_exchange_id FROM recalled WHERE asked_in = ? AND injected "
            "AND source_exchange_id IS NOT NULL",
            [conversation_id],
        )
        return [ExchangeId(each) for (each,) in rows]

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
            f"SELECT {WRITE_COLUMNS} {_WRITES} WHERE {condition} ORDER BY written_at, uid",
            list(values),
        )
        return [_write(row) for row in rows]
