"""The journal keeps what it acknowledged, whatever happens to its file."""

import errno
import os
import random
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import DiskFull, ReadOnlyStorage, StorageError
from app.domain.ids import new_uid
from app.storage import frames
from app.storage import journal as journal_module
from app.storage.journal import (
    Journal,
    JournalReader,
    first_position,
    journal_owner,
    segments,
)

UID = new_uid()
OTHER = new_uid()
ROOT = Path(__file__).resolve().parents[2]


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


def flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x40
    path.write_bytes(content)


def test_what_is_appended_is_read_again_in_order(journal: Journal, folder: Path) -> None:
    long = "wörds and 文字 " * 100
    assert journal.append(["one", "two"]) == [1, 2]
    assert journal.append([long]) == [3]
    assert read(folder) == ["one", "two", long]
    assert read(folder, after=1) == ["two", long]
    assert [r.position for r in JournalReader(folder, 0, UID)] == [1, 2, 3]


@pytest.mark.parametrize("times", [1, 100_000])
def test_a_text_in_pieces_is_kept_like_one_that_is_whole(
    times: int, journal: Journal, folder: Path
) -> None:
    pieces = ("one, ", "zwölf, ", "文字, ", "a word " * times)
    journal.append([pieces, "".join(pieces)])
    assert read(folder) == ["".join(pieces)] * 2


def test_nothing_is_appended_by_an_empty_list(journal: Journal, folder: Path) -> None:
    assert journal.append([]) == []
    assert journal.append(["one"]) == [1]
    assert read(folder) == ["one"]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_any_text_survives_its_frame(texts: list[str]) -> None:
    content = frames.header(UID) + b"".join(map(frames.frame, range(1, len(texts) + 1), texts))
    found = list(frames.frames(content))
    assert [record and record.payload for record in found] == texts


@given(st.binary(max_size=3000))
def test_any_bytes_are_read_without_complaint(content: bytes) -> None:
    list(frames.frames(content))
    list(frames.frames(frames.header(UID) + content))
    list(frames.frames(frames.frame(1, "a") + content + frames.frame(2, "b")))
    frames.owner(content)


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


def test_a_tail_of_zeros_costs_nothing_before_it(journal: Journal, folder: Path) -> None:
    journal.append(["one"])
    with only_segment(folder).open("ab") as file:
        file.write(bytes(9000))
    reader = JournalReader(folder, 0, UID)
    assert [record.payload for record in reader] == ["one"]
    assert reader.damaged_frames == 1


def test_a_damaged_record_is_a_gap_that_is_told(journal: Journal, folder: Path) -> None:
    journal.append([f"record number {number}" for number in range(1, 6)])
    path = only_segment(folder)
    flip(path, path.read_bytes().index(b"number 3"))
    reader = JournalReader(folder, 0, UID)
    assert [record.position for record in reader] == [1, 2, 4, 5]
    assert reader.gaps == [(3, 3)]
    assert reader.damaged_frames == 1


def test_a_record_that_does_not_unpack_is_damage(folder: Path) -> None:
    body = b"zthis is no zlib"
    head = frames._FRAME.pack(frames._MAGIC, len(body), zlib.crc32(body, 1), 1)
    assert list(frames.frames(head + body + frames.frame(2, "two"))) == [
        None,
        frames.Record(2, "two"),
    ]


def test_a_new_process_leaves_a_torn_end_and_goes_on(journal: Journal, folder: Path) -> None:
    journal.append(["one", "two"])
    with only_segment(folder).open("ab") as file:
        file.write(frames.frame(3, "three")[:-2])
    after_kill = Journal(folder, UID, 2)
    after_kill.append(["another three"])
    after_kill.close_segment()
    assert read(folder) == ["one", "two", "another three"]
    assert len(segments(folder)) == 2


def test_a_segment_torn_inside_its_header_is_begun_again(folder: Path) -> None:
    path = folder / f"{1:020d}.journal"
    path.write_bytes(frames.header(UID)[:17])
    made = Journal(folder, UID, 0)
    made.append(["one"])
    made.close_segment()
    assert read(folder) == ["one"]
    assert journal_owner(folder) == UID


def test_a_segment_without_a_whole_record_is_continued(folder: Path) -> None:
    path = folder / f"{1:020d}.journal"
    path.write_bytes(frames.header(UID) + frames.frame(1, "never acknowledged")[:-3])
    made = Journal(folder, UID, 0)
    made.append(["one"])
    made.close_segment()
    assert read(folder) == ["one"]


def test_another_journal_is_neither_read_nor_written_to(journal: Journal, folder: Path) -> None:
    journal.append(["theirs"])
    before = only_segment(folder).read_bytes()
    assert read(folder, uid=OTHER) == []
    stranger = Journal(folder, OTHER, 0)
    with pytest.raises(StorageError):
        stranger.append(["ours"])
    assert only_segment(folder).read_bytes() == before


def test_a_damaged_header_costs_no_record(journal: Journal, folder: Path) -> None:
    journal.append(["one", "two"])
    for offset in range(frames.HEADER_BYTES):
        whole = only_segment(folder).read_bytes()
        flip(only_segment(folder), offset)
        assert read(folder) == ["one", "two"], offset
        assert journal_owner(folder) is None
        only_segment(folder).write_bytes(whole)


