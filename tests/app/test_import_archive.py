"""Archives, honest and hostile: what is read, what is refused, what is named, and at what cost."""

import io
import json
import os
import stat
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from app.domain.errors import Cancelled, ImportRefused, NotFound
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer import archive, streams, zip_reader
from app.transfer.importers import read_export
from tests.fakes.exports import Shape, chatgpt_message, chatgpt_row, write_chatgpt_export

_CONVERSATION = chatgpt_row(chatgpt_message("u", "user", "Hello"), title="Good")
_GOOD = json.dumps([_CONVERSATION])


def _zip(path: Path, members: dict[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as made:
        for name, content in members.items():
            made.writestr(zipfile.ZipInfo(name), content, method)
    return path


def _zip_bytes(members: dict[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return out.getvalue()


def _read(path: Path) -> tuple[list[str], list[Skipped]]:
    """Return the titles that came out, and what was skipped."""
    found = list(read_export(path))
    titles = [each.title for each in found if isinstance(each, ImportedConversation)]
    return titles, [each for each in found if isinstance(each, Skipped)]


def _patched(path: Path, old: bytes, new: bytes, *, last: bool = False) -> Path:
    content = path.read_bytes()
    place = content.rindex(old) if last else content.index(old)
    path.write_bytes(content[:place] + new + content[place + len(old) :])
    return path


def test_shards_are_read_in_order(tmp_path: Path) -> None:
    shards: dict[str, str | bytes] = {
        f"conversations-00{number}.json": json.dumps([_CONVERSATION | {"title": f"Shard {number}"}])
        for number in (2, 0, 1)
    }
    assert _read(_zip(tmp_path / "any.name", shards)) == (["Shard 0", "Shard 1", "Shard 2"], [])


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_stored_and_deflated_members_are_read(tmp_path: Path, method: int) -> None:
    assert _read(_zip(tmp_path / "a.zip", {"conversations.json": _GOOD}, method)) == (["Good"], [])


def test_a_zip_that_was_streamed_when_made_is_read(tmp_path: Path) -> None:
    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.parts: list[bytes] = []

        def write(self, part: object) -> int:
            self.parts.append(bytes(part))  # type: ignore[call-overload]
            return len(self.parts[-1])

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("conversations.json", _GOOD)
    path = tmp_path / "a.zip"
    path.write_bytes(b"".join(pipe.parts))
    assert _read(path) == (["Good"], [])


def test_zip64_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with (
        zipfile.ZipFile(path, "w") as made,
        made.open(zipfile.ZipInfo("conversations.json"), "w", force_zip64=True) as member,
    ):
        member.write(_GOOD.encode())
    content = path.read_bytes()
    end = content.rindex(b"PK\5\6")
    _, _, _, _, count, size, start, _ = struct.unpack("<4s4H2LH", content[end:])
    record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, start)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, end, 1)
    short = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    path.write_bytes(content[:end] + record + locator + short)
    assert _read(path) == (["Good"], [])


def test_a_nested_zip_is_read_one_level_deep(tmp_path: Path) -> None:
    deeper = _zip_bytes({"conversations.json": _GOOD})
    inner = _zip_bytes({"conversations.json": _GOOD, "deeper.zip": deeper})
    path = _zip(tmp_path / "a.zip", {"conversations-000.zip": inner})
    titles, skipped = _read(path)
    assert titles == ["Good"]
    assert skipped == [
        Skipped(
            "a.zip/conversations-000.zip/deeper.zip", "it is an archive in an archive in an archive"
        )
    ]


def test_a_folder_with_zips_and_files_is_read(tmp_path: Path) -> None:
    _zip(tmp_path / "conversations-000.zip", {"conversations.json": _GOOD})
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "export.json").write_text(_GOOD)
    assert _read(tmp_path) == (["Good", "Good"], [])


def test_noise_of_a_mac_is_passed_over_in_silence(tmp_path: Path) -> None:
    path = _zip(
        tmp_path / "a.zip",
        {
            "__MACOSX/conversations.json": _GOOD,
            "x/._conversations.json": _GOOD,
            "x/.DS_Store": b"\0\0\0\1Bud1",
            "x/conversations.json": _GOOD,
        },
    )
    assert _read(path) == (["Good"], [])


def test_pictures_and_pages_are_counted_not_listed(tmp_path: Path) -> None:
    members: dict[str, str | bytes] = {f"file-{number}.png": b"\x89PNG" for number in range(30)}
    path = _zip(tmp_path / "a.zip", members | {"chat.html": "<html>", "conversations.json": _GOOD})
    _, skipped = _read(path)
    assert skipped == [
        Skipped("a.zip", "31 files that are no conversation (pictures, sounds, pages) stayed out")
    ]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../../evil.json", "its name points outside the archive"),
        ("a/../../evil.json", "its name points outside the archive"),
        ("..\\..\\evil.json", "its name points outside the archive"),
        ("/etc/evil.json", "its name is an absolute path"),
        ("\\\\server\\share\\evil.json", "its name is an absolute path"),
        ("C:\\evil.json", "its name is an absolute path"),
        ("c:evil.json", "its name is an absolute path"),
        ("evil\x01.json", "its name holds control characters"),
    ],
)
def test_a_name_that_points_elsewhere_is_refused_and_the_rest_goes_on(
    tmp_path: Path, name: str, why: str
) -> None:
    titles, skipped = _read(_zip(tmp_path / "a.zip", {name: _GOOD, "conversations.json": _GOOD}))
    assert titles == ["Good"]
    assert [each.why for each in skipped] == [why]


