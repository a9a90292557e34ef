"""An import from file to store: what is new is added, what grew grows, nothing is added twice.

Reading foreign formats is `app.transfer.importers`; here their conversations get our ids, their
turns and their passages, and are journalled one by one. What was imported before is known by its
origin: source, kind and the source's own id.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from app.domain.errors import Cancelled, ImportRefused, NotFound
from app.domain.transfer import (
    CarriedFact,
    ImportedConversation,
    ImportProgress,
    ImportReport,
    Skipped,
)
from app.storage.backup import back_up_first
from app.storage.conversations import Conversations
from app.storage.store import Store
from app.transfer.adopting import Adopted, Adoption, Written
from app.transfer.carrying_facts import FactAdoption
from app.transfer.importers import read_export

_BATCH_CONVERSATIONS = 64
_BATCH_MESSAGES = 3_000
_CHECKPOINT_MESSAGES = 40_000  # until then they stay in memory: 1.2 MB for each thousand


def _never() -> bool:
    return False


def _at_once() -> None:
    return None


def _unheard(_progress: ImportProgress) -> None:
    return None


def import_files(
    store: Store,
    paths: Sequence[Path],
    *,
    cancelled: Callable[[], bool] = _never,
    on_progress: Callable[[ImportProgress], None] = _unheard,
    give_way: Callable[[], None] = _at_once,
    dry_run: bool = False,
) -> ImportReport:
    """Import exports, one after the other; return what came of it.

    Each conversation is durable once it is counted. `on_progress` is called on this thread, after
    every batch, `give_way` after some milliseconds of work: it may rest. A `dry_run` reads and counts, and stores nothing. Blocking. Raises NotFound for a
    path that is not there, before anything is stored; ImportRefused when nothing could be taken;
    StorageError, and then what was stored before it stays.
    """
    for path in paths:
        _look_for(path)
    if not dry_run and Conversations(store).listed():
        back_up_first(store)
    run = _Run(store, Adoption(store, give_way, dry_run=dry_run), on_progress, give_way)
    facts = None if dry_run else FactAdoption(store)
    refusals: list[ImportRefused] = []
    is_cancelled = False
    try:
        for path in paths:
            try:
                for batch in _batches(run.read(path, cancelled)):
                    if cancelled():
                        raise Cancelled("The import was stopped")
                    run.take(batch)
            except (ImportRefused, OSError) as error:
                refusals.append(_naming(path, error))
                run.tally.skipped.append(Skipped(str(path), _why(error)))
    except Cancelled:
        is_cancelled = True
    finally:
        try:
            run.settle()
            if facts is not None:
                facts.adopt(run.facts)
        finally:
            store.checkpoint()
    if refusals and not run.tally.holds_something and not is_cancelled:
        raise refusals[0]
    return run.tally.report(is_cancelled, len(refusals))


def _look_for(path: Path) -> None:
    with suppress(OSError):  # reading it says the rest
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NotFound(
                f"There is no file or folder '{path}'", "Check how it is spelled."
            ) from error


def _why(error: ImportRefused | OSError) -> str:
    return str(error) if isinstance(error, ImportRefused) else error.strerror or str(error)


def _naming(path: Path, refusal: ImportRefused | OSError) -> ImportRefused:
    if isinstance(refusal, OSError):
        return ImportRefused(
            f"'{path}' cannot be read: {_why(refusal)}", "Check the disk, or export it once more."
        )
    if str(path) in refusal.title:
        return refusal
    return ImportRefused(f"'{path}' cannot be imported: {refusal.title}", refusal.hint)


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

    @property
    def holds_something(self) -> bool:
        return bool(self.conversations or self.messages or self.duplicates)

    def add(self, adopted: Adopted) -> None:
        self.conversations += adopted.is_new
        self.turns += adopted.new_turns
        self.messages += adopted.new_messages
        self.duplicates += adopted.duplicates

    def progress(self) -> ImportProgress:
        return ImportProgress(
            self.conversations, self.messages, self.bytes_read, max(self.bytes_total, 0)
        )

    def report(self, is_cancelled: bool, refused: int) -> ImportReport:
        return ImportReport(
            self.conversations,
            self.turns,
            self.messages,
            self.duplicates,
            tuple(self.skipped),
            is_cancelled,
            refused,
        )


class _Run:
    """One import under way: while a batch is being stored, the next one is read.

    Attributes:
        tally: What has been stored so far, and what was skipped.
        facts: What is known of facts; they are stored last, since they name conversations.
    """

    def __init__(
        self,
        store: Store,
        adoption: Adoption,
        on_progress: Callable[[ImportProgress], None],
        give_way: Callable[[], None],
    ) -> None:
        self.tally = _Tally()
        self.facts: list[CarriedFact] = []
        self._store = store
        self._adoption = adoption
        self._on_progress = on_progress
        self._give_way = give_way
        self._writing: Written | None = None
        self._folded = 0

    def read(self, path: Path, cancelled: Callable[[], bool]) -> Iterator[ImportedConversation]:
        """Yield the conversations of a path; what was skipped goes into the tally.

        Raises ImportRefused, in place of the last thing skipped, when that was all there is.
        """
        before, skipped, taken = self.tally.bytes_read, len(self.tally.skipped), 0

        def on_bytes(read: int, total: int) -> None:
            self.tally.bytes_read, self.tally.bytes_total = before + read, before + total
            self._give_way()

        for found in read_export(path, cancelled=cancelled, on_bytes=on_bytes):
            self._give_way()
            if isinstance(found, Skipped):
                self.tally.skipped.append(found)
            else:
                self.tally.skipped.extend(found.skipped)
                self.facts.extend(found.facts)
                taken += bool(found.messages or found.facts)
                if found.messages:
                    yield found
        if not taken and len(self.tally.skipped) > skipped:
            last = self.tally.skipped.pop()
            raise ImportRefused(
                f"Nothing could be taken from '{path}': {last.why}", "Export it once more."
            )

    def take(self, batch: Sequence[ImportedConversation]) -> None:
        """Begin to store a batch, once the one before is stored."""
        if self._writing is not None and self._writing.shares_with(batch):
            self.settle()  # what it says is looked up in the database
        before, self._writing = self._writing, self._adoption.adopt(batch)
        self._count(before)

    def settle(self) -> None:
        """Wait for what is being stored."""
        writing, self._writing = self._writing, None
        self._count(writing)

    def _count(self, written: Written | None) -> None:
        if written is None:
            return
        for adopted in written.results():
            self.tally.add(adopted)
        self._on_progress(self.tally.progress())
        if self.tally.messages - self._folded >= _CHECKPOINT_MESSAGES:
            self._store.checkpoint()
            self._folded = self.tally.messages


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
