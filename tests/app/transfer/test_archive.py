"""Archives: valid and hostile files, zips and folders, their limits, progress and memory."""

import io
import json
import os
import random
import stat
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from app.domain.errors import Cancelled, ImportRefused, NotFound
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer import archive, zip_reader
from app.transfer.importers import read_export
from tests.fakes.exports import Shape, chatgpt_message, chatgpt_row, write_chatgpt_export

_CONVERSATION = chatgpt_row(chatgpt_message("u", "user", "Hello"), title="Good")
_GOOD = json.dumps([_CONVERSATION])
_LINK = "it is a link, and links are not followed"
Members = dict[str, str | bytes]


class _Pipe(io.RawIOBase):
    """A stream that cannot seek, so that sizes follow the members."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, part: object) -> int:
        self.parts.append(bytes(part))  # type: ignore[call-overload]
        return len(self.parts[-1])


def _zip(members: Members, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as made:
        for name, content in members.items():
            made.writestr(zipfile.ZipInfo(name), content, method)
    return out.getvalue()


def _with_good(members: Members) -> bytes:
    return _zip(members | {"conversations.json": _GOOD})


def _streamed() -> bytes:
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("conversations.json", _GOOD)
    return b"".join(pipe.parts)


def _zip64() -> bytes:
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w") as made,
        made.open(zipfile.ZipInfo("conversations.json"), "w", force_zip64=True) as member,
    ):
        member.write(_GOOD.encode())
    content = out.getvalue()
    end = content.rindex(b"PK\5\6")
    _, _, _, _, count, size, start, _ = struct.unpack("<4s4H2LH", content[end:])
    record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, start)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, end, 1)
    short = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return content[:end] + record + locator + short


def _commented() -> bytes:
    comment = b"a strange comment, PK\1\2"
    return _with_good({})[:-2] + struct.pack("<H", len(comment)) + comment


def _patched(content: bytes, old: bytes, new: bytes) -> bytes:
    """Return the content with the last occurrence replaced."""
    at = content.rindex(old)
    return content[:at] + new + content[at + len(old) :]


def _entry_patched(content: bytes, offset: int, new: bytes) -> bytes:
    """Return the content with bytes of its last directory entry replaced."""
    at = content.rindex(b"PK\1\2") + offset
    return content[:at] + new + content[at + len(new) :]


def _link() -> bytes:
    content = _zip({"conversations.json": _GOOD, "link.json": "/etc/passwd"})
    unix_mode = struct.pack("<H", stat.S_IFLNK | 0o777)
    return _entry_patched(_entry_patched(content, 5, b"\3"), 40, unix_mode)


def _size(length: int) -> bytes:
    return struct.pack("<L", length)


def _too_short() -> bytes:
    content = _zip({"conversations.json": _GOOD + " " * 2_000_000}, zipfile.ZIP_STORED)
    length = len(_GOOD) + 2_000_000
    return _patched(content, _size(length) * 2, _size(length) + _size(length + 900))


def _lying_bomb() -> bytes:
    content = _zip({"bomb.json": _GOOD + " " * (8 << 20)})
    return _patched(content, _size(len(_GOOD) + (8 << 20)), _size(1000))


def _wrong_checksum() -> bytes:
    content = _zip({"conversations.json": _GOOD.replace("Good", "Goog")}, zipfile.ZIP_STORED)
    return _patched(content, b"Goog", b"Good")


def _damaged_inside() -> bytes:
    """Return an archive with a large archive whose content is damaged behind its first megabyte."""
    inner = bytearray(_zip({"filler.txt": random.Random(1).randbytes(3 << 20)}, zipfile.ZIP_STORED))
    content = bytearray(_with_good({"inner.zip": bytes(inner)}))
    content[2 << 20] ^= 0xFF
    return bytes(content)


_NESTED = _zip({"conversations.json": _GOOD, "deeper.zip": _with_good({})})
_TRUNCATED = _with_good({})


def _read(path: Path, content: bytes | None = None) -> tuple[list[str], list[Skipped]]:
    """Return the titles of an export, and what was skipped."""
    if content is not None:
        path.write_bytes(content)
    found = list(read_export(path))
    titles = [each.title for each in found if isinstance(each, ImportedConversation)]
    return titles, [each for each in found if isinstance(each, Skipped)]


@pytest.mark.parametrize(
    "make",
    [lambda: _with_good({}), lambda: _zip({"c.json": _GOOD}, 0), _streamed, _zip64, _commented],
)
def test_every_valid_zip_is_read(tmp_path: Path, make: Callable[[], bytes]) -> None:
    assert _read(tmp_path / "any.name", make()) == (["Good"], [])


@pytest.mark.parametrize(
    ("content", "where", "why"),
    [
        (_with_good({"../../evil.json": _GOOD}), "/../../evil.json", "points outside"),
        (_with_good({"a/../../evil.json": _GOOD}), "/a/../../evil.json", "points outside"),
        (_with_good({"..\\..\\evil.json": _GOOD}), "/..\\..\\evil.json", "points outside"),
        (_with_good({"/etc/evil.json": _GOOD}), "//etc/evil.json", "absolute path"),
        (_with_good({"\\\\server\\evil.json": _GOOD}), "/\\\\server\\evil.json", "absolute path"),
        (_with_good({"C:\\evil.json": _GOOD}), "/C:\\evil.json", "absolute path"),
        (_with_good({"c:evil.json": _GOOD}), "/c:evil.json", "absolute path"),
        (_with_good({"evil\1.json": _GOOD}), "/evil\1.json", "control characters"),
        (_with_good({"evXl.json": ""}).replace(b"evX", b"ev\0"), "/ev\u2400l.json", "control"),
        (_with_good({"../\u202enosj.exe": _GOOD}), "/../[U+202E]nosj.exe", "points outside"),
        (_link(), "/link.json", _LINK),
        (_entry_patched(_zip({"c.json": _GOOD, "x.json": ""}), 8, b"\1"), "/x.json", "encrypted"),
        (_with_good({"bomb.json": b"[" * (8 << 20)}), "/bomb.json", "more than 200 times its size"),
        (_too_short(), "/conversations.json", "its size or checksum"),
        (_with_good({"../gr__n": ""}).replace(b"r__", "rü".encode()), "/../grün", "points outside"),
        (_with_good({"../gr_n": ""}).replace(b"r_n", b"r\x81n"), "/../grün", "points outside"),
        (_with_good({}) + b"junk" * 100, "", "400 bytes after the end"),
        (_damaged_inside(), "/inner.zip", "damaged"),
        (_zip({"inner.zip": _NESTED}), "/inner.zip/deeper.zip", "archive in an archive"),
        (
            _with_good({f"{number}.png": b"\x89PNG" for number in range(30)} | {"chat.html": "<"}),
            "",
            "31 other files with no conversations",
        ),
    ],
)  # fmt: skip
def test_only_a_bad_member_is_lost(tmp_path: Path, content: bytes, where: str, why: str) -> None:
    titles, skipped = _read(tmp_path / "a.zip", content)
    assert titles == ["Good"]
    assert [each.where for each in skipped] == [f"a.zip{where}"]
    assert why in skipped[0].why


@pytest.mark.parametrize(
    ("content", "why"),
    [(_zip({"c.json": _GOOD}, zipfile.ZIP_BZIP2), "packed with bzip2"),
     (_zip({"c.json": _GOOD}, zipfile.ZIP_LZMA), "packed with LZMA"),
     (_lying_bomb(), "its size or checksum"), (_wrong_checksum(), "its size or checksum"),
     (_entry_patched(_zip({"a.json": _GOOD, "b.json": _GOOD}), 42, _size(0)), "overlap"),
     (_with_good({}).replace(b"conversations.", b"conversationz.", 1), "name differs"),
     (_patched(_zip({"a.json": _GOOD, "b.json": _GOOD}), b"PK\1\2", b"PK\1\3"), "damaged"),
     *((_TRUNCATED[: len(_TRUNCATED) * share // 100], "truncated") for share in (10, 50, 99))],
)  # fmt: skip
def test_a_damaged_zip_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    with pytest.raises(ImportRefused, match=why) as refused:
        _read(tmp_path / "a.zip", content)
    assert refused.value.hint


def test_a_folder_is_read_without_system_files_links_and_pipes(tmp_path: Path) -> None:
    names = ("__MACOSX/conversations.json", "x/._conversations.json", "x/.DS_Store", "x/c.json")
    (tmp_path / "a.zip").write_bytes(_zip(dict.fromkeys(names, _GOOD)))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "export.json").write_text(_GOOD)
    (tmp_path / "link.json").symlink_to("/etc/passwd")
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.json")
    titles, skipped = _read(tmp_path)
    assert titles == ["Good", "Good"]
    assert [each.why for each in skipped] == [_LINK, _LINK, "it is not a regular file"]
    many: Members = {f"../{number}.json": "" for number in range(300)}
    _, skipped = _read(tmp_path / "many.zip", _with_good(many))
    assert len(skipped) == 51
    assert "250 more entries" in skipped[-1].why


@pytest.mark.parametrize(
    ("module", "limit", "value", "name"),
    [(zip_reader, "ENTRIES_MAX", 50, "a.zip"), (archive, "TOTAL_MAX_BYTES", 1000, "a.zip"),
     (archive, "TOTAL_MAX_BYTES", 1 << 20, "folder/large.json"),
     (archive, "ENTRIES_MAX", 50, "folder")],
)  # fmt: skip
def test_exports_beyond_the_limits_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: object,
    limit: str,
    value: int,
    name: str,
) -> None:
    members: Members = {f"{number}.json": " " * 1000 for number in range(51)}
    (tmp_path / "a.zip").write_bytes(_zip(members))
    (tmp_path / "folder").mkdir()
    for member in members:
        (tmp_path / "folder" / member).touch()
    (tmp_path / "folder" / "large.json").write_bytes(_GOOD.encode() + b" " * (3 << 20))
    monkeypatch.setattr(module, limit, value)
    with pytest.raises(ImportRefused, match="more than"):
        _read(tmp_path / name)


@pytest.mark.unmeasured
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


def test_progress_rises_to_its_total_and_nothing_is_written(tmp_path: Path) -> None:
    nested: Members = {"c.zip": _with_good({}), "x.png": b"\x89PNG" * 999, "../out.json": _GOOD}
    (tmp_path / "a.zip").write_bytes(_zip(nested))
    (tmp_path / "conversations.json").write_text(_GOOD)
    before = sorted(tmp_path.parent.rglob("*"))
    progress: list[tuple[int, int]] = []
    list(read_export(tmp_path, on_bytes=lambda read, total: progress.append((read, total))))
    assert progress[-1][0] == progress[-1][1] > 0
    assert all(read <= total for read, total in progress)
    assert [read for read, _ in progress] == sorted(read for read, _ in progress)
    assert sorted(tmp_path.parent.rglob("*")) == before


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir])
def test_a_missing_path_is_no_empty_one(tmp_path: Path, make: Callable[[Path], None]) -> None:
    (tmp_path / "good").write_text(_GOOD)
    with pytest.raises(Cancelled):
        list(read_export(tmp_path / "good", cancelled=lambda: True))
    with pytest.raises(NotFound):
        list(read_export(tmp_path / "none"))
    make(tmp_path / "some")
    with pytest.raises(ImportRefused):
        list(read_export(tmp_path / "some"))
