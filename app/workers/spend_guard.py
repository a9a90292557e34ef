"""Keeps background work under its caps: what a request may cost is set aside before it is sent.

It is put on record then, too, so that what is paid for when the program is killed is not forgotten.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from app.domain.changes import SpendAdded, SpendFreed, SpendHeld
from app.domain.errors import Cancelled, KnownError, StorageError
from app.domain.ids import new_uid
from app.domain.local_days import day_start, month_start, next_day, next_month
from app.domain.provider_errors import ConnectionLost, TimedOut
from app.storage.settings import Settings
from app.storage.spending import Spending
from app.storage.store import Store
from app.storage.times import now
from app.workers.job import Blocked

_log = logging.getLogger(__name__)
_LOOK_AGAIN_S = 900.0  # a machine that slept through midnight finds out by then
_ROUNDING_USD = 1e-9
_MANY = 64  # holds are looked through for what is on record, also where no cap asks for it


_MAYBE_PAID = (Cancelled, TimedOut, ConnectionLost)  # the server may have worked on it


@dataclass(frozen=True, slots=True)
class Most:
    """The most that a request may take and cost; `cost_usd` None is a price that is unknown."""

    input_tokens: int
    output_tokens: int
    cost_usd: float | None


@dataclass(slots=True, eq=False)
class Hold:
    """A request that is to be sent, or was and is not on record yet; `most_usd` is the most it costs.

    `uid` names it on record.
    """

    uid: str
    model: str
    most_usd: float
    at: datetime
    spent: SpendAdded | None = None


@dataclass(frozen=True, slots=True)
class _Cap:
    key: str
    word: str
    begins: Callable[[datetime], datetime]
    ends: Callable[[datetime], datetime]


_CAPS = (
    _Cap("spend_cap_daily_usd", "day", day_start, next_day),
    _Cap("spend_cap_monthly_usd", "month", month_start, next_month),
)


class SpendGuard:
    """Lets a request through only if both caps hold even at the most it can cost. Thread-safe.

    Counted is what all workers have on record in the local day and month, and what is on its way
    there: requests under way, and answers whose result is not stored yet.
    """

    def __init__(
        self, store: Store, settings: Settings, clock: Callable[[], datetime] = now
    ) -> None:
        self._store = store
        self._settings = settings
        self._spending = Spending(store)
        self._clock = clock
        self._lock = threading.Lock()
        self._holds: list[Hold] = []

    def hold(self, purpose: str, model: str, most: Most) -> Hold:
        """Set aside what a request may cost, until `release`, or what `settle` says is on record.

        What is spent for it bears the hold's uid. Raises Blocked, until the next day or month, when
        that would pass a cap; and for a price that is not known while there is a cap. What costs
        nothing passes. Raises StorageError when it cannot be put on record: then nothing is to be
        sent. Blocking: one small commit.
        """
        with self._lock:
            at = self._clock()
            if len(self._holds) >= _MANY:
                self._forget_recorded()
            for cap in _CAPS:
                limit_usd = self._settings.get(cap.key)
                if isinstance(limit_usd, float) and most.cost_usd != 0:
                    self._check(cap, limit_usd, model, most.cost_usd, at)
            held = Hold(new_uid(), model, most.cost_usd or 0.0, at)
            self._holds.append(held)
        record = SpendHeld(
            held.uid, at, purpose, model, most.input_tokens, most.output_tokens, most.cost_usd
        )
        try:
            self._store.save(record)
        except BaseException:
            self._drop(held)
            raise
        return held

    def settle(self, held: Hold, spent: SpendAdded) -> None:
        """Count what a request did cost from now on, and that only until it is on record."""
        with self._lock:
            held.spent = spent
            held.most_usd = spent.cost_usd or 0.0
            held.at = spent.at

    def release(self, held: Hold) -> None:
        """Give back what was set aside for a request that cost nothing. Blocking: a commit."""
        self._drop(held)
        try:
            self._store.save(SpendFreed(held.uid))
        except StorageError:  # the next start counts it, which is too much rather than too little
            _log.warning("a request that cost nothing could not be taken off the record")

    def _drop(self, held: Hold) -> None:
        with self._lock:
            if held in self._holds:
                self._holds.remove(held)

    def _check(
        self, cap: _Cap, limit_usd: float, model: str, most_usd: float | None, at: datetime
    ) -> None:
        if most_usd is None:
            raise Blocked(
                f"The price of {model} is unknown, so the cap of ${limit_usd:,.2f} a {cap.word} "
                "cannot be kept",
                f"Say what it costs, in Settings or with 'commonplace price set {model} INPUT "
                "OUTPUT' (USD for a million tokens; 0 0 if it is free), or lift the cap.",
            )
        begins = cap.begins(at)
        self._forget_recorded()
        known_usd = self._spending.on_background(begins).known_usd
        known_usd += sum(each.most_usd for each in self._holds if each.at >= begins)
        if known_usd + most_usd > limit_usd + _ROUNDING_USD:
            until_s = (cap.ends(at) - at).total_seconds()
            raise Blocked(
                f"The cap of ${limit_usd:,.2f} a {cap.word} is reached: ${known_usd:,.4f} is spent "
                f"and the next request may cost ${most_usd:,.4f}",
                f"Raise {cap.key} in Settings, or wait: it goes on with the next {cap.word}.",
                retry_after_s=min(until_s, _LOOK_AGAIN_S),
            )

    def _forget_recorded(self) -> None:
        """Drop what the database counts by now."""
        settled = [each.spent for each in self._holds if each.spent is not None]
        recorded = set()
        for purpose in {each.purpose for each in settled}:
            moments = [each.at for each in settled if each.purpose == purpose]
            stored = self._spending.are_stored(purpose, moments)
            recorded |= {(purpose, at) for at in stored}
        self._holds = [
            each
            for each in self._holds
            if each.spent is None or (each.spent.purpose, each.spent.at) not in recorded
        ]


def may_be_paid(error: BaseException) -> bool:
    """Return whether a request that ended so, with no answer, may have been worked on and counted.

    Not so where the server has refused it or could not be reached. A bug tells nothing.
    """
    return isinstance(error, _MAYBE_PAID) or not isinstance(error, KnownError)
