"""Totals of memory: the numbers of the dashboard and of `status`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.domain.passages import PassageKind
from app.index.text_sync import TextIndexSync
from app.storage.deletion.erasure import deletions_owed
from app.storage.engine.store import Store
from app.storage.engine.times import now
from app.storage.tables.passages import Passages
from app.storage.tables.spending import Spending, Spent

_CONVERSATIONS = "SELECT count(*) FROM conversation WHERE deleted_at IS NULL"


@dataclass(frozen=True, slots=True)
class EmbeddingCoverage:
    """The share (0-1) of passages with vectors in a space, of those to be embedded."""

    space: str
    share: float


@dataclass(frozen=True, slots=True)
class Overview:
    """Totals at one moment.

    `searchable_share` (0-1) is the share found by words; `embedded` that found by meaning, None
    without an embedder. `deletions_owed` are those whose bytes are still in the files. Spend is
    since local midnight and since the first of the month.
    """

    conversations: int
    passages: Mapping[PassageKind, int]
    searchable_share: float
    database_bytes: int
    spent_today: Spent
    spent_month: Spent
    embedded: EmbeddingCoverage | None = None
    deletions_owed: int = 0


class OverviewService:
    """Counts the totals. Blocking."""

    def __init__(
        self,
        store: Store,
        sync: TextIndexSync,
        embedded: Callable[[], EmbeddingCoverage | None] = lambda: None,
    ) -> None:
        self._store = store
        self._sync = sync
        self._embedded = embedded
        self._passages = Passages(store)
        self._spending = Spending(store)

    def read(self) -> Overview:
        """Return the current totals."""
        at = now()
        files = (self._store.paths.database, self._store.paths.wal)
        return Overview(
            conversations=self._store.read(
                lambda cursor: int((cursor.execute(_CONVERSATIONS).fetchone() or (0,))[0])
            ),
            passages=self._passages.count_by_kind(),
            searchable_share=self._sync.covered_share,
            database_bytes=sum(each.stat().st_size for each in files if each.exists()),
            spent_today=self._spending.today(at),
            spent_month=self._spending.this_month(at),
            embedded=self._embedded(),
            deletions_owed=max(deletions_owed(self._store), int(self._sync.owes_erasure)),
        )
