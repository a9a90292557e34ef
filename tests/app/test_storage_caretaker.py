"""The caretaker does what is due in quiet moments, goes on after trouble, and stops at once."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.domain.changes import ConversationEdited, ConversationForgotten
from app.domain.errors import DiskFull, StorageError
from app.storage import backup as backup_module
from app.storage import caretaker as caretaker_module
from app.storage import image
from app.storage.backup import Backup, backups_of, list_backups, make_backup
from app.storage.caretaker import BACKUP_EVERY_S, QUIET_S, RETRY_S, Caretaker, Clock
from app.storage.store import Store
from tests.fakes.stored import opened, titles, told

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
WAIT_S = 20


class FakeClock:
    """A clock that moves when told to."""

    def __init__(self) -> None:
        self.passed_s = 1000.0

    def clock(self) -> Clock:
        return Clock(lambda: self.passed_s, self.now)

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
def caretaker(store: Store, time_: FakeClock) -> Iterator[Caretaker]:
    made = Caretaker(store, time_.clock())
    made._unsubscribe = store.subscribe(made._on_changed)
    yield made
    made.stop()


def settle(caretaker: Caretaker, time_: FakeClock) -> None:
    """Let everything be done that is due in the next minutes."""
    for _ in range(20):
        time_.pass_s(30)
        caretaker.run_due()


def test_the_log_is_folded_in_once_it_is_quiet(
    store: Store, caretaker: Caretaker, time_: FakeClock
) -> None:
    settle(caretaker, time_)
    told(store, "one")
    assert store.paths.wal.exists()
    assert caretaker.run_due() == pytest.approx(QUIET_S)
    time_.pass_s(QUIET_S - 1)
    told(store, "two")
    caretaker.run_due()
    assert store.paths.wal.exists(), "it is not quiet yet"
    time_.pass_s(QUIET_S)
    caretaker.run_due()
    assert not store.paths.wal.exists()


def test_what_is_never_quiet_is_folded_in_all_the_same(
    store: Store, caretaker: Caretaker, time_: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(caretaker, time_)
    monkeypatch.setattr(caretaker_module, "OVERDUE_S", 60.0)
    began_s = time_.passed_s
    told(store, "one")
    while store.paths.wal.exists():
        time_.pass_s(QUIET_S - 1)
        told(store, "more")
        caretaker.run_due()
        assert time_.passed_s - began_s <= 60 + 2 * QUIET_S
    assert time_.passed_s - began_s > 60 - QUIET_S


def test_a_backup_is_made_every_half_hour_when_something_changed(
    store: Store, caretaker: Caretaker, time_: FakeClock
) -> None:
    def backups() -> int:
        return len(backups_of(store.paths.backups, store.uid))

    settle(caretaker, time_)
    assert backups() == 0, "there is nothing yet"
    told(store, "one")
    time_.pass_s(BACKUP_EVERY_S)
    settle(caretaker, time_)
    assert backups() == 1
    time_.pass_s(3 * BACKUP_EVERY_S)
    settle(caretaker, time_)
    assert backups() == 1, "nothing changed"
    told(store, "two")
    time_.pass_s(BACKUP_EVERY_S)
    settle(caretaker, time_)
    assert backups() == 2


def test_short_sessions_get_their_backup_too(store: Store, time_: FakeClock) -> None:
    told(store, "one")
    make_backup(store)
    for _ in range(4):
        told(store, "more")
        short = Caretaker(store, time_.clock())
        for _ in range(12):
            time_.pass_s(60)
            short.run_due()
    assert 2 <= len(backups_of(store.paths.backups, store.uid)) <= 3


def test_what_came_without_a_backup_gets_one_soon(store: Store, time_: FakeClock) -> None:
    told(store, "one")
    caretaker = Caretaker(store, time_.clock())
    time_.pass_s(QUIET_S + 1)
    caretaker.run_due()
    assert len(backups_of(store.paths.backups, store.uid)) == 1


def test_a_clock_that_was_set_back_does_not_put_backups_off(store: Store, time_: FakeClock) -> None:
    told(store, "one")
    time_.pass_s(365 * 24 * 3600)
    make_backup(store)
    time_.pass_s(-365 * 24 * 3600)
    told(store, "two")
    caretaker = Caretaker(store, time_.clock())
    time_.pass_s(QUIET_S + 1)
    caretaker.run_due()
    assert backups_of(store.paths.backups, store.uid)[0].position == 2


def test_the_trash_is_emptied_after_thirty_days(
    store: Store, caretaker: Caretaker, time_: FakeClock
) -> None:
    whole = told(store, "one", title="Old")
    told(store, "two", title="Stays")
    store.save(ConversationEdited(whole.conversation.id, deleted_at=time_.now()))
    settle(caretaker, time_)
    assert titles(store) == {"Old", "Stays"}
    time_.pass_s(30 * 24 * 3600)
    settle(caretaker, time_)
    assert titles(store) == {"Stays"}


def test_what_is_owed_to_the_forgotten_is_done_at_the_next_start(
    store: Store, time_: FakeClock
) -> None:
    gone = told(store, "secret", title="Gone")
    before = make_backup(store)
    store.save(ConversationForgotten(gone.conversation.id))
    caretaker = Caretaker(store, time_.clock())
    time_.pass_s(QUIET_S + 1)
    caretaker.run_due()
    assert not before.path.exists()
    assert len(list_backups(store.paths.backups)) == 2


def test_every_table_is_read_once_a_day(
    store: Store, caretaker: Caretaker, time_: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[float] = []

    def read(_: object) -> dict[str, int]:
        reads.append(time_.passed_s)
        return {}

    monkeypatch.setattr(caretaker_module, "read_everything", read)
    settle(caretaker, time_)
    assert reads == []
    for _ in range(49):
        time_.pass_s(3600)
        count = len(reads)
        caretaker.run_due()
        if len(reads) > count:
            os.utime(store.paths.checked, (time_.now().timestamp(),) * 2)
    assert len(reads) == 2


def test_damage_found_on_the_way_is_told_and_mended_at_the_next_start(
    store: Store, time_: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> dict[str, int]:
        raise StorageError("a checksum does not match")

    said: list[str] = []
    caretaker = Caretaker(store, time_.clock(), said.append)
    monkeypatch.setattr(caretaker_module, "read_everything", fail)
    time_.pass_s(25 * 3600)
    caretaker.run_due()
    assert said == ["The database is damaged. Start the program again: it will mend itself."]
    monkeypatch.undo()
    store.close()
    assert store.paths.unclean.exists(), "so the next start reads everything"


def test_trouble_is_remembered_and_tried_again(
    store: Store, time_: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(store, "one")
    tries: list[float] = []

    def refuse(_: Store) -> Backup:
        tries.append(time_.passed_s)
        raise DiskFull("There is no room", "Free some space.")

    caretaker = Caretaker(store, time_.clock())
    with monkeypatch.context() as full:
        full.setattr(caretaker_module, "make_backup", refuse)
        time_.pass_s(QUIET_S + 1)
        caretaker.run_due()
        assert list(caretaker.problems) == ["There is no room. Free some space."]
        caretaker.run_due()
        assert len(tries) == 1
        time_.pass_s(RETRY_S)
        caretaker.run_due()
        assert len(tries) == 2
    time_.pass_s(RETRY_S)
    caretaker.run_due()
    assert not caretaker.problems
    assert len(backups_of(store.paths.backups, store.uid)) == 1


def test_a_bug_in_one_duty_hinders_neither_the_others_nor_the_thread(
    store: Store, time_: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*_: object) -> int:
        raise ZeroDivisionError

    told(store, "one")
    caretaker = Caretaker(store, time_.clock())
    monkeypatch.setattr(caretaker_module, "purge_trash", bug)
    monkeypatch.setattr(caretaker_module, "finish_forgetting", bug)
    settle(caretaker, time_)
    assert len(backups_of(store.paths.backups, store.uid)) == 1


def test_the_thread_sleeps_until_something_is_written(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    folded = threading.Event()
    looks: list[int] = []
    monkeypatch.setattr(caretaker_module, "QUIET_S", 0.02)
    caretaker = Caretaker(store)
    run_due = caretaker.run_due

    def counted() -> float:
        looks.append(1)
        outcome = run_due()
        with suppress(Exception):  # stopping breaks off this query too
            if not store.paths.wal.exists() and titles(store):
                folded.set()
        return outcome

    monkeypatch.setattr(caretaker, "run_due", counted)
    caretaker.start()
    try:
        told(store, "one")
        assert folded.wait(WAIT_S)
        assert len(looks) < 50
    finally:
        caretaker.stop()
    caretaker.stop()


def test_stopping_breaks_off_a_backup_under_way(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(store, *("words " * 2000 for _ in range(300)))
    copying = threading.Event()
    copy_into = image.copy_into

    def announced(*given: object) -> object:
        copying.set()
        return copy_into(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(image, "copy_into", announced)
    monkeypatch.setattr(caretaker_module, "QUIET_S", 0.0)
    caretaker = Caretaker(store)
    caretaker.start()
    assert copying.wait(WAIT_S)
    thread = caretaker._thread
    began = time.monotonic()
    caretaker.stop()
    assert thread is not None
    assert not thread.is_alive() or time.monotonic() - began >= 3
    thread.join(WAIT_S)
    assert {path.suffix for path in store.paths.backups.iterdir()} <= {".duckdb"}


def test_a_caretaker_that_never_started_can_be_stopped(store: Store) -> None:
    Caretaker(store).stop()


def test_a_store_that_is_closed_under_it_does_no_harm(data_dir: Path, time_: FakeClock) -> None:
    with opened(data_dir) as store:
        told(store, "one")
        caretaker = Caretaker(store, time_.clock())
    settle(caretaker, time_)
    assert caretaker.problems
