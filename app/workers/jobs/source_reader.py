"""The source reader: sessions of followed programs are imported as they are written."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import accumulate

from app.domain.errors import ImportRefused, NotFound
from app.domain.records.sources import SOURCES, SourceName
from app.domain.transfer import ImportedConversation
from app.domain.workers import WorkerName
from app.storage.safety.attachments import AttachmentFiles
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.forgotten import forgotten_uids
from app.storage.work.queue import Tally
from app.transfer.existing import find_existing, key_of, names_of
from app.transfer.files_beside import FilesBeside, with_files
from app.transfer.growth import with_new_files, without_files
from app.transfer.importer import ConversationImporter
from app.transfer.importing import batches
from app.transfer.open_replies import OpenReplies
from app.transfer.source_files import FileRead, SourceFile, SourceFiles, read_file
from app.workers.job_interface import IsCancelled, Job, Pace, Saved
from app.workers.jobs import JobParts

_log = logging.getLogger(__name__)
_POLL_S = 2.0
_UNUSED_S = 86_400.0
_TAKEN = 100
_TAKEN_BYTES = 8 << 20


class SourceReader(Job[SourceFile, FileRead]):
    """A `Job`: files that are new or have changed, newest first.

    A file is read as a whole, and what is new in it is stored, but for a reply that the program is still
    writing. One that takes long to read is not read again at once, so that following a session takes a
    twentieth of a core at most.
    """

    name = WorkerName.SOURCE_READER
    pace = Pace(save_items=_TAKEN, retries=2)
    wakes_on = frozenset(spec.setting for spec in SOURCES.values())

    def __init__(self, parts: JobParts) -> None:
        self._store = parts.store
        self._settings = parts.settings
        self._files = SourceFiles(parts.store.paths)
        self._exchanges = Exchanges(parts.store)
        self._open = OpenReplies()
        self._attachments = AttachmentFiles(parts.store.paths)

    def find(self, at: datetime) -> Sequence[SourceFile]:  # noqa: ARG002 - nothing is postponed
        self._files.look(self._followed())
        found = self._files.changed()[:_TAKEN]
        if not found:
            self._files.save()
        read_bytes = accumulate((each.size_bytes for each in found), initial=0)
        return [
            each for each, before in zip(found, read_bytes, strict=False) if before < _TAKEN_BYTES
        ]

    def describe(self, item: SourceFile) -> str:
        """Return the program and the file's name."""
        return f"{SOURCES[item.source].title}: {item.path.name}"

    def make(self, items: Sequence[SourceFile], is_cancelled: IsCancelled) -> FileRead:  # noqa: ARG002
        """Return the content of the only file; one that has no conversations is empty.

        Raises StorageError when a file in it cannot be stored.
        """
        (file,) = items
        try:
            read = read_file(file)
        except (ImportRefused, NotFound):
            return FileRead(file, (), 0.0)
        where = self.describe(file)
        kept, again_s = list[ImportedConversation](), 0.0
        for each in read.conversations:
            found, left_s = self._open.without(each, file.changed_ns / 1e9)
            again_s = max(again_s, left_s)
            if found.messages:
                kept.append(self._with_files(found, where))
        return replace(read, conversations=tuple(kept), again_s=again_s)

    def _with_files(self, found: ImportedConversation, where: str) -> ImportedConversation:
        """Return a conversation with the files of its new messages stored, none of a forgotten one."""
        if any(each.file_keys for each in found.messages):
            known = find_existing(self._store, [found]).get(key_of(found))
            if known is not None:
                here = self._exchanges.messages_in(known.conversation.id)
                found = with_new_files(found, known.message_ids, here)
            elif forgotten_uids(self._store, names_of(found)):
                found = replace(found, messages=tuple(map(without_files, found.messages)))
        kept = with_files(found, FilesBeside(()), self._attachments)
        for each in kept.skipped[len(found.skipped) :]:
            _log.info("%s: %s", where, each.why)
        return kept

    def save(self, results: Sequence[FileRead]) -> Saved:
        importer = ConversationImporter(self._store)
        for batch in batches(each for made in results for each in made.conversations):
            for stored in importer.store(batch):
                stored.wait()
        for made in results:
            self._files.note_read(made)
        empty = sum(not made.conversations for made in results)
        return Saved(len(results) - empty, empty)

    def tally(self) -> Tally:
        counts = [self._files.counts(source) for source in self._followed()]
        return Tally(sum(done for done, _ in counts), sum(total for _, total in counts))

    def poll_interval_s(self) -> float:
        """Return the time between two looks at active files; a day while nothing is followed."""
        return _POLL_S if self._followed() else _UNUSED_S

    def _followed(self) -> list[SourceName]:
        return [name for name, spec in SOURCES.items() if self._settings.flag(spec.setting)]


build = SourceReader
