"""ChatGPT's exports: what is taken, what is hidden, what is named as skipped."""

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.domain.conversations import Attachment, Image, Role, Text, Thinking, ToolCall, ToolResult
from app.domain.transfer import ImportedConversation, ImportedMessage, Skipped
from app.transfer.importers import read_export
from app.transfer.importers.chatgpt import read_chatgpt
from tests.fakes.exports import chatgpt_message, chatgpt_node, chatgpt_row

_DATA = Path(__file__).parents[1] / "data" / "imports"


def _imported(value: object) -> list[ImportedConversation | Skipped]:
    return list(read_chatgpt(io.BytesIO(json.dumps(value).encode()), "conversations.json"))


def _one(conversation: dict[str, Any]) -> ImportedConversation:
    (found,) = _imported([conversation])
    assert isinstance(found, ImportedConversation)
    return found


def _by_id(conversation: ImportedConversation) -> dict[str, ImportedMessage]:
    return {message.source_id: message for message in conversation.messages}


@pytest.fixture(scope="module")
def kinds() -> ImportedConversation:
    found = next(read_export(_DATA / "chatgpt_kinds.json"))
    assert isinstance(found, ImportedConversation)
    return found


def test_a_conversation_keeps_title_times_model_pin_archive_and_privacy(
    kinds: ImportedConversation,
) -> None:
    assert (kinds.source, kinds.source_id, kinds.title) == (
        "chatgpt",
        "kinds-1",
        "Harbour and rain",
    )
    assert kinds.created_at == datetime(2025, 1, 1, 10, 0, tzinfo=UTC)
    assert kinds.updated_at == datetime(2025, 1, 1, 10, 15, tzinfo=UTC)
    assert (kinds.archived, kinds.pinned, kinds.private, kinds.model) == (True, True, True, "o3")


def test_hidden_messages_are_left_out_and_their_children_linked_to_what_stands_above(
    kinds: ImportedConversation,
) -> None:
    messages = _by_id(kinds)
    assert {"root", "sys", "ctx", "bio", "spin"}.isdisjoint(messages)
    assert messages["q1"].parent is None
    assert messages["a1"].parent == "out"
    assert messages["fail"].parent == "browse"


def test_a_system_message_is_kept_only_when_the_user_wrote_it(kinds: ImportedConversation) -> None:
    systems = [message for message in kinds.messages if message.role is Role.SYSTEM]
    assert [message.blocks for message in systems] == [(Text("Speak as to a sailor."),)]


def test_pictures_and_files_become_blocks_under_the_names_the_user_gave_them(
    kinds: ImportedConversation,
) -> None:
    picture, text, table = _by_id(kinds)["q1"].blocks
    assert picture == Image("harbour.jpg", "image/jpeg")
    assert isinstance(text, Text)
    assert table == Attachment("trips.csv", "text/csv", 5120)


def test_thoughts_and_their_recap_are_reasoning(kinds: ImportedConversation) -> None:
    messages = _by_id(kinds)
    assert messages["think"].blocks == (
        Thinking("Counting rows\n\nThe file is a CSV, so I read it."),
    )
    assert messages["recap"].blocks == (Thinking("Thought for 4 seconds"),)


def test_a_message_to_a_tool_is_a_call_and_the_outputs_below_answer_it(
    kinds: ImportedConversation,
) -> None:
    messages = _by_id(kinds)
    (call,) = messages["call"].blocks
    assert isinstance(call, ToolCall)
    assert call.name == "python"
    assert json.loads(call.arguments)["code"].startswith("import csv")
    output, plot = messages["out"].blocks
    assert output == ToolResult("call", "python", "412")
    assert isinstance(plot, Image)


def test_arguments_that_are_json_stay_as_they_came(kinds: ImportedConversation) -> None:
    (call,) = _by_id(kinds)["search"].blocks
    assert isinstance(call, ToolCall)
    assert call.arguments == '{"query": "Bergen harbour"}'


def test_quotes_pages_and_errors_are_results_of_the_call_above(kinds: ImportedConversation) -> None:
    messages = _by_id(kinds)
    (quote,), (page,), (error,) = (messages[name].blocks for name in ("page", "browse", "fail"))
    assert isinstance(quote, ToolResult)
    assert quote.text.startswith("Harbour guide\nhttps://example.org/harbour\n\nThe harbour")
    assert page == ToolResult("search", "browser", "# Harbour, example.org\nBest in May.")
    assert error == ToolResult(
        "search", "browser", "tool_error: The page took too long.", is_error=True
    )


