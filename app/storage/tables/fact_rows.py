"""Fact rows: their versions, what was read for facts, rejected texts; deletion of facts.

Queries are in `app.storage.tables.facts`; which facts are visible is `fact_visibility`.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from app.domain.changes import ExtractionDone, FactPut
from app.domain.ids import PassageId
from app.domain.records.facts import Fact, FactVersion
from app.storage.engine.aggregate import (
    OF_CONVERSATIONS,
    Aggregate,
    Batch,
    Rule,
    Table,
    columns_of,
    reader,
    reference,
    unique_uid,
)
from app.storage.engine.connection import IGNORE, Connection, Queries
from app.storage.tables.fact_visibility import VISIBLE_FACTS
from app.storage.tables.passages.rows import passage_source
from app.storage.tables.projects import APART

FACT_COLUMNS = columns_of(Fact)
FACT_VERSION_COLUMNS = columns_of(FactVersion)
_FACT = Table("fact", FACT_COLUMNS)
_VERSION = Table("fact_version", FACT_VERSION_COLUMNS, "fact_id, made_at")
_EXTRACTION = Table("extraction", columns_of(ExtractionDone), "exchange_id", OF_CONVERSATIONS)
_GIVEN = "IN (SELECT unnest($1))"
_CURRENT = (
    "(SELECT id FROM fact WHERE valid_until IS NULL UNION "
    f"SELECT id FROM {VISIBLE_FACTS} WHERE valid_until IS NULL)"
)
_IN_PLACES = f"(SELECT f.*, b.place FROM fact f LEFT JOIN {APART} b ON b.id = f.conversation_id)"
_LATER = (
    f"SELECT t.id, arg_max(o.id, (o.said_at, o.id)) AS after FROM {_IN_PLACES} t JOIN {_IN_PLACES} o "
    "ON o.subject = t.subject AND (o.said_at, o.id) > (t.said_at, t.id) AND o.valid_until IS NULL "
    "AND o.place IS NOT DISTINCT FROM t.place "
    "WHERE t.subject <> '' AND t.valid_until IS NULL AND NOT t.pinned GROUP BY t.id"
)


# -- changes


def _put(batch: Batch, change: FactPut) -> None:
    fact_id = _FACT.put(batch, change.fact)
    _VERSION.put(batch, change.fact, fact_id=fact_id)
    batch.mark("memory")


FACTS = Aggregate(
    (_FACT, _VERSION, Table("fact_refused", "text_hash", "text_hash", how=IGNORE), _EXTRACTION),
    {FactPut: _put, ExtractionDone: _EXTRACTION.puts()},
    rules=(
        unique_uid("fact"),
        reference("fact.conversation_id", "conversation", "delete", by_row=True),
        reference("fact.exchange_id", "exchange", "delete", by_row=True),
        reference("fact.message_id", "message", "clear", by_row=True),
        reference("fact.superseded_by", "fact", "clear", by_row=True),
        Rule(
            "fact.valid_until",
            "The fact {} was superseded and has not ended.",
            "SELECT id FROM fact WHERE superseded_by IS NOT NULL AND valid_until IS NULL",
            f"UPDATE fact SET superseded_by = NULL WHERE id {_GIVEN}",
        ),
        Rule(
            "fact.subject",
            "The fact {} is current although a later one has the same single-valued subject.",
            f"SELECT id FROM ({_LATER}) ORDER BY id",
            "UPDATE fact SET superseded_by = later.after, valid_until = o.said_at "
            f"FROM ({_LATER}) AS later JOIN fact o ON o.id = later.after "
            f"WHERE fact.id = later.id AND fact.id {_GIVEN}",
        ),
        reference("fact_version.fact_id", "fact", "delete"),
        Rule(
            "fact.version",
            "The fact {} has no version with its present text.",
            "SELECT t.id FROM fact t ANTI JOIN fact_version v "
            "ON v.fact_id = t.id AND v.made_at = t.made_at",
            f"INSERT OR REPLACE INTO fact_version ({FACT_VERSION_COLUMNS}) SELECT "
            f"{FACT_VERSION_COLUMNS.replace('fact_id', 'id')} FROM fact WHERE id {_GIVEN}",
        ),
        Rule(
            "fact_version.exchange_id",
            "A version of fact {} refers to a turn that does not exist.",
            "SELECT DISTINCT v.fact_id FROM fact_version v ANTI JOIN exchange e "
            "ON e.id = v.exchange_id AND e.conversation_id = v.conversation_id "
            "WHERE v.exchange_id IS NOT NULL",
            f"DELETE FROM fact_version WHERE fact_id {_GIVEN} AND exchange_id IS NOT NULL "
            "AND NOT EXISTS (SELECT 1 FROM exchange e WHERE e.id = fact_version.exchange_id "
            "AND e.conversation_id = fact_version.conversation_id)",
        ),
        reference("extraction.exchange_id", "exchange", "delete"),
        passage_source("fact", _CURRENT),
    ),
)


# -- deletion


def delete_facts_where(connection: Connection, condition: str, values: list[int]) -> set[int]:
    """Delete the facts from sources that meet a condition; return those that stay and have changed.

    A fact that was extracted elsewhere too stays, with the latest text it has there.
    """
    own = connection.column(f"SELECT id FROM fact WHERE {condition}", [values])
    connection.execute(f"DELETE FROM fact_version WHERE {condition}", [values])
    if not own:
        return set()
    changed = connection.column(
        "UPDATE fact SET text = v.text, category = v.category, model = v.model, "
        "conversation_id = v.conversation_id, exchange_id = v.exchange_id, "
        "message_id = v.message_id, said_at = v.said_at, made_at = v.made_at "
        "FROM (SELECT * FROM fact_version WHERE fact_id IN (SELECT unnest($1)) "
        "QUALIFY row_number() OVER (PARTITION BY fact_id ORDER BY made_at DESC) = 1) v "
        "WHERE v.fact_id = fact.id RETURNING fact.id",
        [own],
    )
    moved = set(changed)
    return moved | delete_facts(connection, [each for each in own if each not in moved], moved)


def delete_facts(
    connection: Connection, fact_ids: Collection[int], moved: Collection[int] = ()
) -> set[int]:
    """Delete facts; return those that were superseded by them or by facts `moved` to an earlier day."""
    deleted = facts_in(connection, fact_ids)
    freed = _freed(connection, fact_ids, moved)
    connection.delete_in("fact", "id", fact_ids)
    connection.delete_in("fact_version", "fact_id", fact_ids)
    subjects = {each.subject for each in freed.values()} - {""}
    current = facts_in(connection, subjects, "subject", "AND valid_until IS NULL")
    talks = {each.conversation_id for each in (*freed.values(), *current.values())} - {None}
    apart: dict[int | None, str] = dict(
        connection.select_in(f"{APART} b", "b.id, b.place", talks, "b.id")
    )
    holders: dict[tuple[str, str | None], list[Fact]] = {}
    for each in current.values():
        if each.id not in freed:
            holders.setdefault((each.subject, apart.get(each.conversation_id)), []).append(each)
    for fact in sorted(freed.values(), key=lambda each: (each.said_at, each.id), reverse=True):
        after = _after(fact, deleted, moved)
        place = fact.subject, apart.get(fact.conversation_id)
        rivals = holders.setdefault(place, []) if fact.subject else []
        if after is None and rivals and not fact.pinned:
            after = max(rivals, key=lambda each: (each.said_at, each.id)).id
        if after is None:
            rivals.append(fact)
        freed[fact.id] = replace(fact, superseded_by=after)
    connection.execute(  # a fact ends when its successor was said
        "UPDATE fact SET superseded_by = e.after, valid_until = CASE WHEN e.after IS NOT NULL "
        "THEN greatest(fact.said_at, e.said_at) END FROM (SELECT n.id, n.after, o.said_at FROM "
        "(SELECT unnest($1::BIGINT[]) AS id, unnest($2::BIGINT[]) AS after) n "
        "LEFT JOIN fact o ON o.id = n.after) e WHERE e.id = fact.id",
        [list(freed), [each.superseded_by for each in freed.values()]],
    )
    return set(freed)


def _freed(
    connection: Connection, deleted: Collection[int], moved: Collection[int]
) -> dict[PassageId, Fact]:
    """Return the facts whose successor has to be determined again."""
    freed = facts_in(connection, deleted, "superseded_by")
    earlier = facts_in(connection, moved)
    for each in facts_in(connection, moved, "superseded_by").values():
        if each.superseded_by and each.said_at > earlier[each.superseded_by].said_at:
            freed[each.id] = each
    for each in earlier.values():
        if each.valid_until is None or each.superseded_by is not None:
            freed[each.id] = each
    return {key: each for key, each in freed.items() if key not in deleted}


def _after(
    fact: Fact, deleted: Mapping[PassageId, Fact], moved: Collection[int]
) -> PassageId | None:
    """Return the nearest successor of a fact that stays; None when there is none."""
    after, seen = fact.superseded_by, set[int]()
    while after is not None and after in deleted and after not in seen:
        seen.add(after)
        after = deleted[after].superseded_by
    return None if after in moved or after in deleted or after == fact.id else after


fact_of = reader(Fact)
"""Of a row of `FACT_COLUMNS`."""


def facts_in(
    cursor: Queries, values: Iterable[object], key: str = "id", rest: str = ""
) -> dict[PassageId, Fact]:
    """Return the facts whose `key` is one of `values`, by id; `rest` are further clauses."""
    rows = cursor.select_in("fact", FACT_COLUMNS, values, key, rest)
    return {row[0]: fact_of(row) for row in rows}
