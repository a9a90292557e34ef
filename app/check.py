"""Verification of the whole library: references, counts, order, and data derived from messages.

The database has primary keys only (storage rule 1), so rules verify what constraints would. Each table of
`app.storage.tables` states its own; this module evaluates them, compares turns with their passages, and
repairs what can be derived again. Indexes verify themselves.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from app.domain.changes import PassagesPut
from app.domain.conversations import Exchange, ExchangeStatus, Message
from app.domain.errors import Cancelled
from app.domain.ids import PassageId
from app.domain.translation import trn
from app.domain.turns import turn_passage
from app.storage.apply import RULES
from app.storage.engine.aggregate import Rule, read_state
from app.storage.engine.connection import Connection
from app.storage.engine.full_read import row_counts
from app.storage.engine.store import Store
from app.storage.safety.attachments import file_problems, repair_file
from app.storage.tables.exchanges import Exchanges, exchanges_where
from app.storage.tables.passages import spaces

_REPAIR_ROUNDS = 4  # deleting a row can orphan the rows that refer to it
_TURNS_AT_ONCE = 4_000
_IDS_PER_RULE = 20
_TURNS = (  # those that belong into the index; a range of ids is read without the rest of the table
    "id > ? AND id <= ? AND status <> 'running' "
    "AND conversation_id IN (SELECT id FROM conversation WHERE NOT private)"
)


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of a check.

    `counts` are the rows of each table. `problems` are sentences about what is still wrong;
    `repaired` those about what was wrong before the repair. `repairable` is the number of `problems`
    that a repair would solve, `repaired_count` that of the problems that it solved.
    """

    counts: Mapping[str, int]
    problems: tuple[str, ...]
    repaired: tuple[str, ...] = ()
    repairable: int = 0
    repaired_count: int = 0


@dataclass(frozen=True, slots=True)
class _Problem:
    text: str
    count: int = 1
    is_repairable: bool = False


@dataclass(frozen=True, slots=True)
class CheckControl:
    """How a check is watched: `is_cancelled` is called often, `progress` with the turns done and their number."""

    is_cancelled: Callable[[], bool] = lambda: False
    progress: Callable[[int, int], object] = lambda _done, _total: None


