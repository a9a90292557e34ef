"""Memory written by models: in force or proposed; the user can undo, keep or remove it.

A text is in force at once when the conversation holds nothing but what the user and the model
typed. After anything from outside (see `outside`) and after imported text a change of core memory
waits for the user, because such text may carry instructions. A saved text of the archival memory is
only ever quoted, so it is stored.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from app.domain.changes import MemoryWritePut
from app.domain.conversations import (
    OWN_SOURCE,
    Attachment,
    Conversation,
    Image,
    Message,
    Role,
    ToolResult,
)
from app.domain.errors import InvalidInput
from app.domain.ids import ExchangeId, new_uid
from app.domain.records.facts import Memory, MemoryWrite, WriteState
from app.memory.core_memory import ArchivalMemoryService, CoreMemoryService
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.memories import MemoryWrites

TOOLS_THAT_WRITE = ("memory_save", "core_memory_append", "core_memory_replace")
_PASTED_CHARS = 500
# More than one line, or a quotation of some length: a paste cannot be told from typing otherwise.
_PASTED = re.compile(r"\n|^[ \t]*>|[\"“„«»「][^\"“”„«»「」]{25,}")


class MemoryWriteService:
    """Writes for models and undoes for the user. Thread-safe; blocks; raises StorageError."""

    def __init__(
        self, store: Store, core: CoreMemoryService, archive: ArchivalMemoryService
    ) -> None:
        self._store = store
        self._core = core
        self._archive = archive
        self._writes = MemoryWrites(store)
        self._exchanges = Exchanges(store)

    # -- for models

    def save(
        self, text: str, conversation: Conversation, exchange_id: ExchangeId, model: str
    ) -> Memory:
        """Save a text in the archival memory; raises InvalidInput."""

        def written(memory: Memory) -> MemoryWritePut:
            write = self._write(conversation, exchange_id, model)
            return MemoryWritePut(replace(write, memory_id=memory.id))

        return self._archive.save(text, conversation.id, exchange_id, written)

    def change_core(
        self, old: str, new: str, conversation: Conversation, exchange_id: ExchangeId, model: str
    ) -> MemoryWrite:
        """Replace `old` in core memory by `new`, or add `new` where `old` is ""; or propose it.

        Raises InvalidInput for a change that is not possible.
        """
        write = replace(self._write(conversation, exchange_id, model), old=old, new=new)
        if not write.outside:
            return self._put_in_force(write)
        write = replace(write, state=WriteState.PROPOSED)
        self._core.check(_changed(self._core.text(), old, new))
        self._store.save(MemoryWritePut(write))
        return write

    # -- for the user

    def of_exchanges(
        self, exchange_ids: Collection[int]
    ) -> Mapping[ExchangeId, Sequence[MemoryWrite]]:
        """Return what was written in exchanges, oldest first."""
        return self._writes.of_exchanges(exchange_ids)

    def listed(self) -> Sequence[MemoryWrite]:
        """Return all that models wrote: proposals first, then the newest."""
        return self._writes.listed()

    def waiting(self) -> int:
        """Return how many proposals wait for the user."""
        return sum(each.state is WriteState.PROPOSED for each in self.listed())

    def keep(self, uid: str) -> MemoryWrite:
        """Put a proposal in force; raises NotFound, InvalidInput."""
        write = self._writes.get(uid)
        if write.state is not WriteState.PROPOSED:
            return write
        return self._put_in_force(replace(write, state=WriteState.IN_FORCE))

    def undo(self, uid: str) -> MemoryWrite:
        """Remove what was written, or the proposal; raises NotFound, InvalidInput.

        The wording before comes back. A saved text is deleted as by `ArchivalMemoryService.forget`.
        """
        write = self._writes.get(uid)
        if write.state is WriteState.REMOVED:
            return write
        is_saved_text = write.memory_id is not None
        removed = replace(write, state=WriteState.REMOVED, new="" if is_saved_text else write.new)
        if write.state is WriteState.PROPOSED:
            self._store.save(MemoryWritePut(removed))
        elif write.memory_id is not None:
            self._archive.forget(write.memory_id)
            self._store.save(MemoryWritePut(removed))
        else:
            self._core.change(
                lambda text: (_changed(text, write.new, write.old), MemoryWritePut(removed))
            )
        return removed

    # -- inside

    def _write(
        self, conversation: Conversation, exchange_id: ExchangeId, model: str
    ) -> MemoryWrite:
        recalled = self._exchanges.by_ids(self._writes.recalled_exchanges(conversation.id))
        quoted = [each for exchange in recalled.values() for each in exchange.message_ids]
        messages = [*self._exchanges.messages_in(conversation.id)]
        found = outside([*messages, *self._exchanges.messages(quoted).values()])
        is_imported = conversation.source != OWN_SOURCE
        if is_imported or self._writes.recalls_import(conversation.id):
            found = ", ".join(filter(None, ("imported text", found)))
        return MemoryWrite(new_uid(), conversation.id, exchange_id, model, now(), outside=found)

    def _put_in_force(self, write: MemoryWrite) -> MemoryWrite:
        def edit(text: str) -> tuple[str, MemoryWritePut]:
            changed = _changed(text, write.old, write.new)
            return changed, MemoryWritePut(_undoable(write, text, changed))

        self._core.change(edit, write.model)
        return self._writes.get(write.uid)


def _undoable(write: MemoryWrite, text: str, changed: str) -> MemoryWrite:
    """Return a write, widened to whole lines if its own words are not enough to undo it."""
    if not write.old or (write.new and changed.count(write.new) == 1):
        return write
    at = text.index(write.old)
    start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at + len(write.old))
    old = text[start:] if end < 0 else text[start:end]
    new = _changed(old, write.old, write.new)
    new = new if start else new.lstrip()  # as the whole text is stored
    if new and changed.count(new) != 1:
        old, new = text, changed.strip()
    return replace(write, old=old, new=new)


def _changed(text: str, old: str, new: str) -> str:
    """Return core memory with `new` in place of `old`, or added where `old` is ""."""
    if not old:
        return "\n".join(filter(None, (text, new)))
    if text.count(old) != 1:
        found = "more than once" if old in text else "nowhere"
        raise InvalidInput(
            f"'{old}' occurs {found} in core memory",
            "Quote the text to replace exactly, long enough to be unique.",
        )
    lines = text.replace(old, new).split("\n")
    return "\n".join(line.rstrip() for line in lines if line.strip())


def outside(messages: Iterable[Message]) -> str:
    """Return the kinds of content that neither user nor model typed, as text; "" for none.

    Its form decides: results of tools that read, attachments, and messages that may contain a
    paste.
    """
    found = {kind for message in messages for kind in _outside_of(message)}
    return ", ".join(sorted(found))


def _outside_of(message: Message) -> Iterable[str]:
    for block in message.blocks:
        if isinstance(block, ToolResult) and block.name not in TOOLS_THAT_WRITE:
            yield "tool results"
        elif isinstance(block, Image | Attachment):
            yield "attachments"
    text = message.text if message.role is Role.USER else ""
    if len(text) > _PASTED_CHARS or _PASTED.search(text.strip()):
        yield "pasted text"
