"""The connection: locked settings, a gate for its replacement, queries broken off, reopening."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from unittest import mock

import duckdb
import pytest

from app.domain.errors import Cancelled, StorageError
from app.storage import database as database_module
from app.storage.database import Connection, Database
from app.storage.gate import Gate
from app.storage.image import copy_into

FOREVER = "SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.range * b.range % 7 = 8"
WAIT_S = 10


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    backups = tmp_path / "backups"
    backups.mkdir()
    made = Database(tmp_path / "a.duckdb", backups)
    made.write(lambda c: c.execute("CREATE TABLE t (id BIGINT PRIMARY KEY)"))
    yield made
    made.close()


def add(database: Database, number: int) -> None:
    database.write(lambda connection: connection.execute("INSERT INTO t VALUES (?)", [number]))


def ids(database: Database) -> list[int]:
    rows = database.read(lambda cursor: cursor.execute("SELECT id FROM t ORDER BY id").fetchall())
    return [each for (each,) in rows]


def test_many_pass_the_gate_and_one_holds_it_shut_alone() -> None:
    gate, inside = Gate(), threading.Barrier(3)
    log: list[str] = []
    leave = threading.Event()

    def pass_through() -> None:
        with gate.passing():
            inside.wait(WAIT_S)
            leave.wait(WAIT_S)
            log.append("left")

    def shut() -> None:
        with gate.shut():
            log.append("alone")

    with ThreadPoolExecutor(3) as pool:
        passing = [pool.submit(pass_through) for _ in range(2)]
        inside.wait(WAIT_S)
        shutting = pool.submit(shut)
        leave.set()
        for each in (*passing, shutting):
            each.result(WAIT_S)
    assert log == ["left", "left", "alone"]


def test_nobody_enters_while_the_gate_is_shut() -> None:
    gate, entered = Gate(), threading.Event()

    def enter() -> None:
        with gate.passing():
            entered.set()

    with ThreadPoolExecutor(1) as pool:
        with gate.shut():
            waiting = pool.submit(enter)
            assert not entered.wait(0.05)
        waiting.result(WAIT_S)
    assert entered.is_set()


def test_who_is_inside_may_enter_again_although_someone_waits_to_shut() -> None:
    gate = Gate()
    shutting = threading.Thread(target=lambda: gate.shut().__enter__())
    with gate.passing():
        shutting.start()
        while not gate._shut:
            shutting.join(0.001)
        assert gate.is_inside
        with gate.passing():
            pass
    assert not gate.is_inside
    shutting.join(WAIT_S)
    assert not shutting.is_alive()


def test_the_settings_are_locked_and_no_other_file_can_be_reached(
    database: Database, tmp_path: Path
) -> None:
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    for statement in (
        f"SELECT * FROM '{tmp_path}/secret.csv'",
        f"COPY t TO '{tmp_path}/out.csv'",
        f"ATTACH '{tmp_path}/other.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET threads = 8",
        "SET allowed_configs = ['threads']",
    ):
        with pytest.raises((duckdb.Error, StorageError)):
            database.read(lambda cursor, run=statement: cursor.execute(run))  # type: ignore[misc]
    assert not (tmp_path / "out.csv").exists()


def test_a_write_that_fails_is_rolled_back_and_the_next_one_works(database: Database) -> None:
    def half(connection: Connection) -> None:
        connection.execute("INSERT INTO t VALUES (1)")
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        database.write(half)
    add(database, 2)
    assert ids(database) == [2]


def test_an_error_in_a_query_leaves_its_thread_able_to_ask(database: Database) -> None:
    for _ in range(2):
        with pytest.raises(duckdb.ParserException):
            database.read(lambda cursor: cursor.execute("SELEKT"))
        with pytest.raises(ZeroDivisionError):
            database.read(lambda _: 1 // 0)
    assert ids(database) == []


def test_a_query_may_ask_another_one(database: Database) -> None:
    add(database, 1)
    assert database.read(lambda _: ids(database)) == [1]
    assert ids(database) == [1]


def test_a_long_query_can_be_broken_off_from_another_thread(database: Database) -> None:
    started, idents = threading.Event(), list[int]()

    def ask(cursor: Connection) -> None:
        idents.append(threading.get_ident())
        started.set()
        cursor.execute(FOREVER).fetchall()

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(database.read, ask)
        assert started.wait(WAIT_S)
        while not asking.done():
            database.interrupt(idents[0])
        with pytest.raises(Cancelled):
            asking.result()
        assert pool.submit(ids, database).result() == []
    database.interrupt(12345)


def test_an_instance_that_became_invalid_is_reopened_and_asked_again(database: Database) -> None:
    add(database, 1)
    calls: list[Connection] = []

    def fail_once(cursor: Connection) -> int:
        calls.append(cursor)
        if len(calls) == 1:
            raise duckdb.FatalException("the instance is invalid")
        return len(cursor.execute("SELECT * FROM t").fetchall())

    assert database.read(fail_once) == 1
    assert calls[0] is not calls[1]
    calls.clear()

    def write_once(connection: Connection) -> None:
        connection.execute("INSERT INTO t VALUES (2)")
        fail_once(connection)

    database.write(write_once)
    assert ids(database) == [1, 2]


def test_an_instance_that_stays_invalid_is_an_error_of_storage_and_no_loop(
    database: Database,
) -> None:
    def fail(_: Connection) -> None:
        raise duckdb.FatalException("the instance is invalid")

    for work in (database.read, database.write):
        with pytest.raises(StorageError):
            work(fail)
    add(database, 1)
    assert ids(database) == [1]


def test_a_reopening_that_fails_is_tried_again_by_the_next(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Connection) -> None:
        raise duckdb.FatalException("the instance is invalid")

    def refuse(*_: object) -> Connection:
        raise duckdb.IOException("not now")

    with monkeypatch.context() as broken:
        broken.setattr(database_module, "connect", refuse)
        with pytest.raises(StorageError, match="not now"):
            database.read(fail)
        with pytest.raises(StorageError, match="not now"):
            ids(database)
    assert ids(database) == []


def test_readers_of_many_threads_survive_reopenings(database: Database) -> None:
    for number in range(100):
        add(database, number)
    broken: set[int] = set()

    def ask(number: int) -> int:
        def query(cursor: Connection) -> int:
            found = len(cursor.execute("SELECT * FROM t").fetchall())
            if number % 10 == 0 and number not in broken:
                broken.add(number)
                raise duckdb.FatalException("the instance is invalid")
            return found

        return database.read(query)

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(ask, range(200))) == {100}


def test_the_file_can_be_replaced_while_others_read(database: Database, tmp_path: Path) -> None:
    add(database, 1)
    stop = threading.Event()

    def ask() -> set[int]:
        seen: set[int] = set()
        while not stop.is_set():
            seen.update(ids(database))
        return seen

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask) for _ in range(3)]
        for number in range(2, 5):
            coming = tmp_path / "backups" / "coming.duckdb"
            other = Database(coming, tmp_path / "backups")
            other.write(lambda c: c.execute("CREATE TABLE t (id BIGINT PRIMARY KEY)"))
            add(other, number)
            other.close()
            database.replace_file(coming)
            assert ids(database) == [number]
        stop.set()
        seen = set[int]().union(*(each.result(WAIT_S) for each in asking))
    assert seen <= {1, 2, 3, 4}


def test_a_database_that_was_closed_is_not_opened_again_by_a_latecomer(tmp_path: Path) -> None:
    backups = tmp_path / "backups"
    backups.mkdir()
    database = Database(tmp_path / "a.duckdb", backups)
    database.read(lambda cursor: cursor.execute("SELECT 1").fetchall())
    database.close()
    for work in (database.read, database.write):
        with pytest.raises(StorageError):
            work(lambda cursor: cursor.execute("SELECT 1").fetchall())
    with duckdb.connect(str(tmp_path / "a.duckdb")) as free:
        assert free.execute("SELECT 1").fetchall() == [(1,)]


# -- memory

LONG_LIST = "SELECT len(list(range)) FROM range(8000000)"  # 64 MB that cannot be set aside


def limit(cursor: Connection) -> str:
    return str(cursor.execute("SELECT current_setting('memory_limit')").fetchall()[0][0])


def long_list(cursor: Connection) -> int:
    return int(cursor.execute(LONG_LIST).fetchall()[0][0])


def test_a_long_read_may_take_more_memory_than_queries(database: Database) -> None:
    assert database.read(limit) == "61.0 MiB"
    with database.snapshot_cursor() as cursor:
        assert limit(cursor) == "143.0 MiB"
    assert database.read(limit) == "61.0 MiB"


def test_a_copy_for_which_memory_was_too_little_gets_more_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(connection: Connection) -> None:
        connection.execute("CREATE TABLE state (position BIGINT PRIMARY KEY)")
        connection.execute("INSERT INTO state VALUES (1)")
        connection.execute("CREATE TABLE long (id BIGINT PRIMARY KEY, text VARCHAR)")
        connection.execute("INSERT INTO long SELECT i, uuid()::VARCHAR FROM range(200000) r(i)")

    path, backups = tmp_path / "b.duckdb", tmp_path / "backups"
    backups.mkdir()
    made = Database(path, backups)
    made.write(make)
    made.close()
    for name, value in (("MB", 6), ("TO_COPY_MB", 6), ("TO_COPY_SHARE", 0.0)):
        monkeypatch.setattr(database_module, f"_MEMORY_{name}", value)
    tight = Database(path, backups)
    with pytest.raises(StorageError), tight.snapshot_cursor() as cursor:
        copy_into(cursor, backups / "copy.duckdb")
    for number in range(4):
        with suppress(StorageError), tight.snapshot_cursor() as cursor:
            _, counts = copy_into(cursor, backups / f"copy{number}.duckdb")
    assert counts["long"] == 200_000
    tight.close()


def test_pages_are_given_back_when_hardly_anything_is_read(database: Database) -> None:
    def held_mb(cursor: Connection) -> float:
        held = cursor.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchall()
        return float(held[0][0]) / 1e6

    def work(connection: Connection) -> None:
        connection.execute("CREATE TABLE pages AS SELECT hash(i) AS h FROM range(4000000) r(i)")

    database.write(work)
    database.checkpoint()
    for _ in range(40):
        database.read(lambda cursor: cursor.execute("SELECT max(h) FROM pages").fetchall())
    held = database.read(held_mb)
    database.rest()
    assert database.read(held_mb) >= held > 25
    database.rest()
    assert database.read(held_mb) < 10
    assert database.read(limit) == "61.0 MiB"


def test_pages_are_not_taken_from_who_is_at_work(database: Database) -> None:
    def work(_connection: Connection) -> None:
        resting = threading.Thread(target=database.rest)
        resting.start()
        resting.join(WAIT_S)

    with mock.patch.object(database, "_limit_memory") as limited:
        database.write(work)
        limited.assert_not_called()
        database.rest()
        assert limited.call_count == 2


def test_a_commit_that_needs_more_memory_is_done_again_and_leaves_no_keys_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add_many(start: int, connection: Connection) -> None:
        connection.execute(
            "INSERT INTO long SELECT i, repeat(md5(i::VARCHAR), 9) FROM range(?, ?) r(i)",
            [start, start + 5_000],
        )

    def count(cursor: Connection) -> int:
        return int(cursor.execute("SELECT count(*) FROM long").fetchall()[0][0])

    monkeypatch.setattr(database_module, "_MEMORY_MB", 6)
    tight = Database(tmp_path / "b.duckdb", tmp_path)
    tight.write(lambda c: c.execute("CREATE TABLE long (id BIGINT PRIMARY KEY, text VARCHAR)"))
    for start in range(0, 200_000, 5_000):
        tight.write(partial(add_many, start))
    assert tight.read(count) == 200_000
    assert tight.read(limit) == "953.6 MiB", "it was opened again"
    tight.close()
    again = Database(tmp_path / "b.duckdb", tmp_path)
    assert again.read(count) == 200_000
    again.close()


@pytest.mark.parametrize("way", ["read", "write"])
def test_what_needs_more_memory_is_asked_again_with_as_much_as_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(database_module, "_MEMORY_MB", 32)
    tight = Database(tmp_path / "b.duckdb", tmp_path)
    assert getattr(tight, way)(long_list) == 8_000_000
    assert tight.read(limit) == "154.4 MiB"  # 32, 48, 72, 108, 162 MB
    tight.close()


def test_what_needs_more_memory_than_there_is_is_an_error_and_no_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_MEMORY_MB", "_MEMORY_MOST_MB"):
        monkeypatch.setattr(database_module, name, 32)
    tight = Database(tmp_path / "b.duckdb", tmp_path)
    with pytest.raises(StorageError, match="Out of Memory"):
        tight.read(long_list)
    assert tight.read(lambda cursor: cursor.execute("SELECT 1").fetchall()) == [(1,)]
    tight.close()


def test_what_a_killed_process_had_set_aside_is_gone_after_opening(tmp_path: Path) -> None:
    aside = tmp_path / "b.duckdb.tmp"
    aside.mkdir()
    (aside / "duckdb_temp_1_0_storage_DEFAULT-0.tmp").write_text("basil")
    Database(tmp_path / "b.duckdb", tmp_path).close()
    assert not aside.exists()