def check(
    store: Store, *, repair: bool = False, control: CheckControl = CheckControl()
) -> CheckReport:
    """Verify a store; with `repair`, correct what can be derived from intact data.

    Blocking, some seconds for 100,000 messages; others may go on writing. Raises Cancelled, and StorageError
    when the database cannot be read at all.
    """
    problems = tuple(_problems(store, control))
    repaired: tuple[_Problem, ...] = ()
    if repair and problems:
        _repair(store)
        left = tuple(_problems(store, control))
        still = {each.text for each in left}
        repaired = tuple(each for each in problems if each.text not in still)
        problems = left
    return CheckReport(
        store.read(row_counts),
        tuple(each.text for each in problems),
        tuple(each.text for each in repaired),
        sum(each.count for each in problems if each.is_repairable),
        sum(each.count for each in repaired),
    )


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that is broken: how often, and the first ids that break it."""

    rule: Rule
    count: int
    ids: tuple[object, ...]


def repair_after_update(
    store: Store, notify: Callable[[str], object], is_cancelled: Callable[[], bool]
) -> None:
    """Repair what an older version of the program stored otherwise, and say so. Blocking; raises as `check`."""
    count = check(store, repair=True, control=CheckControl(is_cancelled)).repaired_count
    if count:
        repaired = trn(
            "{count} record of an older version was repaired.",
            "{count} records of an older version were repaired.",
            count,
        )
        notify(repaired)


def violations(cursor: Connection) -> tuple[Violation, ...]:
    """Return the rules that are broken, as a connection sees the tables."""
    dimensions = dict(cursor.execute("SELECT name, dimension FROM space").fetchall())
    names = spaces.spaces_with_table(cursor)
    of_spaces = (rule for name in names for rule in spaces.rules_of_space(name, dimensions[name]))
    found: list[Violation] = []
    for rule in (*RULES, *of_spaces):
        ids = [each for (each,) in cursor.execute(rule.query).fetchall()]
        if ids:
            found.append(Violation(rule, len(ids), tuple(ids[:_IDS_PER_RULE])))
    return tuple(found)


def repair_rule(store: Store, rule: Rule) -> bool:
    """Repair every violation of a rule; return False where that is impossible. Blocking.

    Raises StorageError.
    """
    if not rule.is_repairable:
        return False
    ids = [each for (each,) in store.rows(rule.query)]
    if rule.drops_passages:
        store.save(PassagesPut(replaced=tuple(ids)))
    else:
        store.write_derived(lambda c: c.execute(rule.repair, [ids]) and None).result()
    return True


def _problems(store: Store, control: CheckControl) -> Iterator[_Problem]:
    for violation in store.read(violations):
        rule, more = violation.rule, violation.count - len(violation.ids)
        for each in violation.ids:
            yield _Problem(rule.problem.format(each), is_repairable=rule.is_repairable)
        if more:
            yield _Problem(f"{more} more like this.", more, rule.is_repairable)
    for outdated in _outdated_turns(store, control):
        yield _Problem(outdated.text, is_repairable=True)
    for broken in file_problems(store):
        yield _Problem(broken.text, is_repairable=broken.is_repairable)
    if store.journal.last_position < int(store.read(read_state)[0]):
        yield _Problem("The journal ends before the database does.")


def _repair(store: Store) -> None:
    for _ in range(_REPAIR_ROUNDS):
        broken = store.read(violations)
        repaired = [repair_rule(store, violation.rule) for violation in broken]
        if not any(repaired):
            break
    for problem in file_problems(store):
        repair_file(store, problem)
    for outdated in tuple(_outdated_turns(store)):
        passage = turn_passage(store.ids.passage(), outdated.exchange, outdated.messages)
        made = () if passage is None else (passage,)
        store.save(PassagesPut(made, replaced=outdated.passages))


@dataclass(frozen=True, slots=True)
class _OutdatedTurn:
    """A turn whose passage is missing or does not match its messages; `passages` is the present one."""

    exchange: Exchange
    messages: tuple[Message, ...]
    passages: tuple[PassageId, ...]

    @property
    def text(self) -> str:
        exchange = self.exchange.id
        if self.passages:
            return f"The search text of exchange {exchange} (passage {self.passages[0]}) is out of date."
        return f"The exchange {exchange} is completed and has no passage."


def _outdated_turns(
    store: Store, control: CheckControl = CheckControl()
) -> Iterator[_OutdatedTurn]:
    """Yield the turns whose passage is missing or was made from other text.

    The text of a passage can also be out of date because an earlier version of the program made it.
    Earlier versions made none for a copy in a fork, which is needed only once no original is found.
    """
    rows = store.rows(
        "SELECT p.source_id, p.id, p.content_hash, p.tokens, c.deleted_at IS NULL FROM passage p "
        "LEFT JOIN conversation c ON c.id = p.conversation_id WHERE p.kind = 'turn'"
    )
    exchanges, known = Exchanges(store), {row[0]: row[1:4] for row in rows}
    hashes = {content_hash for _, _, content_hash, _, is_found in rows if is_found}
    last = int((store.row("SELECT max(id) FROM exchange") or (0,))[0] or 0)
    for after in range(0, last, _TURNS_AT_ONCE):
        if control.is_cancelled():
            raise Cancelled("The check was canceled")
        control.progress(after, last)
        turns = store.read(exchanges_where, _TURNS, [after, after + _TURNS_AT_ONCE])
        messages = exchanges.messages(each for turn in turns for each in turn.message_ids)
        for turn in turns:
            own = tuple(messages[each] for each in turn.message_ids if each in messages)
            wanted = turn_passage(PassageId(0), turn, own)
            present = known.get(turn.id)
            if present is not None:
                if wanted is None or (wanted.content_hash, wanted.tokens) != present[1:]:
                    yield _OutdatedTurn(turn, own, present[:1])
            elif (
                wanted is not None
                and turn.status is ExchangeStatus.COMPLETED
                and wanted.content_hash not in hashes
            ):
                yield _OutdatedTurn(turn, own, ())
