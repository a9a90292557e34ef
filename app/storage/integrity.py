"""Asks the rules of a database, mends what is derived, and reads what else `app.check` compares."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.domain.changes import PassagesPut
from app.domain.conversations import Exchange
from app.domain.ids import PassageId
from app.storage import spaces
from app.storage.database import Connection
from app.storage.exchanges import exchanges_where
from app.storage.integrity_rules import RULES, rules_of_space
from app.storage.rule import Rule
from app.storage.store import Store

_SHOWN_OF_A_RULE = 20


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that does not hold: how often, and the first ids that break it."""

    rule: Rule
    count: int
    ids: tuple[object, ...]


class Integrity:
    """Asks the rules of one store. Blocking."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def broken(self) -> tuple[Broken, ...]:
        """Return the rules that do not hold, all asked of one moment."""
        return self._store.read(broken_in)

    def mend(self, rule: Rule) -> bool:
        """End a problem for every id that has it; return False where it cannot be mended.

        Raises StorageError.
        """
        if rule.drops_passages:
            self._store.save(PassagesPut(replaced=self._ids(rule)))
        elif rule.mends:
            ids = list(self._ids(rule))
            self._store.write_derived(lambda c: c.execute(rule.mends, [ids]) and None).result()
        else:
            return False
        return True

    def _ids(self, rule: Rule) -> tuple[int, ...]:
        rows = self._store.read(lambda cursor: cursor.execute(rule.finds).fetchall())
        return tuple(each for (each,) in rows)

    def turns_after(self, exchange_id: int, limit: int) -> list[Exchange]:
        """Return the next exchanges that belong into the index and are not running, by id."""
        return self._store.read(
            lambda cursor: exchanges_where(
                cursor,
                "id IN (SELECT e.id FROM exchange e JOIN conversation c ON c.id = e.conversation_id "
                "WHERE NOT c.private AND e.status <> 'running' AND e.id > ? ORDER BY e.id LIMIT ?)",
                [exchange_id, limit],
            )
        )

    def turn_passages(self) -> Mapping[int, tuple[PassageId, str, int]]:
        """Return by exchange the passage of its turn: its id, its text's hash, its tokens."""
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT source_id, id, content_hash, tokens FROM passage WHERE kind = 'turn'"
            ).fetchall()
        )
        return {row[0]: (PassageId(row[1]), row[2], row[3]) for row in rows}

    def counts(self) -> Mapping[str, int]:
        """Return how many rows each table holds, by its name."""

        def query(cursor: Connection) -> dict[str, int]:
            names = cursor.execute(
                "SELECT table_name FROM duckdb_tables() "
                "WHERE database_name = current_database() ORDER BY table_name"
            ).fetchall()
            return {
                name: (cursor.execute(f'SELECT count(*) FROM "{name}"').fetchone() or (0,))[0]
                for (name,) in names
            }

        return self._store.read(query)


def broken_in(cursor: Connection) -> tuple[Broken, ...]:
    """Return the rules that do not hold as a connection sees the tables."""
    found: list[Broken] = []
    for rule in (*RULES, *_rules_of_spaces(cursor)):
        ids = [each for (each,) in cursor.execute(rule.finds).fetchall()]
        if ids:
            found.append(Broken(rule, len(ids), tuple(ids[:_SHOWN_OF_A_RULE])))
    return tuple(found)


def _rules_of_spaces(cursor: Connection) -> list[Rule]:
    dimensions = dict(cursor.execute("SELECT name, dimension FROM space").fetchall())
    names = spaces.spaces_to_read(cursor)
    return [rule for name in names for rule in rules_of_space(name, dimensions[name])]
