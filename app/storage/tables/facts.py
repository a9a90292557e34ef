"""Queries about facts, and the changes that store one.

Facts of private conversations and of those in the trash are hidden (`fact_visibility`), except where
a method says "stored".
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from app.domain.changes import Change, FactPut, PassagesPut
from app.domain.errors import NotFound
from app.domain.ids import ConversationId, ExchangeId, PassageId
from app.domain.passages import Passage, PassageKind
from app.domain.records.facts import Fact, FactCategory, FactVersion
from app.domain.text import content_hash
from app.domain.turns import estimate_tokens
from app.storage.engine.aggregate import reader
from app.storage.engine.connection import Connection, Row, among, grouped
from app.storage.engine.store import StoreReader
from app.storage.tables.fact_rows import FACT_COLUMNS, FACT_VERSION_COLUMNS, fact_of
from app.storage.tables.fact_visibility import VISIBLE_FACTS, visible_facts
from app.storage.tables.projects import APART


@dataclass(frozen=True, slots=True)
class FactFilter:
    """Which facts to list: all current ones, unless limited.

    Every word of `text` must occur, in any case. `ended` includes past facts.
    """

    text: str = ""
    category: FactCategory | None = None
    conversation_id: ConversationId | None = None
    ended: bool = False
    limit: int = 100
    offset: int = 0


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A fact with what a screen shows of it.

    Title and `turn_number` are those of its source: "" and None when the user wrote it. `successor`
    is the text of the fact that superseded it, "" for none. `versions` counts its versions.
    """

    fact: Fact
    conversation_title: str
    archived: bool
    turn_number: int | None
    successor: str
    versions: int


def fact_changes(fact: Fact) -> tuple[Change, ...]:
    """Return the changes that store a fact; it has a passage as long as it is current."""
    passage = Passage(
        fact.id, PassageKind.FACT, fact.id, fact.conversation_id, fact.exchange_id,
        content_hash(fact.text), fact.said_at, estimate_tokens(fact.text),
    )  # fmt: skip
    is_current = fact.valid_until is None
    return FactPut(fact), PassagesPut((passage,)) if is_current else PassagesPut((), (fact.id,))


_FACTS = f"{VISIBLE_FACTS} f"
VERSION_SEEN = (
    "NOT EXISTS (SELECT 1 FROM conversation c WHERE c.id = v.conversation_id "
    "AND (c.private OR c.deleted_at IS NOT NULL))"
)
_NEWEST_FIRST = "ORDER BY f.pinned DESC, f.said_at DESC, f.id DESC"


