"""Spend limits of background work: the maximum cost of a request is reserved before it is sent.

Reservations are stored, so that requests under way when the program is killed are counted.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from app.domain.changes import SpendAdded, SpendReleased, SpendReserved
from app.domain.errors import Cancelled, ConnectionLost, KnownError, StorageError, TimedOut
from app.domain.ids import new_uid
from app.domain.translation import day_start, month_start, next_day, next_month, tr_noop
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.storage.tables.spending import Spending
from app.workers.job_interface import Blocked

_log = logging.getLogger(__name__)
_LOOK_AGAIN_S = 900.0  # notices midnight after a suspend by then
_ROUNDING_USD = 1e-9
_MANY = 64  # reservations before recorded ones are dropped


_MAYBE_CHARGED = (Cancelled, TimedOut, ConnectionLost)  # the server may have charged for it


@dataclass(frozen=True, slots=True)
class MaxUsage:
    """The maximum tokens and cost of a request; `cost_usd` is None if the price is unknown."""

    input_tokens: int
    output_tokens: int
    cost_usd: float | None


@dataclass(slots=True, eq=False)
class Reservation:
    """The reserved cost of a request whose cost is not stored yet; `most_usd` is its maximum.

    `uid` is its id in the database.
    """

    uid: str
    model: str
    most_usd: float
    at: datetime
    spent: SpendAdded | None = None


@dataclass(frozen=True, slots=True)
class _SpendLimit:
    key: str
    word: str
    begins: Callable[[datetime], datetime]
    ends: Callable[[datetime], datetime]


_LIMITS = (
    _SpendLimit("spend_cap_daily_usd", tr_noop("day"), day_start, next_day),
    _SpendLimit("spend_cap_monthly_usd", tr_noop("month"), month_start, next_month),
)


SPEND_LIMIT_KEYS = tuple(each.key for each in _LIMITS)


class SpendLimits:
    """Admits a request only if its maximum cost stays within both limits. Thread-safe.

    The stored spending of all workers in the local day and month counts, and all reservations:
    requests under way, and answers whose result is not stored yet.
    """

    def __init__(
        self, store: Store, settings: Settings, clock: Callable[[], datetime] = now
    ) -> None:
        self._store = store
        self._settings = settings
        self._spending = Spending(store)
        self._clock = clock
        self._lock = threading.Lock()
        self._reservations: list[Reservation] = []

    def reserve(self, purpose: str, model: str, most: MaxUsage) -> Reservation:
        """Reserve the maximum cost of a request until `release`, or until `settle` is stored.

        Raises Blocked if that would exceed a limit, until the next day or month, and for an unknown
        price while there is a limit; free requests pass. Raises StorageError if it cannot be
        stored: then nothing may be sent. Blocking: one small commit.
        """
        with self._lock:
            at = self._clock()
            if len(self._reservations) >= _MANY:
                self._drop_stored()
            for limit in _LIMITS:
                limit_usd = self._settings.get(limit.key)
                if isinstance(limit_usd, float) and most.cost_usd != 0:
                    self._check(limit, limit_usd, model, most.cost_usd, at)
            reservation = Reservation(new_uid(), model, most.cost_usd or 0.0, at)
            self._reservations.append(reservation)
        usage = (most.input_tokens, most.output_tokens, most.cost_usd)
        try:
            self._store.save(SpendReserved(reservation.uid, at, purpose, model, *usage))
        except BaseException:
            self._drop(reservation)
            raise
        return reservation

    def settle(self, reservation: Reservation, spent: SpendAdded) -> None:
        """Count the real cost of a request from now on, until it is stored."""
        with self._lock:
            reservation.spent, reservation.at = spent, spent.at
            reservation.most_usd = spent.cost_usd or 0.0

    def release(self, reservation: Reservation) -> None:
        """Cancel the reservation of a request that cost nothing. Blocking: a commit."""
        try:
            self._store.save(self.dropped(reservation))
        except StorageError:  # the next start counts it: too much rather than too little
            _log.warning("a reservation could not be removed")

    def dropped(self, reservation: Reservation) -> SpendReleased:
        """Cancel a reservation; return the change that the caller stores."""
        self._drop(reservation)
        return SpendReleased(reservation.uid)

    def _drop(self, reservation: Reservation) -> None:
        with self._lock:
            if reservation in self._reservations:
                self._reservations.remove(reservation)

    def _check(
        self, limit: _SpendLimit, limit_usd: float, model: str, most_usd: float | None, at: datetime
    ) -> None:
        if most_usd is None:
            raise Blocked(
                f"The price of {model} is unknown, so the limit of ${limit_usd:,.2f} per "
                f"{limit.word} cannot be kept",
                f"Enter its price in Settings or with 'commonplace price set {model} INPUT OUTPUT' "
                "(USD per million tokens; 0 0 if it is free), or remove the limit.",
            )
        begins = limit.begins(at)
        self._drop_stored()
        counted = [each for each in self._reservations if each.at >= begins]
        spent_usd = self._spending.on_background(begins).known_usd
        spent_usd += sum(each.most_usd for each in counted if each.spent is not None)
        running_usd = sum(each.most_usd for each in counted if each.spent is None)
        if spent_usd + running_usd + most_usd > limit_usd + _ROUNDING_USD:
            until_s = (limit.ends(at) - at).total_seconds()
            raise Blocked(
                f"The limit of ${limit_usd:,.2f} per {limit.word} is reached: background work has "
                f"spent ${_usd(spent_usd)}, running requests may cost ${_usd(running_usd)}, and the "
                f"next one may cost ${_usd(most_usd)}"
                if running_usd
                else f"The limit of ${limit_usd:,.2f} per {limit.word} is reached: background work "
                f"has spent ${_usd(spent_usd)}, and its next request may cost ${_usd(most_usd)}",
                f"Raise {limit.key} in Settings, or wait for the next {limit.word}.",
                retry_after_s=min(until_s, _LOOK_AGAIN_S),
                ends_drain=True,
            )

    def _drop_stored(self) -> None:
        """Drop reservations whose cost is stored by now."""
        settled = [each for each in self._reservations if each.spent is not None]
        stored = self._spending.are_stored([each.at for each in settled])
        self._reservations = [
            each
            for each in self._reservations
            if each.spent is None or (each.spent.purpose, each.at) not in stored
        ]


def _usd(amount: float) -> str:
    return f"{amount:,.{4 if 0 < amount < 0.01 else 2}f}"


def may_be_paid(error: BaseException) -> bool:
    """Return whether a failed request without an answer may have been charged for.

    It was not if the server refused it or could not be reached; after a bug that is unknown.
    """
    return isinstance(error, _MAYBE_CHARGED) or not isinstance(error, KnownError)
