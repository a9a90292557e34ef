"""Aggregates: how records of one kind are folded, written, erased and verified.

Each module of `app.storage.tables` describes its records with an `Aggregate`; `app.storage.apply`,
`app.check` and `app.storage.deletion` iterate over all of them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache, partial
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar, cast, get_args, get_origin, get_type_hints

from app.domain import codec
from app.domain.change_set import ChangeSet
from app.domain.deletions import Deletion
from app.domain.errors import StorageError
from app.storage.engine.connection import REPLACE, Connection, Row
from app.storage.engine.stamps import from_db, to_db

T = TypeVar("T")

OF_CONVERSATIONS = "conversation_id IN (SELECT unnest($1))"


class State(NamedTuple):
    """How far the journal is applied, and the highest id ever given to each kind of record."""

    position: int
    conversation: int
    exchange: int
    message: int
    passage: int


@dataclass(slots=True)
class Batch:
    """The rows that a run of journal records comes to; a later one replaces an earlier one.

    Attributes:
        rows: By table and key; None deletes the row. Aggregates keep what else they need for
            writing under names of their own.
        news: The fields of each record's `ChangeSet` as they grow, in order: a union for each
            change of an import would be slow.
        deletions: What is deleted once the rows are written; all of it is in the last record.
        position: The journal's position of the record that is folded, in the end of the last one.
        place: The place of the change in its record.
    """

    rows: defaultdict[str, dict[Any, Any]] = field(default_factory=partial(defaultdict, dict))
    news: list[defaultdict[str, Any]] = field(default_factory=list)
    deletions: list[Deletion] = field(default_factory=list)
    position: int = 0
    place: int = 0

    def announce(self, name: str, *ids: Any) -> None:
        """Add ids to what the current record changed."""
        self.news[-1][name].update(ids)

    def mark(self, *names: str) -> None:
        """Set flags of what the current record changed."""
        self.news[-1].update(dict.fromkeys(names, True))

    def changed(self) -> list[ChangeSet]:
        for record in self.news:
            for name, ids in record.items():
                record[name] = ids is True or frozenset(ids)
        return [ChangeSet(**record) for record in self.news]


@dataclass(frozen=True, slots=True)
class Rule:
    """One condition of integrity.

    `name` is a stable key; `problem` a sentence with a place for the id; `query` finds the ids that
    break the rule; `repair` is a statement that takes them as a list. `drops_passages` when the ids
    are passages that have to be deleted. With neither, the truth cannot be derived from other rows.
    """

    name: str
    problem: str
    query: str
    repair: str = ""
    drops_passages: bool = False

    @property
    def is_repairable(self) -> bool:
        """Whether breaking it can be repaired."""
        return bool(self.repair) or self.drops_passages


Fold = Callable[[Batch, Any], None]
"""What a change does to a batch."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of an aggregate.

    `columns` are in the order of its rows, `key` names the primary key. `erased` selects the rows
    that belong to forgotten conversations, whose ids are $1; "" for none. They are deleted, or with
    `cleared` those columns become NULL. `counter` is the kind of id that `app.storage.engine.stamps`
    counts for it.
    """

    name: str
    columns: str
    key: str = "id"
    erased: str = ""
    how: str = REPLACE
    counter: str = ""
    cleared: str = ""

    def put(self, batch: Batch, value: object, **given: object) -> Any:
        """Put the row of a value into a batch; return its key. `given` is as for `row_of`."""
        row = row_of(value, self.columns, **given)
        key = _key_of(self.columns, self.key)(row)
        batch.rows[self.name][key] = row
        return key

    def puts(self, of: str = "", announce: str = "", mark: Sequence[str] = ()) -> Fold:
        """Return the fold of a change with a value, its field `of`, or that is one: it puts a row.

        The key is announced in one set of the `ChangeSet`, and some of its flags are set.
        """

        def fold(batch: Batch, change: Any) -> None:
            key = self.put(batch, getattr(change, of) if of else change)
            if announce:
                batch.announce(announce, key)
            batch.mark(*mark)

        return fold

    def removes(self, announce: str = "", of: str = "") -> Fold:
        """Return the fold of a change that removes the row of its `uid`, or those in its field `of`."""

        def fold(batch: Batch, change: Any) -> None:
            keys = getattr(change, of) if of else (change.uid,)
            batch.rows[self.name].update(dict.fromkeys(keys))
            if announce:
                batch.announce(announce, *keys)

        return fold

    def write(
        self, connection: Connection, rows: Mapping[Any, Row | None], state: State | None = None
    ) -> None:
        """Write rows by key and delete those that are None.

        Ids above the highest ever given cannot conflict. Measured: 1.3 ms for a plain insert of one
        row, 4-5 ms with a clause for conflicts.
        """
        highest = getattr(state, self.counter) if state is not None and self.counter else None
        gone: list[Any] = []
        fresh: list[Row] = []
        known: list[Row] = []
        for key, row in rows.items():
            if row is None:
                gone.append(key)
            else:
                (known if highest is None or key <= highest else fresh).append(row)
        if gone:
            self.delete(connection, gone)
        connection.insert_rows(self.name, self.columns, fresh)
        connection.insert_rows(self.name, self.columns, known, self.how)

    def erase(self, connection: Connection, conversation_ids: list[int]) -> None:
        """Delete or clear what belongs to forgotten conversations."""
        change = f"DELETE FROM {self.name}"
        if self.cleared:
            change = f"UPDATE {self.name} SET {self.cleared.replace(', ', ' = NULL, ')} = NULL"
        if self.erased:
            connection.execute(f"{change} WHERE {self.erased}", [conversation_ids])

    def delete(self, connection: Connection, keys: Iterable[Any]) -> None:
        names = self.key.split(", ")
        lists = [list(part) for part in zip(*keys, strict=True)] if len(names) > 1 else [list(keys)]
        values = ", ".join(f"unnest(${number})" for number in range(1, len(names) + 1))
        if len(names) > 1:
            values = f"({values})"
        connection.execute(
            f"DELETE FROM {self.name} WHERE ({self.key}) IN (SELECT {values})", lists
        )


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Tables that change together.

    Attributes:
        tables: Those written from changes or erased with conversations, in the order of writing.
        folds: What each change does to a batch.
        write: Writes a batch inside the caller's transaction; by default the rows of all tables.
        erase: Deletes what else belongs to forgotten conversations, before `Table.erase` of each.
        rules: What must be true of the tables.
    """

    tables: Sequence[Table]
    folds: Mapping[type, Fold] = field(default_factory=dict)
    write: Callable[[Connection, Batch, State], None] | None = None
    erase: Callable[[Connection, list[int], int], None] | None = None
    rules: Sequence[Rule] = ()