class Facts(StoreReader):
    """Reads facts. Blocking: for worker threads and the command line."""

    def listed(self, which: FactFilter) -> Sequence[KnownFact]:
        """Return a page of facts, pinned ones first, then by when they were said, newest first."""
        condition, values = _condition(which)
        rest = f"{condition} {_NEWEST_FIRST} LIMIT ? OFFSET ?"
        return self._store.read(_visible, rest, [*values, which.limit, which.offset])

    def count(self, which: FactFilter) -> int:
        """Return how many facts there are on all pages."""
        condition, values = _condition(which)
        (count,) = self._store.column(f"SELECT count(*) FROM {_FACTS} WHERE {condition}", values)
        return int(count)

    def ids(self, which: FactFilter) -> frozenset[PassageId]:
        condition, values = _condition(which)
        return frozenset(self._store.column(f"SELECT f.id FROM {_FACTS} WHERE {condition}", values))

    def by_ids(self, ids: Iterable[int]) -> Mapping[PassageId, KnownFact]:
        """Return the facts that exist among `ids`."""
        condition, values = among(ids)
        found = self._store.read(_visible, f"f.id {condition}", values)
        return {each.fact.id: each for each in found}

    def of_model(self, model: str, ids: Iterable[PassageId]) -> frozenset[PassageId]:
        """Return the facts among `ids` that a model wrote."""
        query = "SELECT id FROM fact WHERE model = ? AND id IN (SELECT unnest(?))"
        return frozenset(self._store.column(query, [model, list(ids)]))

    def get(self, fact_id: int) -> KnownFact:
        """Return one fact; raise NotFound."""
        found = self.by_ids([fact_id]).get(PassageId(fact_id))
        if found is None:
            raise NotFound(f"There is no fact {fact_id}", "'facts list' shows the existing ones.")
        return found

    def versions(self, fact_id: int) -> Sequence[FactVersion]:
        """Return the versions of a fact, newest first: the first is the present one."""
        return self.versions_of([fact_id]).get(PassageId(fact_id), ())

    def versions_of(self, fact_ids: Iterable[int]) -> Mapping[PassageId, Sequence[FactVersion]]:
        """Return the same for several facts, by their ids."""
        rest = f"AND {VERSION_SEEN} ORDER BY v.fact_id, v.made_at DESC"
        return self._store.read(fact_versions, fact_ids, rest)

    def superseded_by(self, fact_id: int) -> Sequence[Fact]:
        """Return the facts that this one superseded, the last to end first."""
        return self._facts(
            "f.superseded_by = ? ORDER BY f.valid_until DESC, f.id DESC", [fact_id], _FACTS
        )

    def newer_than(self, exchange_ids: Iterable[int]) -> Sequence[tuple[PassageId, ExchangeId]]:
        """Return the current facts that superseded what some exchanges state, with each of these.

        Not with the one that states the fact itself.
        """
        rows = self._store.rows(
            "WITH RECURSIVE newer AS (SELECT v.exchange_id AS source, f.superseded_by AS id "
            "FROM fact_version v JOIN fact f ON f.id = v.fact_id "
            "WHERE v.exchange_id IN (SELECT unnest(?)) AND f.superseded_by IS NOT NULL "
            "UNION SELECT source, f.superseded_by FROM newer JOIN fact f USING (id) "
            "WHERE f.superseded_by IS NOT NULL) "
            f"SELECT id, source FROM newer JOIN {_FACTS} USING (id) "
            "WHERE f.valid_until IS NULL AND f.exchange_id IS DISTINCT FROM source ORDER BY id, source",
            [list(exchange_ids)],
        )
        return [(fact, exchange) for fact, exchange in rows]

    def stored(self, fact_id: int) -> Fact:
        """Return a stored fact, hidden or not; raise NotFound."""
        found = self._facts("f.id = ?", [fact_id])
        return found[0] if found else self.get(fact_id).fact

    def rivals_of(self, fact: Fact) -> Sequence[Fact]:
        """Return the other stored current facts of a single-valued subject, by id: only those of the same place."""
        place = f"(SELECT p.place FROM {APART} p WHERE p.id = %s)"
        return self._facts(
            "f.subject = ? AND f.subject <> '' AND f.id <> ? AND f.valid_until IS NULL AND "
            f"{place % 'f.conversation_id'} IS NOT DISTINCT FROM {place % '?'} ORDER BY f.id",
            [fact.subject, fact.id, fact.conversation_id],
        )

    def by_uid(self, uids: Iterable[str]) -> Mapping[str, Fact]:
        """Return the stored facts that have one of these uids, hidden ones too: for merging."""
        found = self._facts("f.uid IN (SELECT unnest(?))", [list(uids)])
        return {fact.uid: fact for fact in found}

    def of_conversation(self, conversation_id: int | None) -> Sequence[Fact]:
        """Return the stored facts last extracted from a conversation, even one in the trash, by id.

        None: those the user wrote.
        """
        return self._facts(
            "f.conversation_id IS NOT DISTINCT FROM ? ORDER BY f.id", [conversation_id]
        )

    def lasting(self, categories: Iterable[FactCategory], limit: int) -> Sequence[Fact]:
        """Return visible current facts that are pinned or of some categories, the newest first.

        Those of bounded projects and of the sample archive are left out.
        """
        condition = (
            "f.valid_until IS NULL AND (f.pinned OR f.category IN (SELECT unnest(?))) "
            f"AND coalesce(f.conversation_id, 0) NOT IN (SELECT id FROM {APART})"
        )
        values: list[object] = [[each.value for each in categories], limit]
        return self._facts(f"{condition} {_NEWEST_FIRST} LIMIT ?", values, _FACTS)

    def holding(self, texts: Iterable[str]) -> Mapping[str, PassageId]:
        """Return the stored current facts with one of these exact texts, by text."""
        found = self._facts(
            "f.valid_until IS NULL AND f.text IN (SELECT unnest(?)) ORDER BY f.id", [list(texts)]
        )
        return {fact.text: fact.id for fact in found}

    def refused(self, hashes: Iterable[str]) -> frozenset[str]:
        """Return which texts, by their hashes, must not be extracted again."""
        return frozenset(self._store.column_in("fact_refused", "text_hash", hashes, "text_hash"))

    def _facts(self, condition: str, values: list[object], table: str = "fact f") -> Sequence[Fact]:
        rows = self._store.rows(f"SELECT {FACT_COLUMNS} FROM {table} WHERE {condition}", values)
        return [fact_of(row) for row in rows]


