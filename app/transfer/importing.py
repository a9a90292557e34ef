"""The import run: from files to the store; unknown messages are added and nothing is stored twice.

`app.transfer.importers` reads the formats, `ConversationImporter` assigns local ids, turns and passages.
Conversations are journaled one by one. Earlier imports are found by origin: source, kind and source id.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from app.domain.errors import Cancelled, ImportRefused, NotFound
from app.domain.records.presets import Preset
from app.domain.transfer import (
    AddedConversation,
    ImportedConversation,
    ImportProgress,
    ImportReport,
    PortableFact,
    PortableLibrary,
    PortableProfileLine,
    Skipped,
)
from app.storage.engine.store import Store
from app.storage.safety.attachments import AttachmentFiles
from app.storage.safety.backup import back_up_first
from app.storage.tables.conversations import Conversations
from app.transfer.existing import key_of
from app.transfer.facts import FactImporter, new_statements
from app.transfer.files_beside import FilesBeside, with_files
from app.transfer.import_history import ImportHistory
from app.transfer.importer import ConversationImporter, ImportCounts, PendingImport
from app.transfer.importers import read_export
from app.transfer.library import import_library
from app.transfer.other_records import import_presets, propose_profile

_BATCH_CONVERSATIONS = 64
_BATCH_MESSAGES = 3_000
_CHECKPOINT_MESSAGES = 40_000  # uncheckpointed messages take 1.2 MB of memory per thousand


def import_files(
    store: Store,
    paths: Sequence[Path],
    *,
    cancelled: Callable[[], bool] = lambda: False,
    on_progress: Callable[[ImportProgress], None] = lambda _progress: None,
    dry_run: bool = False,
    restore_forgotten: bool = False,
    own: bool = False,
    memories: bool = False,
    read: Callable[..., Iterator[ImportedConversation | Skipped]] = read_export,
) -> ImportReport:
    """Import exports one after the other and return a report. Blocking.

    A conversation is durable once it is counted. `on_progress` is called on this thread after every batch, the
    store's `throttle` every few milliseconds. A `dry_run` stores nothing. What was forgotten here is left out
    unless it is to be restored. An export of one's `own` library brings also core memory, settings, providers,
    spend and presets in use. With `memories` what another program remembers of the user becomes facts. `read`
    reads a path: `ExportCache.read` reads for a dry run and the import after it only once.

    Raises NotFound for a path that does not exist, before anything is stored; ImportRefused if nothing could be
    imported; StorageError: what is stored so far remains.
    """
    _check_existence(paths)
    if not dry_run and Conversations(store).listed():
        back_up_first(store)
    importer = ConversationImporter(
        store, dry_run=dry_run, restore_forgotten=restore_forgotten, own=own,
        history=ImportHistory(store), names=[path.name for path in paths],
    )  # fmt: skip
    run = _ImportRun(
        store, importer, paths, on_progress, read, dry_run=dry_run, restore_forgotten=restore_forgotten
    )  # fmt: skip
    try:
        run.import_paths(cancelled)
    finally:
        try:
            run.close()
            presets, left_out = run.store_loose(own=own, memories=memories)
        finally:
            store.checkpoint()
    if run.refusals and run.counts == ImportCounts() and not run.is_cancelled:
        raise run.refusals[0]
    return ImportReport(
        **run.counts._asdict(), skipped=tuple(run.skipped), cancelled=run.is_cancelled,
        refused=len(run.refusals), presets=presets, left_out=left_out, new=tuple(run.new),
        offered=0 if memories else len(run.offered), number=importer.number,
    )  # fmt: skip


def _check_existence(paths: Sequence[Path]) -> None:
    for path in paths:
        with suppress(OSError):  # other errors are reported when it is read
            try:
                path.stat()
            except (FileNotFoundError, NotADirectoryError) as error:
                raise NotFound(
                    f"There is no file or folder '{path}'", "Check the spelling of the path."
                ) from error


def _reason(error: ImportRefused | OSError) -> str:
    return str(error) if isinstance(error, ImportRefused) else error.strerror or str(error)


def _refusal(path: Path, error: ImportRefused | OSError) -> ImportRefused:
    if isinstance(error, OSError):
        return ImportRefused(
            f"'{path}' cannot be read: {_reason(error)}", "Check the disk, or export again."
        )
    if str(path) in error.title:
        return error
    return ImportRefused(f"'{path}' cannot be imported: {error.title}", error.hint)


class _ImportRun:
    """A running import: while a batch is being stored, the next one is read.

    Attributes:
        counts, new: What is stored so far, and the conversations among it that were not here.
        skipped: What could not be imported.
        refusals: The paths of which nothing, or not all, could be read.
        is_cancelled: Whether it was stopped before all of them were.
        offered: Facts from what other programs remember of the user, by text.
        facts: Imported facts; they are stored last, because they refer to conversations.
        presets: Imported presets.
        profile: The lines of imported profiles.
        libraries: What belongs to imported libraries as a whole.
    """

    def __init__(
        self,
        store: Store,
        importer: ConversationImporter,
        paths: Sequence[Path],
        on_progress: Callable[[ImportProgress], None],
        read: Callable[..., Iterator[ImportedConversation | Skipped]],
        *,
        dry_run: bool,
        restore_forgotten: bool,
    ) -> None:
        self.is_cancelled = False
        self._paths = paths
        self._read = read
        self._is_dry = dry_run
        self._restore_forgotten = restore_forgotten
        self._beside = FilesBeside(paths)
        self._files = None if dry_run else AttachmentFiles(store.paths)
        self.counts = ImportCounts()
        self.new: list[AddedConversation] = []
        self.skipped: list[Skipped] = []
        self.refusals: list[ImportRefused] = []
        self.offered: dict[str, PortableFact] = {}
        self.facts: list[PortableFact] = []
        self.presets: list[Preset] = []
        self.profile: list[PortableProfileLine] = []
        self.libraries: list[PortableLibrary] = []
        self._store = store
        self._importer = importer
        self._on_progress = on_progress
        self._bytes_read = self._bytes_total = self._later_bytes = 0
        self._pending: Sequence[PendingImport] = ()
        self._checkpointed_messages = 0

    def import_paths(self, cancelled: Callable[[], bool]) -> None:
        """Read the paths and store what is in them, until it is stopped. Raises StorageError."""
        later = [0, *map(_size_bytes, self._paths[1:])]
        self._later_bytes = sum(later)
        try:
            for path, size_bytes in zip(self._paths, later, strict=True):
                self._later_bytes -= size_bytes
                self._import_path(path, cancelled)
        except Cancelled:
            self.is_cancelled = True

    def _import_path(self, path: Path, cancelled: Callable[[], bool]) -> None:
        try:
            for batch in batches(self.read(path, cancelled)):
                if cancelled():
                    raise Cancelled("The import was stopped")
                self.store_batch(batch)
        except (ImportRefused, OSError) as error:
            self.refusals.append(_refusal(path, error))
            self.skipped.append(Skipped(str(path), _reason(error)))

    def read(self, path: Path, cancelled: Callable[[], bool]) -> Iterator[ImportedConversation]:
        """Yield the conversations of a path; what cannot be imported is added to `skipped`.

        Raises ImportRefused instead of the last skipped report when the path contains nothing else.
        """
        bytes_before, skipped_before, has_content = self._bytes_read, len(self.skipped), False

        def on_bytes(read: int, total: int) -> None:
            self._bytes_read = bytes_before + read
            self._bytes_total = bytes_before + total + self._later_bytes
            self._store.throttle()

        for each in self._read(path, cancelled=cancelled, on_bytes=on_bytes):
            self._store.throttle()
            if isinstance(each, Skipped):
                self.skipped.append(each)
                continue
            found = with_files(each, self._beside, self._files)
            self.skipped.extend(found.skipped)
            self.facts.extend(found.facts)
            stated = new_statements(self._store, found, restore_forgotten=self._restore_forgotten)
            self.offered |= {each.version.text: each for each in stated}
            self.presets.extend(found.presets)
            self.profile.extend(found.profile)
            if found.library is not None:
                self.libraries.append(found.library)
            loose = found.facts or found.presets or found.profile or found.library
            has_content |= bool(found.messages or loose)
            if found.messages:
                yield found
        if not has_content and len(self.skipped) > skipped_before:
            last = self.skipped.pop()
            raise ImportRefused(
                f"Nothing could be imported from '{path}': {last.why}", "Export it again."
            )

    def close(self) -> None:
        """Wait until everything is stored, and close what was read."""
        self._beside.close()
        self.settle()

    def store_loose(self, *, own: bool, memories: bool) -> tuple[int, tuple[str, ...]]:
        """Store what belongs to no conversation; return the number of new presets, and what was left out."""
        self.facts += self.offered.values() if memories else ()
        presets = import_presets(self._store, self.presets, dry_run=self._is_dry)
        if self._is_dry:
            return presets, ()
        restored = self._restore_forgotten
        FactImporter(self._store, restore_forgotten=restored).store(self.facts)
        propose_profile(self._store, self.profile)
        names = (
            import_library(self._store, each, own=own, restore_forgotten=restored)
            for each in self.libraries
        )
        return presets, tuple(dict.fromkeys(chain.from_iterable(names)))

    def store_batch(self, batch: Sequence[ImportedConversation]) -> None:
        """Begin to store a batch and wait for the previous one."""
        keys = {key_of(found) for found in batch}
        if any(pending.key in keys for pending in self._pending):
            self.settle()  # its messages are looked up in the database
        self.settle(self._importer.store(batch))

    def settle(self, following: Sequence[PendingImport] = ()) -> None:
        """Wait until everything but the `following` batch is stored."""
        batch, self._pending = self._pending, following
        for pending in batch:
            self.counts = self.counts.plus(pending.wait())
            if pending.new is not None:
                self.new.append(pending.new)
        if not batch:
            return
        stored, read = self.counts, self._bytes_read
        self._on_progress(
            ImportProgress(stored.conversations, stored.messages, read, self._bytes_total)
        )
        if self.counts.messages - self._checkpointed_messages >= _CHECKPOINT_MESSAGES:
            self._store.checkpoint()
            self._checkpointed_messages = self.counts.messages


def _size_bytes(path: Path) -> int:
    """Return the size of a file, or of all files in a folder as far as they can be listed."""
    files = path.rglob("*") if path.is_dir() else (path,)
    with suppress(OSError):
        return sum(each.lstat().st_size for each in files if each.is_file())
    return 0


def batches(found: Iterable[ImportedConversation]) -> Iterator[list[ImportedConversation]]:
    """Yield conversations in lists that fit into memory and contain no conversation twice.

    Conversations that were read before an error are yielded before it is raised.
    """
    batch: list[ImportedConversation] = []
    try:
        for conversation in found:
            if any(each.source_id == conversation.source_id for each in batch):
                yield batch
                batch = []
            batch.append(conversation)
            messages = sum(len(each.messages) for each in batch)
            if len(batch) >= _BATCH_CONVERSATIONS or messages >= _BATCH_MESSAGES:
                yield batch
                batch = []
    except Exception:
        if batch:
            yield batch
        raise
    if batch:
        yield batch