def test_citation_marks_become_links_names_or_nothing(kinds: ImportedConversation) -> None:
    (answer,) = _by_id(kinds)["a1"].blocks
    assert answer == Text(
        "The file has **412 rows**; the picture shows a harbour. "
        "([Harbour guide](https://example.org/harbour)) It was taken in Bergen."
    )


def test_an_old_citation_mark_becomes_a_link_when_its_source_is_known() -> None:
    text = "It rains【4:0†source】 a lot【7†L1-L9】."
    place = text.index("【4")
    source = {"start_ix": place, "end_ix": place + 12, "metadata": {
        "title": "Rain [today]", "url": "https://example.org/rain(1)"}}  # fmt: skip
    message = chatgpt_message("a", "assistant", text, citations=[source])
    (block,) = _one(chatgpt_row(message)).messages[0].blocks
    assert block == Text("It rains ([Rain today](https://example.org/rain%281%29)) a lot.")


def test_brackets_that_are_no_citation_stay() -> None:
    message = chatgpt_message("a", "assistant", "【重要】 Read 【2】 this.")
    assert _one(chatgpt_row(message)).messages[0].blocks == (Text("【重要】 Read 【2】 this."),)


def test_what_the_user_typed_is_not_searched_for_citations() -> None:
    message = chatgpt_message("u", "user", "My prompt shows \ue200 and 【4:0†source】")
    assert _one(chatgpt_row(message)).messages[0].blocks == (
        Text("My prompt shows \ue200 and 【4:0†source】"),
    )


def test_abandoned_branches_are_kept_and_the_current_node_is_shown(
    kinds: ImportedConversation,
) -> None:
    messages = _by_id(kinds)
    assert messages["old"].parent == messages["a2"].parent == "fail"
    assert kinds.visible_leaf == "last"


def test_a_hidden_current_node_shows_the_message_above_it() -> None:
    row = chatgpt_row(
        chatgpt_message("u", "user", "Hi"),
        chatgpt_message("h", "assistant", "x", is_visually_hidden_from_conversation=True),
    )
    assert row["current_node"] == "h"
    assert _one(row).visible_leaf == "u"


@pytest.mark.parametrize("current", [None, "nowhere", 7])
def test_without_a_current_node_the_newest_leaf_is_shown(current: object) -> None:
    row = chatgpt_row(chatgpt_message("u", "user", "Hi", at=1e9))
    for name, at in (("new", 1e9 + 9), ("old", 1e9 + 5)):
        message = chatgpt_message(name, "assistant", name, at=at)
        row["mapping"][name] = chatgpt_node(name, "u", message)
    assert _one({**row, "current_node": current}).visible_leaf == "new"


def test_the_model_of_each_answer_is_kept(kinds: ImportedConversation) -> None:
    messages = _by_id(kinds)
    assert (messages["a1"].model, messages["a2"].model, messages["q1"].model) == (
        "o3",
        "gpt-4o",
        None,
    )


def test_a_message_without_a_date_takes_the_one_above_it(kinds: ImportedConversation) -> None:
    messages = _by_id(kinds)
    assert messages["q3"].created_at == messages["own"].created_at


def test_the_first_message_without_a_date_takes_the_conversations() -> None:
    conversation = _one(chatgpt_row(chatgpt_message("u", "user", "Hi")))
    assert conversation.messages[0].created_at == conversation.created_at


def test_without_any_date_the_date_stays_open() -> None:
    row = chatgpt_row(chatgpt_message("u", "user", "Hi"))
    del row["create_time"], row["update_time"]
    assert _one(row).messages[0].created_at is None


def test_a_spoken_message_is_its_transcription_with_the_recording_named(
    kinds: ImportedConversation,
) -> None:
    said, recording = _by_id(kinds)["q3"].blocks
    assert said == Text("And the weather?")
    assert recording == Attachment("file_voice", "audio/*", 64000)


def test_code_for_the_reader_is_a_code_block(kinds: ImportedConversation) -> None:
    assert _by_id(kinds)["a3"].blocks == (Text("```python\nprint('rain')\n```"),)


