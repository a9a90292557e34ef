"""Reading of exports: detection by content, reports of other files, long and truncated files."""

import io
import json
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from zipfile import ZipFile

import pytest

from app.domain.conversations import SAMPLE_SOURCE, Text
from app.domain.errors import ImportRefused
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.archive import NamedStream
from app.transfer.importers import read_export
from app.transfer.importers.reading import KNOWN_FORMATS, detect
from tests.fakes.exports import (
    Shape,
    chatgpt_conversations,
    chatgpt_message,
    chatgpt_row,
    write_chatgpt_export,
    write_claude_export,
)

_GOOD = json.dumps([chatgpt_row(chatgpt_message("u", "user", "Hello"), title="Good")])


def _only(path: Path) -> ImportedConversation:
    (found,) = read_export(path)
    assert isinstance(found, ImportedConversation)
    return found


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "an empty file"),
        (b"%PDF-1.7 ...", "a PDF document"),
        (b"<html></html>", "a web page"),
        (b"\x89PNG\r\n\x1a\n", "an image"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\x1f\x8b\x08", "a gzip archive"),
        ("[]".encode("utf-16"), "text in UTF-16"),
        (b"Dear diary,", "text, but not JSON"),
        (b"\x00\x01\x02\x03", "not text"),
        (b'{"name": "package", "version": "1.0"}', "JSON of an unknown format"),
        (b'[{"id": 1, "messages": [{"role": "user"}]}]', "JSON of an unknown format"),
        (b"[1, 2, 3]", "JSON of an unknown format"),
        (
            b'[{"chatId": "c", "role": "user", "contentChunks": []}]',
            "an export of Mistral's Le Chat",
        ),
    ],
)
def test_a_file_that_is_not_an_export_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "conversations.json"
    path.write_bytes(content)
    with pytest.raises(ImportRefused) as refused:
        list(read_export(path))
    assert why in refused.value.title
    assert str(path) in refused.value.title
    assert refused.value.hint == KNOWN_FORMATS


def test_a_database_whose_schema_is_no_text_is_refused(tmp_path: Path) -> None:
    """SQLite's message quotes it, which Python then cannot decode."""
    path = tmp_path / "conversations.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE message (id)")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET name = CAST(x'80ff' AS TEXT), sql = 'none'")
    with pytest.raises(ImportRefused) as refused:
        list(read_export(path))
    assert "an SQLite database" in refused.value.title


@pytest.mark.parametrize("start", ["", "\ufeff\r\n"])
@pytest.mark.parametrize("name", ["conversations.json", "no suffix", "x.zip"])
def test_an_export_is_detected_by_its_content(tmp_path: Path, name: str, start: str) -> None:
    path = tmp_path / name
    path.write_text(start + _GOOD)
    assert _only(path).title == "Good"
    for empty in ("[]", " [ ] ", '{"conversations": []}'):
        path.write_text(start + empty)
        assert list(read_export(path)) == [Skipped(name, "it contains no conversations")]


