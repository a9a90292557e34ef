"""Queries about core memory, the text that goes into every prompt, and all it ever was."""

from dataclasses import dataclass
from datetime import datetime

from app.storage.store import Store
from app.storage.times import from_db


@dataclass(frozen=True, slots=True)
class CoreMemory:
    """A wording of core memory; `author` is "user" or PROVIDER:MODEL, `made_at` UTC."""

    text: str
    author: str
    made_at: datetime


class CoreMemories:
    """Reads core memory. Blocking: for worker threads and the command line."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def current(self) -> CoreMemory | None:
        """Return what holds now; None before anything was written."""
        found = self.versions(1)
        return found[0] if found else None

    def versions(self, limit: int = 100) -> tuple[CoreMemory, ...]:
        """Return what it was, newest first."""
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT text, author, made_at FROM core_memory ORDER BY made_at DESC LIMIT ?",
                [limit],
            ).fetchall()
        )
        return tuple(CoreMemory(text, author, from_db(at)) for text, author, at in rows)
