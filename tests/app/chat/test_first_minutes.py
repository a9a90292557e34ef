"""The first minutes: exports found in a folder, and questions about what was imported."""

import json
import os
import zipfile
from pathlib import Path

import pytest

from app.domain.changes import ConversationEdited
from app.domain.conversations import TitleOrigin
from app.domain.ids import ConversationId
from app.domain.translation import choose_language
from app.memory.recall.starter_questions import StarterQuestions
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations, ListFilter
from app.transfer.found_exports import find_exports
from tests.fakes.stored import add_conversation

TURNS = (("one", "two"), ("three", "four"), ("five", "six"))


def pack(path: Path, at: int, **members: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("_", "."), text)
    os.utime(path, (at, at))
    return path


def test_the_newest_export_of_each_program_is_found(tmp_path: Path) -> None:
    one, other = '[{"title": "a", "mapping": {}}]', '[{"uuid": "a", "chat_messages": []}]'
    pack(tmp_path / "old.zip", 1_000, conversations_json=one)
    parts = {"conversations-000_json": one, "conversations-001_json": one}
    chatgpt = pack(tmp_path / "chat.ZIP", 3_000, chat_html="", **parts)
    claude = pack(tmp_path / "data.zip", 2_000, conversations_json=other, users_json="[]")
    found = find_exports(tmp_path)
    assert [(each.path, each.program) for each in found] == [
        (chatgpt, "ChatGPT"),
        (claude, "Claude"),
    ]
    assert found[0].modified_at.timestamp() == 3_000
    assert found[0].size_bytes == chatgpt.stat().st_size


@pytest.mark.parametrize(
    ("key", "program"), [("mapping", "ChatGPT"), ("chat_messages", "Claude"), ("dear", None)]
)
def test_an_unpacked_export_is_recognized(tmp_path: Path, key: str, program: str | None) -> None:
    (tmp_path / "conversations.json").write_text(json.dumps([{"title": "a", key: {}}]))
    assert [each.program for each in find_exports(tmp_path)] == ([program] if program else [])


def test_anything_else_is_left_alone(tmp_path: Path) -> None:
    pack(tmp_path / "photos.zip", 1, a_png="")
    pack(tmp_path / "other.zip", 1, conversations_json="[]", chat_html="")
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 and nothing else")
    (tmp_path / "folder.zip").mkdir()
    (tmp_path / "notes.json").write_text('[{"mapping": {}}]')
    assert find_exports(tmp_path) == []
    assert list(find_exports(tmp_path / "nowhere")) == []


def titled(
    store: Store, title: str, turns: int, *, origin: TitleOrigin = TitleOrigin.IMPORT
) -> None:
    record = add_conversation(store, *TURNS[:turns], title=title)
    store.save(ConversationEdited(record.conversation.id, title=title, title_origin=origin))


def ids(store: Store, title: str = "") -> list[ConversationId]:
    listed = Conversations(store).listed(ListFilter())
    return [each.id for each in listed if title in each.title]


def test_questions_are_about_the_longest_conversations_in_their_language(store: Store) -> None:
    titled(store, "The kitchen garden in spring", 2)
    titled(store, "Der Garten und die Küche im Frühling", 3)
    titled(store, "Short", 3)  # names too little
    titled(store, "the first words of a message", 3, origin=TitleOrigin.FIRST_WORDS)
    add_conversation(store, *TURNS, title="My private garden plan", private=True)
    assert StarterQuestions(store).make(ids(store, "Short")) == [], "only about these"
    first, second = StarterQuestions(store).make(ids(store))
    assert first == "Was habe ich über „Der Garten und die Küche im Frühling“ herausgefunden?"
    assert "The kitchen garden in spring" in second
    assert second.startswith("What")


def test_questions_are_in_the_interfaces_language_where_a_title_tells_none(store: Store) -> None:
    titled(store, "Mietkaution", 2)
    titled(store, "Sauerteig", 1)
    choose_language("de")
    try:
        first, second = StarterQuestions(store).make(ids(store))
    finally:
        choose_language("en")
    assert first == "Was habe ich über „Mietkaution“ herausgefunden?"
    assert "„Sauerteig“" in second, "also about a short conversation, after longer ones"


def test_a_title_that_is_a_question_is_asked_and_an_empty_library_none(store: Store) -> None:
    assert StarterQuestions(store).make(()) == []
    titled(store, "Why is bread sour?", 2)
    titled(store, "\u8336\u306e\u6e6f", 2)
    made = StarterQuestions(store).make(ids(store))
    assert "Why is bread sour?" in made
    assert any("\u8336\u306e\u6e6f" in each and "\u300c" in each for each in made)
