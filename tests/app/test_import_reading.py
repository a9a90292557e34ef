"""What a file is, by its content; what is said of one that is no export; long and cut-off ones."""

import json
from pathlib import Path

import pytest

from app.domain.conversations import Text
from app.domain.errors import ImportRefused
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.importers import read_export
from app.transfer.importers.detect import KNOWN_FORMATS, detect
from tests.fakes.exports import (
    Shape,
    chatgpt_conversations,
    chatgpt_message,
    chatgpt_row,
    write_chatgpt_export,
    write_claude_export,
)

_GOOD = json.dumps([chatgpt_row(chatgpt_message("u", "user", "Hello"), title="Good")])


def _refusal(path: Path) -> ImportRefused:
    with pytest.raises(ImportRefused) as refused:
        list(read_export(path))
    return refused.value


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "an empty file"),
        (b"%PDF-1.7 ...", "a PDF document"),
        (b"<html></html>", "a web page"),
        (b"\x89PNG\r\n\x1a\n", "a picture"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\x1f\x8b\x08", "a gzip archive"),
        ("[]".encode("utf-16"), "text in UTF-16"),
        (b"Dear diary,", "text, but no JSON"),
        (b"\x00\x01\x02\x03", "no text"),
        (b'{"name": "package", "version": "1.0"}', "JSON, but not of a form that is known"),
        (b'[{"id": 1, "messages": [{"role": "user"}]}]', "JSON, but not of a form that is known"),
        (b"[1, 2, 3]", "JSON, but not of a form that is known"),
    ],
)
def test_a_file_that_is_no_export_is_refused_and_named(
    tmp_path: Path, content: bytes, told: str
) -> None:
    path = tmp_path / "conversations.json"
    path.write_bytes(content)
    refusal = _refusal(path)
    assert told in refusal.title
    assert str(path) in refusal.title
    assert refusal.hint == KNOWN_FORMATS


@pytest.mark.parametrize("name", ["conversations.json", "notes.txt", "no suffix", "x.zip"])
def test_an_export_is_known_by_its_content_whatever_its_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(_GOOD)
    (found,) = read_export(path)
    assert isinstance(found, ImportedConversation)


def test_a_byte_order_mark_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_bytes(b"\xef\xbb\xbf\r\n" + _GOOD.encode())
    (found,) = read_export(path)
    assert isinstance(found, ImportedConversation)


def test_side_files_of_an_export_are_passed_over_in_silence(tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_text(_GOOD)
    (tmp_path / "user.json").write_text('{"id": "user-1"}')
    (tmp_path / "message_feedback.json").write_text("[]")
    (tmp_path / "export_manifest.json").write_text('{"files": []}')
    assert len(list(read_export(tmp_path))) == 1


def test_memories_and_projects_are_named_with_what_can_be_done(tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_text(_GOOD)
    (tmp_path / "memories.json").write_text('[{"conversations_memory": "Likes boats"}]')
    (tmp_path / "projects.json").write_text('[{"uuid": "p", "name": "Boats", "docs": []}]')
    (tmp_path / "projects").mkdir()
    (tmp_path / "projects" / "p.json").write_text('{"uuid": "p", "docs": []}')
    skipped = [found for found in read_export(tmp_path) if isinstance(found, Skipped)]
    assert [each.where for each in skipped] == ["memories.json", "projects.json", "projects/p.json"]
    assert "core memory" in skipped[0].why
    assert "projects" in skipped[1].why


def test_an_unknown_json_beside_an_export_is_named_and_binaries_are_counted(tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_text(_GOOD)
    (tmp_path / "a-shopping-list.json").write_text('{"milk": 2}')
    (tmp_path / "file-abc").write_bytes(b"\x00\x01")
    (tmp_path / "file-def").write_bytes(b"\x00\x01")
    skipped = [found for found in read_export(tmp_path) if isinstance(found, Skipped)]
    assert skipped == [
        Skipped("a-shopping-list.json", "it is JSON, but not of a form that is known"),
        Skipped(tmp_path.name, "2 more files are no conversations and stayed out"),
    ]


@pytest.mark.parametrize("content", ["[]", " [ ] ", '{"conversations": []}'])
def test_an_export_without_conversations_says_so(tmp_path: Path, content: str) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(content)
    assert list(read_export(path)) == [Skipped("conversations.json", "it holds no conversations")]


def test_only_side_files_are_no_export(tmp_path: Path) -> None:
    (tmp_path / "users.json").write_text('[{"uuid": "u"}]')
    assert "holds no files that could be imported" in _refusal(tmp_path).title


def test_both_kinds_in_one_folder_are_read(tmp_path: Path) -> None:
    write_chatgpt_export(tmp_path / "one.zip", Shape(conversations=5), shards=2)
    write_claude_export(tmp_path / "two.zip", Shape(conversations=4))
    found = [each for each in read_export(tmp_path) if isinstance(each, ImportedConversation)]
    assert [each.source for each in found] == ["chatgpt"] * 5 + ["claude"] * 4


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.95, 0.9999])
def test_a_cut_file_gives_all_whole_conversations_and_then_names_the_cut(
    tmp_path: Path, share: float
) -> None:
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
    assert f"cut off after {len(cut):,} bytes" in last.why


def test_a_message_of_five_megabytes_is_read_whole(tmp_path: Path) -> None:
    text = 'A "long" line, ünï 🙂\n' * 250_000
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([chatgpt_row(chatgpt_message("u", "user", text))]))
    (found,) = read_export(path)
    assert isinstance(found, ImportedConversation)
    assert found.messages[0].blocks == (Text(text),)


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


def test_detection_needs_no_more_than_the_first_bytes() -> None:
    assert detect(b'  [{"title": "x", "mapping": {"a', "x").read is not None
    assert detect(b'[{"uuid": "x", "name": "y", "chat_messages": [', "x").read is not None
    assert detect(b'{"format": "commonplace", "version": 1, "conv', "x").read is not None


def test_the_sample_archive_is_read_without_anything_skipped() -> None:
    samples = Path(__file__).parents[2] / "resources" / "samples" / "sample-archive.json"
    found = [each for each in read_export(samples) if isinstance(each, ImportedConversation)]
    assert len(found) == len(list(read_export(samples))) == 19
    assert all(each.title and each.messages and not each.skipped for each in found)
    assert sum(each.pinned for each in found) == 3
    assert sum(each.archived for each in found) == 1
