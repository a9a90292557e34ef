"""Queries about facts as the user knows them, and the changes that put one in its place.

What is private or in the trash does not exist for the user: facts are returned as
`app.storage.seen_facts` has them, but where it says "stored". Which messages are still to be read for
facts is the extractor's business.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.domain.changes import Change, FactPut, PassagesPut
from app.domain.errors import NotFound
from app.domain.facts import Fact, FactCategory, FactVersion
from app.domain.ids import ConversationId, PassageId
from app.domain.passages import Passage, PassageKind
from app.domain.turn_text import content_hash, estimate_tokens
from app.storage.database import Connection
from app.storage.learned import FACT_COLUMNS, FACT_VERSION_COLUMNS
from app.storage.rows import Row
from app.storage.seen_facts import SEEN_FACTS, seen_facts
from app.storage.store import Store
from app.storage.times import from_db


@dataclass(frozen=True, slots=True)
class FactFilter:
    """Which facts to list: all that hold, unless narrowed.

    Every word of `text` must occur, in any case. `ended` adds those that hold no more.
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
    is the wording of the fact that superseded it, "" when none did. `versions` counts its wordings.
    """

    fact: Fact
    conversation_title: str
    archived: bool
    turn_number: int | None
    successor: str
    versions: int


def fact_changes(fact: Fact) -> tuple[Change, ...]:
    """Return what stores a fact as it now is: a passage stands for it as long as it holds."""
    passage = Passage(
        id=fact.id,
        kind=PassageKind.FACT,
        source_id=fact.id,
        conversation_id=fact.conversation_id,
        exchange_id=fact.exchange_id,
        content_hash=content_hash(fact.text),
        created_at=fact.said_at,
        tokens=estimate_tokens(fact.text),
    )
    holds = fact.valid_until is None
    return FactPut(fact), PassagesPut((passage,)) if holds else PassagesPut((), (fact.id,))


_FACTS = f"{SEEN_FACTS} f"
_VERSION_SEEN = (
    "NOT EXISTS (SELECT 1 FROM conversation c WHERE c.id = v.conversation_id "
    "AND (c.private OR c.deleted_at IS NOT NULL))"
)
_NEWEST_FIRST = "ORDER BY f.pinned DESC, f.said_at DESC, f.id DESC"


class Facts:
    """Reads facts. Blocking: for worker threads and the command line."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def listed(self, which: FactFilter) -> Sequence[KnownFact]:
        """Return a page of facts, pinned ones first, then by when they were said, newest first."""
        condition, values = _condition(which)

        def query(cursor: Connection) -> Sequence[KnownFact]:
            rows = cursor.execute(
                f"SELECT {FACT_COLUMNS} FROM {seen_facts(cursor)} f WHERE {condition} {_NEWEST_FIRST} "
                "LIMIT ? OFFSET ?",
                [*values, which.limit, which.offset],
            ).fetchall()
            return _known(cursor, [fact_of(row) for row in rows])

        return self._store.read(query)

    def count(self, which: FactFilter) -> int:
        """Return how many facts there are on all pages."""
        condition, values = _condition(which)
        row = self._store.read(
            lambda cursor: cursor.execute(
                f"SELECT count(*) FROM {_FACTS} WHERE {condition}", values
            ).fetchone()
        )
        return int(row[0]) if row else 0

    def ids(self, which: FactFilter) -> frozenset[PassageId]:
        """Return the ids of the facts on all pages."""
        condition, values = _condition(which)
        rows = self._store.read(
            lambda cursor: cursor.execute(
                f"SELECT f.id FROM {_FACTS} WHERE {condition}", values
            ).fetchall()
        )
        return frozenset(PassageId(each) for (each,) in rows)

    def by_ids(self, ids: Iterable[int]) -> Mapping[PassageId, KnownFact]:
        """Return the facts that exist among `ids`."""
        wanted = list(ids)

        def query(cursor: Connection) -> Mapping[PassageId, KnownFact]:
            rows = cursor.execute(
                f"SELECT {FACT_COLUMNS} FROM {seen_facts(cursor)} f "
                "WHERE f.id IN (SELECT unnest(?))",
                [wanted],
            ).fetchall()
            return {each.fact.id: each for each in _known(cursor, [fact_of(row) for row in rows])}

        return self._store.read(query)

    def get(self, fact_id: int) -> KnownFact:
        """Return one fact; raise NotFound."""
        found = self.by_ids([fact_id]).get(PassageId(fact_id))
        if found is None:
            raise NotFound(f"There is no fact {fact_id}", "'facts list' shows those there are.")
        return found

    def versions(self, fact_id: int) -> Sequence[FactVersion]:
        """Return the wordings a fact had, newest first: the first is the one it has."""
        return self.versions_of([fact_id]).get(PassageId(fact_id), ())

    def versions_of(self, fact_ids: Iterable[int]) -> Mapping[PassageId, Sequence[FactVersion]]:
        """Return the same for several facts, by their ids."""
        wanted = list(fact_ids)
        rows = self._store.read(
            lambda cursor: cursor.execute(
                f"SELECT {FACT_VERSION_COLUMNS} FROM fact_version v "
                f"WHERE v.fact_id IN (SELECT unnest(?)) AND {_VERSION_SEEN} "
                "ORDER BY v.fact_id, v.made_at DESC",
                [wanted],
            ).fetchall()
        )
        found: dict[PassageId, list[FactVersion]] = {}
        for version in map(version_of, rows):
            found.setdefault(version.fact_id, []).append(version)
        return found

    def superseded_by(self, fact_id: int) -> Sequence[Fact]:
        """Return the facts that this one took the place of, the last to end first."""
        return self._facts(
            "f.superseded_by = ? ORDER BY f.valid_until DESC, f.id DESC", [fact_id], _FACTS
        )

    def stored(self, fact_id: int) -> Fact:
        """Return a fact as it is stored, whatever is hidden; raise NotFound."""
        found = self._facts("f.id = ?", [fact_id])
        return found[0] if found else self.get(fact_id).fact

    def holding_of(self, subject: str) -> Sequence[Fact]:
        """Return the facts stored as holding of a subject that may have one value, by id."""
        return self._facts(
            "f.subject = ? AND f.subject <> '' AND f.valid_until IS NULL ORDER BY f.id", [subject]
        )

    def by_uid(self, uids: Iterable[str]) -> Mapping[str, Fact]:
        """Return the stored facts that have one of these uids, hidden ones too: for merging."""
        found = self._facts("f.uid IN (SELECT unnest(?))", [list(uids)])
        return {fact.uid: fact for fact in found}

    def of_conversation(self, conversation_id: int | None) -> Sequence[Fact]:
        """Return the stored facts last learned from a conversation, even one in the trash, by id.

        None: those the user wrote.
        """
        return self._facts(
            "f.conversation_id IS NOT DISTINCT FROM ? ORDER BY f.id", [conversation_id]
        )

    def holding(self, texts: Iterable[str]) -> Mapping[str, PassageId]:
        """Return the stored facts that hold with just one of these wordings, by wording."""
        found = self._facts(
            "f.valid_until IS NULL AND f.text IN (SELECT unnest(?)) ORDER BY f.id", [list(texts)]
        )
        return {fact.text: fact.id for fact in found}

    def refused(self, hashes: Iterable[str]) -> frozenset[str]:
        """Return which wordings, by their hashes, are not to be learned again."""
        wanted = list(hashes)
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT text_hash FROM fact_refused WHERE text_hash IN (SELECT unnest(?))",
                [wanted],
            ).fetchall()
        )
        return frozenset(each for (each,) in rows)

    def _facts(self, condition: str, values: list[object], table: str = "fact f") -> Sequence[Fact]:
        rows = self._store.read(
            lambda cursor: cursor.execute(
                f"SELECT {FACT_COLUMNS} FROM {table} WHERE {condition}", values
            ).fetchall()
        )
        return [fact_of(row) for row in rows]


