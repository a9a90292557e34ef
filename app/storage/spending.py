"""Queries about money and tokens spent: by purpose, model, local day and month."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from app.domain.local_days import day_start, month_start
from app.domain.workers import Ledger
from app.storage.database import Connection
from app.storage.store import Store
from app.storage.times import from_db, now, to_db

CHAT = "chat"  # the purpose that is not background work
_BIN_S = 900  # every time zone is a multiple of this away from UTC


@dataclass(frozen=True, slots=True)
class Spent:
    """What requests came to. `known_usd` leaves out `unknown` of them, whose price is not known.

    Among them are `interrupted` ones, for `estimated_usd` at most.
    """

    requests: int = 0
    tokens: int = 0
    known_usd: float = 0.0
    unknown: int = 0
    interrupted: int = 0
    estimated_usd: float = 0.0

    @property
    def cost_usd(self) -> float | None:
        """The sum, None when a price in it is unknown."""
        return None if self.unknown else self.known_usd

    @property
    def ledger(self) -> Ledger:
        """The same as a worker's ledger."""
        return Ledger(self.tokens, self.cost_usd, self.estimated_usd)

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(
            self.requests + other.requests,
            self.tokens + other.tokens,
            self.known_usd + other.known_usd,
            self.unknown + other.unknown,
            self.interrupted + other.interrupted,
            self.estimated_usd + other.estimated_usd,
        )


@dataclass(frozen=True, slots=True)
class SpentOn:
    """What a purpose ("chat" or a worker's name) spent on a model in a day of the local calendar."""

    day: date
    purpose: str
    model: str
    spent: Spent


class Spending:
    """Reads what requests cost. Blocking: for worker threads and the command line."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def all_time(self, purpose: str) -> Ledger:
        """Return all that was spent on "chat" or for a worker; the cost is None if any is unknown."""
        return self._spent("purpose = ?", purpose).ledger

    def on(self, purpose: str, moment: datetime) -> Ledger:
        """Return what was spent on "chat" or for a worker since a moment."""
        return self._spent("spent_at >= ? AND purpose = ?", to_db(moment), purpose).ledger

    def since(self, moment: datetime) -> Spent:
        """Return all that was spent since a moment, chats included."""
        return self._spent("spent_at >= ?", to_db(moment))

    def today(self, at: datetime | None = None) -> Spent:
        """Return what the local day of `at` (default: now) has cost."""
        return self.since(day_start(at or now()))

    def this_month(self, at: datetime | None = None) -> Spent:
        """Return what the local month of `at` (default: now) has cost."""
        return self.since(month_start(at or now()))

    def on_background(self, moment: datetime) -> Spent:
        """Return what all workers together have spent since a moment."""
        return self._spent("spent_at >= ? AND purpose <> ?", to_db(moment), CHAT)

    def are_stored(self, purpose: str, moments: Iterable[datetime]) -> frozenset[datetime]:
        """Return which of some moments have a request of `purpose` on record."""
        wanted = [to_db(each) for each in moments]
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT spent_at FROM spend WHERE purpose = ? AND spent_at IN (SELECT unnest(?))",
                [purpose, wanted],
            ).fetchall()
        )
        return frozenset(from_db(at) for (at,) in rows)

    def by_day(self, since: datetime) -> tuple[SpentOn, ...]:
        """Return what was spent since a moment, by day, purpose and model; the latest day first."""
        days: dict[tuple[date, str, str], Spent] = {}
        for at, purpose, model, spent in self._store.read(lambda cursor: _binned(cursor, since)):
            key = (from_db(at).astimezone().date(), purpose, model)
            days[key] = days.get(key, Spent()) + spent
        rows = [SpentOn(*key, spent) for key, spent in days.items()]
        return tuple(sorted(rows, key=lambda row: (-row.day.toordinal(), row.purpose, row.model)))

    def _spent(self, condition: str, *values: object) -> Spent:
        row = self._store.read(
            lambda cursor: cursor.execute(
                f"SELECT {_SUMS} FROM spend WHERE {condition}", [*values]
            ).fetchone()
        )
        return _spent_of(row or (0, 0, 0.0, 0, 0, 0.0))


_SUMS = (
    "count(*), coalesce(sum(input_tokens + output_tokens), 0), coalesce(sum(cost_usd), 0), "
    "count(*) - count(cost_usd), count(*) FILTER (estimated), "
    "coalesce(sum(cost_usd) FILTER (estimated), 0)"
)


def by_month(rows: Iterable[SpentOn]) -> Mapping[tuple[date, str, str], Spent]:
    """Return rows of `by_day` summed by (first of the month, purpose, model), in their order."""
    months: dict[tuple[date, str, str], Spent] = {}
    for row in rows:
        key = (row.day.replace(day=1), row.purpose, row.model)
        months[key] = months.get(key, Spent()) + row.spent
    return months


def _binned(cursor: Connection, since: datetime) -> list[tuple[datetime, str, str, Spent]]:
    rows = cursor.execute(
        f"SELECT min(spent_at), purpose, model, {_SUMS} FROM spend WHERE spent_at >= ? "
        f"GROUP BY epoch(spent_at)::BIGINT // {_BIN_S}, purpose, model",
        [to_db(since)],
    ).fetchall()
    return [(at, purpose, model, _spent_of(sums)) for at, purpose, model, *sums in rows]


def _spent_of(sums: Sequence[float]) -> Spent:
    requests, tokens, known_usd, unknown, interrupted, estimated_usd = sums
    return Spent(
        int(requests), int(tokens), float(known_usd), int(unknown), int(interrupted),
        float(estimated_usd),
    )  # fmt: skip
