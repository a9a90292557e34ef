"""Money and tokens spent, and reservations for requests under way.

A reservation holds the most that a request may cost until its result is on record.
"""

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from datetime import date, datetime
from operator import add

from app.domain.changes import SpendAdded, SpendReleased, SpendReserved
from app.domain.translation import day_start, month_start
from app.domain.workers import UsageTotals
from app.storage.engine.aggregate import (
    OF_CONVERSATIONS,
    Aggregate,
    Batch,
    Rule,
    State,
    Table,
    reference,
)
from app.storage.engine.connection import Connection
from app.storage.engine.stamps import from_db, now, to_db
from app.storage.engine.store import Store, StoreReader

CHAT = "chat"  # the purpose that is not background work
_BIN_S = 900  # every time zone is a multiple of this away from UTC

_SPEND = Table(
    "spend",
    "position, place, spent_at, purpose, model, input_tokens, output_tokens, cached_tokens, "
    "cost_usd, estimated, exchange_id",
    "position, place",
    f"exchange_id IN (SELECT id FROM exchange WHERE {OF_CONVERSATIONS})",
    cleared="exchange_id",
)
_RESERVATION = Table(
    "spend_held",
    "uid, position, held_at, purpose, model, input_tokens, output_tokens, cost_usd",
    "uid",
)


# -- changes


def _spent(batch: Batch, change: SpendAdded) -> None:
    _SPEND.put(
        batch, change, position=batch.position, place=batch.place, spent_at=change.at,
        estimated=change.is_estimated,
    )  # fmt: skip
    if change.held:
        batch.rows["spend_held"][change.held] = None
    batch.mark("spend")


def _reserved(batch: Batch, change: SpendReserved) -> None:
    _RESERVATION.put(batch, change, position=batch.position, held_at=change.at)


def _write(connection: Connection, batch: Batch, _state: State) -> None:
    """Keep what was paid for an exchange that no longer exists, without its id."""
    spend = batch.rows["spend"]
    named = {row[-1] for row in spend.values() if row[-1] is not None}
    present = connection.existing_ids("exchange", batch.rows["exchange"], named)
    rows = {key: row if row[-1] in present else (*row[:-1], None) for key, row in spend.items()}
    _SPEND.write(connection, rows)
    _RESERVATION.write(connection, batch.rows["spend_held"])


SPENDING = Aggregate(
    (_SPEND, _RESERVATION),
    {SpendAdded: _spent, SpendReserved: _reserved, SpendReleased: _RESERVATION.removes()},
    _write,
    rules=(
        reference("spend.exchange_id", "exchange", "clear"),
        Rule(
            "spend.negative",
            "The spend of record {} is negative.",
            "SELECT position FROM spend "
            "WHERE cost_usd < 0 OR input_tokens < 0 OR output_tokens < 0",
        ),
        Rule(
            "spend_held.held_at",
            "The reservation {} is over a day old; the next start counts it as spent.",
            "SELECT uid FROM spend_held WHERE epoch_ms(held_at) < epoch_ms(now()) - 86_400_000",
        ),
    ),
)


# -- queries


@dataclass(frozen=True, slots=True)
class Spent:
    """Totals of requests. `known_usd` excludes the `unknown` ones, whose price is not known.

    `interrupted` of them cost at most `estimated_usd`.
    """

    requests: int = 0
    tokens: int = 0
    known_usd: float = 0.0
    unknown: int = 0
    interrupted: int = 0
    estimated_usd: float = 0.0

    @property
    def cost_usd(self) -> float | None:
        """The total cost, None when any price is unknown."""
        return None if self.unknown else self.known_usd

    @property
    def ledger(self) -> UsageTotals:
        """The same as a worker's totals."""
        return UsageTotals(self.tokens, self.cost_usd, self.estimated_usd)

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class SpentOn:
    """What a purpose ("chat" or a worker's name) spent on a model in a day of the local calendar."""

    day: date
    purpose: str
    model: str
    spent: Spent


