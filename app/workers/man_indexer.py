"""The man-page indexer: the DESCRIPTION of every manual page there is becomes a passage."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from app.domain.errors import Cancelled
from app.domain.events import Changed
from app.domain.manual import ManualPage, ManualUnavailable, PageText
from app.domain.workers import WorkerName
from app.providers.estimated_tokens import first_tokens
from app.storage.man_pages import ManPages
from app.storage.store import Store
from app.storage.tally import Tally
from app.workers.job import Blocked, IsCancelled, Pace, Saved

MOST_TOKENS = 8_000

_AT_ONCE = 4  # processes that show pages: each takes 0.1-0.2 s
_TOGETHER = 32
_RETRIES = 2  # what `man` cannot show twice it will hardly show the third time
_POLL_S = 86_400.0
_LIST_AFTER = timedelta(
    minutes=1
)  # listing takes 0.6 s, and a worker is woken by all kinds of things
_LIST_ID = 0


class PagesOfTheManual(Protocol):
    """What the indexer asks the system; see `app.system.manual.Manual`."""

    def pages(self, is_cancelled: IsCancelled) -> Sequence[ManualPage]:
        """Return all pages that are listed. Raises ManualUnavailable, Cancelled."""
        ...

    def description(self, page: ManualPage, is_cancelled: IsCancelled) -> str | None:
        """Return a page's DESCRIPTION, None without one.

        Raises PageUnreadable, ManualUnavailable, Cancelled.
        """
        ...


@dataclass(frozen=True, slots=True)
class _List:
    """The item that stands for listing what pages there are."""


_Item = ManualPage | _List


@dataclass(frozen=True, slots=True)
class Listed:
    """The manual as it is listed now."""

    pages: Sequence[ManualPage]


@dataclass(frozen=True, slots=True)
class Read:
    """Pages with what they say."""

    texts: Sequence[PageText]


class ManIndexer:
    """A `Job`: first the list of all pages, then each that is new on it or has changed.

    Pages without a DESCRIPTION are skipped; those that left the list are dropped with it.
    """

    name = WorkerName.MAN_INDEXER
    pace = Pace(_TOGETHER, save_items=_TOGETHER, retries=_RETRIES)

    def __init__(self, store: Store, manual: PagesOfTheManual) -> None:
        self._pages = ManPages(store)
        self._manual = manual
        self._listed_at: datetime | None = None
        self._ahead: Sequence[ManualPage] = ()
        self._outcomes: dict[int, PageText | Exception] = {}

    def find(self, at: datetime) -> Sequence[_Item]:
        """Return the list when it was not looked at for a while, else the next pages to be read."""
        self._outcomes = {}
        if not self._ahead:
            if self._listed_at is None or abs(at - self._listed_at) >= _LIST_AFTER:
                self._listed_at = at
                return (_List(),)
            self._ahead = self._pages.missing(at)
        found, self._ahead = self._ahead[:_TOGETHER], self._ahead[_TOGETHER:]
        return found

    def item_id(self, item: _Item) -> int:
        """Return the page's number."""
        return item.id if isinstance(item, ManualPage) else _LIST_ID

    def describe(self, item: _Item) -> str:
        """Return what the page is called."""
        return item.source if isinstance(item, ManualPage) else "listing the manual"

    def make(self, items: Sequence[_Item], is_cancelled: IsCancelled) -> Listed | Read:
        """Return the list, or what pages say; one that fails does not cost the others a second time.

        Raises Blocked without a manual, PageUnreadable, Cancelled.
        """
        try:
            pages = [each for each in items if isinstance(each, ManualPage)]
            if not pages:
                return Listed(self._manual.pages(is_cancelled))
            return Read(self._read(pages, is_cancelled))
        except ManualUnavailable as error:
            self._listed_at, self._ahead = None, ()
            raise Blocked(error.title, error.hint) from error
        except Cancelled:
            self._listed_at, self._ahead = None, ()
            raise

    def save(self, results: Sequence[Listed | Read]) -> Saved:
        """Keep lists and pages."""
        texts: list[PageText] = []
        for made in results:
            if isinstance(made, Listed):
                self._pages.list_anew(made.pages)
            else:
                texts += made.texts
        self._pages.put(texts)
        completed = sum(each.text is not None for each in texts)
        return Saved(completed, len(texts) - completed)

    def tally(self) -> Tally:
        """Return how many pages were listed, and how many of them were read."""
        return self._pages.tally()

    def poll_interval_s(self) -> float:
        """Return a day: the manual changes when something is installed."""
        return _POLL_S

    def wakes_for(self, changed: Changed) -> bool:  # noqa: ARG002 - the port asks so
        """Return False: nothing that is written here makes manual pages."""
        return False

    def waiting_words(self, count: int) -> str:
        """Return how many pages wait, in words."""
        if count == 1:
            return "1 manual page waits to be indexed"
        return f"{count:,} manual pages wait to be indexed"

    def _read(self, pages: Sequence[ManualPage], is_cancelled: IsCancelled) -> list[PageText]:
        """Read pages, several at a time; raise what the first that failed did.

        What came of the others is known when they are asked for again, in halves.
        """
        new = [page for page in pages if page.id not in self._outcomes]
        with ThreadPoolExecutor(min(_AT_ONCE, os.cpu_count() or 1), "man") as readers:
            asked = {page.id: readers.submit(self._page, page, is_cancelled) for page in new}
            wait(asked.values())
        for page_id, future in asked.items():
            try:
                self._outcomes[page_id] = future.result()
            except Exception as error:  # noqa: BLE001 - whose fault it is, the machine decides
                self._outcomes[page_id] = error
        texts = []
        for page in pages:
            if isinstance(outcome := self._outcomes[page.id], Exception):
                raise outcome
            texts.append(outcome)
        return texts

    def _page(self, page: ManualPage, is_cancelled: IsCancelled) -> PageText:
        text = self._manual.description(page, is_cancelled)
        return PageText(page, None if text is None else first_tokens(text, "", MOST_TOKENS))
