"""Requests to embedders: spend limits, and a rate limit for manual pages."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from app.domain.changes import SpendAdded
from app.domain.errors import Cancelled
from app.domain.passages import Space
from app.domain.ports import Embedder
from app.domain.workers import UsageTotals, WorkerName
from app.storage.engine.store import Store
from app.storage.engine.times import now
from app.storage.tables.settings import Settings
from app.workers.job import IsCancelled
from app.workers.progress import plus
from app.workers.spend_limits import MaxUsage, Reservation, SpendLimits, may_be_paid

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from app.providers.embedders.remote import RemoteEmbedder

SPEND_KEYS = frozenset(("own_prices", "spend_cap_daily_usd", "spend_cap_monthly_usd"))
MAX_PAGES_PER_REQUEST = 10
_PROBE_TEXT = "hello"
_PAGE_REQUESTS, _PER_S = 10, 60.0
_CHECK_EVERY_S = 0.1


@runtime_checkable
class MeteredEmbedder(Protocol):
    """An embedder on a server, whose requests are counted and may cost money."""

    def max_usage(self, texts: Sequence[str]) -> tuple[int, float | None]:
        """Return the maximum tokens and USD for embedding texts; None is an unknown price."""
        ...

    def take_usage(self) -> UsageTotals | None:
        """Return the usage since the last call; None for none."""
        ...


if TYPE_CHECKING:

    def _is_metered(embedder: RemoteEmbedder) -> MeteredEmbedder:
        return embedder


class LimitedEmbedding:
    """Embeds texts within the spend limits and records what servers charge."""

    def __init__(self, store: Store, settings: Settings, limits: SpendLimits | None) -> None:
        self._store = store
        self._settings = settings
        self._limits = limits or SpendLimits(store, settings)
        self._spent = UsageTotals()

    def space(self, embedder: Embedder, is_cancelled: IsCancelled) -> Space:
        """Return an embedder's space; raises as `vectors` if a server has to be asked for it."""
        if not getattr(embedder, "knows_space", True):
            self.vectors(embedder, [_PROBE_TEXT], is_cancelled)  # the property cannot be cancelled
        return embedder.space

    def vectors(
        self, embedder: Embedder, texts: Sequence[str], is_cancelled: IsCancelled
    ) -> "npt.NDArray[np.float32]":
        """Return `embedder.embed(texts)`; blocks.

        Raises Blocked before a request that might exceed a spend limit, StorageError if the cost
        cannot be recorded, and what the embedder raises.
        """
        if not isinstance(embedder, MeteredEmbedder):
            return embedder.embed(texts, is_cancelled)
        tokens, cost_usd = embedder.max_usage(texts)
        maximum = MaxUsage(tokens, 0, cost_usd)
        model = self._settings.text("embedder")
        reservation = self._limits.reserve(WorkerName.EMBEDDING_PIPELINE, model, maximum)
        try:
            vectors = embedder.embed(texts, is_cancelled)
        except BaseException as error:
            self._settle(embedder, reservation, maximum if may_be_paid(error) else None)
            raise
        self._settle(embedder, reservation)
        return vectors

    def take_spend(self) -> UsageTotals:
        """Return what requests have cost since the last call."""
        spent, self._spent = self._spent, UsageTotals()
        return spent

    def _settle(
        self,
        embedder: MeteredEmbedder,
        reservation: Reservation,
        interrupted: MaxUsage | None = None,
    ) -> None:
        """Record what requests cost, including failed ones; `interrupted` ones at their maximum."""
        usage = embedder.take_usage()
        if interrupted is not None:
            usage = _at_most(interrupted, usage or UsageTotals())
        if usage is None:
            self._limits.release(reservation)
            return
        spent = SpendAdded(
            now(), WorkerName.EMBEDDING_PIPELINE, reservation.model, usage.tokens, 0, 0,
            usage.cost_usd, held=reservation.uid, is_estimated=interrupted is not None,
        )  # fmt: skip
        self._spent = plus(self._spent, usage)
        self._limits.settle(reservation, spent)  # counts until it is stored
        self._store.save(spent)


def is_server(embedder: Embedder | None) -> bool:
    """Return whether an embedder runs on a server, so that its requests are counted."""
    return isinstance(embedder, MeteredEmbedder)


def _at_most(maximum: MaxUsage, reported: UsageTotals) -> UsageTotals:
    """Return the upper bound for requests of which the server reported only some."""
    tokens = max(maximum.input_tokens, reported.tokens)
    if maximum.cost_usd is None or reported.cost_usd is None:
        return UsageTotals(tokens, None)
    cost_usd = max(maximum.cost_usd, reported.cost_usd)
    return UsageTotals(tokens, cost_usd, cost_usd)


class PageRateLimit:
    """Allows ten requests in any minute: thousands of manual pages must not use up a quota."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._sent: deque[float] = deque(maxlen=_PAGE_REQUESTS)

    def wait(self, should_yield: Callable[[], bool]) -> None:
        """Wait until a request may be sent, and count it; raise Cancelled once `should_yield`."""
        while len(self._sent) == _PAGE_REQUESTS and self._clock() < self._sent[0] + _PER_S:
            if should_yield():
                raise Cancelled("Manual pages yield to other passages")
            self._sleep(_CHECK_EVERY_S)
        self._sent.append(self._clock())


def space_name_of(embedder: Embedder) -> str:
    """Return the name of an embedder's space, without a request if possible."""
    return str(getattr(embedder, "space_name", "") or embedder.space.name)
