"""The store: what is committed is durable and whole, and the writer survives everything."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from app.domain.changes import (
    ConversationEdited,
    ConversationForgotten,
    DraftPut,
    MessagesAdded,
    ReplyGrew,
    SettingPut,
    SpendAdded,
    SummaryPut,
    TagsChanged,
)
from app.domain.errors import StorageError
from app.domain.events import Changed
from app.domain.ids import ConversationId, MessageId
from app.storage.conversations import Conversations
from app.storage.database import Connection
from app.storage.exchanges import Exchanges
from app.storage.journal import JournalReader
from app.storage.settings import Settings
from app.storage.store import Store
from tests.fakes.stored import AT, asked, killed, opened, tables, tell, titles, told


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    with opened(data_dir) as made:
        yield made


def positions(store: Store) -> list[int]:
    return [record.position for record in JournalReader(store.paths.journal, 0, store.uid)]


def too_large(name: str = "x") -> TagsChanged:
    """A change that the journal takes and the database cannot: the id is no BIGINT."""
    return TagsChanged(ConversationId(2**80), (name,))


@contextmanager
def busy_writer(store: Store) -> Iterator[threading.Event]:
    """Hold the writer until the event is set, so that commits gather behind it."""
    go_on = threading.Event()
    holding = store.on_writer(lambda: go_on.wait(20))
    try:
        yield go_on
    finally:
        go_on.set()
        holding.result()


@pytest.fixture
def busy(store: Store) -> Iterator[threading.Event]:
    with busy_writer(store) as go_on:
        yield go_on


def test_what_was_saved_is_read_again_as_it_was(store: Store) -> None:
    whole = told(store, "one", "two")
    conversation = Conversations(store).get(whole.conversation.id)
    assert conversation == whole.conversation
    assert Exchanges(store).of(conversation.id) == whole.exchanges
    assert tuple(Exchanges(store).messages(m.id for m in whole.messages).values()) == whole.messages


def test_it_is_in_the_journal_before_it_is_acknowledged(store: Store, tmp_path: Path) -> None:
    told(store, "one", title="Acknowledged")
    assert positions(store) == [1]
    with opened(killed(store, tmp_path / "killed")) as again:
        assert titles(again) == {"Acknowledged"}


def test_commits_that_wait_are_written_in_one_transaction(
    store: Store, busy: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    transactions: list[int] = []
    write = store.database.write

    def counted(work: Callable[[Connection], Any]) -> Any:
        transactions.append(1)
        return write(work)

    monkeypatch.setattr(store.database, "write", counted)
    futures = [store.commit(*tell(store, "a", title=f"T{n}").changes) for n in range(30)]
    busy.set()
    assert [future.result().messages_in for future in futures] == [
        frozenset({ConversationId(n)}) for n in range(1, 31)
    ]
    assert len(transactions) == 1
    assert positions(store) == list(range(1, 31))


def test_one_bad_commit_in_a_batch_does_not_hurt_the_others(
    store: Store, busy: threading.Event
) -> None:
    good = [store.commit(*tell(store, "a", title=f"before {n}").changes) for n in range(3)]
    bad = store.commit(*tell(store, "a", title="bad").changes, too_large())
    good += [store.commit(*tell(store, "a", title=f"after {n}").changes) for n in range(3)]
    busy.set()
    wait([*good, bad])
    assert isinstance(bad.exception(), duckdb.Error)
    assert [future.exception() for future in good] == [None] * 6
    assert titles(store) == {f"{when} {n}" for when in ("before", "after") for n in range(3)}
    assert positions(store) == list(range(1, 7)), "the bad one is not in the journal either"


def test_a_commit_is_applied_whole_or_not_at_all(store: Store) -> None:
    before = tables(store)
    with pytest.raises(duckdb.Error):
        store.save(*tell(store, "half").changes, too_large())
    assert tables(store) == before
    told(store, "the next")
    assert len(Conversations(store).listed()) == 1


def test_text_that_cannot_be_stored_fails_its_own_commit_alone(
    store: Store, busy: threading.Event
) -> None:
    bad = store.commit(DraftPut(None, "\ud800", AT))
    good = store.commit(SettingPut("theme", '"dark"'))
    busy.set()
    assert isinstance(bad.exception(), UnicodeEncodeError)
    assert good.result().settings == {"theme"}


def test_a_commit_cannot_be_cancelled(store: Store, busy: threading.Event) -> None:
    future = store.commit(*tell(store, "a", title="Still wanted").changes)
    assert not future.cancel()
    busy.set()
    future.result()
    assert titles(store) == {"Still wanted"}


def test_a_task_that_is_cancelled_while_it_waits_takes_nothing_with_it(
    store: Store, busy: threading.Event
) -> None:
    async def give_up() -> None:
        waiting = asyncio.create_task(commit())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    async def commit() -> None:
        await asyncio.wrap_future(store.commit(*tell(store, "a", title="Given up").changes))

    asyncio.run(give_up())
    busy.set()
    told(store, "b", title="The writer lives")
    assert titles(store) == {"Given up", "The writer lives"}


def test_listeners_hear_of_what_changed_and_can_leave(store: Store) -> None:
    heard: list[Changed] = []
    leave = store.subscribe(heard.append)
    whole = told(store, "one")
    store.save(SettingPut("theme", '"dark"'))
    leave()
    leave()
    store.save(SettingPut("theme", '"light"'))
    first, second = heard
    assert first.conversations == first.messages_in == {whole.conversation.id}
    assert first.turns_completed == {whole.exchanges[0].id}
    assert first.passages
    assert second == Changed(settings=frozenset({"theme"}))


def test_a_listener_hears_only_what_can_be_read_already(store: Store) -> None:
    seen: list[int] = []
    leave = store.subscribe(lambda _: seen.append(len(Conversations(store).listed())))
    told(store, "one")
    leave()
    assert seen == [1]


def test_a_listener_that_fails_stops_neither_the_others_nor_the_writer(store: Store) -> None:
    heard: list[Changed] = []

    def fail(_: Changed) -> None:
        raise ValueError("a bug")

    store.subscribe(fail)
    store.subscribe(heard.append)
    told(store, "one")
    told(store, "two")
    assert len(heard) == 2


def test_work_between_writes_hands_back_its_result_or_its_error(store: Store) -> None:
    assert store.on_writer(lambda: 5).result() == 5
    with pytest.raises(ZeroDivisionError):
        store.on_writer(lambda: 1 // 0).result()
    assert store.on_writer(threading.current_thread).result().name == "writer"


def test_derived_rows_are_written_without_the_journal(store: Store) -> None:
    store.write_derived(
        lambda c: c.execute("INSERT INTO attempt VALUES ('w', 1, 1, NULL, 'why')")
    ).result()
    assert tables(store)["attempt"] == [("w", 1, 1, None, "why")]
    assert positions(store) == []


def test_a_reply_that_grows_is_in_the_journal_alone(store: Store) -> None:
    running = asked(store, "Why?")
    before = tables(store)
    grew = ReplyGrew(running.exchanges[0].id, store.ids.message(), "text", "Because", AT)
    assert store.journal_only(grew).result() == Changed()
    assert tables(store) == before
    assert positions(store) == [1, 2]


def test_many_threads_read_while_others_write(store: Store) -> None:
    told(store, *"abc")

    def read(_: int) -> bool:
        exchanges = Exchanges(store).of(1)
        found = Exchanges(store).messages(m for e in exchanges for m in e.message_ids)
        return len(exchanges) == 3 and len(found) == 6

    with ThreadPoolExecutor(6) as pool:
        reads = pool.map(read, range(120))
        writes = [store.commit(*tell(store, "a", title=f"T{n}").changes) for n in range(40)]
        assert all(reads)
    wait(writes)
    assert len(titles(store)) == 41


def test_one_query_sees_one_moment(store: Store) -> None:
    told(store, "one")
    counts: list[int] = []

    def count(cursor: Connection) -> None:
        for _ in range(2):
            (number,) = cursor.execute("SELECT count(*) FROM conversation").fetchone() or (0,)
            counts.append(number)
            writing = threading.Thread(target=told, args=(store, "two"))
            writing.start()
            writing.join()

    store.read(count)
    assert counts == [1, 1]
    assert len(Conversations(store).listed()) == 3


def test_nobody_reads_on_a_thread_that_must_never_wait(store: Store) -> None:
    def ask() -> None:
        store.database.forbid_this_thread()
        Conversations(store).listed()

    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="never wait"):
        pool.submit(ask).result()
    assert Conversations(store).listed() == ()


def test_closing_finishes_what_was_handed_in(data_dir: Path) -> None:
    with opened(data_dir) as store:
        futures = [store.commit(*tell(store, "a", title=f"T{n}").changes) for n in range(50)]
    assert all(future.done() and future.exception() is None for future in futures)
    assert not store.paths.wal.exists()
    assert not store.paths.unclean.exists()
    with opened(data_dir) as again:
        assert len(titles(again)) == 50
        assert again.notices == ()


def test_what_is_handed_in_too_late_is_refused_at_once(data_dir: Path) -> None:
    with opened(data_dir) as store:
        pass
    for future in (store.commit(SettingPut("theme", '"dark"')), store.on_writer(lambda: 1)):
        assert isinstance(future.exception(timeout=1), StorageError)
    with pytest.raises(StorageError):
        Conversations(store).listed()
    store.close()


def test_closing_while_others_write_leaves_no_one_waiting(data_dir: Path) -> None:
    for round_number in range(5):
        with opened(data_dir / str(round_number)) as store:
            started = threading.Barrier(3)
            futures: list[Future[Changed]] = []

            def write(store: Store = store, started: threading.Barrier = started) -> None:
                started.wait()
                futures.extend(  # noqa: B023 - joined before the next round
                    store.commit(TagsChanged(ConversationId(1), (f"t{n}",))) for n in range(20)
                )

            threads = [threading.Thread(target=write) for _ in range(2)]
            for thread in threads:
                thread.start()
            started.wait()
            store.close()
            for thread in threads:
                thread.join()
        assert len(wait(futures, timeout=10).done) == 40


def test_a_checkpoint_folds_the_log_into_the_file_once(store: Store) -> None:
    told(store, "one")
    assert store.paths.wal.exists()
    assert store.checkpoint().result() is True
    assert not store.paths.wal.exists()
    assert store.checkpoint().result() is True


def test_what_is_forgotten_is_not_brought_back_by_who_comes_late(store: Store) -> None:
    gone, stays = told(store, "secret"), told(store, "open")
    exchange = gone.exchanges[0]
    summary = SummaryPut("exchange", exchange.id, gone.conversation.id, "secret", "m", "h", AT)
    with busy_writer(store):
        store.commit(ConversationForgotten(gone.conversation.id))
        late = [
            store.commit(summary, SettingPut("theme", '"dark"')),
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


def test_forgetting_that_fails_forgets_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = told(store, "kept")

    def refuse(*_: object) -> None:
        raise StorageError("no")

    with monkeypatch.context() as broken:
        broken.setattr(store.database, "write", refuse)
        with pytest.raises(StorageError):
            store.save(ConversationForgotten(whole.conversation.id))
    store.save(ConversationEdited(whole.conversation.id, title="Renamed"))
    assert titles(store) == {"Renamed"}


def test_settings_are_kept_in_memory_and_written_through(data_dir: Path) -> None:
    with opened(data_dir) as store:
        settings = Settings(store)
        settings.set_text("rag_fact_limit", "7")
        settings.set("theme", "dark")
        settings.set("rag_enabled", False)
        settings.reset("theme")
    with opened(data_dir) as store:
        settings = Settings(store)
        assert (settings.number("rag_fact_limit"), settings.flag("rag_enabled")) == (7, False)
        assert settings.text("theme") == "system"
        assert settings.chosen() == {"rag_fact_limit": 7, "rag_enabled": False}