def test_an_unknown_content_is_named_and_the_conversation_goes_on(
    kinds: ImportedConversation,
) -> None:
    assert kinds.skipped == (
        Skipped(
            "'Harbour and rain', message odd", "its content of the kind 'super_widget' is not known"
        ),
    )
    assert _by_id(kinds)["last"].parent == "a3"


def test_a_null_title_is_no_title() -> None:
    row = chatgpt_row(chatgpt_message("u", "user", "Hi"), title=None)
    assert _one(row).title == ""


def test_parts_may_mix_texts_objects_and_nothing() -> None:
    parts = ["One", None, {"text": "two"}, 3, {"content_type": "hologram"}, "three"]
    message = chatgpt_message("u", "user", {"content_type": "text", "parts": parts})
    conversation = _one(chatgpt_row(message))
    assert conversation.messages[0].blocks == (Text("One\n\ntwo"), Text("three"))
    assert [skipped.why for skipped in conversation.skipped] == [
        "a part of it is neither text nor picture",
        "a part of the kind 'hologram' in it is not known",
    ]


def test_a_conversation_under_conversations_is_read_too() -> None:
    row = chatgpt_row(chatgpt_message("u", "user", "Hi"))
    (found,) = _imported({"version": 2, "conversations": [row], "more": {"a": [1]}})
    assert isinstance(found, ImportedConversation)


def test_a_single_conversation_may_stand_alone() -> None:
    (found,) = _imported(chatgpt_row(chatgpt_message("u", "user", "Hi")))
    assert isinstance(found, ImportedConversation)


def test_a_conversation_without_an_id_gets_the_same_one_at_every_import() -> None:
    row = chatgpt_row(chatgpt_message("u", "user", "Hi"))
    del row["id"], row["conversation_id"]
    assert _one(row).source_id == _one(row).source_id != ""


def test_an_empty_conversation_is_named() -> None:
    row = chatgpt_row(chatgpt_message("s", "system", ""))
    assert _imported([row]) == [Skipped("'A row'", "it is empty")]


def test_a_circle_in_the_tree_is_cut_and_nothing_in_it_lost() -> None:
    row = chatgpt_row(*(chatgpt_message(name, "user", name) for name in "abc"))
    row["mapping"]["a"]["parent"] = "c"
    conversation = _one(row)
    assert {message.source_id for message in conversation.messages} == set("abc")
    assert sum(message.parent is None for message in conversation.messages) == 1


def test_a_node_that_is_its_own_parent_is_a_root() -> None:
    row = chatgpt_row(chatgpt_message("a", "user", "a"))
    row["mapping"]["a"]["parent"] = "a"
    assert _one(row).messages[0].parent is None


def test_what_is_broken_costs_one_message_and_keeps_its_place() -> None:
    found = list(read_export(_DATA / "chatgpt_broken.json"))
    broken = found[0]
    assert isinstance(broken, ImportedConversation)
    assert [(message.source_id, message.parent) for message in broken.messages] == [
        ("a", None),
        ("c", "a"),
        ("d", "c"),
    ]
    assert broken.messages[0].blocks == (Text("caf\ufffd au lait"),)
    assert broken.messages[1].blocks == (Text("line\nbreak and \ufffd alone"),)
    assert {skipped.where[-1]: skipped.why for skipped in broken.skipped} == {
        "a": "bytes in it that are not UTF-8 were replaced by \ufffd",
        "b": "it is not valid JSON",
    }


def test_after_a_broken_conversation_the_rest_goes_on() -> None:
    found = list(read_export(_DATA / "chatgpt_broken.json"))
    assert [
        each.where if isinstance(each, Skipped) else each.title for each in found
    ] == [
        "Broken in places",
        "chatgpt_broken.json, conversation 2",
        "chatgpt_broken.json, conversation 3",
        "Whole",
    ]  # fmt: skip


def test_invisible_and_unstorable_characters_are_cleaned_everywhere() -> None:
    message = chatgpt_message("u", "user", "a\x00b\ud800c \U000e0041\U000e0042")
    conversation = _one(chatgpt_row(message, title="T\x00 \u202etxt"))
    assert conversation.title == "T\u2400 [U+202E]txt"
    assert conversation.messages[0].blocks == (Text("a\u2400b\ufffdc [hidden: AB]"),)