def fact_of(row: Row) -> Fact:
    """Return the fact of a row in the order of `FACT_COLUMNS`."""
    return Fact(
        id=row[0],
        uid=row[1],
        text=row[2],
        category=FactCategory(row[3]),
        subject=row[4],
        conversation_id=row[5],
        exchange_id=row[6],
        message_id=row[7],
        said_at=from_db(row[8]),
        model=row[9],
        made_at=from_db(row[10]),
        valid_until=from_db(row[11]),
        superseded_by=row[12],
        pinned=row[13],
    )


def version_of(row: Row) -> FactVersion:
    """Return the version of a row in the order of `FACT_VERSION_COLUMNS`."""
    return FactVersion(
        fact_id=row[0],
        made_at=from_db(row[1]),
        text=row[2],
        category=FactCategory(row[3]),
        model=row[4],
        conversation_id=row[5],
        exchange_id=row[6],
        message_id=row[7],
        said_at=from_db(row[8]),
    )


def _condition(which: FactFilter) -> tuple[str, list[object]]:
    conditions, values = ["true"], list[object]()
    if not which.ended:
        conditions.append("f.valid_until IS NULL")
    if which.category is not None:
        conditions.append("f.category = ?")
        values.append(which.category.value)
    if which.conversation_id is not None:
        conditions.append("f.conversation_id = ?")
        values.append(which.conversation_id)
    for word in which.text.split():
        conditions.append("contains(lower(f.text), lower(?))")
        values.append(word)
    return " AND ".join(conditions), values


def _known(cursor: Connection, facts: Sequence[Fact]) -> Sequence[KnownFact]:
    """Return facts with what belongs to them; each table is read by ids alone."""
    talks = _by_id(cursor, "conversation", "title, archived", [f.conversation_id for f in facts])
    turns = _by_id(cursor, "exchange", "turn_number", [f.exchange_id for f in facts])
    successors = _by_id(cursor, seen_facts(cursor), "text", [f.superseded_by for f in facts])
    counts = dict(
        cursor.execute(
            "SELECT v.fact_id, count(*) FROM fact_version v WHERE v.fact_id IN (SELECT unnest(?)) "
            f"AND {_VERSION_SEEN} GROUP BY v.fact_id",
            [[fact.id for fact in facts]],
        ).fetchall()
    )
    known = []
    for fact in facts:
        title, archived = talks.get(fact.conversation_id, ("", False))
        (turn,) = turns.get(fact.exchange_id, (None,))
        (successor,) = successors.get(fact.superseded_by, ("",))
        known.append(KnownFact(fact, title, archived, turn, successor, counts.get(fact.id, 0)))
    return known


def _by_id(
    cursor: Connection, table: str, columns: str, ids: Iterable[int | None]
) -> dict[int | None, Row]:
    wanted = sorted({each for each in ids if each is not None})
    rows = cursor.execute(
        f"SELECT id, {columns} FROM {table} WHERE id IN (SELECT unnest(?))", [wanted]
    ).fetchall()
    return {row[0]: row[1:] for row in rows}
