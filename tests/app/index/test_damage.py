"""A damaged text index is detected when it is opened."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.domain.ids import PassageId
from app.domain.passages import PassageText
from app.index.index_folder import InvalidIndex, check_files, read_manifest
from app.index.text_index import RebuildReason, TantivyTextIndex
from tests.fakes.passages import found_passages, hits, turn

KILLS = 3
HERE = Path(__file__).resolve()


def passage(number: int) -> PassageText:
    return turn(number, f"apple number{number}", "the pear " * (number % 5))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of two commits with deletions, so that it has all kinds of files."""
    folder = tmp_path_factory.mktemp("sound") / "text"
    index = TantivyTextIndex(folder, "one")
    index.start_over()
    index.put(passage(number) for number in range(1, 31))
    index.commit(1)
    index.put(passage(number) for number in range(25, 41))
    index.remove([PassageId(7)])
    index.commit(2)
    index.close()
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    """A copy of the sound index."""
    return shutil.copytree(sound, tmp_path / "text")


def zero_a_part(path: Path) -> None:
    whole = path.read_bytes()
    quarter = len(whole) // 4
    path.write_bytes(whole[:quarter] + bytes(quarter) + whole[2 * quarter :])


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: os.truncate(path, 0),
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "zeroed in part": zero_a_part,
    "deleted": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_is_detected(sound: Path, tmp_path: Path, damage: Callable[[Path], object]) -> None:
    names = [path.relative_to(sound) for path in sorted(sound.rglob("*")) if path.is_file()]
    assert len(names) > 10
    for number, name in enumerate(names):
        folder = shutil.copytree(sound, tmp_path / str(number))
        damage(folder / name)
        index = TantivyTextIndex(folder, "one")
        if index.needs_rebuild is None:
            assert set(found_passages(index, "apple", 1000)) == set(range(1, 41)) - {7}
            assert found_passages(index, "number33", 1) == [33]
            assert len(hits(index, "pear", 1000)) == 31
        else:
            assert index.needs_rebuild in (RebuildReason.DAMAGED, RebuildReason.MISSING)
            index.start_over()
        index.put([passage(500)])
        index.commit(3)
        assert found_passages(index, "number500", 1) == [500]
        index.close()


def test_a_damaged_file_is_named(folder: Path) -> None:
    seal = read_manifest(folder)
    check_files(folder / seal.files, seal.opstamp)
    (terms, *_) = (folder / seal.files).glob("*.term")
    zero_a_part(terms)
    with pytest.raises(InvalidIndex, match=terms.name):
        check_files(folder / seal.files, seal.opstamp)


@pytest.mark.parametrize(
    "seal",
    ["", "{", "[]", "3", "null", '{"format":1}', '{"format":"1","generation":"one","files":3}',
     '{"format":"x","generation":"one","files":"../..","position":true}', "\ufffe", "[" * 100_000],
    ids=range(10),
)  # fmt: skip
def test_an_invalid_manifest_is_damage(folder: Path, seal: str) -> None:
    (folder / "seal.json").write_text(seal)
    index = TantivyTextIndex(folder, "one")
    assert index.needs_rebuild in (RebuildReason.DAMAGED, RebuildReason.OLD_FORMAT)


@pytest.mark.parametrize("name", ["text/seal.json", "text"])
def test_a_file_or_folder_in_place_of_the_other_is_damage(folder: Path, name: str) -> None:
    path = folder.parent / name
    if path.is_dir():
        shutil.rmtree(path)
        path.write_text("a file, not a folder")
    else:
        path.unlink()
        path.mkdir()
    index = TantivyTextIndex(folder, "one")
    assert index.needs_rebuild is RebuildReason.DAMAGED
    index.start_over()
    assert index.needs_rebuild is None


def test_files_older_than_the_manifest_are_damage(folder: Path) -> None:
    (meta,) = folder.rglob("meta.json")
    older = meta.read_bytes()
    index = TantivyTextIndex(folder, "one")
    index.put([passage(500)])
    index.commit(3)
    index.close()
    meta.write_bytes(older)
    assert TantivyTextIndex(folder, "one").needs_rebuild is RebuildReason.DAMAGED


def test_after_a_kill_during_commits_all_that_was_committed_is_there(tmp_path: Path) -> None:
    """A child writes and prints what it committed; it is killed repeatedly."""
    folder = tmp_path / "text"
    committed = 0
    for round_number in range(KILLS):
        child = subprocess.Popen(
            [sys.executable, str(HERE), str(folder)], stdout=subprocess.PIPE, text=True,
            cwd=HERE.parents[3], env={**os.environ, "PYTHONPATH": str(HERE.parents[3])},
        )  # fmt: skip
        for _ in range(2 + round_number):
            committed = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split()
        child.stdout.close()
        child.wait()
        committed = int(rest[-1]) if rest else committed
        index = TantivyTextIndex(folder, "one")
        assert index.needs_rebuild is None
        assert index.position >= committed
        held = set(found_passages(index, "apple", 10_000))
        # A commit whose position was not saved any more may be ahead by one.
        assert held == set(range(1, len(held) + 1))
        assert len(held) in (index.position * 50, index.position * 50 + 50)
        assert len(held) == index.passage_count
    assert committed > KILLS


def _write_until_killed(folder: Path) -> None:
    index = TantivyTextIndex(folder, "one")
    if index.needs_rebuild is not None:
        index.start_over()
    position = index.position
    while True:
        first = position * 50 + 1
        index.put(passage(number) for number in range(first, first + 50))
        position += 1
        index.commit(position)
        print(position, flush=True)  # noqa: T201 - the parent reads it


if __name__ == "__main__":
    _write_until_killed(Path(sys.argv[1]))
