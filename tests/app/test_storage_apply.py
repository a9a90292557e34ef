"""Applying is folding: in one batch, in many, twice, or from any older position, it is the same."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain.changes import (
    Change,
    ConversationEdited,
    ExchangePut,
    PassagesPut,
    SummaryPut,
)
from app.domain.conversations import Exchange, ExchangeStatus, TitleOrigin
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import Passage, PassageKind
from app.storage import migrations
from app.storage.apply import apply_records
from app.storage.database import Connection
from app.storage.fold import folded
from tests.fakes.stored import rows_of
from tests.fakes.tales import tales

AT = datetime(2026, 1, 1, tzinfo=UTC)
Records = Sequence[tuple[int, tuple[Change, ...]]]


@pytest.fixture(scope="module")
def memory() -> Iterator[Connection]:
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET threads = 1")  # small statements: two only wait for each other
        migrations.migrate(connection)
        yield connection


@pytest.fixture
def database(memory: Connection) -> Connection:
    wipe(memory)
    return memory


def wipe(connection: Connection) -> None:
    for table in rows_of(connection):
        connection.execute(f"DELETE FROM {table}")
    connection.execute("INSERT INTO state VALUES (0, 0, 0, 0, 0, 0)")


def apply(connection: Connection, *batches: Records) -> None:
    for batch in batches:
        connection.execute("BEGIN")
        apply_records(connection, batch)
        connection.execute("COMMIT")


def one_by_one(records: Records) -> list[Records]:
    return [[record] for record in records]


def in_batches(data: st.DataObject, records: Records) -> list[Records]:
    if not records:
        return []
    ends = sorted(data.draw(st.sets(st.integers(1, len(records)), max_size=4)) | {len(records)})
    starts = [0, *ends]
    return [records[start:end] for start, end in zip(starts, ends, strict=False)]


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(tale=tales(max_size=16), data=st.data())
def test_any_way_of_applying_a_history_gives_identical_tables(
    memory: Connection, tale: list[tuple[Change, ...]], data: st.DataObject
) -> None:
    records = list(enumerate(tale, start=1))
    wipe(memory)
    apply(memory, *one_by_one(records))
    wanted = rows_of(memory)

    again_from = data.draw(st.integers(0, len(records)))
    apply(memory, *in_batches(data, records[again_from:]))
    assert rows_of(memory) == wanted, "a replay onto the newest image changes nothing"

    wipe(memory)
    image_at = data.draw(st.integers(0, len(records)))
    apply(memory, *one_by_one(records[:image_at]))
    replay_from = data.draw(st.integers(0, image_at))
    apply(memory, *in_batches(data, records[replay_from:]))
    assert rows_of(memory) == wanted, "an older image and the journal come to the same"


def exchange(*message_ids: int, status: ExchangeStatus = ExchangeStatus.COMPLETED) -> ExchangePut:
    ids = tuple(map(MessageId, message_ids))
    return ExchangePut(Exchange(ExchangeId(1), ConversationId(1), None, 0, 0, status, ids, AT))


def test_an_exchange_that_became_shorter_keeps_no_stale_message(database: Connection) -> None:
    apply(database, [(1, (exchange(1, 2, 3),))], [(2, (exchange(1),))])
    assert rows_of(database)["exchange_message"] == [(1, 0, 1)]


def test_two_summaries_of_one_moment_are_one(database: Connection) -> None:
    first, second = (
        SummaryPut("exchange", 1, ConversationId(1), text, "m", "h", AT) for text in "ab"
    )
    apply(database, [(1, (first,)), (2, (second,))])
    ((*_, latest),) = rows_of(database)["summary"]
    assert latest is True
    apply(database, [(3, (SummaryPut("exchange", 2, ConversationId(1), "c", "m", "h", AT),))])
    assert [row[-1] for row in rows_of(database)["summary"]] == [True, True]


def test_many_edits_of_a_conversation_become_one_statement() -> None:
    edits = [ConversationEdited(ConversationId(1), title=f"t{n}") for n in range(50)]
    edits.append(ConversationEdited(ConversationId(1), title="no", title_origin=TitleOrigin.IMPORT))
    edits.append(ConversationEdited(ConversationId(1), pinned=True))
    fold = folded((n, (edit,)) for n, edit in enumerate(edits, start=1))
    (merged,) = fold.edits.values()
    assert (merged.title, merged.title_origin, merged.pinned) == ("t49", None, True)


def test_a_title_makes_the_passages_before_it_new_and_no_later_ones(database: Connection) -> None:
    def passage(number: int, conversation: int) -> PassagesPut:
        made = Passage(
            PassageId(number), PassageKind.TURN, number, ConversationId(conversation), None, "h", AT, 1
        )  # fmt: skip
        return PassagesPut((made,))

    renamed = ConversationEdited(ConversationId(1), title="t")
    pinned = ConversationEdited(ConversationId(2), pinned=True)
    history: Records = [
        (1, (passage(1, 1),)), (2, (passage(2, 2),)), (3, (renamed, pinned)), (4, (passage(3, 1),)),
    ]  # fmt: skip
    for batches in ([history], one_by_one(history), [history, history[2:]]):
        wipe(database)
        apply(database, *batches)
        rows = rows_of(database)["passage"]
        assert [(row[0], row[-1]) for row in rows] == [(1, 3), (2, 2), (3, 4)]


def test_an_unknown_change_is_a_bug_that_is_raised(database: Connection) -> None:
    with pytest.raises(KeyError):
        apply_records(database, [(1, ("no change",))])  # type: ignore[list-item]
