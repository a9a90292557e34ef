"""Killed at any moment, the program opens again by itself, with everything it had acknowledged."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.check import check
from app.domain.errors import DiskFull
from app.storage.safety.recovery import open_store
from app.system.paths import DataPaths
from tests.fakes.crash_rounds import Rounds
from tests.fakes.damage import KINDS, Damage
from tests.fakes.libraries import Library, left_by_a_kill
from tests.fakes.small_disk import SmallDisk, small_disk
from tests.fakes.stored import opened

ROUNDS = 2


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return left_by_a_kill(tmp_path_factory.mktemp("original"))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 32) as mounted:
        yield mounted


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_acknowledged_is_lost_by_kills(tmp_path: Path, seed: int) -> None:
    rounds = Rounds(tmp_path, seed)
    for _ in range(ROUNDS):
        rounds.one()
    assert rounds.figures.acknowledged > 2 * ROUNDS, "there was hardly anything to lose"
    assert rounds.figures.restored == 0, "a kill damages nothing"


@pytest.mark.parametrize("damage", KINDS.values(), ids=KINDS)
def test_a_damaged_directory_opens_whole(original: Path, tmp_path: Path, damage: Damage) -> None:
    library = Library(DataPaths(tmp_path / "data"))
    shutil.copytree(original, library.paths.root)
    damage(library.paths, random.Random(3))
    library.opens()
    with opened(library.paths.root) as store:
        assert check(store).problems == ()


def test_a_damaged_file_on_a_full_disk_waits_for_room(original: Path, disk: SmallDisk) -> None:
    library = Library(DataPaths(disk.root / "data"))
    shutil.copytree(original, library.paths.root)
    library.tear_metadata()
    disk.fill()
    for _ in range(2):
        with pytest.raises(DiskFull):
            open_store(library.paths)
    disk.free()
    library.opens()