def read_state(connection: Connection) -> State:
    """Return the state row; raises StorageError when there is none."""
    row = connection.execute(f"SELECT {', '.join(State._fields)} FROM state").fetchone()
    if row is None:
        raise StorageError("The database has lost its state", "Restore a backup.")
    return State(*row)


@cache
def columns_of(kind: type) -> str:
    """Return the columns of a table that has one for each field of a dataclass, in their order."""
    return ", ".join(each.name for each in fields(kind))


@cache
def _names(columns: str) -> Sequence[str]:
    return columns.split(", ")


@cache
def _key_of(columns: str, key: str) -> Callable[[Row], Any]:
    return itemgetter(*map(_names(columns).index, _names(key)))


def row_of(value: object, columns: str, **given: object) -> Row:
    """Return the attributes of a value that columns name, as they are stored.

    `given` are the values of columns with another name or another source. Values that are dataclasses
    or tuples are stored as JSON.
    """
    names = _names(columns)
    values = [given[name] if name in given else getattr(value, name) for name in names]
    return tuple([each if type(each) in _PLAIN else _stored(each) for each in values])


_PLAIN = frozenset((int, str, bool, float, type(None)))


def _stored(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return to_db(value)
    return codec.dumps(value) if isinstance(value, tuple) or is_dataclass(value) else value


def reader(kind: type[T]) -> Callable[[Sequence[Any]], T]:
    """Return what makes a value of a dataclass from a row with its fields in order, as stored by `row_of`."""
    converters = _converters(cast("Any", kind))

    def read(row: Sequence[Any]) -> T:
        values = list(row)
        for place, convert in converters.items():
            if values[place] is not None:
                values[place] = convert(values[place])
        return kind(*values)

    return read


@cache
def _converters(kind: Any) -> Mapping[int, Callable[[Any], Any]]:
    hints = get_type_hints(kind)
    converters: dict[int, Callable[[Any], Any]] = {}
    for place, each in enumerate(fields(kind)):
        whole = hints[each.name]
        for hint in (whole,) if get_origin(whole) is tuple else get_args(whole) or (whole,):
            if hint is datetime:
                converters[place] = from_db
            elif isinstance(hint, type) and issubclass(hint, Enum):
                converters[place] = {each.value: each for each in hint}.__getitem__
            elif get_origin(hint) is tuple or is_dataclass(hint):
                converters[place] = partial(_from_json, hint)
    return converters


def _from_json(hint: Any, value: object) -> object:
    return codec.loads(hint, value) if isinstance(value, str) else value


# -- rules


def reference(
    source: str,
    target: str,
    repair: str = "",
    *,
    by_row: bool = False,
    where: str = "",
    label: str = "",
) -> Rule:
    """Return the rule that what a column ("table.column") names exists in the table `target`.

    `repair` is "delete" (the row), "clear" (the column), "drop" (a passage) or "" for none. Problems
    name the missing id, or with `by_row` the row's own. `where` limits the rule; `label` is what a
    row is called.
    """
    table, column = source.split(".")
    key = "id" if by_row else column
    limit = f" AND {where}" if where else ""
    called = label or table.replace("_", " ")
    if by_row:
        problem = f"The {called} {{}} refers to {_article(target)} {target} that does not exist."
    else:
        problem = f"{_article(called).capitalize()} {called} refers to {target} {{}}, which does not exist."
    repairs = {
        "delete": f"DELETE FROM {table} WHERE {key} IN (SELECT unnest($1)){limit}",
        "clear": f"UPDATE {table} SET {column} = NULL WHERE {key} IN (SELECT unnest($1)){limit}",
    }
    query = (
        f"SELECT DISTINCT t.{key} FROM {table} t ANTI JOIN {target} o ON o.id = t.{column} "
        f"WHERE t.{column} IS NOT NULL{limit}"
    )
    return Rule(source, problem, query, repairs.get(repair, ""), drops_passages=repair == "drop")


def unique_uid(table: str) -> Rule:
    return Rule(
        f"{table}.uid", f"Two rows of the table {table} have the uid {{}}.",
        f"SELECT uid FROM {table} GROUP BY uid HAVING count(*) > 1",
    )  # fmt: skip


def unique_name(table: str) -> Rule:
    """Return the rule that no two rows have one name; the repair adds the uid to all but one."""
    return Rule(
        f"{table}.name",
        f"Several {table}s have the name of the {table} {{}}.",
        f"SELECT uid FROM {table} WHERE lower(name) IN (SELECT lower(name) FROM {table} "
        f"GROUP BY lower(name) HAVING count(*) > 1) AND uid NOT IN (SELECT min(uid) FROM {table} "
        "GROUP BY lower(name))",
        f"UPDATE {table} SET name = name || ' ' || uid WHERE uid IN (SELECT unnest($1))",
    )


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeiou" else "a"
