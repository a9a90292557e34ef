"""The store: commits are durable and whole, the writer survives errors, a replay changes nothing."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from unittest.mock import Mock

import duckdb
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from app.domain.change_set import ChangeSet
from app.domain.changes import (
    Change,
    ConversationEdited,
    ConversationPut,
    DraftPut,
    ExchangePut,
    MessagesAdded,
    PassagesPut,
    ReplyGrew,
    SettingPut,
    SpendAdded,
    SummaryPut,
    TagsChanged,
)
from app.domain.conversations import Conversation, Exchange, ExchangeStatus, TitleOrigin
from app.domain.deletions import ConversationForgotten, MessagesForgotten
from app.domain.errors import StorageError
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import Passage, PassageKind
from app.storage.apply import apply_records
from app.storage.deletion.messages import removable
from app.storage.engine import database as database_module
from app.storage.engine import migrations
from app.storage.engine.aggregate import Batch
from app.storage.engine.connection import IGNORE, REPLACE, Connection, grouped
from app.storage.engine.journal import JournalReader
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges, message_of
from app.storage.tables.settings import Settings
from tests.fakes.jobs import until
from tests.fakes.learned_histories import learned_histories
from tests.fakes.stored import (
    AT,
    add_conversation,
    add_running,
    busy_writer,
    killed,
    new_conversation,
    opened,
    rows_of,
    tables,
    titles,
)

HERE = ConversationId(1)
DARK = SettingPut("theme", '"dark"')
TOO_LARGE = TagsChanged(ConversationId(2**80), ("x",))
"""A change that the journal takes and the database cannot: the id is no BIGINT."""


def positions(store: Store) -> list[int]:
    return [record.position for record in JournalReader(store.paths.journal, 0, store.uid)]


def commit_titled(store: Store, title: str, *more: Change) -> Future[ChangeSet]:
    return store.commit(*new_conversation(store, "a", title=title).changes, *more)


# -- commits
@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_draft_that_fails_while_damage_is_confirmed_waits_in_the_journal(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, is_damaged: bool
) -> None:
    unclear = duckdb.SerializationException("Failed to deserialize: field id mismatch")
    go_on = threading.Event()

    def read(_: Connection) -> None:
        assert go_on.wait(20)
        if is_damaged:
            raise duckdb.Error("Corrupt database file: a checksum does not match")

    monkeypatch.setattr(database_module, "read_everything", read)
    with opened(data_dir) as store:
        here = add_conversation(store, "one").conversation.id
        works, store.apply = store.apply, Mock(side_effect=unclear)
        with pytest.raises(StorageError):
            store.save(DARK)
        store.save(DraftPut(here, "unsent", AT))
        with pytest.raises(StorageError):
            store.save(DARK)
        store.save(DraftPut(here, "unsent at last", AT))
        assert positions(store) == [1, 2, 3]
        store.apply = works
        go_on.set()
        if is_damaged:
            until(lambda: store.database.is_damaged)
        else:
            until(lambda: store.column("SELECT text FROM draft") == ["unsent at last"])
            store.save(DraftPut(here, "newer", AT))
            store.save(DARK)
    with opened(data_dir) as store:
        assert store.column("SELECT text FROM draft") == (
            ["unsent at last"] if is_damaged else ["newer"]
        )


def test_a_draft_that_waits_goes_before_the_next_write_and_never_stops_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    unclear = duckdb.SerializationException("Failed to deserialize: field id mismatch")
    go_on, works, applied = threading.Event(), store.apply, list[list[int]]()

    def refuse_drafts(connection: Connection, records: Records, throttle: object) -> Batch:
        applied.append([position for position, _ in records])
        if any(isinstance(each, DraftPut) for _, changes in records for each in changes):
            raise unclear
        return works(connection, records, lambda: None)

    monkeypatch.setattr(database_module, "read_everything", lambda _: go_on.wait(20))
    store.apply = refuse_drafts
    store.save(DraftPut(None, "unsent", AT))
    go_on.set()
    until(lambda: not store.database.is_suspected)
    store.checkpoint().result()
    store.save(DARK)
    assert applied[-2:] == [[1, 2], [2]]
    assert positions(store) == [1, 2]
    store.apply = works
    store.save(DraftPut(None, "sent", AT))
    assert store.column("SELECT text FROM draft") == ["sent"]


def test_a_commit_is_journalled_first_and_read_unchanged(store: Store, tmp_path: Path) -> None:
    whole = add_conversation(store, "one", "two", title="Acknowledged")
    assert Conversations(store).get(whole.conversation.id) == whole.conversation
    assert Exchanges(store).of(whole.conversation.id) == whole.exchanges
    assert tuple(Exchanges(store).messages(m.id for m in whole.messages).values()) == whole.messages
    assert positions(store) == [1]
    with opened(killed(store, tmp_path / "killed")) as again:
        assert titles(again) == {"Acknowledged"}


def test_waiting_commits_share_a_transaction_and_a_failing_one_harms_no_other(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Mock(wraps=store.database.write)
    monkeypatch.setattr(store.database, "write", write)
    with busy_writer(store):
        futures = [commit_titled(store, f"T{n}") for n in range(1, 31)]
        assert not futures[0].cancel()
    assert [future.result().messages_in for future in futures] == [{n} for n in range(1, 31)]
    assert write.call_count == 1
    with busy_writer(store):
        good = [commit_titled(store, "before"), commit_titled(store, "before 2")]
        bad = [commit_titled(store, "bad", TOO_LARGE), store.commit(DraftPut(None, "\ud800", AT))]
        good += [commit_titled(store, "after"), store.commit(DARK)]
    assert [type(future.exception()) for future in bad] == [
        duckdb.ConversionException, UnicodeEncodeError,
    ]  # fmt: skip
    assert [future.exception() for future in good] == [None] * 4
    assert titles(store) == {*(f"T{n}" for n in range(1, 31)), "before", "before 2", "after"}
    assert positions(store) == list(range(1, 35)), "the bad ones are not in the journal either"


def test_a_commit_is_applied_whole_or_not_at_all(store: Store) -> None:
    before = tables(store)
    with pytest.raises(duckdb.Error):
        store.save(*new_conversation(store, "half").changes, TOO_LARGE)
    assert tables(store) == before
    add_conversation(store, "the next")
    assert len(titles(store)) == 1


def test_listeners_can_read_the_change_and_a_failing_one_stops_nobody(store: Store) -> None:
    heard: list[ChangeSet] = []
    seen: list[int] = []
    store.subscribe(Mock(side_effect=ValueError("a bug")))
    leave = store.subscribe(heard.append)
    store.subscribe(lambda _: seen.append(len(titles(store))))
    whole = add_conversation(store, "one")
    store.save(DARK)
    leave()
    leave()
    store.save(DARK)
    first, second = heard
    assert first.conversations == first.messages_in == {whole.conversation.id}
    assert first.turns_ended == first.exchanges == {whole.exchanges[0].id}
    assert first.passages
    assert second == ChangeSet(settings=frozenset({"theme"}))
    assert seen == [1, 1, 1]


def test_a_message_is_no_change_of_its_conversation_and_a_title_or_branch_is(store: Store) -> None:
    whole = add_conversation(store, "one")
    here, leaf = whole.conversation.id, whole.messages[0].id
    heard: list[ChangeSet] = []
    store.subscribe(heard.append)
    store.save(ConversationEdited(here, visible_leaf_id=leaf, updated_at=AT))
    store.save(ConversationEdited(here, visible_leaf_id=leaf))
    store.save(ConversationEdited(here, "Bread", TitleOrigin.USER, leaf, AT))
    assert [each.conversations for each in heard] == [set(), {here}, {here}]
    assert [each.messages_in for each in heard] == [{here}] * 3


@pytest.mark.parametrize("status", ExchangeStatus)
def test_a_turn_ends_with_a_whole_reply_or_without(store: Store, status: ExchangeStatus) -> None:
    (exchange,) = add_conversation(store, "one").exchanges
    heard: list[ChangeSet] = []
    store.subscribe(heard.append)
    store.save(ExchangePut(replace(exchange, status=status)))
    assert [len(each.turns_ended) for each in heard] == [status is not ExchangeStatus.RUNNING]


def test_work_between_writes_and_derived_rows_stay_out_of_the_journal(store: Store) -> None:
    assert store.on_writer(threading.current_thread).result().name == "writer"
    with pytest.raises(ZeroDivisionError):
        store.on_writer(lambda: 1 // 0).result()
    store.write_derived(
        lambda c: c.execute("INSERT INTO attempt VALUES ('w', 1, 1, NULL, 'why')")
    ).result()
    assert tables(store)["attempt"] == [("w", 1, 1, None, "why")]
    assert positions(store) == []


def test_a_growing_reply_is_in_the_journal_alone(store: Store) -> None:
    running = add_running(store, "Why?")
    before = tables(store)
    grew = ReplyGrew(running.exchanges[0].id, store.ids.message(), "text", "Because", AT)
    assert store.journal_only(grew).result() == ChangeSet()
    assert tables(store) == before
    assert positions(store) == [1, 2]


# -- reading
def test_one_query_sees_one_moment(store: Store) -> None:
    def count(cursor: Connection) -> list[int]:
        counts: list[int] = []
        for _ in range(2):
            counts += cursor.execute("SELECT count(*) FROM conversation").fetchone() or (0,)
            writing = threading.Thread(target=add_conversation, args=(store, "two"))
            writing.start()
            writing.join()
        return counts

    assert store.read(count) == [0, 0]
    assert len(Conversations(store).listed()) == 2


def test_reading_on_a_forbidden_thread_is_an_error(store: Store) -> None:
    def ask() -> None:
        store.database.forbid_this_thread()
        Conversations(store).listed()

    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="never block"):
        pool.submit(ask).result()
    assert Conversations(store).listed() == ()


# -- closing
def test_closing_completes_submitted_writes_and_refuses_later_ones(data_dir: Path) -> None:
    with opened(data_dir) as store:
        futures = [commit_titled(store, f"T{n}") for n in range(50)]
    assert all(future.done() and future.exception() is None for future in futures)
    assert not store.paths.wal.exists()
    assert store.paths.closed.exists()
    for future in (store.commit(DARK), store.on_writer(lambda: 1)):
        assert isinstance(future.exception(timeout=1), StorageError)
    with pytest.raises(StorageError):
        Conversations(store).listed()
    store.close()
    with opened(data_dir) as again:
        assert len(titles(again)) == 50
        assert again.notices == ()


def test_closing_while_others_write_leaves_no_one_waiting(data_dir: Path) -> None:
    for round_number in range(3):
        with opened(data_dir / str(round_number)) as store, ThreadPoolExecutor(2) as pool:
            started = threading.Barrier(3)

            def write(
                store: Store = store, started: threading.Barrier = started
            ) -> list[Future[ChangeSet]]:
                started.wait()
                return [store.commit(TagsChanged(HERE, (f"t{n}",))) for n in range(20)]

            writing = [pool.submit(write) for _ in range(2)]
            started.wait()
            store.close()
            futures = [each for some in writing for each in some.result()]
        assert len(wait(futures, timeout=10).done) == 40


def test_a_checkpoint_writes_the_log_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    add_conversation(store, "one")
    assert store.paths.wal.exists()
    assert store.checkpoint().result() is True
    assert not store.paths.wal.exists()
    monkeypatch.setattr(store.database, "checkpoint", lambda: False)
    assert store.checkpoint().result() is True, "nothing was written since"
    add_conversation(store, "two")
    assert store.checkpoint().result() is False
    assert store.checkpoint().result() is False, "it is tried again"
    monkeypatch.undo()


# -- forgetting
def test_late_changes_do_not_bring_forgotten_data_back(store: Store) -> None:
    gone, stays = add_conversation(store, "secret"), add_conversation(store, "open")
    exchange = gone.exchanges[0]
    summary = SummaryPut("exchange", exchange.id, gone.conversation.id, "secret", "m", "h", AT)
    with busy_writer(store):
        store.commit(ConversationForgotten(gone.conversation.id))
        late = [
            store.commit(summary, DARK),
            store.commit(*gone.changes),
            store.commit(ConversationEdited(gone.conversation.id, title="secret")),
            store.commit(DraftPut(gone.conversation.id, "secret", AT)),
            store.commit(
                MessagesAdded((*gone.messages, replace(stays.messages[0], id=MessageId(99))))
            ),
            store.commit(SpendAdded(AT, "chat", "m", 1, 1, 0, 0.5, exchange.id)),
            store.journal_only(ReplyGrew(exchange.id, MessageId(77), "text", "secret", AT)),
        ]
    assert [future.exception() for future in late] == [None] * 7
    found = tables(store)
    assert "secret" not in str(found)
    assert len(found["message"]) == 3
    assert [row[-2] for row in found["spend"]] == [None]
    assert found["appconfig"] == [("theme", '"dark"')]
    after = JournalReader(store.paths.journal, 3, store.uid)
    assert "secret" not in "".join(record.payload for record in after)


def test_failed_forgetting_forgets_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = add_conversation(store, "kept")
    with monkeypatch.context() as broken:
        broken.setattr(store.database, "write", Mock(side_effect=StorageError("no")))
        with pytest.raises(StorageError):
            store.save(ConversationForgotten(whole.conversation.id))
    store.save(ConversationEdited(whole.conversation.id, title="Renamed"))
    assert titles(store) == {"Renamed"}


def test_settings_are_kept_in_memory_and_written_through(data_dir: Path) -> None:
    with opened(data_dir) as store:
        chosen = Settings(store)
        chosen.set_text("rag_fact_limit", "7")
        chosen.set("theme", "dark")
        chosen.set("rag_enabled", False)
        chosen.reset("theme")
    with opened(data_dir) as store:
        chosen = Settings(store)
        assert (chosen.number("rag_fact_limit"), chosen.flag("rag_enabled")) == (7, False)
        assert chosen.text("theme") == "system"
        assert chosen.chosen() == {"rag_fact_limit": 7, "rag_enabled": False}


def test_a_stored_setting_is_in_force(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, seen, save = Settings(store), list[str](), Store.save
    store.subscribe(lambda _: seen.append(chosen.text("theme")))

    def observed(store: Store, *changes: Change) -> ChangeSet:
        seen.append(chosen.text("theme"))
        return save(store, *changes)

    monkeypatch.setattr(Store, "save", observed)
    chosen.set("theme", "dark")
    chosen.reset("theme")
    assert seen == ["system", "dark", "dark", "system"]


# -- applying a history, in a live write as in a replay

Records = list[tuple[int, tuple[Change, ...]]]


@pytest.fixture(scope="module")
def memory() -> Iterator[Connection]:
    with Connection(duckdb.connect(":memory:")) as connection:
        connection.execute("SET threads = 1")  # small statements: two only wait for each other
        migrations.migrate(connection)
        yield connection


@pytest.fixture
def database(memory: Connection) -> Connection:
    wipe(memory)
    return memory


def wipe(connection: Connection) -> None:
    for table, rows in rows_of(connection).items():
        if rows:
            connection.execute(f"DELETE FROM {table}")
    connection.execute("INSERT INTO state VALUES (0, 0, 0, 0, 0, 0)")


def apply(connection: Connection, *batches: Records) -> dict[str, list[tuple[object, ...]]]:
    for batch in batches:
        connection.execute("BEGIN")
        apply_records(connection, batch)
        connection.execute("COMMIT")
    return rows_of(connection)


def one_by_one(records: Records) -> list[Records]:
    return [[record] for record in records]


def in_batches(data: st.DataObject, records: Records) -> list[Records]:
    if not records:
        return []
    ends = sorted(data.draw(st.sets(st.integers(1, len(records)), max_size=4)) | {len(records)})
    return [records[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@settings(max_examples=settings().max_examples // 3, suppress_health_check=list(HealthCheck))
@given(history=learned_histories(max_size=16), data=st.data())
def test_any_way_of_applying_a_history_gives_identical_tables(
    memory: Connection, history: list[tuple[Change, ...]], data: st.DataObject
) -> None:
    records = list(enumerate(history, start=1))
    wipe(memory)
    wanted = apply(memory, *one_by_one(records))
    again_from = data.draw(st.integers(0, len(records)))
    found = apply(memory, *in_batches(data, records[again_from:]))
    assert found == wanted, "a replay onto the newest image changes nothing"
    wipe(memory)
    image_at = data.draw(st.integers(0, len(records)))
    apply(memory, *one_by_one(records[:image_at]))
    replay_from = data.draw(st.integers(0, image_at))
    found = apply(memory, *in_batches(data, records[replay_from:]))
    assert found == wanted, "an older image and the journal come to the same"


@settings(max_examples=settings().max_examples // 3, suppress_health_check=list(HealthCheck))
@given(history=learned_histories(max_size=16), data=st.data())
def test_messages_of_several_conversations_are_deleted_together_as_one_by_one(
    memory: Connection, history: list[tuple[Change, ...]], data: st.DataObject
) -> None:
    wipe(memory)
    records = list(enumerate(history, start=1))
    rows = apply(memory, *one_by_one(records))["message"]
    messages = grouped(map(message_of, rows), attrgetter("conversation_id"))
    deleted: list[Change] = []
    for own, here in messages.items():
        removes = data.draw(st.booleans())
        ids = data.draw(st.sets(st.sampled_from([each.id for each in here])))
        ids = removable(here, ids) if removes else ids
        deleted.append(MessagesForgotten(own, tuple(sorted(ids)), "New", removes))
    assume(deleted)
    last = len(records) + 1
    each_alone: list[Records] = [[(last, (each,))] for each in deleted]
    wanted = apply(memory, *each_alone)
    wipe(memory)
    found = apply(memory, *one_by_one(records), [(last, tuple(deleted))])
    assert found | {"erasure": []} == wanted | {"erasure": []}


def exchange_of(*message_ids: int) -> ExchangePut:
    ids = tuple(map(MessageId, message_ids))
    done = ExchangeStatus.COMPLETED
    return ExchangePut(Exchange(ExchangeId(1), HERE, None, 0, 0, done, ids, AT))


def test_an_exchange_that_became_shorter_keeps_no_stale_message(database: Connection) -> None:
    found = apply(database, [(1, (exchange_of(1, 2, 3),))], [(2, (exchange_of(1),))])
    assert found["exchange_message"] == [(1, 0, 1)]


def test_two_summaries_of_one_moment_are_one(database: Connection) -> None:
    first, second, other = (
        SummaryPut("exchange", source, HERE, text, "m", "h", AT)
        for source, text in ((1, "a"), (1, "b"), (2, "c"))
    )
    ((*_, latest, _uid),) = apply(database, [(1, (first,)), (2, (second,))])["summary"]
    assert latest is True
    assert [row[-2] for row in apply(database, [(3, (other,))])["summary"]] == [True, True]


def test_many_edits_of_a_conversation_in_one_batch_apply_in_order(database: Connection) -> None:
    whole = Conversation(HERE, "u", "t", TitleOrigin.FIRST_WORDS, "here", AT, AT)
    edits: list[Change] = [ConversationPut(whole)]
    edits += [ConversationEdited(HERE, title=f"t{n}") for n in range(50)]
    edits.append(ConversationEdited(HERE, title="no", title_origin=TitleOrigin.IMPORT))
    edits.append(ConversationEdited(HERE, pinned=True))
    (row,) = apply(database, [(n, (edit,)) for n, edit in enumerate(edits, 1)])["conversation"]
    assert (row[2], row[3], row[8]) == ("t49", TitleOrigin.USER, True)


def test_a_title_makes_the_passages_before_it_new_and_no_later_ones(database: Connection) -> None:
    def passage(number: int, conversation: int) -> tuple[Change, ...]:
        own = (PassageId(number), PassageKind.TURN, number, ConversationId(conversation))
        return (PassagesPut((Passage(*own, None, "h", AT, 1),)),)

    renamed = ConversationEdited(HERE, title="t")
    pinned = ConversationEdited(ConversationId(2), pinned=True)
    history = [
        (1, passage(1, 1)), (2, passage(2, 2)), (3, (renamed, pinned)), (4, passage(3, 1)),
    ]  # fmt: skip
    for batches in ([history], one_by_one(history), [history, history[2:]]):
        wipe(database)
        rows = apply(database, *batches)["passage"]
        assert [(row[0], row[-1]) for row in rows] == [(1, 3), (2, 2), (3, 4)]


def test_an_unknown_change_is_a_bug_that_is_raised(database: Connection) -> None:
    with pytest.raises(KeyError):
        apply_records(database, [(1, ("no change",))])  # type: ignore[list-item]


@pytest.mark.parametrize("how", ["INSERT", REPLACE, IGNORE])
def test_many_rows_are_inserted_as_few_are(how: str) -> None:
    """Many rows go through an appender, few are bound as lists, one by its values."""
    with Connection(duckdb.connect()) as connection:
        written = []
        for at_once in (1_101, 11):
            connection.execute(
                'CREATE OR REPLACE TABLE t (id BIGINT PRIMARY KEY, "end" VARCHAR, w DOUBLE DEFAULT 7)'
            )
            first = [] if how == "INSERT" else [(5, "here", 1.0)]
            connection.insert_rows("t", 'id, "end", w', first)
            rows = [(number, None if number % 3 else f"é {number}") for number in range(1_101)]
            for start in range(0, len(rows), at_once):
                connection.insert_rows("t", 'id, "end"', rows[start : start + at_once], how)
            written.append(connection.execute("FROM t ORDER BY id").fetchall())
            with pytest.raises(duckdb.ConstraintException):
                connection.insert_rows("t", 'id, "end"', rows[:at_once])
        assert written[0] == written[1]
