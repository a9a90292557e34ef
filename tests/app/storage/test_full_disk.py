"""A full disk: a clear error, nothing half-saved, and work continues with space."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.check import check
from app.domain.changes import DraftPut, SettingPut, SummaryPut
from app.domain.errors import DiskFull
from app.domain.passages import Space
from app.storage.deletion.erasure import erase_bytes
from app.storage.deletion.forget import forget
from app.storage.engine.space import FOR_DELETING_BYTES, RESERVE_BYTES, disk_is_full
from app.storage.engine.store import Store
from app.storage.safety.backup import backups_of, make_backup
from app.storage.safety.recovery import open_store
from app.storage.tables.conversations import Conversations
from app.storage.tables.passages.vectors import Vectors
from tests.fakes.small_disk import SmallDisk, no_file_beyond, small_disk
from tests.fakes.stored import (
    AT,
    ConversationRecord,
    add_conversation,
    killed,
    made,
    new_conversation,
    opened,
    tables,
    titles,
)

NOISE = random.Random(5)


@pytest.fixture
def disk_mb() -> int:
    return 32


@pytest.fixture
def disk(tmp_path: Path, disk_mb: int) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", disk_mb) as mounted:
        yield mounted


def noise(size_bytes: int) -> str:
    """Return text that does not compress."""
    return NOISE.randbytes(size_bytes // 2).hex()


def fill(store: Store, count: int = 1000, size_bytes: int = 60_000) -> set[str]:
    """Save so many conversations, or until there is no room; return the acknowledged titles."""
    acknowledged: set[str] = set()
    for number in range(count):
        try:
            add_conversation(store, noise(size_bytes), title=f"T{number}")
        except DiskFull:
            return acknowledged
        acknowledged.add(f"T{number}")
    assert count < 1000, "there was always room"
    return acknowledged


def summary_of(stored: ConversationRecord) -> SummaryPut:
    """Return what a worker writes."""
    here = stored.conversation.id
    return SummaryPut("conversation", here, here, noise(60_000), "m", "h", AT)


def test_a_full_disk_while_writing_loses_nothing_acknowledged(disk: SmallDisk) -> None:
    with opened(disk.root / "data") as store:
        disk.fill(leave_bytes=3 << 20)
        acknowledged = fill(store)
        disk.fill()
        waiting = new_conversation(store, noise(100_000), title="In flight")
        with pytest.raises(DiskFull):
            store.save(*waiting.changes)
        assert titles(store) == acknowledged
        disk.free()
        store.save(*waiting.changes)
        assert titles(store) == {*acknowledged, "In flight"}
    with opened(disk.root / "data") as again:
        assert titles(again) == {*acknowledged, "In flight"}
        assert again.notices == ()


def test_a_full_disk_while_checkpointing_loses_nothing(disk: SmallDisk) -> None:
    with opened(disk.root / "data") as store:
        acknowledged = fill(store, 40)
        disk.fill()
        assert store.checkpoint().result() is False
        assert titles(store) == acknowledged
        with pytest.raises(DiskFull):
            add_conversation(store, noise(60_000))
    with opened(disk.root / "data") as store:
        disk.free()
        add_conversation(store, "There is room", title="After")
        assert store.checkpoint().result() is True
        assert titles(store) == {*acknowledged, "After"}


@pytest.fixture(scope="module")
def unclean(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """A library as a kill left it, to copy, and its titles."""
    root = tmp_path_factory.mktemp("unclean")
    with opened(root / "source") as store:
        acknowledged = fill(store, 60)
        return killed(store, root / "killed"), acknowledged


@pytest.mark.parametrize("free_bytes", [0, 100_000, 3 << 20])
def test_a_library_opens_on_a_full_disk_after_an_unclean_end(
    disk: SmallDisk, unclean: tuple[Path, set[str]], free_bytes: int
) -> None:
    source, titles_then = unclean
    acknowledged = {*titles_then}
    shutil.copytree(source, disk.root / "data")
    disk.fill(leave_bytes=free_bytes)
    with opened(disk.root / "data") as store:
        assert store.is_disk_full
        assert store.notices == (str(disk_is_full()),)
        assert titles(store) == acknowledged
        if free_bytes == 3 << 20:
            add_conversation(store, noise(60_000), title="Within the free space")
            acknowledged.add("Within the free space")
    with opened(disk.root / "data") as store:
        assert titles(store) == acknowledged
        disk.free()
        add_conversation(store, "There is room", title="After")
        assert store.checkpoint().result() is True
    with opened(disk.root / "data") as store:
        assert not store.is_disk_full
        assert titles(store) == {*acknowledged, "After"}
        assert check(store).problems == ()


@pytest.mark.parametrize("disk_mb", [128])
def test_the_reserve_is_for_what_the_user_writes_and_its_rest_for_deleting(disk: SmallDisk) -> None:
    with opened(disk.root / "data") as store:
        gone = add_conversation(store, noise(60_000), title="Gone")
        assert store.fill_reserve().result() is True
        assert store.paths.reserve.stat().st_size == RESERVE_BYTES
        disk.fill()
        assert not store.is_disk_full
        acknowledged = fill(store)
        assert len(acknowledged) > 40
        assert store.fill_reserve().result() is False
        with pytest.raises(DiskFull):
            store.save(summary_of(gone))
        with pytest.raises(DiskFull):
            Vectors(store).ensure(Space("m", 3, 8), "m")
        forget(store, [gone.conversation.id])
        assert titles(store) == acknowledged
    with opened(disk.root / "data") as store:
        assert store.is_disk_full
        assert titles(store) == acknowledged
        disk.free()
        assert store.fill_reserve().result() is True
        Vectors(store).ensure(Space("m", 3, 8), "m")


def test_background_work_leaves_the_reserve_alone(disk: SmallDisk) -> None:
    with opened(disk.root / "data") as store:
        kept = add_conversation(store, "kept")
        store.paths.reserve.write_bytes(bytes(RESERVE_BYTES))
        disk.fill()
        with pytest.raises(DiskFull):
            store.save(summary_of(kept))
        assert store.paths.reserve.stat().st_size == RESERVE_BYTES
        add_conversation(store, "new", title="New")
        assert store.paths.reserve.stat().st_size == FOR_DELETING_BYTES


def test_a_start_that_replays_the_journal_uses_the_reserve(disk: SmallDisk, tmp_path: Path) -> None:
    data = disk.root / "data"
    with opened(tmp_path / "source") as store:
        killed(store, data)
        acknowledged = fill(store, 20)
        shutil.copytree(store.paths.journal, data / "journal", dirs_exist_ok=True)
    disk.fill()
    with pytest.raises(DiskFull):
        open_store(made(data))
    disk.free()
    (data / "reserve").write_bytes(bytes(8 << 20))
    disk.fill()
    with opened(data) as store:
        assert store.is_disk_full
        assert titles(store) == acknowledged


def test_a_backup_or_a_deletion_without_disk_space_finishes_later(disk: SmallDisk) -> None:
    with opened(disk.root / "data") as store:
        fill(store, 1, 600_000)
        first = make_backup(store)
        gone = add_conversation(store, noise(600_000), title="Gone")
        disk.fill(leave_bytes=1 << 20)
        with pytest.raises(DiskFull):
            make_backup(store)
        assert list(store.paths.backups.iterdir()) == [first.path]
        forget(store, [gone.conversation.id])
        with pytest.raises(DiskFull):
            erase_bytes(store)
        assert titles(store) == {"T0"}
        disk.free()
        later = make_backup(store)
        assert backups_of(store.paths.backups, store.uid) == [later, first]
        assert erase_bytes(store) is True
        assert titles(store) == {"T0"}


def test_a_limit_on_the_size_of_files_is_a_full_disk(data_dir: Path) -> None:
    with opened(data_dir) as store:
        fill(store, 1, 100_000)
        before = tables(store)
        with no_file_beyond(50_000), pytest.raises(DiskFull):
            add_conversation(store, noise(100_000), title="Too much")
        # The journal compresses, so the database's log is the first to hit this limit.
        with no_file_beyond(500_000), pytest.raises(DiskFull):
            store.save(DraftPut(None, "all the same " * 200_000, AT))
        assert tables(store) == before
        store.save(DraftPut(None, "short", AT))
    with opened(data_dir) as again:
        assert Conversations(again).draft(None).text == "short"
        assert titles(again) == {"T0"}
        assert again.notices == ()


def test_a_checkpoint_that_kills_the_instance_is_survived(data_dir: Path) -> None:
    with opened(data_dir) as store:
        acknowledged = fill(store, 20)
        with no_file_beyond(500_000):
            assert store.checkpoint().result() is False
            assert titles(store) == acknowledged
        store.save(SettingPut("theme", '"dark"'))
        assert store.checkpoint().result() is True
    with opened(data_dir) as again:
        assert titles(again) == acknowledged
