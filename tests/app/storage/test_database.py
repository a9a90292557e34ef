"""The connection: locked settings, the gate, canceled queries, memory limits, reopening."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pytest

from app.domain.errors import Cancelled, DatabaseDamaged, StorageError
from app.storage.engine import database as database_module
from app.storage.engine.connection import Connection
from app.storage.engine.database import Database
from app.storage.engine.errors import from_duckdb_error
from app.storage.engine.gate import Gate
from app.storage.safety.image import copy_into
from tests.fakes.jobs import until
from tests.fakes.libraries import zero

FOREVER = "SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.range * b.range % 7 = 8"
LONG_LIST = "SELECT len(list(range)) FROM range(8000000)"  # 64 MB that cannot be set aside
WAIT_S = 60.0


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = new_database(tmp_path / "a.duckdb", tmp_path / "backups")
    yield made
    made.close()


def new_database(path: Path, backups: Path) -> Database:
    backups.mkdir(exist_ok=True)
    made = Database(path, backups)
    made.write(lambda c: c.execute("CREATE TABLE t (id BIGINT PRIMARY KEY)"))
    return made


def add(database: Database, number: int) -> None:
    database.write(lambda connection: connection.execute("INSERT INTO t VALUES (?)", [number]))


def value(database: Database, statement: str) -> Any:
    return database.read(lambda cursor: cursor.execute(statement).fetchall())[0][0]


def ids(database: Database) -> list[int]:
    return list(value(database, "SELECT coalesce(list(id ORDER BY id), []) FROM t"))


def fail_times(count: int) -> Callable[[Connection], int]:
    """Return a query that finds the instance invalid so many times, and then counts rows."""
    left = iter(range(count))

    def query(cursor: Connection) -> int:
        if next(left, None) is not None:
            raise duckdb.FatalException("the instance is invalid")
        return len(cursor.execute("SELECT * FROM t").fetchall())

    return query


# -- the gate
def test_many_threads_pass_the_gate_and_one_closes_it_alone() -> None:
    gate, inside, leave = Gate(), threading.Barrier(3), threading.Event()
    log: list[str] = []

    def pass_through() -> None:
        with gate.passing():
            inside.wait(WAIT_S)
            leave.wait(WAIT_S)
            with gate.passing():  # a thread inside may enter again while another waits to close
                log.append("left")
            assert gate.is_inside

    def shut() -> None:
        with gate.shut():
            log.append("alone")
            waiting = threading.Thread(target=enter_late)
            waiting.start()
            assert not entered.wait(0.05)
            assert "late" not in log
        waiting.join(WAIT_S)

    entered = threading.Event()

    def enter_late() -> None:
        with gate.passing():
            log.append("late")
            entered.set()

    with ThreadPoolExecutor(3) as pool:
        passing = [pool.submit(pass_through) for _ in range(2)]
        inside.wait(WAIT_S)
        shutting = pool.submit(shut)
        while not gate._shut:
            entered.wait(0.001)
        leave.set()
        for each in (*passing, shutting):
            each.result(WAIT_S)
    assert log == ["left", "left", "alone", "late"]
    assert not gate.is_inside


def test_the_gate_is_shut_at_once_only_when_nobody_is_inside() -> None:
    gate = Gate()
    with gate.passing(), gate.shut(waits=False) as is_alone:
        assert not is_alone
    with gate.shut(waits=False) as is_alone:
        assert is_alone
        assert gate._shut
    with gate.shut(), gate.shut(waits=False) as is_alone:
        assert not is_alone
    assert not gate._shut


# -- settings and errors
def test_settings_are_locked_and_no_other_file_reached(database: Database, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    for statement in (
        f"SELECT * FROM '{tmp_path}/secret.csv'",
        f"SELECT * FROM read_text('{tmp_path}/secret.csv')",
        f"COPY t TO '{tmp_path}/out.csv'",
        f"ATTACH '{tmp_path}/other.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET threads = 8",
        "SET allowed_configs = ['threads']",
    ):
        with pytest.raises((duckdb.Error, StorageError)):
            value(database, statement)
    assert not (tmp_path / "out.csv").exists()


def test_after_an_error_a_thread_can_query_and_write_again(database: Database) -> None:
    def half(connection: Connection) -> None:
        connection.execute("INSERT INTO t VALUES (1)")
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        database.write(half)
    for _ in range(2):
        with pytest.raises(duckdb.ParserException):
            value(database, "SELEKT")
        with pytest.raises(ZeroDivisionError):
            database.read(lambda _: 1 // 0)
    add(database, 2)
    assert database.read(lambda _: ids(database)) == [2], "a query may run another query"
    assert ids(database) == [2]


def test_a_long_query_can_be_canceled_from_another_thread(database: Database) -> None:
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


# -- reopening
def test_an_invalid_instance_is_reopened_and_the_work_repeated_once(database: Database) -> None:
    def insert_and_fail(query: Callable[[Connection], int], connection: Connection) -> int:
        connection.execute("INSERT INTO t VALUES (2)")
        return query(connection)

    add(database, 1)
    assert database.read(fail_times(1)) == 1
    assert database.write(partial(insert_and_fail, fail_times(1))) == 2
    for work in (database.read, database.write):
        with pytest.raises(StorageError):
            work(fail_times(2))
    add(database, 3)
    assert ids(database) == [1, 2, 3]


def test_a_reopening_that_fails_is_tried_again_by_the_next(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = mock.Mock(side_effect=duckdb.IOException("not now"))
    with monkeypatch.context() as broken:
        broken.setattr(database_module, "connect", refuse)
        for query in (fail_times(1), fail_times(0)):
            with pytest.raises(StorageError):
                database.read(query)
    assert ids(database) == []


def test_many_threads_readers_survive_a_replaced_file(database: Database, tmp_path: Path) -> None:
    add(database, 1)
    stop = threading.Event()

    def ask(number: int) -> set[int]:
        seen: set[int] = set()
        while not stop.is_set():
            seen.update(ids(database))
            if number == 0:
                database.read(fail_times(1))
        return seen

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask, number) for number in range(3)]
        for number in range(2, 5):
            other = new_database(tmp_path / "backups" / "coming.duckdb", tmp_path / "backups")
            add(other, number)
            assert other.checkpoint()
            other.close()
            database.replace_file(tmp_path / "backups" / "coming.duckdb")
            assert ids(database) == [number]
        stop.set()
        seen = set[int]().union(*(each.result(WAIT_S) for each in asking))
    assert seen <= {1, 2, 3, 4}


def test_a_statement_parsed_for_one_database_means_the_same_in_another() -> None:
    for columns, row in (("x INTEGER", (1,)), ("x VARCHAR, y DATE", ("one", None))):
        with Connection(duckdb.connect()) as connection:
            connection.execute(f"CREATE TABLE t ({columns})")
            connection.execute("INSERT INTO t (x) VALUES ($1)", [row[0]])
            connection.execute("UPDATE t SET x = x WHERE x = ?", [row[0]])
            assert connection.rows("SELECT * FROM t") == [row]
            assert connection.rows("SELECT * FROM t WHERE x = $x", {"x": row[0]}) == [row]


def test_a_late_query_does_not_reopen_a_closed_database(database: Database, tmp_path: Path) -> None:
    assert ids(database) == []
    database.close()
    for work in (database.read, database.write):
        with pytest.raises(StorageError):
            work(lambda cursor: cursor.execute("SELECT 1").fetchall())
    with duckdb.connect(str(tmp_path / "a.duckdb")) as free:
        assert free.execute("SELECT 1").fetchall() == [(1,)]


def test_closing_makes_no_checkpoint(tmp_path: Path) -> None:
    made = new_database(tmp_path / "c.duckdb", tmp_path)
    add(made, 1)
    made.close()
    assert (tmp_path / "c.duckdb.wal").exists()


def test_spilled_data_of_a_killed_process_is_deleted_at_opening(tmp_path: Path) -> None:
    aside = tmp_path / "b.duckdb.tmp"
    aside.mkdir()
    (aside / "duckdb_temp_1_0_storage_DEFAULT-0.tmp").write_text("basil")
    Database(tmp_path / "b.duckdb", tmp_path).close()
    assert not aside.exists()


def test_a_repeated_query_gets_the_values_of_an_iterator_again(database: Database) -> None:
    fail = fail_times(1)

    def query(cursor: Connection, values: Iterator[int]) -> list[int]:
        given = list(values)
        fail(cursor)
        return given

    assert database.read(query, iter([1, 2])) == [1, 2]


# -- damage
OTHER_FILE = duckdb.IOException('IO Error: Could not write file "/tmp/a.duckdb.tmp/spilled": gone')
NO_FILE = duckdb.IOException("IO Error: input or output failed")
CHECKSUM = duckdb.Error("Corrupt database file: a checksum does not match")
BUG = duckdb.InternalException("INTERNAL Error: a bug")


def _fail_in_copy(error: duckdb.Error, database: Database, _: object) -> None:
    with database.snapshot_cursor():
        raise from_duckdb_error(error) from error


@pytest.mark.parametrize("error", [OTHER_FILE, NO_FILE, BUG, duckdb.Error("unknown")])
@pytest.mark.parametrize("name", ["read", "write", "copy"])
def test_what_is_not_confirmed_as_damage_stops_no_writing(
    database: Database, name: str, error: duckdb.Error
) -> None:
    fail = mock.Mock(side_effect=error)
    call = partial(_fail_in_copy, error) if name == "copy" else getattr(Database, name)
    for _ in range(2):
        with pytest.raises(StorageError) as raised:
            call(database, fail)
        assert not isinstance(raised.value, DatabaseDamaged)
    assert not database.is_damaged
    add(database, 1)
    assert ids(database) == [1]


def test_a_write_that_meets_a_bug_of_the_database_is_repeated(database: Database) -> None:
    fail = iter([BUG])

    def insert(connection: Connection) -> None:
        connection.execute("INSERT INTO t VALUES (1)")
        for error in fail:
            raise error

    database.write(insert)
    assert ids(database) == [1]


@pytest.mark.parametrize("is_writer", [False, True])
def test_an_unclear_error_is_damage_where_everything_cannot_be_read(
    tmp_path: Path, is_writer: bool
) -> None:
    made = new_database(tmp_path / "a.duckdb", tmp_path)
    made.write(lambda c: c.execute("INSERT INTO t SELECT hash(i) // 9 FROM range(300000) r(i)"))
    made.checkpoint()
    made.close()
    zero(tmp_path / "a.duckdb", 262_144 * 3 + 12_288)
    made = Database(tmp_path / "a.duckdb", tmp_path)
    reported: list[DatabaseDamaged] = []
    made.on_damaged = reported.append
    made.writer = threading.get_ident() if is_writer else 0
    with pytest.raises(StorageError) as raised:
        made.read(mock.Mock(side_effect=NO_FILE))
    assert isinstance(raised.value, DatabaseDamaged) is not is_writer
    until(lambda: made.is_damaged)
    with pytest.raises(DatabaseDamaged):
        made.write(mock.Mock(side_effect=NO_FILE))
    made.close()
    assert len(reported) == 1


def test_writing_does_not_wait_for_the_full_read_after_an_unclear_error(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, has_begun = threading.Event(), threading.Event()

    def read(_: Connection) -> None:
        has_begun.set()
        assert go_on.wait(20)

    monkeypatch.setattr(database_module, "read_everything", read)
    database.writer = threading.get_ident()
    for _ in range(2):
        with pytest.raises(StorageError):
            database.write(mock.Mock(side_effect=NO_FILE))
    assert has_begun.wait(20)
    add(database, 1)
    go_on.set()
    until(lambda: not database._confirmer.is_alive())
    go_on.clear()
    has_begun.clear()
    database._sound_at -= 1_000
    with pytest.raises(StorageError):
        database.write(mock.Mock(side_effect=NO_FILE))
    assert has_begun.wait(20)
    assert database._confirmer.is_alive(), "closing waits for it"
    go_on.set()
    database.close()
    assert not database.is_damaged


def test_opening_again_does_not_wait_for_the_full_read_which_begins_anew(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = iter([FOREVER, "SELECT 1"])
    read = mock.Mock(side_effect=lambda cursor: cursor.execute(next(reads)).fetchall())
    monkeypatch.setattr(database_module, "read_everything", read)
    database.writer = threading.get_ident()
    with pytest.raises(StorageError):
        database.write(mock.Mock(side_effect=NO_FILE))
    used_s = time.process_time()
    until(lambda: read.called and time.process_time() > used_s + 0.2)  # so the query runs
    database.write(mock.Mock(side_effect=[BUG, None]))
    until(lambda: not database.is_suspected)
    assert read.call_count == 2
    assert not database.is_damaged


def test_a_wrong_checksum_is_damage_at_once_but_not_of_a_copy(database: Database) -> None:
    with pytest.raises(StorageError) as raised, database.snapshot_cursor():
        raise from_duckdb_error(CHECKSUM) from CHECKSUM
    assert (type(raised.value), database.is_damaged) == (StorageError, False)
    with pytest.raises(DatabaseDamaged):
        database.read(mock.Mock(side_effect=CHECKSUM))
    assert database.is_damaged


# -- memory
def limit(database: Database) -> str:
    return str(value(database, "SELECT current_setting('memory_limit')"))


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Database]]:
    """Open a database with these limits, in MB."""
    opened: list[Database] = []

    def open_with(memory_mb: int, **limits: float) -> Database:
        for name, to in {"_MEMORY_MB": memory_mb, **limits}.items():
            monkeypatch.setattr(database_module, name, to)
        opened.append(Database(tmp_path / "b.duckdb", tmp_path))
        return opened[-1]

    yield open_with
    for each in opened:
        each.close()


def test_a_long_read_may_take_more_memory_than_queries(database: Database) -> None:
    assert limit(database) == "61.0 MiB"
    with database.snapshot_cursor() as cursor:
        assert cursor.execute("SELECT current_setting('memory_limit')").fetchone() == ("143.0 MiB",)
    assert limit(database) == "61.0 MiB"


def test_a_copy_for_which_memory_was_too_little_gets_more_the_next_time(
    tmp_path: Path, tight: Callable[..., Database]
) -> None:
    made = Database(tmp_path / "b.duckdb", tmp_path)
    for statement in (
        "CREATE TABLE state (position BIGINT PRIMARY KEY)",
        "INSERT INTO state VALUES (1)",
        "CREATE TABLE long (id BIGINT PRIMARY KEY, text VARCHAR)",
        "INSERT INTO long SELECT i, uuid()::VARCHAR FROM range(200000) r(i)",
    ):
        made.write(lambda connection, run=statement: connection.execute(run))  # type: ignore[misc]
    made.close()
    database = tight(6, _MEMORY_TO_COPY_MB=6, _MEMORY_TO_COPY_SHARE=0.0)
    with pytest.raises(StorageError), database.snapshot_cursor() as cursor:
        copy_into(cursor, tmp_path / "copy.duckdb")
    for number in range(4):
        with suppress(StorageError), database.snapshot_cursor() as cursor:
            _, counts = copy_into(cursor, tmp_path / f"copy{number}.duckdb")
    assert counts["long"] == 200_000


def test_cached_pages_are_released_when_little_is_read(database: Database) -> None:
    held = "SELECT sum(memory_usage_bytes) / 1e6 FROM duckdb_memory()"
    pages = "CREATE TABLE pages AS SELECT hash(i) AS h FROM range(4000000) r(i)"
    database.write(lambda connection: connection.execute(pages))
    database.checkpoint()
    for _ in range(40):
        value(database, "SELECT max(h) FROM pages")
    before = value(database, held)
    database.release_memory()
    assert value(database, held) >= before > 25
    database.release_memory()
    assert value(database, held) < 10
    assert limit(database) == "61.0 MiB"


def test_cached_pages_are_kept_while_a_query_runs(database: Database) -> None:
    def work(_connection: Connection) -> None:
        resting = threading.Thread(target=database.release_memory)
        resting.start()
        resting.join(WAIT_S)

    with mock.patch.object(database, "_limit_memory") as limited:
        database.write(work)
        limited.assert_not_called()
        database.release_memory()
        assert limited.call_count == 2


def test_a_commit_that_needs_more_memory_is_repeated_and_leaves_no_keys(
    tmp_path: Path, tight: Callable[..., Database]
) -> None:
    def add_many(start: int, connection: Connection) -> None:
        connection.execute(
            "INSERT INTO long SELECT i, repeat(md5(i::VARCHAR), 9) FROM range(?, ?) r(i)",
            [start, start + 5_000],
        )

    database = tight(6)
    database.write(lambda c: c.execute("CREATE TABLE long (id BIGINT PRIMARY KEY, text VARCHAR)"))
    for start in range(0, 200_000, 5_000):
        database.write(partial(add_many, start))
    assert value(database, "SELECT count(*) FROM long") == 200_000
    assert limit(database) == "953.6 MiB", "it was opened again"
    database.close()
    assert value(tight(6), "SELECT count(*) FROM long") == 200_000


@pytest.mark.parametrize("way", ["read", "write"])
def test_a_query_is_repeated_with_more_memory(tight: Callable[..., Database], way: str) -> None:
    database = tight(32)
    found = getattr(database, way)(lambda cursor: cursor.execute(LONG_LIST).fetchall())
    assert found == [(8_000_000,)]
    assert limit(database) == "154.4 MiB"  # 32, 48, 72, 108, 162 MB


def test_a_query_that_needs_too_much_memory_is_an_error(tight: Callable[..., Database]) -> None:
    database = tight(32, MEMORY_MAX_MB=32)
    with pytest.raises(StorageError, match="Out of Memory"):
        value(database, LONG_LIST)
    assert value(database, "SELECT 1") == 1
