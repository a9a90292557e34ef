"""Core memory: the short text that goes into every prompt, written by the user or by a tool.

Every wording is kept; where is `app.storage.core_memory`.
"""

import threading
from datetime import datetime

from app.domain.changes import CoreMemoryPut
from app.domain.errors import InvalidInput, NotFound
from app.domain.events import Changed
from app.domain.facts import BY_USER
from app.domain.text import clean
from app.domain.turn_text import estimate_tokens
from app.storage.core_memory import CoreMemory, CoreMemoryText
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.times import now

_LIMIT = "core_memory_max_tokens"


class CoreMemoryService:
    """Writes core memory within its limit. Thread-safe.

    Who writes is "user" or PROVIDER:MODEL. Every change returns the text as it is now, blocks, and
    raises InvalidInput for what cannot be done, StorageError.

    Attributes:
        last_known: What it said when it was last looked at; never blocks.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._reads = CoreMemory(store)
        self._lock = threading.RLock()
        self._is_stale = False
        self.last_known = self._reads.now().text
        store.subscribe(self._on_changed)

    def text(self) -> str:
        """Return what it says now, "" when it is empty. Blocks only when it has changed."""
        with self._lock:
            if self._is_stale:
                self._is_stale = False
                self.last_known = self._reads.now().text
            return self.last_known

    def versions(self) -> tuple[CoreMemoryText, ...]:
        """Return every wording, newest first."""
        return self._reads.versions()

    def restore(self, made_at: datetime) -> str:
        """Let it say what an earlier version said; raises NotFound."""
        for version in self._reads.versions():
            if version.made_at == made_at:
                return self.set(version.text)
        raise NotFound("There is no such version of core memory any more")

    def set(self, text: str, author: str = BY_USER) -> str:
        """Let it say something else; "" empties it."""
        with self._lock:
            return self._write(clean(text).strip(), author)

    def append(self, text: str, author: str = BY_USER) -> str:
        """Add a line."""
        added = clean(text).strip()
        if not added:
            raise InvalidInput("There is nothing to add to core memory", "Give it some words.")
        with self._lock:
            return self._write(f"{self.text()}\n{added}".strip(), author)

    def replace(self, old: str, new: str, author: str = BY_USER) -> str:
        """Put `new` in the place of `old`, which must stand there once."""
        old = clean(old).strip()
        with self._lock:
            before = self.text()
            times = before.count(old) if old else 0
            if times != 1:
                found = "more than once" if times else "nowhere"
                raise InvalidInput(
                    f"'{old}' stands {found} in core memory",
                    "Quote exactly what is to be replaced, with enough words to be clear.",
                )
            return self._write(before.replace(old, clean(new).strip()).strip(), author)

    def _write(self, text: str, author: str) -> str:
        most, tokens = self._settings.number(_LIMIT), estimate_tokens(text) if text else 0
        before = self.text()
        if tokens > most and len(text) >= len(before):
            raise InvalidInput(
                f"Core memory would be {tokens:,} tokens long, {_LIMIT} allows {most:,}",
                "Say it in fewer words, or replace what matters less.",
            )
        if text != before:
            self._store.save(CoreMemoryPut(text, author, now()))
        return self.text()

    def _on_changed(self, changed: Changed) -> None:
        if changed.learned:
            self._is_stale = True
