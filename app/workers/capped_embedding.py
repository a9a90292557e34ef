"""Texts to vectors for the embedding pipeline: a server is held to the spend caps and put on record."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from app.domain.changes import SpendAdded
from app.domain.passages import Space
from app.domain.ports import Embedder
from app.domain.workers import Ledger, WorkerName
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.times import now
from app.workers.job import IsCancelled
from app.workers.progress import plus
from app.workers.spend_guard import Hold, Most, SpendGuard, may_be_paid

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

T = TypeVar("T")
_PROBE = "hello"
CAP_KEYS = frozenset(("own_prices", "spend_cap_daily_usd", "spend_cap_monthly_usd"))


class CappedEmbedding:
    """Asks embedders under the spend caps; one that is no server costs nothing and is asked freely.

    Embedders of servers tell what requests cost by `most` and `take_usage`, and whether they know
    their space without a request by `knows_space`.
    """

    def __init__(self, store: Store, settings: Settings, guard: SpendGuard | None = None) -> None:
        self._store = store
        self._settings = settings
        self._guard = guard or SpendGuard(store, settings)
        self._spent = Ledger()

    def space(self, embedder: Embedder, is_cancelled: IsCancelled) -> Space:
        """Return an embedder's space. Raises as `vectors` where a server has to be asked for it."""
        if not getattr(embedder, "knows_space", True):
            self.vectors(embedder, [_PROBE], is_cancelled)  # the property could not be stopped
        return embedder.space

    def vectors(
        self, embedder: Embedder, texts: Sequence[str], is_cancelled: IsCancelled
    ) -> "npt.NDArray[np.float32]":
        """Return `embedder.embed(texts)`; blocks.

        Raises Blocked before anything is sent that might pass a cap, StorageError when what it
        cost cannot be put on record, and whatever the embedder raises.
        """
        return self._capped(embedder, texts, lambda: embedder.embed(texts, is_cancelled))

    def take_spent(self) -> Ledger:
        """Return what requests have cost since the last call."""
        spent, self._spent = self._spent, Ledger()
        return spent

    def _capped(self, embedder: Embedder, texts: Sequence[str], ask: Callable[[], T]) -> T:
        if not is_server(embedder):
            return ask()
        ask_most: Callable[[Sequence[str]], tuple[int, float | None]]
        ask_most = getattr(embedder, "most", lambda _: (0, 0.0))
        tokens, cost_usd = ask_most(texts)
        most = Most(tokens, 0, cost_usd)
        model = self._settings.text("embedder")
        held = self._guard.hold(WorkerName.EMBEDDING_PIPELINE, model, most)
        try:
            found = ask()
        except BaseException as error:
            self._settle(embedder, held, most if may_be_paid(error) else None)
            raise
        self._settle(embedder, held)
        return found

    def _settle(self, embedder: Embedder, held: Hold, interrupted: Most | None = None) -> None:
        """Put on record what requests did cost, also those that failed.

        All that may have been paid for where they were `interrupted`.
        """
        take_usage: Callable[[], Ledger | None] = getattr(embedder, "take_usage", lambda: None)
        usage = take_usage()
        if interrupted is not None:
            usage = _at_most(interrupted, usage or Ledger())
        if usage is None:
            self._guard.release(held)
            return
        spent = SpendAdded(
            now(), WorkerName.EMBEDDING_PIPELINE, held.model, usage.tokens, 0, 0, usage.cost_usd,
            held=held.uid, is_estimated=interrupted is not None,
        )  # fmt: skip
        self._spent = plus(self._spent, usage)
        self._guard.settle(held, spent)  # counts until it is on record
        self._store.save(spent)


def _at_most(most: Most, told: Ledger) -> Ledger:
    """Return what requests may have come to of which the server told only some."""
    if most.cost_usd is None or told.cost_usd is None:
        return Ledger(max(most.input_tokens, told.tokens), None)
    cost_usd = max(most.cost_usd, told.cost_usd)
    return Ledger(max(most.input_tokens, told.tokens), cost_usd, cost_usd)


def is_server(embedder: Embedder | None) -> bool:
    """Whether an embedder's requests are counted: a server's."""
    return hasattr(embedder, "take_usage")
