"""Archival memory: texts saved on purpose, found like everything else, gone when forgotten."""

from app.domain.changes import MemoryForgotten, MemoryPut, PassagesPut
from app.domain.errors import InvalidInput
from app.domain.facts import Memory
from app.domain.ids import ConversationId, ExchangeId, new_uid
from app.domain.passages import Passage, PassageKind
from app.domain.text import clean
from app.domain.turn_text import content_hash, estimate_tokens
from app.storage.forget import finish_forgetting, remains_of_files
from app.storage.memories import ArchivalMemories, KnownMemory
from app.storage.store import Store
from app.storage.times import now

LIMIT_CHARS = 4_000


class MemoryService:
    """Saves and forgets texts. Thread-safe; blocks; raises StorageError."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._memories = ArchivalMemories(store)

    def listed(self) -> tuple[Memory, ...]:
        """Return all that was saved, newest first."""
        return self._memories.listed()

    def known(self) -> tuple[KnownMemory, ...]:
        """Return all that was saved with where it was said, newest first."""
        return self._memories.known()

    def save(
        self,
        text: str,
        conversation_id: ConversationId | None = None,
        exchange_id: ExchangeId | None = None,
    ) -> Memory:
        """Save a text, as said in a conversation; it leaves when that one is forgotten.

        What is saved already is returned as it is. Raises InvalidInput for none or too much.
        """
        words = clean(text).strip()
        if not words:
            raise InvalidInput("There is nothing to remember", "Give it some words.")
        if len(words) > LIMIT_CHARS:
            raise InvalidInput(
                f"A memory of {len(words):,} characters is too long",
                f"Save at most {LIMIT_CHARS:,} at once.",
            )
        for known in self._memories.listed():
            if known.text == words:
                return known
        memory = Memory(
            self._store.ids.passage(), new_uid(), words, now(), conversation_id, exchange_id
        )
        passage = Passage(
            memory.id, PassageKind.MEMORY, memory.id, conversation_id, exchange_id,
            content_hash(words), memory.saved_at, estimate_tokens(words),
        )  # fmt: skip
        self._store.save(MemoryPut(memory), PassagesPut((passage,)))
        return memory

    def forget(self, memory_id: int) -> tuple[str, ...]:
        """Erase one, out of kept prompts and backups too; return what remains elsewhere, in words.

        Raises NotFound, StorageError; then it is gone from sight at least, and the caretaker does
        the rest later.
        """
        memory = self._memories.get(memory_id)
        self._store.save(MemoryForgotten(memory.id), PassagesPut((), (memory.id,)))
        finish_forgetting(self._store)
        return remains_of_files(self._store)
