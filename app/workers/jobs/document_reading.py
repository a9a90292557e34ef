"""Reading of listed documents: what the indexers of manual pages and of files have in common."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.domain.errors import Cancelled
from app.domain.records.documents import DocumentText, ListedDocument
from app.storage.tables.documents import Documents
from app.storage.work.queue import Tally
from app.workers.job_interface import IsCancelled, Job, Saved


@dataclass(frozen=True, slots=True)
class _Listing:
    """The item for listing all documents."""

    id = 0


Item = ListedDocument | _Listing


@dataclass(frozen=True, slots=True)
class Listed:
    """The current list of documents."""

    documents: Sequence[ListedDocument]


DocumentsRead = Sequence[DocumentText]


class DocumentJob(Job[Item, Listed | DocumentsRead]):
    """A `Job`: first the list of all documents, then each that is new or has changed.

    Those that are no longer listed are removed. A subclass lists and reads.

    Attributes:
        listing: The description of the listing on the dashboard.
        list_after: The age from which the list is outdated: a worker is woken by all kinds of things.
    """

    wakes_on = frozenset[str]()  # other changes add no documents
    listing: str
    list_after = timedelta(seconds=0)

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._listed_at: datetime | None = None
        self._ahead: Sequence[ListedDocument] = ()

    def all_documents(self, is_cancelled: IsCancelled) -> Sequence[ListedDocument]:
        """Return all documents there are; raises Blocked, Cancelled."""
        raise NotImplementedError

    def text_of(self, document: ListedDocument, is_cancelled: IsCancelled) -> DocumentText:
        """Return the text of a document. Raises what fails, Cancelled."""
        raise NotImplementedError

    def priority(self, document: ListedDocument) -> int:  # noqa: ARG002 - for subclasses
        """Return the order of reading; equals are read by name."""
        return 0

    def find(self, at: datetime) -> Sequence[Item]:
        """Return the list if it is outdated, else the next documents to read."""
        if not self._ahead:
            if self._listed_at is None or abs(at - self._listed_at) >= self.list_after:
                self._listed_at = at
                return (_Listing(),)
            self._ahead = sorted(self._documents.missing(at), key=self.priority)
        count = self.pace.save_items
        found, self._ahead = self._ahead[:count], self._ahead[count:]
        return found

    def describe(self, item: Item) -> str:
        return item.name if isinstance(item, ListedDocument) else self.listing

    def make(self, items: Sequence[Item], is_cancelled: IsCancelled) -> Listed | DocumentsRead:
        """Return the list, or the text of one document; raises what `all_documents` and `text_of` raise."""
        (item,) = items
        try:
            if isinstance(item, _Listing):
                return Listed(self.all_documents(is_cancelled))
            return [self.text_of(item, is_cancelled)]
        except Cancelled:
            self.list_again()
            raise

    def save(self, results: Sequence[Listed | DocumentsRead]) -> Saved:
        texts: list[DocumentText] = []
        for made in results:
            if isinstance(made, Listed):
                self._documents.replace_list(made.documents)
            else:
                texts += made
        self._documents.put(texts)
        completed = sum(bool(each.chunks) for each in texts)
        return Saved(completed, len(texts) - completed)

    def tally(self) -> Tally:
        """Return the counts of documents listed and read."""
        return self._documents.tally()

    def list_again(self) -> None:
        """Have the list made again at the next call of `find`."""
        self._listed_at, self._ahead = None, ()
