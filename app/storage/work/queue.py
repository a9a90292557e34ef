"""Queries for work: what is missing, how much is done, and what is to be regenerated.

Work is found by query: an item without a result that was made from its present content, known by a
stamp. What is to be regenerated is known by a moment, which is a setting and so outlives the
program and stays in backups: results made before it count only if they are by the model that was
chosen then, by the one chosen now, or by the user.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.domain.ids import ConversationId
from app.domain.records.facts import BY_PATTERNS, BY_USER
from app.storage.engine.connection import Connection, Row
from app.storage.engine.stamps import from_db, now, to_db
from app.storage.tables.settings import Settings

WorkItem = tuple[int, str]
"""An item's id and the stamp of its present content."""

VISIBLE = "NOT c.private AND c.deleted_at IS NULL"
"""The condition that a conversation c is worked on."""

# A next try more than a day away means that the clock was set back.
POSTPONED = "(a.next_at IS NULL OR (a.next_at > $at AND a.next_at <= $at + INTERVAL 1 DAY))"


@dataclass(frozen=True, slots=True)
class Tally:
    """How much of a kind of work is done, of a `total` that should be.

    Of the rest, some wait for a retry, the earliest at `next_attempt_at` (UTC), and some were
    abandoned after failing too often. Of those done, `in_part` were not read to their end.
    """

    done: int
    total: int
    waiting_retry: int = 0
    abandoned: int = 0
    next_attempt_at: datetime | None = None
    in_part: int = 0

    @property
    def has_left(self) -> bool:
        """Whether anything is to be done that was not abandoned."""
        return self.done + self.abandoned < self.total


@dataclass(frozen=True, slots=True)
class RegeneratedKind:
    """Work that can be requested again: its setting, and the maker's name without a model."""

    key: str
    without_model: str


@dataclass(frozen=True, slots=True)
class WorkQuery:
    """The SQL of one kind of work.

    `items` is the FROM clause of all items, `item` the expression of an item's id, `wanted` the
    WHERE clause of those that should have a result; `result` joins the table of results as d, whose
    column `key` is never NULL. `worker` names the attempts. With `makes`, results count by their
    maker, and `of_all` is as if the user had just requested regeneration. With `order`, items have a
    stamp (t.stamp) and a conversation c. The other values that the clauses bind are `values`.
    """

    worker: str
    items: str
    item: str
    wanted: str
    result: str
    key: str
    makes: RegeneratedKind | None = None
    order: str = ""

    def missing(
        self, cursor: Connection, /, columns: str, rest: str, at: datetime, **values: Any
    ) -> list[Row]:
        """Return columns of the items without a result; `rest` are further clauses.

        Left out are abandoned items and those whose next try comes after `at` (UTC), unless by so much
        that the clock must have been set back.
        """
        delayed = (
            f"AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.worker = '{self.worker}' "
            f"AND a.item_id = {self.item} AND {POSTPONED}) {rest}"
        )
        return self.unmade(cursor, columns, delayed, at=to_db(at), **values)

    def unmade(
        self, cursor: Connection, /, columns: str, rest: str, *, of_all: bool = False, **values: Any
    ) -> list[Row]:
        """Return columns of all items without a result, whatever their attempts."""
        # WORKAROUND(duckdb 2.0.0): with LEFT JOINs, the LIMIT is lost when a table is empty.
        table, condition = self.result.split(" ON ", 1)
        statement = (
            f"SELECT {columns} {self.items} {self.wanted} "
            f"AND NOT EXISTS (SELECT 1 FROM {table} WHERE {condition}) {rest}"
        )
        return cursor.rows(statement, self._bound(cursor, values, of_all=of_all))

    def next_items(
        self,
        cursor: Connection,
        /,
        limit: int,
        skipped: ConversationId | None,
        at: datetime,
        **values: Any,
    ) -> list[WorkItem]:
        """Return (id, stamp) of the first items that are `missing`, but of the conversation `skipped`."""
        rest = f"AND c.id IS DISTINCT FROM $open ORDER BY {self.order} LIMIT $limit"
        columns = f"{self.item}, t.stamp"
        return self.missing(cursor, columns, rest, at, limit=limit, open=skipped, **values)

    def tally(self, cursor: Connection, /, *, of_all: bool = False, **values: Any) -> Tally:
        """Return how many items there are, how many have a result, and what delays the others."""
        ((done, total, waiting, abandoned, next_at),) = cursor.rows(
            f"SELECT count(d.{self.key}), count(*), count(a.next_at), "
            f"count(a.item_id) - count(a.next_at), min(a.next_at) {self.items} "
            f"LEFT JOIN {self.result} LEFT JOIN attempt a ON a.worker = '{self.worker}' "
            f"AND a.item_id = {self.item} AND d.{self.key} IS NULL {self.wanted}",
            self._bound(cursor, values, of_all=of_all),
        )
        return Tally(done, total, waiting, abandoned, from_db(next_at))

    def _bound(
        self, cursor: Connection, values: Mapping[str, object], *, of_all: bool
    ) -> Mapping[str, object]:
        if self.makes is None:
            return values
        return {**values, **regeneration_values(cursor, self.makes, of_all=of_all)}


