"""Maintenance runs due tasks when the store is quiet, continues after failures, and stops at once."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import duckdb
import pytest

from app.domain.changes import ConversationEdited, DraftPut, ReplyGrew
from app.domain.deletions import ConversationForgotten
from app.domain.errors import DatabaseDamaged, DiskFull, KnownError, StorageError
from app.storage.deletion.erasure import deletions_owed
from app.storage.engine.store import Store
from app.storage.safety import backup as backup_module
from app.storage.safety import image
from app.storage.safety import maintenance as maintenance_module
from app.storage.safety.backup import backups_of, list_backups, make_backup
from app.storage.safety.maintenance import (
    BACKUP_EVERY_S,
    ERASE_EVERY_S,
    ERASE_WITHIN_S,
    QUIET_S,
    RETRY_S,
    Maintenance,
    MaintenanceClock,
)
from tests.fakes.small_disk import no_file_beyond
from tests.fakes.stored import AT, add_conversation, add_running, opened, titles

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
WAIT_S = 60.0


class FakeClock:
    """A clock that `pass_s` moves."""

    def __init__(self) -> None:
        self.passed_s = 1000.0

    def clock(self) -> MaintenanceClock:
        return MaintenanceClock(lambda: self.passed_s, self.now)

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.passed_s)

    def pass_s(self, seconds: float) -> None:
        self.passed_s += seconds


@pytest.fixture
def time_(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    fake = FakeClock()
    monkeypatch.setattr(backup_module, "now", fake.now)
    return fake


@pytest.fixture
def store(data_dir: Path, time_: FakeClock) -> Iterator[Store]:
    with opened(data_dir) as made:
        made.paths.checked.touch()
        os.utime(made.paths.checked, (time_.now().timestamp(),) * 2)
        yield made


@pytest.fixture
def maintenance(store: Store, time_: FakeClock) -> Iterator[Maintenance]:
    made = Maintenance(store, time_.clock())
    made._unsubscribe = store.subscribe(made._on_changed)
    yield made
    made.stop()


def settle(maintenance: Maintenance, time_: FakeClock) -> None:
    """Let everything be done that is due in the next minutes."""
    for _ in range(20):
        time_.pass_s(30)
        maintenance.run_due()


def start_quietly(store: Store, time_: FakeClock) -> Maintenance:
    """Return what a new start has done once the store was quiet."""
    maintenance = Maintenance(store, time_.clock())
    time_.pass_s(QUIET_S + 1)
    maintenance.run_due()
    return maintenance


def backup_count(store: Store) -> int:
    return len(backups_of(store.paths.backups, store.uid))


# -- what is due
def test_a_checkpoint_is_made_once_the_store_is_quiet(
    store: Store, maintenance: Maintenance, time_: FakeClock
) -> None:
    settle(maintenance, time_)
    add_conversation(store, "one")
    assert store.paths.wal.exists()
    assert maintenance.run_due() == pytest.approx(QUIET_S)
    time_.pass_s(QUIET_S - 1)
    add_conversation(store, "two")
    maintenance.run_due()
    assert store.paths.wal.exists(), "it is not quiet yet"
    time_.pass_s(QUIET_S)
    maintenance.run_due()
    assert not store.paths.wal.exists()


def test_an_overdue_checkpoint_is_made_in_a_busy_store(
    store: Store, maintenance: Maintenance, time_: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(maintenance, time_)
    monkeypatch.setattr(maintenance_module, "OVERDUE_S", 60.0)
    began_s = time_.passed_s
    add_conversation(store, "one")
    while store.paths.wal.exists():
        time_.pass_s(QUIET_S - 1)
        add_conversation(store, "more")
        maintenance.run_due()
        assert time_.passed_s - began_s <= 60 + 2 * QUIET_S
    assert time_.passed_s - began_s > 60 - QUIET_S


def test_a_backup_is_made_every_half_hour_when_something_changed(
    store: Store, maintenance: Maintenance, time_: FakeClock
) -> None:
    counts = []
    for is_changed, waits in ((False, 0), (True, 1), (False, 3), (True, 1)):
        if is_changed:
            add_conversation(store, "one")
        time_.pass_s(waits * BACKUP_EVERY_S)
        settle(maintenance, time_)
        counts.append(backup_count(store))
    assert counts == [0, 1, 1, 2]


def test_short_sessions_get_their_backup_too(store: Store, time_: FakeClock) -> None:
    add_conversation(store, "one")
    start_quietly(store, time_)
    assert backup_count(store) == 1, "a database without a backup gets one soon"
    for _ in range(4):
        add_conversation(store, "more")
        short = Maintenance(store, time_.clock())
        for _ in range(12):
            time_.pass_s(60)
            short.run_due()
    assert 2 <= backup_count(store) <= 3


def test_ending_commands_back_up_and_empty_the_trash_daily(store: Store, time_: FakeClock) -> None:
    maintenance = Maintenance(store, time_.clock())
    gone = add_conversation(store, "x", title="Old").conversation.id
    maintenance.finish_command()
    assert list_backups(store.paths.backups) == [], "the journal has everything"
    make_backup(store)
    add_conversation(store, "y", title="New")
    store.save(ConversationEdited(gone, deleted_at=NOW - timedelta(days=40)))
    maintenance.finish_command()
    assert len(list_backups(store.paths.backups)) == 1
    time_.pass_s(25 * 3600)
    maintenance.finish_command()
    assert titles(store) == {"New"}
    assert backups_of(store.paths.backups, store.uid)[0].position == store.journal.last_position
    position = store.journal.last_position
    maintenance.finish_command()
    assert store.journal.last_position == position


def test_a_clock_set_back_does_not_delay_backups(store: Store, time_: FakeClock) -> None:
    add_conversation(store, "one")
    time_.pass_s(365 * 24 * 3600)
    make_backup(store)
    time_.pass_s(-365 * 24 * 3600)
    add_conversation(store, "two")
    start_quietly(store, time_)
    assert backups_of(store.paths.backups, store.uid)[0].position == 2


def test_the_trash_lasts_30_days(store: Store, maintenance: Maintenance, time_: FakeClock) -> None:
    whole = add_conversation(store, "one", title="Old")
    add_conversation(store, "two", title="Stays")
    store.save(ConversationEdited(whole.conversation.id, deleted_at=time_.now()))
    settle(maintenance, time_)
    assert titles(store) == {"Old", "Stays"}
    time_.pass_s(30 * 24 * 3600)
    settle(maintenance, time_)
    assert titles(store) == {"Stays"}


def test_a_clock_set_ahead_empties_the_trash_only_at_a_later_start(
    store: Store, time_: FakeClock
) -> None:
    whole = add_conversation(store, "one", title="Old")
    store.save(ConversationEdited(whole.conversation.id, deleted_at=time_.now()))
    make_backup(store)
    time_.pass_s(400 * 24 * 3600)
    add_conversation(store, "two", title="New")
    maintenance = Maintenance(store, time_.clock())
    maintenance.finish_command()
    settle(maintenance, time_)
    assert titles(store) == {"Old", "New"}
    settle(Maintenance(store, time_.clock()), time_)
    assert titles(store) == {"New"}


@pytest.mark.parametrize("ends", [False, True])
def test_the_trash_is_emptied_though_nothing_else_changes(
    store: Store, time_: FakeClock, ends: bool
) -> None:
    whole = add_conversation(store, "one", title="Old")
    store.save(ConversationEdited(whole.conversation.id, deleted_at=time_.now()))
    make_backup(store)
    for days, most_backups in ((2, 1), (29, 2), (2, 4)):
        time_.pass_s(days * 24 * 3600)
        assert titles(store) == {"Old"}
        maintenance = Maintenance(store, time_.clock())
        if ends:
            maintenance.finish_command()
        else:
            settle(maintenance, time_)
        assert len(list_backups(store.paths.backups)) <= most_backups, "none unless it is needed"
    assert not titles(store)


def test_pending_deletions_are_completed_at_the_next_start(store: Store, time_: FakeClock) -> None:
    gone = add_conversation(store, "secret", title="Gone")
    before = make_backup(store)
    store.save(ConversationForgotten(gone.conversation.id))
    maintenance = Maintenance(store, time_.clock())
    erased = Mock()
    maintenance.erase_index = erased
    time_.pass_s(ERASE_EVERY_S - 1)
    maintenance.run_due()
    assert (deletions_owed(store), erased.call_count) == (1, 0)
    time_.pass_s(2)
    maintenance.run_due()
    assert (deletions_owed(store), erased.call_count) == (0, 1)
    assert before.path in {each.path for each in list_backups(store.paths.backups)}


def test_deletions_are_removed_from_the_files_within_the_hour_of_a_busy_store(
    store: Store, maintenance: Maintenance, time_: FakeClock
) -> None:
    store.save(ConversationForgotten(add_conversation(store, "secret").conversation.id))
    waited_s = 0.0
    while deletions_owed(store):
        time_.pass_s(50)
        waited_s += 50
        add_conversation(store, "more")
        maintenance.run_due()
    assert ERASE_WITHIN_S <= waited_s <= ERASE_WITHIN_S + ERASE_EVERY_S + 100


def test_every_table_is_read_once_a_day(
    store: Store, maintenance: Maintenance, time_: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[float] = []

    def read(_: object) -> dict[str, int]:
        reads.append(time_.passed_s)
        return {}

    monkeypatch.setattr(maintenance_module, "read_all_tables", read)
    settle(maintenance, time_)
    assert reads == []
    for _ in range(49):
        time_.pass_s(3600)
        count = len(reads)
        maintenance.run_due()
        if len(reads) > count:
            os.utime(store.paths.checked, (time_.now().timestamp(),) * 2)
    assert len(reads) == 2


def test_a_full_read_that_memory_is_too_small_for_is_not_repeated_at_once(
    maintenance: Maintenance, time_: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Mock(side_effect=StorageError("Out of memory"))
    monkeypatch.setattr(maintenance_module, "read_all_tables", read)
    time_.pass_s(25 * 3600)
    for _ in range(10):
        maintenance.run_due()
        time_.pass_s(1800)
    assert read.call_count == 1
    time_.pass_s(2 * 3600)
    maintenance.run_due()
    assert read.call_count == 2


# -- what goes wrong
def test_damage_is_reported_once_then_nothing_is_written_and_the_next_start_reads_everything(
    store: Store, time_: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail = Mock(side_effect=duckdb.Error("Corrupt database file: a checksum does not match"))
    reported: list[KnownError] = []
    maintenance = Maintenance(store, time_.clock())
    maintenance.notify = reported.append
    running = add_running(store, "What?").exchanges[0].id
    with monkeypatch.context() as broken:
        broken.setattr(maintenance_module, "read_all_tables", fail)
        time_.pass_s(25 * 3600)
        maintenance.run_due()
    assert [each.kind for each in reported] == ["database_damaged"]
    kept = _sizes(store)
    for write in (lambda: add_conversation(store, "Lost?"), lambda: make_backup(store)):
        with pytest.raises(DatabaseDamaged):
            write()
    store.is_dirty = True
    assert not store.checkpoint().result()
    grew = ReplyGrew(running, store.ids.message(), "text", "Because", AT, "openai:m")
    store.journal_only(grew).result()
    store.save(DraftPut(None, "unsent", AT))
    time_.pass_s(25 * 3600)
    maintenance.run_due()
    assert len(reported) == 1
    assert _sizes(store) == kept
    store.close()
    assert not store.paths.closed.exists(), "so the next start reads everything"
    settle(Maintenance(store, time_.clock()), time_)  # a closed store is no crash
    with opened(store.paths.root) as again:
        assert (again.column("SELECT text FROM draft"), titles(again)) == (["unsent"], {"A talk"})
        assert "Because" in again.column("SELECT text FROM message")


def _sizes(store: Store) -> dict[str, int]:
    paths = store.paths
    files = [paths.database, paths.wal, *paths.backups.iterdir()]
    return {each.name: each.stat().st_size for each in files if each.exists()}


def test_a_full_disk_is_reported_once_until_there_is_space(
    store: Store, maintenance: Maintenance, time_: FakeClock
) -> None:
    reported: list[KnownError] = []
    maintenance.notify = reported.append
    store.is_disk_full = True
    with no_file_beyond(1 << 20):
        settle(maintenance, time_)
        assert [each.kind for each in reported] == ["disk_full"]
    settle(maintenance, time_)
    assert not store.is_disk_full
    assert len(reported) == 1


def test_nothing_is_written_until_the_directory_is_back(store: Store, time_: FakeClock) -> None:
    told: list[KnownError] = []
    maintenance = Maintenance(store, time_.clock())
    maintenance.notify = told.append
    add_conversation(store, ("Kept?", "Yes."))
    root = store.paths.root
    away = root.rename(root.with_name("away"))
    root.mkdir()  # as the folder below a mount
    time_.pass_s(BACKUP_EVERY_S)
    for _ in range(2):
        maintenance.run_due()
        time_.pass_s(RETRY_S)
    assert len(told) == 1
    assert str(root) in str(told[0])
    assert not [*root.iterdir()]
    root.rmdir()
    away.rename(root)
    maintenance.run_due()
    assert list_backups(store.paths.backups)


def test_a_failed_task_is_reported_and_retried_while_others_go_on(
    store: Store,
    time_: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    add_conversation(store, "one")
    refuse = Mock(side_effect=DiskFull("There is no room", "Free some space."))
    maintenance = Maintenance(store, time_.clock())
    with monkeypatch.context() as full:
        full.setattr(maintenance_module, "make_backup", refuse)
        time_.pass_s(QUIET_S + 1)
        maintenance.run_due()
        assert "There is no room. Free some space." in caplog.text
        maintenance.run_due()
        assert refuse.call_count == 1
        time_.pass_s(RETRY_S)
        maintenance.run_due()
        assert refuse.call_count == 2
    for name in ("purge_trash", "erase_bytes"):
        monkeypatch.setattr(maintenance_module, name, Mock(side_effect=ZeroDivisionError))
    settle(maintenance, time_)
    assert backup_count(store) == 1


# -- the thread
def test_the_thread_sleeps_until_a_write(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    folded = threading.Event()
    looks: list[int] = []
    monkeypatch.setattr(maintenance_module, "QUIET_S", 0.02)
    maintenance = Maintenance(store)
    run_due = maintenance.run_due

    def counted() -> float:
        looks.append(1)
        outcome = run_due()
        with suppress(Exception):  # stopping breaks off this query too
            if not store.paths.wal.exists() and titles(store):
                folded.set()
        return outcome

    monkeypatch.setattr(maintenance, "run_due", counted)
    maintenance.start()
    try:
        add_conversation(store, "one")
        assert folded.wait(WAIT_S)
        assert len(looks) < 50
    finally:
        maintenance.stop()
    maintenance.stop()
    Maintenance(store).stop()  # never started


def test_stopping_cancels_a_running_backup(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    add_conversation(store, *("words " * 2000 for _ in range(300)))
    copying = threading.Event()
    copy_into = image.copy_into

    def announced(*given: object) -> object:
        copying.set()
        return copy_into(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(image, "copy_into", announced)
    monkeypatch.setattr(maintenance_module, "QUIET_S", 0.0)
    maintenance = Maintenance(store)
    maintenance.start()
    assert copying.wait(WAIT_S)
    thread = maintenance._thread
    began = time.monotonic()
    maintenance.stop()
    assert not thread.is_alive() or time.monotonic() - began >= 3
    thread.join(WAIT_S)
    assert {path.suffix for path in store.paths.backups.iterdir()} <= {".duckdb"}
