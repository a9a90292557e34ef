"""Core memory, the text in every prompt, and archival memory, texts saved to be found."""

import threading
from collections.abc import Callable
from datetime import datetime

from app.domain.change_set import ChangeSet
from app.domain.changes import Change, CoreMemoryPut, MemoryPut, PassagesPut
from app.domain.deletions import CoreMemoryForgotten, MemoryForgotten
from app.domain.errors import InvalidInput
from app.domain.ids import ConversationId, ExchangeId, new_uid
from app.domain.passages import PassageKind
from app.domain.records.facts import BY_USER, Memory
from app.domain.text import clean
from app.domain.turns import estimate_tokens, text_passage
from app.memory.user_texts import checked_text, later_than, version_at
from app.storage.deletion.forget import remains_of_files
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.memories import ArchivalMemories, CoreMemory, CoreMemoryText, KnownMemory
from app.storage.tables.projects import places_apart
from app.storage.tables.settings import Settings

_LIMIT = "core_memory_max_tokens"
_ALL = 1_000_000
_CALLS_REMAIN = "Conversations in which a model wrote it were not changed."


class CoreMemoryService:
    """Writes core memory within its limit and keeps every version. Thread-safe.

    Authors are "user" or PROVIDER:MODEL. Changes return the new text, block, and raise InvalidInput
    and StorageError.

    Attributes:
        last_known: The text when it was last read; never blocks.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._reads = CoreMemory(store)
        self._lock = threading.RLock()
        self._is_stale = False
        self.last_known = self._reads.now().text
        store.subscribe(self._on_changed)

    @property
    def max_tokens(self) -> int:
        return self._settings.number(_LIMIT)

    def text(self) -> str:
        """Return the current text, "" when empty. Blocks only after a change."""
        with self._lock:
            if self._is_stale:
                self._is_stale = False
                self.last_known = self._reads.now().text
            return self.last_known

    def versions(self) -> tuple[CoreMemoryText, ...]:
        """Return all versions, newest first."""
        return self._reads.versions()

    def restore(self, made_at: datetime) -> str:
        """Restore the text of an earlier version; raises NotFound."""
        return self.set(version_at(self._reads.versions(), made_at, "core memory").text)

    def set(self, text: str, author: str = BY_USER) -> str:
        """Replace the whole text; "" empties it."""
        with self._lock:
            return self._write(clean(text).strip(), author)

    def change(self, edit: Callable[[str], tuple[str, Change]], author: str = BY_USER) -> None:
        """Replace the text by what `edit` returns, with a change for the same commit.

        The lock is held meanwhile. If `edit` raises, the text stays as it is.
        """
        with self._lock:
            text, more = edit(self.text())
            self._write(clean(text).strip(), author, more)

    def forget_earlier(self) -> tuple[tuple[datetime, ...], tuple[str, ...]]:
        """Erase all earlier versions; return their times and what remains elsewhere.

        Lines that the present text has too stay. Raises StorageError.
        """
        with self._lock:
            earlier = tuple(
                each.made_at for each in self._reads.versions(_ALL)[1:] if each.made_at is not None
            )
            if earlier:
                self._store.save(CoreMemoryForgotten(earlier))
        return earlier, (_CALLS_REMAIN, *remains_of_files(self._store))

    def check(self, text: str) -> None:
        """Raise InvalidInput for a text that is too long to be stored."""
        most, tokens = self.max_tokens, estimate_tokens(text) if text else 0
        if tokens > most and len(text) >= len(self.text()):
            raise InvalidInput(
                f"Core memory would be {tokens:,} tokens long, {_LIMIT} allows {most:,}",
                "Shorten the text, or replace less important text.",
            )

    def append(self, text: str, author: str = BY_USER) -> str:
        added = clean(text).strip()
        if not added:
            raise InvalidInput("No text was given to add to core memory", "Enter some text.")
        with self._lock:
            return self._write(f"{self.text()}\n{added}".strip(), author)

    def _write(self, text: str, author: str, *more: Change) -> str:
        self.check(text)
        if text != self.text():
            last = self._reads.now().made_at
            more = (CoreMemoryPut(text, author, now() if last is None else later_than(last)), *more)
        if more:
            self._store.save(*more)
        return self.text()

    def _on_changed(self, changed: ChangeSet) -> None:
        if changed.memory:
            self._is_stale = True


LIMIT_CHARS = 4_000


class ArchivalMemoryService:
    """Saves and forgets texts. Thread-safe; blocks; raises StorageError."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._memories = ArchivalMemories(store)

    def listed(self) -> tuple[Memory, ...]:
        """Return all saved texts, newest first."""
        return self._memories.listed()

    def known(self) -> tuple[KnownMemory, ...]:
        """Return all saved texts with their conversations, newest first."""
        return self._memories.known()

    def save(
        self,
        text: str,
        conversation_id: ConversationId | None = None,
        exchange_id: ExchangeId | None = None,
        more: Callable[[Memory], Change] | None = None,
    ) -> Memory:
        """Save a text of a conversation; forgetting the conversation removes it.

        `more` is stored in the same commit. A text that is saved already is returned as it is,
        unless the two are of different places (`APART`). Raises InvalidInput when empty or too long.
        """
        words = checked_text(text, LIMIT_CHARS, "memory")
        same = [known for known in self._memories.listed() if known.text == words]
        sources = {conversation_id, *(known.conversation_id for known in same)}
        places = places_apart(self._store, sources)
        for known in same:
            if places.get(known.conversation_id) == places.get(conversation_id):
                return known
        memory = Memory(
            self._store.ids.passage(), new_uid(), words, now(), conversation_id, exchange_id
        )
        passage = text_passage(
            memory.id, PassageKind.MEMORY, memory.id, conversation_id, exchange_id, words,
            memory.saved_at,
        )  # fmt: skip
        also = (more(memory),) if more else ()
        self._store.save(MemoryPut(memory), PassagesPut((passage,)), *also)
        return memory

    def forget(self, memory_id: int) -> tuple[str, ...]:
        """Erase a text, also from stored prompts and backups; return descriptions of what remains.

        Raises NotFound, StorageError.
        """
        memory = self._memories.get(memory_id)
        self._store.save(MemoryForgotten(memory.id), PassagesPut((), (memory.id,)))
        return remains_of_files(self._store)
