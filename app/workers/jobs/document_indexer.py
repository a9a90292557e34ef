"""The document indexer: the text of the files that the user added becomes passages."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from time import monotonic

from app.domain.passages import PassageKind
from app.domain.records.documents import DocumentText, ListedDocument
from app.domain.workers import WorkerName
from app.storage.engine.store import Store
from app.storage.tables.documents import Documents
from app.storage.tables.settings import Settings
from app.system.document_files import RECOGNIZER, is_unreachable, list_files, read_document
from app.system.file_programs import text_recognizer
from app.workers.followed import FOLDERS_KEY, added_paths, in_project, nearest
from app.workers.job_interface import IsCancelled, Pace
from app.workers.jobs import JobParts
from app.workers.jobs.document_reading import DocumentJob, Item

_TOGETHER = 4  # a text may have 10 million characters
_POLL_S = 15.0
_UNUSED_S = 86_400.0
_MOST_SHARE = 0.02  # of the time is spent on listing


class DocumentIndexer(DocumentJob):
    """A `DocumentJob` for the added files and folders.

    Files of a drive that is not there keep their passages; what was deleted loses them.
    """

    name = WorkerName.DOCUMENT_INDEXER
    pace = Pace(1, save_items=_TOGETHER, retries=2)
    wakes_on = frozenset((FOLDERS_KEY,))
    listing = "listing the documents"
    list_after = timedelta(seconds=5)

    def __init__(self, store: Store, settings: Settings) -> None:
        super().__init__(Documents(store, PassageKind.DOCUMENT))
        self._settings = settings
        self._own_folder = store.paths.root
        self._took_s = 0.0
        self._recognizes = False
        self._listed_folders = ""

    def find(self, at: datetime) -> Sequence[Item]:
        """Return the list if it is outdated or folders were added or removed, else what to read."""
        if (folders := self._settings.text(FOLDERS_KEY)) != self._listed_folders:
            self._listed_folders = folders
            self.list_again()
        return super().find(at)

    def all_documents(self, is_cancelled: IsCancelled) -> Sequence[ListedDocument]:
        """Return all files; raises Cancelled."""
        # It was installed, or the program was started.
        if not self._recognizes and text_recognizer():
            self._documents.read_again(RECOGNIZER)
            self._recognizes = True
        started = monotonic()
        added = added_paths(self._settings)
        found = {each.name: each for each in list_files(added, self._own_folder, is_cancelled)}
        if away := {path: True for path, is_on in added.items() if is_on and is_unreachable(path)}:
            for each in self._documents.listed():
                if nearest(each.name, away) and nearest(each.name, added):
                    found.setdefault(each.name, each)
        self._took_s = monotonic() - started
        return [in_project(each, added) for each in found.values()]

    def text_of(self, document: ListedDocument, is_cancelled: IsCancelled) -> DocumentText:
        """Return the text of a file; raises OSError, Cancelled."""
        return read_document(document, is_cancelled)

    def poll_interval_s(self) -> float:
        """Return the time between two looks at the folders; a day while there are none."""
        if not added_paths(self._settings):
            return _UNUSED_S
        return max(_POLL_S, self._took_s / _MOST_SHARE)


def build(parts: JobParts) -> DocumentIndexer:
    return DocumentIndexer(parts.store, parts.settings)
