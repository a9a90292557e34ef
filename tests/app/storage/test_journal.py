"""The journal keeps acknowledged records whatever happens to its files."""

import errno
import os
import random
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import DiskFull, ReadOnlyStorage, StorageError
from app.domain.ids import new_uid
from app.storage.engine import frames
from app.storage.engine import journal as journal_module
from app.storage.engine.journal import (
    Journal,
    JournalReader,
    first_position,
    journal_owner,
    segments,
)

UID, OTHER = new_uid(), new_uid()
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def journal(folder: Path) -> Iterator[Journal]:
    made = Journal(folder, UID, 0)
    yield made
    made.close_segment()


def read(folder: Path, after: int = 0, uid: str | None = UID) -> list[str]:
    return [record.payload for record in JournalReader(folder, after, uid)]


def only_segment(folder: Path) -> Path:
    ((_, path),) = segments(folder)
    return path


def write_segment(folder: Path, first: int, *parts: bytes) -> Path:
    path = folder / f"{first:020d}.journal"
    path.write_bytes(b"".join(parts))
    return path


def flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x40
    path.write_bytes(content)


# -- appending and reading
def test_appended_records_are_read_in_order(journal: Journal, folder: Path) -> None:
    long = "wörds and 文字 " * 100
    assert not journal.append([])
    assert list(journal.append(["one", "two"])) == [1, 2]
    assert list(journal.append([long])) == [3]
    assert read(folder) == ["one", "two", long]
    assert read(folder, after=1) == ["two", long]
    assert [r.position for r in JournalReader(folder, 0, UID)] == [1, 2, 3]
    assert only_segment(folder).stat().st_mode & 0o777 == 0o600, "only its owner may read it"


@pytest.mark.parametrize("times", [1, 100_000])
def test_a_text_in_pieces_is_kept_as_whole(times: int, journal: Journal, folder: Path) -> None:
    pieces = ("one, ", "zwölf, ", "文字, ", "a word " * times)
    journal.append([pieces, "".join(pieces)])
    assert read(folder) == ["".join(pieces)] * 2


def test_what_no_frame_can_hold_is_refused_before_it_is_written(
    journal: Journal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "BODY_LIMIT_BYTES", 100)
    journal.append(["short"])
    with pytest.raises(StorageError, match="too large"):
        journal.append(["also short", random.Random(1).randbytes(400).hex()])
    with pytest.raises(UnicodeEncodeError):
        journal.append(["\ud800"])
    assert read(folder) == ["short"]


def test_segments_end_at_a_size_and_are_cut_when_wholly_behind_a_position(
    journal: Journal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "SEGMENT_LIMIT_BYTES", 200)
    texts = [f"record {number}" for number in range(1, 41)]
    for text in texts:
        journal.append([text])
    count = len(segments(folder))
    assert count > 3
    assert read(folder) == texts
    assert read(folder, after=37) == texts[37:]
    for position in (0, 7, 23, 39, 40, 400):
        journal.cut_behind(position)
        assert read(folder, after=position) == texts[position:]
        assert len(segments(folder)) <= count
        count = len(segments(folder))
    assert count == 1
    assert list(journal.append(["more"])) == [41]


def test_a_journal_cut_too_far_is_reported_as_a_gap(journal: Journal, folder: Path) -> None:
    assert first_position(folder) is None
    journal.append(["one", "two"])
    journal.begin_segment()
    journal.append(["three"])
    journal.cut_behind(2)
    reader = JournalReader(folder, 0, UID)
    assert [record.payload for record in reader] == ["three"]
    assert reader.gaps == [(1, 2)]
    assert first_position(folder) == 3


# -- damage
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_any_text_survives_its_frame(texts: list[str]) -> None:
    content = frames.header(UID) + b"".join(map(frames.frame, range(1, len(texts) + 1), texts))
    assert [record and record.payload for record in frames.frames(content)] == texts


@given(st.binary(max_size=3000))
def test_any_bytes_can_be_read(content: bytes) -> None:
    for whole in (content, frames.header(UID) + content, frames.frame(1, "a") + content):
        read = frames.frames(whole + frames.frame(2, "b"))
        assert all(record is None or record.position >= 0 for record in read)
    assert frames.owner(content) is None


