"""What becomes of the other facts when some leave: those that they had ended hold again, or end later.

Part of `app.storage.learned`; inside the caller's transaction.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from app.storage.database import Connection


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a fact stands among those of its subject."""

    id: int
    subject: str
    said_at: datetime
    valid_until: datetime | None
    superseded_by: int | None
    pinned: bool


def without_conversations(connection: Connection, conversation_ids: list[int]) -> set[int]:
    """Delete the facts of conversations; return those that stay and are not as they were.

    One that was said elsewhere too stays, as it was worded there last.
    """
    own = "conversation_id IN (SELECT unnest($1))"
    rows = connection.execute(f"SELECT id FROM fact WHERE {own}", [conversation_ids]).fetchall()
    learned_there = [each for (each,) in rows]
    connection.execute(f"DELETE FROM fact_version WHERE {own}", [conversation_ids])
    rows = connection.execute(
        "UPDATE fact SET text = v.text, category = v.category, model = v.model, "
        "conversation_id = v.conversation_id, exchange_id = v.exchange_id, "
        "message_id = v.message_id, said_at = v.said_at, made_at = v.made_at "
        "FROM (SELECT * FROM fact_version WHERE fact_id IN (SELECT unnest($1)) "
        "QUALIFY row_number() OVER (PARTITION BY fact_id ORDER BY made_at DESC) = 1) v "
        "WHERE v.fact_id = fact.id RETURNING fact.id",
        [learned_there],
    ).fetchall()
    moved = {each for (each,) in rows}
    return moved | without(connection, [each for each in learned_there if each not in moved], moved)


def without(
    connection: Connection, fact_ids: Collection[int], moved: Collection[int] = ()
) -> set[int]:
    """Delete facts; return those that they, or what has `moved` to an earlier day, had ended."""
    leaving = _places(connection, "id IN (SELECT unnest(?))", fact_ids)
    freed = _freed(connection, fact_ids, moved)
    for table, key in (("fact", "id"), ("fact_version", "fact_id")):
        connection.execute(f"DELETE FROM {table} WHERE {key} IN (SELECT unnest(?))", [[*fact_ids]])
    there = _places(
        connection,
        "valid_until IS NULL AND subject <> '' AND subject IN (SELECT unnest(?))",
        {each.subject for each in freed.values()},
    )
    holders: dict[str, list[_Place]] = {}
    for each in there.values():
        if each.id not in freed:
            holders.setdefault(each.subject, []).append(each)
    for fact in sorted(freed.values(), key=lambda each: (each.said_at, each.id), reverse=True):
        after = _after(fact, leaving, moved)
        rivals = holders.setdefault(fact.subject, []) if fact.subject else []
        if after is None and rivals and not fact.pinned:
            after = max(rivals, key=lambda each: (each.said_at, each.id)).id
        if after is None:
            rivals.append(fact)
        freed[fact.id] = replace(fact, superseded_by=after)
    _store(connection, freed.values())
    return set(freed)


def _freed(
    connection: Connection, leaving: Collection[int], moved: Collection[int]
) -> dict[int, _Place]:
    """Return the facts whose place is to be found anew."""
    freed = _places(connection, "superseded_by IN (SELECT unnest(?))", leaving)
    earlier = _places(connection, "id IN (SELECT unnest(?))", moved)
    for each in _places(connection, "superseded_by IN (SELECT unnest(?))", moved).values():
        if each.superseded_by and each.said_at > earlier[each.superseded_by].said_at:
            freed[each.id] = each
    for each in earlier.values():
        if each.valid_until is None or each.superseded_by is not None:
            freed[each.id] = each
    return {key: each for key, each in freed.items() if key not in leaving}


def _after(fact: _Place, leaving: Mapping[int, _Place], moved: Collection[int]) -> int | None:
    """Return what ended a fact, or ended what did, and stays; None for what was said before it."""
    after, seen = fact.superseded_by, set[int]()
    while after is not None and after in leaving and after not in seen:
        seen.add(after)
        after = leaving[after].superseded_by
    return None if after in moved or after in leaving or after == fact.id else after


def _store(connection: Connection, placed: Iterable[_Place]) -> None:
    """Store what facts are ended by, which was when that was said."""
    ends = [(each.id, each.superseded_by) for each in placed]
    connection.execute(
        "UPDATE fact SET superseded_by = e.after, valid_until = CASE WHEN e.after IS NOT NULL "
        "THEN greatest(fact.said_at, e.said_at) END FROM (SELECT n.id, n.after, o.said_at FROM "
        "(SELECT unnest($1::BIGINT[]) AS id, unnest($2::BIGINT[]) AS after) n "
        "LEFT JOIN fact o ON o.id = n.after) e WHERE e.id = fact.id",
        [[own for own, _ in ends], [after for _, after in ends]],
    )


def _places(connection: Connection, condition: str, values: Iterable[object]) -> dict[int, _Place]:
    rows = connection.execute(
        "SELECT id, subject, said_at, valid_until, superseded_by, pinned FROM fact "
        f"WHERE {condition}",
        [list(values)],
    ).fetchall()
    return {row[0]: _Place(*row) for row in rows}