def test_the_owner_is_that_of_the_newest_readable_segment(journal: Journal, folder: Path) -> None:
    assert journal_owner(folder) is None
    journal.append(["one"])
    journal.begin_segment()
    flip(segments(folder)[1][1], 20)
    assert journal_owner(folder) == UID


def test_of_two_records_with_one_position_the_later_written_counts(folder: Path) -> None:
    (folder / f"{1:020d}.journal").write_bytes(
        frames.header(UID)
        + b"".join(frames.frame(n, f"old {n}") for n in (1, 2, 3))
        + frames.frame(2, "new 2")
    )
    (folder / f"{3:020d}.journal").write_bytes(
        frames.header(UID) + frames.frame(3, "new 3") + frames.frame(4, "new 4")
    )
    assert read(folder) == ["old 1", "new 2", "new 3", "new 4"]


def test_an_empty_segment_after_it_takes_nothing_away(journal: Journal, folder: Path) -> None:
    journal.append(["one", "two"])
    (folder / f"{2:020d}.journal").write_bytes(frames.header(UID))
    assert read(folder) == ["one", "two"]


def test_what_is_rewound_was_never_there(journal: Journal, folder: Path) -> None:
    journal.append(["one"])
    mark = journal.mark()
    journal.append(["two", "three"])
    journal.rewind(mark)
    assert journal.last_position == 1
    assert journal.append(["another two"]) == [2]
    assert read(folder) == ["one", "another two"]


def test_a_cut_that_the_disk_refuses_is_made_before_the_next_record(
    journal: Journal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.append(["one"])
    mark = journal.mark()
    journal.append(["two"])

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "ftruncate", refuse)
        journal.rewind(mark)
        with pytest.raises(StorageError):
            journal.append(["three"])
    assert journal.append(["another two"]) == [2]
    assert read(folder) == ["one", "another two"]


def test_a_failed_fsync_leaves_the_file_as_before(
    journal: Journal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.append(["one"])
    before = only_segment(folder).read_bytes()
    calls: list[int] = []

    def fail_once(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 1:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(journal_module, "fsync_file", fail_once)
    with pytest.raises(StorageError):
        journal.append(["two"])
    assert only_segment(folder).read_bytes() == before
    assert journal.append(["two"]) == [2]


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull), (errno.EROFS, ReadOnlyStorage)],
)
def test_the_disk_s_refusal_is_named(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception]
) -> None:
    journal.append(["one"])

    def refuse(*_: object) -> int:
        raise OSError(number, "no")

    monkeypatch.setattr(os, "write", refuse)
    with pytest.raises(kind):
        journal.append(["two"])


FILLER = """
import resource, signal, sys
from pathlib import Path
from app.domain.errors import DiskFull
from app.storage.journal import Journal
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


def test_a_full_disk_leaves_the_file_as_before_and_goes_on_later(folder: Path) -> None:
    for limit in (1000, 4096, 9001):
        where = folder / str(limit)
        where.mkdir()
        ended = subprocess.run(
            [sys.executable, "-c", FILLER, str(where), str(limit), UID],
            cwd=ROOT, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        kept, after = map(int, ended.stdout.split())
        assert after == kept + 1
        assert len(read(where)) == after


def test_a_record_too_large_for_a_frame_is_refused_before_it_is_written(
    journal: Journal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "BODY_LIMIT_BYTES", 100)
    journal.append(["short"])
    noise = random.Random(1).randbytes(400).hex()
    with pytest.raises(StorageError, match="too large"):
        journal.append(["also short", noise])
    assert read(folder) == ["short"]


def test_a_lone_surrogate_is_refused_before_it_is_written(journal: Journal, folder: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        journal.append(["\ud800"])
    journal.append(["one"])
    assert read(folder) == ["one"]


def test_long_journals_go_on_in_new_segments(
    journal: Journal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "SEGMENT_LIMIT_BYTES", 400)
    texts = [f"record {number}" for number in range(1, 60)]
    for text in texts:
        journal.append([text])
    assert len(segments(folder)) > 3
    assert read(folder) == texts
    assert read(folder, after=40) == texts[40:]


def test_only_segments_wholly_behind_a_position_are_cut(
    journal: Journal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "SEGMENT_LIMIT_BYTES", 200)
    texts = [f"record {number}" for number in range(1, 41)]
    for text in texts:
        journal.append([text])
    for position in (0, 7, 23, 39, 40, 400):
        journal.cut_behind(position)
        assert read(folder, after=position) == texts[position:]
    assert len(segments(folder)) == 1
    assert journal.append(["more"]) == [41]


def test_a_journal_cut_too_far_is_a_gap_that_is_told(journal: Journal, folder: Path) -> None:
    journal.append(["one", "two"])
    journal.begin_segment()
    journal.append(["three"])
    journal.cut_behind(2)
    reader = JournalReader(folder, 0, UID)
    assert [record.payload for record in reader] == ["three"]
    assert reader.gaps == [(1, 2)]
    assert first_position(folder) == 3


def test_only_the_owner_may_read_a_segment(journal: Journal, folder: Path) -> None:
    journal.append(["one"])
    assert only_segment(folder).stat().st_mode & 0o777 == 0o600
