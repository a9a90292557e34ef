"""No room on the disk: a clear error, nothing half-saved, and everything goes on once there is."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.domain.changes import DraftPut, SettingPut
from app.domain.errors import DiskFull
from app.storage.backup import backups_of, make_backup
from app.storage.conversations import Conversations
from app.storage.forget import finish_forgetting, forget
from app.storage.recovery import open_store
from app.storage.store import Store
from tests.fakes.small_disk import SmallDisk, no_file_beyond, small_disk
from tests.fakes.stored import AT, made, opened, tables, tell, titles, told

NOISE = random.Random(5)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 32) as mounted:
        yield mounted


def noise(size_bytes: int) -> str:
    """Return text that does not compress."""
    return NOISE.randbytes(size_bytes // 2).hex()


def fill_up(store: Store) -> list[str]:
    """Save conversations until there is no room; return the titles that were acknowledged."""
    acknowledged: list[str] = []
    for number in range(1000):
        try:
            told(store, noise(60_000), title=f"T{number}")
        except DiskFull:
            return acknowledged
        acknowledged.append(f"T{number}")
    raise AssertionError("there was always room")


def test_a_full_disk_while_writing_loses_nothing_acknowledged(disk: SmallDisk) -> None:
    with opened(disk.root / "data") as store:
        disk.fill(leave_bytes=4 << 20)
        acknowledged = fill_up(store)
        assert titles(store) == set(acknowledged)
        disk.fill()
        waiting = tell(store, noise(60_000), title="In flight")
        with pytest.raises(DiskFull):
            store.save(*waiting.changes)
        assert titles(store) == set(acknowledged)


def test_what_was_in_flight_can_be_saved_again_once_there_is_room(disk: SmallDisk) -> None:
    with opened(disk.root / "data") as store:
        disk.fill(leave_bytes=3 << 20)
        acknowledged = fill_up(store)
        waiting = tell(store, noise(100_000), title="In flight")
        with pytest.raises(DiskFull):
            store.save(*waiting.changes)
        disk.free()
        store.save(*waiting.changes)
        assert titles(store) == {*acknowledged, "In flight"}
    with opened(disk.root / "data") as again:
        assert titles(again) == {*acknowledged, "In flight"}
        assert again.notices == ()


def test_a_full_disk_while_checkpointing_keeps_everything_readable(disk: SmallDisk) -> None:
    with opened(disk.root / "data") as store:
        for number in range(40):
            told(store, noise(60_000), title=f"T{number}")
        disk.fill()
        assert store.checkpoint().result() is False
        assert len(titles(store)) == 40
        with pytest.raises(DiskFull):
            told(store, noise(60_000))
        disk.free()
        told(store, "There is room", title="After")
        assert store.checkpoint().result() is True
        assert len(titles(store)) == 41


def test_a_full_disk_at_the_end_and_at_the_start_loses_nothing(disk: SmallDisk) -> None:
    with opened(disk.root / "data") as store:
        for number in range(10):
            told(store, noise(60_000), title=f"T{number}")
        disk.fill()
    try:
        store = open_store(made(disk.root / "data"))
    except DiskFull:
        disk.free()
        store = open_store(made(disk.root / "data"))
    assert len(titles(store)) == 10
    store.close()


def test_a_backup_without_room_leaves_the_earlier_ones_and_the_store_as_they_were(
    disk: SmallDisk,
) -> None:
    with opened(disk.root / "data") as store:
        told(store, noise(600_000), title="A")
        first = make_backup(store)
        told(store, noise(600_000), title="B")
        disk.fill(leave_bytes=1 << 20)
        with pytest.raises(DiskFull):
            make_backup(store)
        assert backups_of(store.paths.backups, store.uid) == [first]
        assert list(store.paths.backups.iterdir()) == [first.path]
        disk.free()
        made_later = make_backup(store)
        assert backups_of(store.paths.backups, store.uid) == [made_later, first]


def test_forgetting_without_room_hides_at_once_and_is_finished_later(disk: SmallDisk) -> None:
    with opened(disk.root / "data") as store:
        gone = told(store, noise(600_000), title="Gone")
        told(store, noise(600_000), title="Stays")
        disk.fill(leave_bytes=1 << 20)
        with pytest.raises(DiskFull):
            forget(store, [gone.conversation.id])
        assert titles(store) == {"Stays"}
        disk.free()
        assert finish_forgetting(store) is True
        assert titles(store) == {"Stays"}


def test_a_limit_on_the_size_of_files_is_a_full_disk(data_dir: Path) -> None:
    with opened(data_dir) as store:
        told(store, noise(100_000), title="Before")
        before = tables(store)
        with no_file_beyond(50_000), pytest.raises(DiskFull):
            told(store, noise(100_000), title="Too much")
        assert tables(store) == before
        told(store, noise(100_000), title="After")
        assert titles(store) == {"Before", "After"}


def test_a_checkpoint_that_kills_the_instance_is_survived(data_dir: Path) -> None:
    with opened(data_dir) as store:
        for number in range(20):
            told(store, noise(60_000), title=f"T{number}")
        with no_file_beyond(500_000):
            assert store.checkpoint().result() is False
            assert len(titles(store)) == 20
        store.save(SettingPut("theme", '"dark"'))
        assert store.checkpoint().result() is True
    with opened(data_dir) as again:
        assert len(titles(again)) == 20


def test_the_database_s_own_log_without_room_leaves_no_trace_in_the_journal(
    data_dir: Path,
) -> None:
    with opened(data_dir) as store:
        # The journal compresses, so the database's log is the first to hit the limit.
        big = "all the same " * 200_000
        before = tables(store)
        with no_file_beyond(500_000), pytest.raises(DiskFull):
            store.save(DraftPut(None, big, AT))
        assert tables(store) == before
        store.save(DraftPut(None, "short", AT))
    with opened(data_dir) as again:
        assert Conversations(again).draft(None) == "short"
        assert again.notices == ()