@given(st.integers(0, 10_000), st.integers(0, 7))
def test_a_flipped_bit_costs_at_most_one_record(place: int, bit: int) -> None:
    texts = [f"record {number} " * (number % 7 * 20 + 1) for number in range(40)]
    content = bytearray(frames.header(UID))
    for number, text in enumerate(texts, start=1):
        content += frames.frame(number, text)
    content[place % len(content)] ^= 1 << bit
    found = [record.payload for record in frames.frames(bytes(content)) if record is not None]
    assert len(found) >= len(texts) - 1
    assert [text for text in texts if text in found] == found


def test_a_torn_end_costs_nothing_before_it(journal: Journal, folder: Path) -> None:
    journal.append(["one", "two"])
    journal.append(["three, which was never whole"])
    path = only_segment(folder)
    whole = path.read_bytes()
    for length in range(len(whole) - 40, len(whole)):
        path.write_bytes(whole[:length])
        reader = JournalReader(folder, 0, UID)
        assert [record.payload for record in reader] == ["one", "two"]
        assert reader.gaps == []
    path.write_bytes(whole + bytes(9000))
    reader = JournalReader(folder, 0, UID)
    assert len(list(reader)) == 3
    assert reader.gaps == []


def test_a_damaged_record_is_reported_as_a_gap(journal: Journal, folder: Path) -> None:
    journal.append([f"record number {number}" for number in range(1, 6)])
    path = only_segment(folder)
    flip(path, path.read_bytes().index(b"number 3"))
    reader = JournalReader(folder, 0, UID)
    assert [record.position for record in reader] == [1, 2, 4, 5]
    assert reader.gaps == [(3, 3)]


def test_a_record_that_does_not_unpack_is_damage() -> None:
    body = b"zthis is no zlib"
    head = frames._FRAME.pack(frames._MAGIC, len(body), zlib.crc32(body, 1), 1)
    second = frames.Record(2, "two")
    assert list(frames.frames(head + body + frames.frame(2, "two"))) == [None, second]


def test_a_damaged_header_costs_no_record(journal: Journal, folder: Path) -> None:
    assert journal_owner(folder) is None
    journal.append(["one", "two"])
    for offset in range(frames.HEADER_BYTES):
        flip(only_segment(folder), offset)
        assert read(folder) == ["one", "two"], offset
        assert journal_owner(folder) is None
        flip(only_segment(folder), offset)
    journal.begin_segment()
    flip(segments(folder)[1][1], 20)
    assert journal_owner(folder) == UID, "that of the newest readable segment"


def test_a_new_process_keeps_a_torn_end_and_continues(journal: Journal, folder: Path) -> None:
    journal.append(["one", "two"])
    with only_segment(folder).open("ab") as file:
        file.write(frames.frame(3, "three")[:-2])
    after_kill = Journal(folder, UID, 2)
    after_kill.append(["another three"])
    after_kill.close_segment()
    assert read(folder) == ["one", "two", "another three"]
    assert len(segments(folder)) == 2


@pytest.mark.parametrize(
    "content",
    [frames.header(UID)[:17], frames.header(UID) + frames.frame(1, "never acknowledged")[:-3]],
    ids=["torn header", "no whole record"],
)
def test_a_segment_without_a_record_is_continued(folder: Path, content: bytes) -> None:
    write_segment(folder, 1, content)
    made = Journal(folder, UID, 0)
    made.append(["one"])
    made.close_segment()
    assert read(folder) == ["one"]
    assert journal_owner(folder) == UID


def test_another_journal_is_neither_read_nor_written_to(journal: Journal, folder: Path) -> None:
    journal.append(["theirs"])
    before = only_segment(folder).read_bytes()
    assert read(folder, uid=OTHER) == []
    with pytest.raises(StorageError):
        Journal(folder, OTHER, 0).append(["ours"])
    assert only_segment(folder).read_bytes() == before


def test_of_two_records_with_one_position_the_later_written_counts(folder: Path) -> None:
    old = [frames.frame(number, f"old {number}") for number in (1, 2, 3)]
    write_segment(folder, 1, frames.header(UID), *old, frames.frame(2, "new 2"))
    write_segment(folder, 3, frames.header(UID), frames.frame(3, "new 3"), frames.frame(4, "new 4"))
    assert read(folder) == ["old 1", "new 2", "new 3", "new 4"]
    write_segment(folder, 4, frames.header(UID))
    assert len(read(folder)) == 4, "an empty segment takes nothing away"


