"""The manual-page indexer: the DESCRIPTION of each manual page becomes a passage."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.domain.changes import ChangeSet
from app.domain.errors import Cancelled, ManualUnavailable
from app.domain.manual import ManualPage, ManualPageText
from app.domain.workers import WorkerName
from app.providers.pricing.estimated_tokens import first_tokens
from app.storage.engine.store import Store
from app.storage.tables.man_pages import ManPages
from app.storage.work.queue import Tally
from app.system.manual import Manual
from app.workers.job import Blocked, IsCancelled, Job, Pace, Saved
from app.workers.jobs import JobParts

MOST_TOKENS = 8_000

_PROCESSES = 4  # parallel processes of 0.1-0.2 s each
_TOGETHER = 32
_RETRIES = 2  # a page that fails twice fails again
_POLL_S = 86_400.0
_LIST_AFTER = timedelta(
    minutes=1
)  # listing takes 0.6 s, and a worker is woken by all kinds of things


@dataclass(frozen=True, slots=True)
class _PageListing:
    """The item for listing all pages."""

    id = 0


_Item = ManualPage | _PageListing


@dataclass(frozen=True, slots=True)
class Listed:
    """The current list of pages."""

    pages: Sequence[ManualPage]


@dataclass(frozen=True, slots=True)
class PagesRead:
    """Pages with their text."""

    texts: Sequence[ManualPageText]


class ManIndexer(Job[_Item, Listed | PagesRead]):
    """A `Job`: first the list of all pages, then each page that is new or has changed.

    Pages without a DESCRIPTION are skipped; pages that are no longer listed are removed.
    """

    name = WorkerName.MAN_INDEXER
    pace = Pace(_TOGETHER, save_items=_TOGETHER, retries=_RETRIES)

    def __init__(self, store: Store, manual: Manual) -> None:
        self._pages = ManPages(store)
        self._manual = manual
        self._listed_at: datetime | None = None
        self._ahead: Sequence[ManualPage] = ()
        self._outcomes: dict[int, ManualPageText | Exception] = {}

    def find(self, at: datetime) -> Sequence[_Item]:
        """Return the list if it is older than a minute, else the next pages to read."""
        self._outcomes = {}
        if not self._ahead:
            if self._listed_at is None or abs(at - self._listed_at) >= _LIST_AFTER:
                self._listed_at = at
                return (_PageListing(),)
            self._ahead = self._pages.missing(at)
        found, self._ahead = self._ahead[:_TOGETHER], self._ahead[_TOGETHER:]
        return found

    def describe(self, item: _Item) -> str:
        """Return the page's name."""
        return item.source if isinstance(item, ManualPage) else "listing the manual"

    def make(self, items: Sequence[_Item], is_cancelled: IsCancelled) -> Listed | PagesRead:
        """Return the list, or the texts of pages; after a failure the others are not read again.

        Raises Blocked without a manual, PageUnreadable, Cancelled.
        """
        try:
            pages = [each for each in items if isinstance(each, ManualPage)]
            if not pages:
                return Listed(self._manual.pages(is_cancelled))
            return PagesRead(self._read(pages, is_cancelled))
        except ManualUnavailable as error:
            self._listed_at, self._ahead = None, ()
            raise Blocked(error.title, error.hint) from error
        except Cancelled:
            self._listed_at, self._ahead = None, ()
            raise

    def save(self, results: Sequence[Listed | PagesRead]) -> Saved:
        """Store the list or the pages."""
        texts: list[ManualPageText] = []
        for made in results:
            if isinstance(made, Listed):
                self._pages.replace_list(made.pages)
            else:
                texts += made.texts
        self._pages.put(texts)
        completed = sum(each.text is not None for each in texts)
        return Saved(completed, len(texts) - completed)

    def tally(self) -> Tally:
        """Return the counts of pages listed and read."""
        return self._pages.tally()

    def poll_interval_s(self) -> float:
        """Return a day: the manual changes when something is installed."""
        return _POLL_S

    def wakes_for(self, changed: ChangeSet) -> bool:  # noqa: ARG002 - the base class asks so
        """Return False: no change of the database adds manual pages."""
        return False

    def _read(self, pages: Sequence[ManualPage], is_cancelled: IsCancelled) -> list[ManualPageText]:
        """Read pages in parallel; raise the first error.

        The outcomes of the others are kept for the retry in halves.
        """
        new = [page for page in pages if page.id not in self._outcomes]
        with ThreadPoolExecutor(min(_PROCESSES, os.cpu_count() or 1), "man") as readers:
            asked = {page.id: readers.submit(self._page, page, is_cancelled) for page in new}
            wait(asked.values())
        for page_id, future in asked.items():
            try:
                self._outcomes[page_id] = future.result()
            except Exception as error:  # noqa: BLE001 - the worker loop decides what to do
                self._outcomes[page_id] = error
        texts = []
        for page in pages:
            if isinstance(outcome := self._outcomes[page.id], Exception):
                raise outcome
            texts.append(outcome)
        return texts

    def _page(self, page: ManualPage, is_cancelled: IsCancelled) -> ManualPageText:
        text = self._manual.description(page, is_cancelled)
        return ManualPageText(page, None if text is None else first_tokens(text, "", MOST_TOKENS))


def build(parts: JobParts) -> ManIndexer:
    """Return the job."""
    return ManIndexer(parts.store, Manual())