# -- regeneration


SUMMARIES = RegeneratedKind("summaries_again", "extractive")
FACTS = RegeneratedKind("facts_again", BY_PATTERNS)
_MODEL_KEY = "background_model"
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_ALWAYS = datetime(9999, 1, 1, tzinfo=UTC)


def request_regeneration(settings: Settings, what: RegeneratedKind) -> None:
    """Let all that other models made so far be made again. Blocking; raises StorageError."""
    settings.set(what.key, f"{now().isoformat()} {settings.text(_MODEL_KEY) or what.without_model}")


def regeneration_values(
    cursor: Connection, what: RegeneratedKind, *, of_all: bool = False
) -> dict[str, Any]:
    """Return `again` (a TIMESTAMP) and `makers`, which the work queries bind.

    With `of_all` as if the user had just requested regeneration.
    """
    rows = cursor.rows(
        "SELECT key, value FROM appconfig WHERE key IN (?, ?)", [what.key, _MODEL_KEY]
    )
    stored = {key: str(json.loads(value) or "") for key, value in rows}
    moment, _, maker = stored.get(what.key, "").partition(" ")
    makers = {BY_USER, stored.get(_MODEL_KEY) or what.without_model}
    again = datetime.fromisoformat(moment) if moment else _NEVER
    if of_all:
        again = _ALWAYS
    elif maker:
        makers.add(maker)
    return {"again": to_db(again), "makers": sorted(makers)}


def is_superseded(
    cursor: Connection, what: RegeneratedKind, begun_at: datetime, model: str
) -> bool:
    """Return whether another maker was asked for what `model` began to make at that time."""
    values = regeneration_values(cursor, what)
    is_later = to_db(begun_at) < values["again"]
    return is_later and model not in values["makers"]


COUNTS_BY_MAKER = "(d.made_at >= $again OR list_contains($makers, d.model))"
"""The condition that a result d need not be regenerated."""
EXCHANGE_STAMPS = (
    "(SELECT exchange_id, count(*) - sum(forgotten) AS size, count(*) - sum(forgotten) || ':' || "
    "max(message_id) || CASE WHEN max(forgotten) = 1 THEN ':' || sum(forgotten) ELSE '' END AS stamp "
    "FROM (SELECT exchange_id, message_id, 0 AS forgotten FROM exchange_message UNION ALL "
    "SELECT exchange_id, message_id, 1 FROM forgotten_message) GROUP BY exchange_id)"
)
"""Exchanges with their size and stamp: which messages they have, and how many were forgotten."""
EXCHANGES = (
    "FROM exchange i JOIN conversation c ON c.id = i.conversation_id "
    f"JOIN {EXCHANGE_STAMPS} t ON t.exchange_id = i.id"
)
"""Exchanges i with their size and stamp; messages change only by being forgotten."""
ENDED = f"WHERE i.status <> 'running' AND {VISIBLE} AND t.size >= $size"
