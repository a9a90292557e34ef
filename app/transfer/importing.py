"""An import from file to store: what is new is added, what grew grows, nothing is added twice.

Reading foreign formats is `app.transfer.importers`; here their conversations get our ids, their
turns and their passages, and are journalled one by one. What was imported before is known by its
origin: source, kind and the source's own id.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app.domain.errors import Cancelled
from app.domain.transfer import (
    ImportedConversation,
    ImportProgress,
    ImportReport,
    Skipped,
)
from app.storage.backup import try_backup
from app.storage.conversations import Conversations
from app.storage.store import Store
from app.transfer.adopting import Adopted, Adoption
from app.transfer.importers import read_export

_BATCH_CONVERSATIONS = 32
_BATCH_MESSAGES = 2_000
_CHECKPOINT_MESSAGES = 40_000  # until then they stay in memory: 1.2 MB for each thousand


def _never() -> bool:
    return False


def _unheard(_progress: ImportProgress) -> None:
    return None


@dataclass(slots=True)
class _Tally:
    """What an import has come to so far."""

    conversations: int = 0
    turns: int = 0
    messages: int = 0
    duplicates: int = 0
    bytes_read: int = 0
    bytes_total: int = 0
    skipped: list[Skipped] = field(default_factory=list)

    def add(self, adopted: Adopted) -> None:
        self.conversations += adopted.is_new
        self.turns += adopted.new_turns
        self.messages += adopted.new_messages
        self.duplicates += adopted.duplicates

    def progress(self) -> ImportProgress:
        return ImportProgress(
            self.conversations, self.messages, self.bytes_read, max(self.bytes_total, 0)
        )

    def report(self, *, cancelled: bool) -> ImportReport:
        return ImportReport(
            self.conversations,
            self.turns,
            self.messages,
            self.duplicates,
            tuple(self.skipped),
            cancelled,
        )


def import_files(
    store: Store,
    paths: Sequence[Path],
    *,
    cancelled: Callable[[], bool] = _never,
    on_progress: Callable[[ImportProgress], None] = _unheard,
    dry_run: bool = False,
) -> ImportReport:
    """Import exports, one after the other; return what came of it.

    Each conversation is durable once it is counted. `on_progress` is called on this thread, after
    every batch. A `dry_run` reads and counts, and stores nothing. Blocking. Raises NotFound and
    ImportRefused for a path that is no export (what was imported before it stays), StorageError.
    """
    if not dry_run and Conversations(store).listed():
        try_backup(store)
    tally = _Tally()
    adoption = Adoption(store, dry_run=dry_run)
    folded = 0
    try:
        for path in paths:
            for batch in _batches(_read(path, tally, cancelled)):
                for adopted in adoption.adopt(batch):
                    tally.add(adopted)
                on_progress(tally.progress())
                if tally.messages - folded >= _CHECKPOINT_MESSAGES:
                    store.checkpoint()
                    folded = tally.messages
    except Cancelled:
        return tally.report(cancelled=True)
    finally:
        store.checkpoint()
    return tally.report(cancelled=False)


def _read(
    path: Path, tally: _Tally, cancelled: Callable[[], bool]
) -> Iterator[ImportedConversation]:
    """Yield the conversations of a path; what was skipped goes into the tally."""
    before = tally.bytes_read

    def on_bytes(read: int, total: int) -> None:
        tally.bytes_read, tally.bytes_total = before + read, before + total

    for found in read_export(path, cancelled=cancelled, on_bytes=on_bytes):
        if isinstance(found, Skipped):
            tally.skipped.append(found)
        else:
            tally.skipped.extend(found.skipped)
            if found.messages:
                yield found


def _batches(found: Iterator[ImportedConversation]) -> Iterator[list[ImportedConversation]]:
    """Yield conversations in lists short enough for memory, none twice in the same list.

    What was gathered before a failure is yielded before the failure goes on.
    """
    batch: list[ImportedConversation] = []
    failure: Exception | None = None
    while failure is None:
        try:
            conversation = next(found)
        except StopIteration:
            break
        except Exception as error:  # noqa: BLE001 - raised again below, after what came before it
            failure = error
            break
        if any(each.source_id == conversation.source_id for each in batch):
            yield batch
            batch = []
        batch.append(conversation)
        messages = sum(len(each.messages) for each in batch)
        if len(batch) >= _BATCH_CONVERSATIONS or messages >= _BATCH_MESSAGES:
            yield batch
            batch = []
    if batch:
        yield batch
    if failure is not None:
        raise failure