def test_a_name_with_a_nul_is_refused(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.zip", {"evilXjson": _GOOD, "conversations.json": _GOOD})
    content = path.read_bytes().replace(b"evilXjson", b"evil\0json")
    path.write_bytes(content)
    titles, skipped = _read(path)
    assert titles == ["Good"]
    assert skipped[0].why == "its name holds control characters"


def test_a_name_that_turns_the_reading_direction_is_shown_as_what_it_is(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.zip", {"../\u202enosj.exe": _GOOD, "conversations.json": _GOOD})
    _, skipped = _read(path)
    assert skipped[0].where == "a.zip/../[U+202E]nosj.exe"


def test_a_link_in_a_zip_is_not_followed(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.zip", {"conversations.json": _GOOD, "link.json": "/etc/passwd"})
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\1\2")
    content[entry + 5] = 3  # made on Unix, where the upper half of the attributes is the mode
    content[entry + 40 : entry + 42] = struct.pack("<H", stat.S_IFLNK | 0o777)
    path.write_bytes(content)
    titles, skipped = _read(path)
    assert titles == ["Good"]
    assert skipped == [Skipped("a.zip/link.json", "it is a link, and links are not followed")]


def test_a_link_in_a_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_text(_GOOD)
    (tmp_path / "link.json").symlink_to("/etc/passwd")
    (tmp_path / "loop").symlink_to(tmp_path)
    titles, skipped = _read(tmp_path)
    assert titles == ["Good"]
    assert [each.why for each in skipped] == ["it is a link, and links are not followed"] * 2


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_text(_GOOD)
    os.mkfifo(tmp_path / "pipe.json")
    titles, skipped = _read(tmp_path)
    assert titles == ["Good"]
    assert skipped[0].why == "it is no ordinary file"


def test_an_encrypted_member_is_named(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.zip", {"conversations.json": _GOOD, "locked.json": _GOOD})
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\1\2")
    content[entry + 8] |= 1
    path.write_bytes(content)
    titles, skipped = _read(path)
    assert titles == ["Good"]
    assert "encrypted" in skipped[0].why


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_packing_that_no_export_uses_is_named(tmp_path: Path, method: int) -> None:
    path = _zip(tmp_path / "a.zip", {"conversations.json": _GOOD}, method)
    with pytest.raises(ImportRefused, match="packed with"):
        _read(path)


def test_a_bomb_is_refused_by_its_ratio_before_it_is_unpacked(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.zip", {"bomb.json": b"[" * (8 << 20), "conversations.json": _GOOD})
    titles, skipped = _read(path)
    assert titles == ["Good"]
    assert skipped[0] == Skipped(
        "a.zip/bomb.json", "it would unpack to more than 200 times its size, as no export does"
    )


def test_a_bomb_that_lies_about_its_size_stops_where_it_said_it_would(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.zip", {"bomb.json": _GOOD + " " * (8 << 20)})
    _patched(path, struct.pack("<L", len(_GOOD) + (8 << 20)), struct.pack("<L", 1000), last=True)
    with pytest.raises(ImportRefused, match="larger than the archive says"):
        _read(path)


def test_a_member_shorter_than_it_says_is_named_and_what_was_whole_is_kept(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.zip", {"conversations.json": _GOOD + " " * 2_000_000}, 0)
    length = struct.pack("<L", len(_GOOD) + 2_000_000)
    _patched(path, length + length, length + struct.pack("<L", len(_GOOD) + 2_000_900), last=True)
    titles, skipped = _read(path)
    assert titles == ["Good"]
    assert "shorter than the archive says" in skipped[0].why


def test_a_wrong_checksum_is_named(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.zip", {"conversations.json": _GOOD.replace("Good", "Goog")}, 0)
    _patched(path, b"Goog", b"Good")
    titles, skipped = _read(path)
    assert titles == []
    assert "checksum" in skipped[0].why


def test_overlapping_entries_are_refused(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.zip", {"a.json": _GOOD, "b.json": _GOOD})
    content = bytearray(path.read_bytes())
    second = content.rindex(b"PK\1\2")
    content[second + 42 : second + 46] = struct.pack("<L", 0)
    path.write_bytes(content)
    with pytest.raises(ImportRefused, match="overlap"):
        _read(path)


def test_a_member_with_another_name_inside_is_named(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.zip", {"conversations.json": _GOOD})
    _patched(path, b"conversations.json", b"conversationz.json")
    with pytest.raises(ImportRefused, match="another name inside"):
        _read(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_truncated_zip_is_refused_with_what_to_do(tmp_path: Path, share: float) -> None:
    path = _zip(tmp_path / "a.zip", {"conversations.json": _GOOD})
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ImportRefused, match="cut off") as refused:
        _read(path)
    assert "Download" in refused.value.hint


def test_a_damaged_table_of_contents_is_refused(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.zip", {"a.json": _GOOD, "b.json": _GOOD})
    _patched(path, b"PK\1\2", b"PK\1\3", last=True)
    with pytest.raises(ImportRefused, match="damaged"):
        _read(path)


def test_junk_after_the_archive_is_named_and_ignored(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.zip", {"conversations.json": _GOOD})
    path.write_bytes(path.read_bytes() + b"junk" * 100)
    titles, skipped = _read(path)
    assert titles == ["Good"]
    assert skipped == [Skipped("a.zip", "400 bytes after the end of the archive were ignored")]


def test_a_comment_is_no_junk(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.zip", {"conversations.json": _GOOD})
    comment = b"PK\5\6 is a strange comment"
    path.write_bytes(path.read_bytes()[:-2] + struct.pack("<H", len(comment)) + comment)
    assert _read(path) == (["Good"], [])


def test_more_entries_than_allowed_are_refused_before_they_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zip_reader, "ENTRIES_MAX", 50)
    path = _zip(tmp_path / "a.zip", {f"{number}.json": "" for number in range(51)})
    with pytest.raises(ImportRefused, match="more than 50 entries"):
        _read(path)


def test_more_than_the_total_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "TOTAL_MAX_BYTES", 1000)
    path = _zip(tmp_path / "a.zip", {"conversations.json": _GOOD + " " * 1000})
    with pytest.raises(ImportRefused, match="more than"):
        _read(path)


def test_a_single_file_beyond_the_total_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "TOTAL_MAX_BYTES", 1 << 20)
    path = tmp_path / "a.json"
    path.write_text(_GOOD + " " * (3 << 20))
    with pytest.raises(ImportRefused, match="more than"):
        _read(path)


def test_hundreds_of_refused_names_are_summed_up(tmp_path: Path) -> None:
    members: dict[str, str | bytes] = {f"../{number}.json": "" for number in range(300)}
    _, skipped = _read(_zip(tmp_path / "a.zip", members | {"conversations.json": _GOOD}))
    assert len(skipped) == 51
    assert skipped[-1].why == "250 more entries were refused for such reasons"


def test_reading_a_large_member_takes_little_memory(tmp_path: Path) -> None:
    path = write_chatgpt_export(tmp_path / "a.zip", Shape(conversations=150, turns=3, words=1500))
    tracemalloc.start()
    messages = sum(
        len(found.messages)
        for found in read_export(path)
        if isinstance(found, ImportedConversation)
    )
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert messages == 900
    assert peak_bytes < 6 << 20


def test_progress_ends_where_it_said_it_would(tmp_path: Path) -> None:
    inner = _zip_bytes({"conversations.json": _GOOD * 1})
    _zip(tmp_path / "a.zip", {"conversations-000.zip": inner, "x.png": b"\x89PNG" * 999})
    (tmp_path / "conversations.json").write_text(_GOOD)
    heard: list[tuple[int, int]] = []
    list(read_export(tmp_path, on_bytes=lambda read, total: heard.append((read, total))))
    assert heard[-1][0] == heard[-1][1] > 0
    assert all(read <= total for read, total in heard)
    assert [read for read, _ in heard] == sorted(read for read, _ in heard)


def test_a_cancelled_import_stops(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(_GOOD)
    with pytest.raises(Cancelled):
        list(read_export(path, cancelled=lambda: True))


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir])
def test_a_missing_path_is_told_apart_from_an_empty_one(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    with pytest.raises(NotFound, match="There is no file"):
        list(read_export(tmp_path / "none"))
    make(tmp_path / "some")
    with pytest.raises(ImportRefused):
        list(read_export(tmp_path / "some"))


def test_nothing_is_written_next_to_what_is_read(tmp_path: Path) -> None:
    _zip(tmp_path / "a.zip", {"../out.json": _GOOD, "conversations.json": _GOOD})
    before = sorted(tmp_path.parent.rglob("*"))
    _read(tmp_path / "a.zip")
    assert sorted(tmp_path.parent.rglob("*")) == before