class Spending(StoreReader):
    """Reads the cost of requests. Blocking: for worker threads and the command line."""

    def totals(self, purpose: str, since: datetime | None = None) -> UsageTotals:
        """Return what was spent on "chat" or for a worker since a moment (None: ever)."""
        return self._spent(
            "purpose = ? AND spent_at >= coalesce(?, spent_at)", purpose, to_db(since)
        ).ledger

    def since(self, moment: datetime) -> Spent:
        """Return all that was spent since a moment, chats included."""
        return self._spent("spent_at >= ?", to_db(moment))

    def today(self, at: datetime | None = None) -> Spent:
        """Return the cost of the local day of `at` (default: now)."""
        return self.since(day_start(at or now()))

    def this_month(self, at: datetime | None = None) -> Spent:
        """Return the cost of the local month of `at` (default: now)."""
        return self.since(month_start(at or now()))

    def on_background(self, moment: datetime) -> Spent:
        """Return what all workers together have spent since a moment."""
        return self._spent("spent_at >= ? AND purpose <> ?", to_db(moment), CHAT)

    def are_stored(self, moments: Iterable[datetime]) -> frozenset[tuple[str, datetime]]:
        """Return the requests on record of some moments, each as its purpose and moment."""
        columns, given = "purpose, spent_at", map(to_db, moments)
        rows = self._store.select_in("spend", columns, given, "spent_at")
        return frozenset((purpose, from_db(at)) for purpose, at in rows)

    def by_day(self, since: datetime) -> tuple[SpentOn, ...]:
        """Return what was spent since a moment, by day, purpose and model; the latest day first."""
        days: dict[tuple[date, str, str], Spent] = {}
        rows = self._store.rows(
            f"SELECT min(spent_at), purpose, model, {_SUMS} FROM spend WHERE spent_at >= ? "
            f"GROUP BY epoch(spent_at)::BIGINT // {_BIN_S}, purpose, model",
            [to_db(since)],
        )
        for at, purpose, model, *sums in rows:
            key = (from_db(at).astimezone().date(), purpose, model)
            days[key] = days.get(key, Spent()) + Spent(*sums)
        made = [SpentOn(*key, spent) for key, spent in days.items()]
        return tuple(sorted(made, key=lambda row: (-row.day.toordinal(), row.purpose, row.model)))

    def _spent(self, condition: str, *values: object) -> Spent:
        (sums,) = self._store.rows(f"SELECT {_SUMS} FROM spend WHERE {condition}", [*values])
        return Spent(*sums)


_SUMS = (
    "count(*), coalesce(sum(input_tokens + output_tokens), 0), coalesce(sum(cost_usd), 0)::DOUBLE, "
    "count(*) - count(cost_usd), count(*) FILTER (estimated), "
    "coalesce(sum(cost_usd) FILTER (estimated), 0)::DOUBLE"
)


def by_month(rows: Iterable[SpentOn]) -> Mapping[tuple[date, str, str], Spent]:
    """Return rows of `by_day` summed by (first of the month, purpose, model), in their order."""
    months: dict[tuple[date, str, str], Spent] = {}
    for row in rows:
        key = (row.day.replace(day=1), row.purpose, row.model)
        months[key] = months.get(key, Spent()) + row.spent
    return months


def settle_reservations(store: Store) -> None:
    """Record the reservations left by a kill as spent, since they may have been.

    Only one process works on a database at a time, so at startup they belong to nobody. In one
    commit, so that another kill counts none twice. Blocking; raises StorageError.
    """
    rows = store.rows(
        "SELECT held_at, purpose, model, input_tokens, output_tokens, cost_usd, uid FROM spend_held "
        "ORDER BY position, uid"
    )
    if rows:
        store.save(
            *(
                SpendAdded(
                    from_db(at), purpose, model, given, made, 0, cost_usd, held=uid,
                    is_estimated=True,
                )
                for at, purpose, model, given, made, cost_usd, uid in rows
            )
        )  # fmt: skip
