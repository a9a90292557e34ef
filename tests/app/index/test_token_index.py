"""The token index: similarities, its files after damage and removal, compaction."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from app.domain.ids import PartId, PassageId, part_id
from app.index import token_index
from app.index.token_index import TokenIndex, TokenizedPassage

Float = npt.NDArray[np.float32]
ROW_BYTES = 32


def tokens(seed: int, count: int) -> Float:
    drawn = np.random.default_rng(seed).standard_normal((count, 32)).astype(np.float32)
    unit: Float = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


def passage(number: int, *counts: int, content_hash: str = "h") -> TokenizedPassage:
    """Return a passage with parts of so many tokens, different from those of others."""
    parts: Mapping[PartId, Float] = {
        part_id(number, place): tokens(number * 100 + place, count)
        for place, count in enumerate(counts)
    }
    return TokenizedPassage(PassageId(number), content_hash, parts)


def is_in_files(folder: Path, one: TokenizedPassage) -> bool:
    rows = np.rint(np.concatenate(list(one.parts.values())) * 127).astype(np.int8)
    content = b"".join(path.read_bytes() for path in folder.iterdir())
    return any(bytes(row.data) in content for row in rows)


def similarities(
    index: TokenIndex, question: Float, parts: Sequence[int]
) -> npt.NDArray[np.float64]:
    """Return the scores with equal weights."""
    return index.window_scores(question, np.ones(len(question)), parts)


def held(index: TokenIndex) -> list[int]:
    found: list[int] = index.passages.tolist()
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


@pytest.fixture
def index(folder: Path) -> Iterator[TokenIndex]:
    made = TokenIndex(folder, "library")
    yield made
    made.close()


def reopened(index: TokenIndex, library: str = "library") -> TokenIndex:
    index.close()
    return TokenIndex(index._folder, library)


# -- similarities
def test_a_part_gets_the_score_of_its_best_window_of_tokens(index: TokenIndex) -> None:
    many = [passage(number, number * 7, 3) for number in range(1, 60)]
    index.put(many[:30])
    index.put(many[30:])
    parts = {part: own for each in many for part, own in each.parts.items()}
    wanted = list(parts)[::-3]
    question, weights = tokens(0, 5), np.array([1.0, 2, 0, 1, 4])

    def best(own: Float) -> float:
        windows = [own[at : at + 64] for at in range(0, max(1, len(own) - 32), 32)]
        return max(float((each @ question.T).max(axis=0) @ weights) / 8 for each in windows)

    found = index.window_scores(question, weights, wanted)
    np.testing.assert_allclose(found, [best(parts[part]) for part in wanted], atol=0.02)


def test_parts_without_tokens_have_no_scores(index: TokenIndex) -> None:
    index.put([passage(1, 4, 0), TokenizedPassage(PassageId(2), "h", {})])
    parts = [part_id(7, 0), part_id(1, 0), part_id(1, 1), part_id(1, 2), part_id(2, 0)]
    found = similarities(index, tokens(0, 3), parts)
    assert np.isnan(found).tolist() == [True, False, True, True, True]
    assert held(index) == [1, 2]
    assert np.isnan(similarities(index, tokens(0, 0), parts)).all()
    assert similarities(index, tokens(0, 3), []).shape == (0,)


def test_an_empty_index_answers(index: TokenIndex) -> None:
    assert np.isnan(similarities(index, tokens(0, 2), [part_id(1, 0)])).all()


# -- files
def test_an_index_is_there_again_after_it_was_closed(index: TokenIndex) -> None:
    index.put([passage(2, 5, 6), passage(1, 3)])
    index.put([passage(1, 4, content_hash="other")])
    index.position = 7
    index.mark()
    question, parts = tokens(0, 3), [part_id(2, 1), part_id(1, 0)]
    before = similarities(index, question, parts)
    again = reopened(index)
    np.testing.assert_array_equal(similarities(again, question, parts), before)
    assert (again.position, again.part_count) == (7, 3)
    assert again.stamps(np.array([1, 2, 3])) == index.stamps(np.array([1, 2]))
    again.close()


@pytest.mark.parametrize("lost_bytes", [1, ROW_BYTES - 1, ROW_BYTES])
def test_a_torn_end_of_the_directory_is_dropped(index: TokenIndex, lost_bytes: int) -> None:
    index.put([passage(1, 3), passage(2, 4)])
    index.put([passage(3, 5)])
    index.close()
    path = index._folder / "directory"
    path.write_bytes(path.read_bytes()[:-lost_bytes])
    again = TokenIndex(index._folder, "library")
    assert held(again) == [1, 2]
    assert not is_in_files(index._folder, passage(3, 5))  # no row says whose they are
    again.put([passage(4, 2)])
    final = reopened(again)
    assert held(final) == [1, 2, 4]
    final.close()


@pytest.mark.parametrize("place", range(ROW_BYTES))
def test_a_changed_byte_of_a_row_ends_the_directory(index: TokenIndex, place: int) -> None:
    index.put([passage(1, 3), passage(2, 4), passage(3, 5)])
    index.close()
    path = index._folder / "directory"
    content = bytearray(path.read_bytes())
    content[2 * ROW_BYTES + place] ^= 0x10
    path.write_bytes(bytes(content))
    again = TokenIndex(index._folder, "library")
    assert held(again) == [1]
    again.close()


def test_tokens_that_were_cut_off_are_missing(index: TokenIndex) -> None:
    index.put([passage(1, 3), passage(2, 4)])
    index.close()
    path = index._folder / "tokens-000001"
    path.write_bytes(path.read_bytes()[:-1])
    again = TokenIndex(index._folder, "library")
    assert held(again) == [1]
    again.close()


@pytest.mark.parametrize("name", ["directory", "tokens-000001", None])
def test_an_index_without_its_files_starts_empty(index: TokenIndex, name: str | None) -> None:
    index.put([passage(1, 3)])
    index.close()
    for path in list(index._folder.iterdir()):
        if name in (None, path.name):
            path.unlink()
    again = TokenIndex(index._folder, "library")
    assert held(again) == []
    again.put([passage(2, 3)])
    assert held(again) == [2]
    again.close()


def test_the_index_of_another_library_is_not_used(index: TokenIndex) -> None:
    index.put([passage(1, 3)])
    other = reopened(index, "restored")
    assert (held(other), other.position) == ([], 0)
    assert not is_in_files(index._folder, passage(1, 3))
    other.close()


# -- removal
def test_removed_passages_leave_no_bytes(index: TokenIndex, folder: Path) -> None:
    gone, kept, last = passage(1, 3, 2), passage(2, 4), passage(3, 1)
    index.put([gone, kept])
    index.put([last])
    assert is_in_files(folder, gone)
    index.remove([1, 3, 77])
    assert not is_in_files(folder, gone)
    assert not is_in_files(folder, last)
    assert is_in_files(folder, kept)
    assert held(index) == [2]
    again = reopened(index)
    assert held(again) == [2]
    again.close()


def test_replaced_passages_leave_no_bytes(index: TokenIndex, folder: Path) -> None:
    old, new = passage(1, 3, 2), TokenizedPassage(PassageId(1), "n", {part_id(1, 0): tokens(9, 4)})
    index.put([old])
    index.put([new])
    assert not is_in_files(folder, old)
    assert is_in_files(folder, new)
    assert index.part_count == 1  # the second part is gone


def test_a_cut_off_removal_is_repeated(index: TokenIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash after overwriting: the rows still name the passage, so that it is removed again."""
    index.put([passage(1, 3), passage(2, 3)])

    def crash(*_: object) -> None:
        raise OSError("the machine stops")

    with monkeypatch.context() as patched:
        patched.setattr(index, "_append", crash)
        with pytest.raises(OSError, match="the machine stops"):
            index.remove([1])
    again = reopened(index)
    assert held(again) == [1, 2]
    again.remove([1])
    assert held(again) == [2]
    again.close()


