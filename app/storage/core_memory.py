"""The core memory: a short text that goes into every prompt, written by the user or a model's tool."""

from dataclasses import dataclass
from datetime import datetime

from app.storage.store import Store
from app.storage.times import from_db


@dataclass(frozen=True, slots=True)
class CoreMemoryText:
    """A wording; `author` is "user" or PROVIDER:MODEL, `made_at` UTC, both None before the first."""

    text: str = ""
    author: str | None = None
    made_at: datetime | None = None


class CoreMemory:
    """Reads it. Blocking: for worker threads and the command line."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def now(self) -> CoreMemoryText:
        """Return the newest text."""
        found = self.versions(1)
        return found[0] if found else CoreMemoryText()

    def versions(self, limit: int = 100) -> tuple[CoreMemoryText, ...]:
        """Return what it was, newest first."""
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT text, author, made_at FROM core_memory ORDER BY made_at DESC LIMIT ?",
                [limit],
            ).fetchall()
        )
        return tuple(CoreMemoryText(text, author, from_db(at)) for text, author, at in rows)