# -- errors of the disk
def test_nothing_is_saved_in_a_folder_that_was_moved_until_it_is_back(tmp_path: Path) -> None:
    folder, away = tmp_path / "a" / "journal", tmp_path / "away"
    folder.mkdir(parents=True)
    journal = Journal(folder, UID, 0)
    journal.append(["here"])
    for is_new_segment in (False, True):
        folder.parent.rename(away)
        if is_new_segment:
            journal.close_segment()
        with pytest.raises(StorageError, match="is no longer there"):
            journal.append(["lost"])
        folder.mkdir(parents=True)  # another one in its place
        for header in (b"", frames.header(OTHER)):
            if header:
                write_segment(folder, 1, header)
            with pytest.raises(StorageError, match="is no longer there"):
                journal.append(["lost"])
        assert read(folder) == []
        shutil.rmtree(folder.parent)
        away.rename(folder.parent)
    journal.append(["back"])
    assert read(folder) == ["here", "back"]
    journal.close_segment()


def test_nothing_counts_as_saved_while_the_name_of_its_segment_cannot_be_made_durable(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = Mock(side_effect=FileNotFoundError(errno.ENOENT, "No such file or directory"))
    monkeypatch.setattr(journal_module, "fsync_folder", refuse)
    for _ in range(2):
        with pytest.raises(StorageError):
            journal.append(["lost"])


@pytest.mark.parametrize("failing", [False, True], ids=["at once", "at the second try"])
def test_rewound_records_are_removed(
    journal: Journal, folder: Path, monkeypatch: pytest.MonkeyPatch, failing: bool
) -> None:
    journal.append(["one"])
    journal.append(["two", "three"])
    refuse = Mock(side_effect=OSError(errno.EIO, "Input/output error"))
    with monkeypatch.context() as broken:
        if failing:
            broken.setattr(os, "ftruncate", refuse)
        journal.rewind()
        if failing:
            with pytest.raises(StorageError):
                journal.append(["three"])
    assert journal.last_position == 1
    assert list(journal.append(["another two"])) == [2]
    assert read(folder) == ["one", "another two"]


def test_a_failed_fsync_leaves_the_file_as_before(
    journal: Journal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.append(["one"])
    before = only_segment(folder).read_bytes()
    failures = chain([OSError(errno.EIO, "Input/output error")], repeat(None))
    monkeypatch.setattr(journal_module, "fsync_file", Mock(side_effect=failures))
    with pytest.raises(StorageError):
        journal.append(["two"])
    assert only_segment(folder).read_bytes() == before
    assert list(journal.append(["two"])) == [2]


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull), (errno.EFBIG, DiskFull),
        (errno.EROFS, ReadOnlyStorage), (errno.EACCES, ReadOnlyStorage), (errno.EIO, StorageError),
    ],
)  # fmt: skip
def test_disk_errors_are_translated(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception]
) -> None:
    journal.append(["one"])
    monkeypatch.setattr(os, "write", Mock(side_effect=OSError(number, "no")))
    with pytest.raises(StorageError) as caught:
        journal.append(["two"])
    assert caught.type is kind


FILLER = """
import resource, signal, sys
from pathlib import Path
from app.domain.errors import DiskFull
from app.storage.engine.journal import Journal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder, limit = Path(sys.argv[1]), int(sys.argv[2])
journal = Journal(folder, sys.argv[3], 0)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
kept = 0
while True:
    size = sum(path.stat().st_size for path in folder.iterdir())
    try:
        kept = journal.append([f"record {kept + 1}: " + "x" * 300])[-1]
    except DiskFull:
        break
assert sum(path.stat().st_size for path in folder.iterdir()) == size
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.getrlimit(resource.RLIMIT_FSIZE)[1],) * 2)
print(kept, journal.append(["there is room again"])[0])
"""


@pytest.mark.parametrize("limit", [1000, 9001])
def test_a_full_disk_leaves_the_file_as_before_and_goes_on_later(folder: Path, limit: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FILLER, str(folder), str(limit), UID],
        cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    kept, after = map(int, ended.stdout.split())
    assert after == kept + 1
    assert len(read(folder)) == after