@pytest.mark.parametrize(
    ("files", "reports"),
    [({"user.json": '{"id": "u"}', "message_feedback.json": "[]", "manifest.json": "{}"}, []),
     ({"group_chats.json": '{"chats": []}', "library_files.json": '[{"id": "x"}]'}, []),
     ({"group_chats.json": '{"chats": [{"id": "g"}]}'}, ["group chats"]),
     ({"message_feedback.json": '[{"id": "f", "content": "Wrong"}]'}, ["message feedback"]),
     ({"projects.json": '[{"name": "p"}]', "projects/p.json": '{"docs": []}'}, ["empty"] * 2),
     ({"other.json": '{"milk": 2}', "abc": "\0"}, ["JSON of an unknown", "1 more file"]),
     ({"abc": "\0", "def": "\0"}, ["2 more files contain"]),
     ({f"{number}.json": "{}" for number in range(102)}, ["JSON"] * 100 + ["2 more like these"])],
)  # fmt: skip
def test_other_files_beside_an_export_are_reported_last(
    tmp_path: Path, files: dict[str, str], reports: list[str]
) -> None:
    (tmp_path / "projects").mkdir()
    for name, content in (files | {"conversations.json": _GOOD}).items():
        (tmp_path / name).write_text(content)
    conversation, *skipped = read_export(tmp_path)
    assert isinstance(conversation, ImportedConversation)
    for found, expected in zip(skipped, reports, strict=True):
        assert isinstance(found, Skipped)
        assert expected in found.why


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"users.json": '[{"uuid": "u"}]'}, "contains no files that can be imported"),
        ({"a": "x", "b": "y"}, r"a: it is text, but not JSON \(and 1 more\)"),
    ],
)
def test_a_folder_of_no_export_is_refused(tmp_path: Path, files: dict[str, str], why: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(ImportRefused, match=why):
        list(read_export(tmp_path))


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_conversation_without_any_time_has_that_of_its_file(
    tmp_path: Path, is_packed: bool
) -> None:
    row = chatgpt_row(chatgpt_message("u", "user", "Hello")) | {"create_time": None}
    content = json.dumps([row | {"update_time": None}])
    path = tmp_path / "conversations.json"
    path.write_text(content)
    at = datetime(2023, 5, 6, 10, tzinfo=UTC)
    os.utime(path, (at.timestamp(), at.timestamp()))
    if is_packed:
        with ZipFile(tmp_path / "export.zip", "w") as archive:
            archive.write(path)
        path = tmp_path / "export.zip"
    found = _only(path)
    assert (found.created_at, found.updated_at, found.is_undated) == (at, at, True)


def test_exports_of_both_kinds_in_one_folder_are_read(tmp_path: Path) -> None:
    write_chatgpt_export(tmp_path / "one.zip", Shape(conversations=5), shards=2)
    write_claude_export(tmp_path / "two.zip", Shape(conversations=4))
    found = [each for each in read_export(tmp_path) if isinstance(each, ImportedConversation)]
    assert [each.source for each in found] == ["chatgpt"] * 5 + ["claude"] * 4


@pytest.mark.parametrize("share", [0.05, 0.6, 0.9999])
def test_a_truncated_file_gives_its_complete_conversations(tmp_path: Path, share: float) -> None:
    made = [json.dumps(each).encode() for each in chatgpt_conversations(Shape(20, 4))]
    whole = b"[" + b", ".join(made) + b"]"
    cut = whole[: int(len(whole) * share)]
    path = tmp_path / "conversations.json"
    path.write_bytes(cut)
    *conversations, last = list(read_export(path))
    assert len(conversations) == sum(
        len(cut) >= 1 + sum(map(len, made[:count])) + 2 * (count - 1) for count in range(1, 21)
    )
    assert all(isinstance(each, ImportedConversation) for each in conversations)
    assert isinstance(last, Skipped)
    assert f"truncated after {len(cut):,} bytes" in last.why


def test_a_message_of_five_megabytes_is_read_whole(tmp_path: Path) -> None:
    text = 'A "long" line, ünï 🙂\n' * 250_000
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([chatgpt_row(chatgpt_message("u", "user", text))]))
    assert _only(path).messages[0].blocks == (Text(text),)


def test_a_generated_export_keeps_every_message_and_branch(tmp_path: Path) -> None:
    shape = Shape(conversations=12, turns=14)
    path = write_chatgpt_export(tmp_path / "export.zip", shape)
    found = [each for each in read_export(path) if isinstance(each, ImportedConversation)]
    made = list(chatgpt_conversations(shape))
    for conversation, source in zip(found, made, strict=True):
        assert len(conversation.messages) == len(source["mapping"]) - 2
        assert conversation.visible_leaf == source["current_node"]
        parents = [message.parent for message in conversation.messages]
        assert len(parents) > len(set(parents))


@pytest.mark.parametrize(
    "start",
    ['  [{"title": "x", "mapping": {"a', '[{"uuid": "x", "name": "y", "chat_messages": [',
     '{"format": "commonplace", "version": 1, "conv'],
)  # fmt: skip
def test_detection_needs_no_more_than_the_first_bytes(start: str) -> None:
    assert detect(NamedStream("x", io.BufferedReader(io.BytesIO(start.encode())))).read is not None


def test_the_sample_archive_is_read_without_anything_skipped() -> None:
    samples = Path(__file__).parents[4] / "resources" / "samples" / "sample-archive.json"
    found = [each for each in read_export(samples) if isinstance(each, ImportedConversation)]
    assert len(found) == len(list(read_export(samples))) == 19
    assert all(each.title and each.messages and not each.skipped for each in found)
    assert sum(each.pinned for each in found) == 3
    assert sum(each.archived for each in found) == 1
    assert {each.first_source for each in found} == {SAMPLE_SOURCE}
