"""The manual-page indexer: the DESCRIPTION of each manual page becomes a passage."""

from collections.abc import Sequence
from datetime import timedelta

from app.domain.errors import ManualUnavailable
from app.domain.passages import PassageKind
from app.domain.records.documents import Chunk, DocumentText, ListedDocument, page_summary
from app.domain.workers import WorkerName
from app.providers.pricing.usage import first_tokens
from app.storage.engine.store import Store
from app.storage.tables.documents import Documents
from app.system.manual import Manual
from app.workers.job_interface import Blocked, IsCancelled, Pace
from app.workers.jobs import JobParts
from app.workers.jobs.document_reading import DocumentJob

MOST_TOKENS = 8_000

_TOGETHER = 32
_RETRIES = 2  # a page that fails twice fails again
_MOST_WANTED = "1857"  # sections: commands, administration, files, overviews


class ManIndexer(DocumentJob):
    """A `DocumentJob` for the manual; pages without a DESCRIPTION are skipped."""

    name = WorkerName.MAN_INDEXER
    pace = Pace(save_items=_TOGETHER, retries=_RETRIES)
    listing = "listing the manual"
    poll_s = 86_400.0  # it changes when something is installed
    list_after = timedelta(minutes=1)  # listing takes 0.6 s

    def __init__(self, store: Store, manual: Manual) -> None:
        super().__init__(Documents(store, PassageKind.MAN_PAGE))
        self._manual = manual

    def all_documents(self, is_cancelled: IsCancelled) -> Sequence[ListedDocument]:
        """Return all pages; raises Blocked without a manual, Cancelled."""
        try:
            return self._manual.pages(is_cancelled)
        except ManualUnavailable as error:
            self.list_again()
            raise Blocked(error.title, error.hint) from error

    def text_of(self, document: ListedDocument, is_cancelled: IsCancelled) -> DocumentText:
        """Return the DESCRIPTION; raises Blocked without a manual, PageUnreadable, Cancelled."""
        try:
            text = self._manual.description(document, is_cancelled)
        except ManualUnavailable as error:
            self.list_again()
            raise Blocked(error.title, error.hint) from error
        if text is None:
            return DocumentText(document, (), "It has no DESCRIPTION.")
        words = first_tokens(text, "", MOST_TOKENS)
        return DocumentText(document, (Chunk(words, page_summary(document)),))

    def priority(self, document: ListedDocument) -> int:
        """Return the order of the page's section."""
        section = document.name.rpartition(".")[2][0]
        return _MOST_WANTED.index(section) if section in _MOST_WANTED else len(_MOST_WANTED)


def build(parts: JobParts) -> ManIndexer:
    return ManIndexer(parts.store, Manual())
