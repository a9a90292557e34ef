"""What memory holds in all: the numbers of the dashboard and of `status`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from app.domain.passages import PassageKind
from app.memory.index_sync import IndexSync
from app.storage.database import Connection
from app.storage.passages import Passages
from app.storage.store import Store
from app.storage.times import now, to_db


@dataclass(frozen=True, slots=True)
class Embedded:
    """The share (0-1) of what should be found by its meaning that is, and whose vectors those are."""

    space: str
    share: float


@dataclass(frozen=True, slots=True)
class Overview:
    """Totals at one moment.

    `searchable_share` (0-1) is what is found by its words, `embedded` what is by its meaning, None
    while there is no embedder. Spend is in USD since local midnight and since the first of the
    month; None when it includes a request whose price is unknown.
    """

    conversations: int
    passages: Mapping[PassageKind, int]
    searchable_share: float
    database_bytes: int
    spent_today_usd: float | None
    spent_month_usd: float | None
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

    def read(self) -> Overview:
        """Return the totals as they are now."""
        midnight = now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        month = midnight.replace(day=1)
        files = (self._store.paths.database, self._store.paths.wal)
        return Overview(
            conversations=self._store.read(_conversations),
            passages=self._passages.count_by_kind(),
            searchable_share=self._sync.covered_share,
            database_bytes=sum(each.stat().st_size for each in files if each.exists()),
            spent_today_usd=self._spent(midnight),
            spent_month_usd=self._spent(month),
            embedded=self._embedded(),
        )

    def _spent(self, since: datetime) -> float | None:
        row = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT coalesce(sum(cost_usd), 0), count(*) FILTER (cost_usd IS NULL) "
                "FROM spend WHERE spent_at >= ?",
                [to_db(since)],
            ).fetchone()
        )
        total, unknown = row or (0.0, 0)
        return None if unknown else float(total)


def _conversations(cursor: Connection) -> int:
    row = cursor.execute("SELECT count(*) FROM conversation WHERE deleted_at IS NULL").fetchone()
    return int(row[0]) if row else 0
