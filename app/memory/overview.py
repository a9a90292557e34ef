"""What memory holds in all: the numbers of the dashboard and of `status`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.domain.passages import PassageKind
from app.memory.index_sync import IndexSync
from app.storage.database import Connection
from app.storage.passages import Passages
from app.storage.spending import Spending, Spent
from app.storage.store import Store
from app.storage.times import now


@dataclass(frozen=True, slots=True)
class Embedded:
    """The share (0-1) of what should be found by its meaning that is, and whose vectors those are."""

    space: str
    share: float


@dataclass(frozen=True, slots=True)
class Overview:
    """Totals at one moment.

    `searchable_share` (0-1) is what is found by its words, `embedded` what is by its meaning, None
    while there is no embedder. Spend is since local midnight and since the first of the month.
    """

    conversations: int
    passages: Mapping[PassageKind, int]
    searchable_share: float
    database_bytes: int
    spent_today: Spent
    spent_month: Spent
    embedded: Embedded | None = None


class OverviewService:
    """Counts. Blocking."""

    def __init__(
        self, store: Store, sync: IndexSync, embedded: Callable[[], Embedded | None] = lambda: None
    ) -> None:
        self._store = store
        self._sync = sync
        self._embedded = embedded
        self._passages = Passages(store)
        self._spending = Spending(store)

    def read(self) -> Overview:
        """Return the totals as they are now."""
        at = now()
        files = (self._store.paths.database, self._store.paths.wal)
        return Overview(
            conversations=self._store.read(_conversations),
            passages=self._passages.count_by_kind(),
            searchable_share=self._sync.covered_share,
            database_bytes=sum(each.stat().st_size for each in files if each.exists()),
            spent_today=self._spending.today(at),
            spent_month=self._spending.this_month(at),
            embedded=self._embedded(),
        )


def _conversations(cursor: Connection) -> int:
    row = cursor.execute("SELECT count(*) FROM conversation WHERE deleted_at IS NULL").fetchone()
    return int(row[0]) if row else 0