def test_an_index_that_is_mostly_dead_is_compacted(
    index: TokenIndex, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_index, "_LEAST_DEAD_TOKENS", 10)
    index.put([passage(number, 4, number) for number in range(1, 20)])
    index.position = 5
    question, parts = tokens(0, 3), [part_id(18, 1), part_id(17, 0)]
    before = similarities(index, question, parts)
    size = sum(path.stat().st_size for path in folder.iterdir())
    index.remove([*range(1, 16), 19])
    assert sum(path.stat().st_size for path in folder.iterdir()) < size / 2
    assert {path.name for path in folder.iterdir()} == {"directory", "tokens-000002"}
    np.testing.assert_array_equal(similarities(index, question, parts), before)
    index.put([passage(30, 2)])
    again = reopened(index)
    assert (held(again), again.position) == ([16, 17, 18, 30], 5)
    np.testing.assert_array_equal(similarities(again, question, parts), before)
    again.close()


def test_a_failed_compaction_loses_nothing(
    index: TokenIndex, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(token_index, "_LEAST_DEAD_TOKENS", 1)
    index.put([passage(number, 4) for number in range(1, 9)])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(TokenIndex, "_write_compact", full)
        index.remove(range(1, 7))
    assert "not compacted" in caplog.text
    assert held(index) == [7, 8]
    index.remove([7])  # now there is room
    assert (index._folder / "tokens-000002").exists()
    assert held(index) == [8]


def test_a_search_stays_in_its_files(index: TokenIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_index, "_LEAST_DEAD_TOKENS", 1)
    index.put([passage(number, 4) for number in range(1, 9)])
    before, question = index._snapshot, tokens(0, 2)
    wanted = similarities(index, question, [part_id(8, 0)])
    index.remove(range(1, 8))
    index._snapshot = before
    np.testing.assert_array_equal(similarities(index, question, [part_id(8, 0)]), wanted)