def fact_versions(
    cursor: Connection, fact_ids: Iterable[int], rest: str
) -> dict[PassageId, list[FactVersion]]:
    """Return the versions (v) of facts by fact; `rest` are further clauses, such as their order."""
    rows = cursor.select_in("fact_version v", FACT_VERSION_COLUMNS, fact_ids, "v.fact_id", rest)
    return grouped(map(reader(FactVersion), rows), attrgetter("fact_id"))


def _condition(which: FactFilter) -> tuple[str, list[object]]:
    words = which.text.split()
    conditions = [
        "true" if which.ended else "f.valid_until IS NULL",
        "f.category = coalesce(?, f.category)",
        "f.conversation_id IS NOT DISTINCT FROM coalesce(?, f.conversation_id)",
        *("contains(lower(f.text), lower(?))" for _ in words),
    ]
    return " AND ".join(conditions), [which.category, which.conversation_id, *words]


def _visible(cursor: Connection, condition: str, values: list[object]) -> list[KnownFact]:
    """Return visible facts with what belongs to them; each table is read by ids alone."""
    table = visible_facts(cursor)
    rows = cursor.execute(f"SELECT {FACT_COLUMNS} FROM {table} f WHERE {condition}", values)
    facts = list(map(fact_of, rows.fetchall()))
    conversations = _by_id(cursor, "conversation", "title, archived", facts, "conversation_id")
    turns = _by_id(cursor, "exchange", "turn_number", facts, "exchange_id")
    successors = _by_id(cursor, table, "text", facts, "superseded_by")
    seen = f"AND {VERSION_SEEN} GROUP BY v.fact_id"
    own = [fact.id for fact in facts]
    columns = "v.fact_id, count(*)"
    counts: dict[int, int] = dict(
        cursor.select_in("fact_version v", columns, own, "v.fact_id", seen)
    )
    known = []
    for fact in facts:
        title, archived = conversations.get(fact.conversation_id, ("", False))
        (turn,) = turns.get(fact.exchange_id, (None,))
        (successor,) = successors.get(fact.superseded_by, ("",))
        known.append(KnownFact(fact, title, archived, turn, successor, counts.get(fact.id, 0)))
    return known


def _by_id(
    cursor: Connection, table: str, columns: str, facts: Sequence[Fact], name: str
) -> dict[int | None, Row]:
    """Return rows by id: those that the field `name` of facts refers to."""
    wanted = set(map(attrgetter(name), facts)) - {None}
    return {row[0]: row[1:] for row in cursor.select_in(table, f"id, {columns}", wanted)}
