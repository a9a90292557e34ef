"""`list`, `show`, `archive`, `delete`, `forget`, `tag`, `search` and `probes`."""

import asyncio
import json
import re
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from app.chat.exchange_loop import ExchangeLoop
from app.domain.conversations import Text
from app.domain.ids import ConversationId
from tests.fakes.canary import files_with
from tests.fakes.command_line import BASIL, CommandLine, Console, herbs
from tests.fakes.exports import chatgpt_branches
from tests.fakes.models import FakeModels, ScriptedModel
from tests.fakes.stored import add_conversation


def hits(cli: Console | CommandLine, query: str) -> list[str]:
    """Return the titles of the conversations found, each once, best first."""
    results = cli.json("search", query)["results"]
    return list(dict.fromkeys(each["conversation_title"] for each in results))


def test_list(cli: Console) -> None:
    cli.done("tag", 1, "garden")
    cli.services.library.pin(ConversationId(2), True)
    assert cli.done("list", "--tag", "garden").out.split() == [
        "1",
        "2026-03-01",
        "Herbs",
        "#garden",
    ]
    assert "     2 * 2026-03-01  Bicycle\n" in cli.done("list").out
    rows = {row["conversation_id"]: row for row in cli.json("list")["conversations"]}
    assert {each: row["title"] for each, row in rows.items()} == {
        1: "Herbs", 2: "Bicycle", 3: "Secret",
    }  # fmt: skip
    assert rows[1].keys() == {
        "conversation_id", "title", "source", "pinned", "archived", "private", "created_at",
        "updated_at", "tags",
    }  # fmt: skip
    assert (rows[1]["tags"], rows[2]["pinned"], rows[3]["private"]) == (["garden"], True, True)
    cli.done("forget", 1, 2, 3, "--yes")
    assert cli.done("list").out == ""
    assert cli.done("list").err == "There are no such conversations.\n"


def test_show(unchanged: Console) -> None:
    shown = unchanged.done("show", 1).out
    assert shown.startswith("# Herbs\n")
    places = [shown.index(each) for each in ("[1:0]", BASIL, "An answer", "[1:1]")]
    assert places == sorted(places)
    document = unchanged.json("show", 1)
    assert (document["title"], document["summary"], document["tags"]) == ("Herbs", None, [])
    first, second = document["turns"]
    assert first.keys() == {
        "turn_number", "exchange_id", "status", "summary", "started_at", "completed_at", "model",
        "messages", "searchable",
    }  # fmt: skip
    assert (first["turn_number"], second["turn_number"]) == (0, 1)
    assert first["started_at"] == "2026-03-01T12:00:00+00:00"
    assert [each["role"] for each in first["messages"]] == ["user", "assistant"]
    assert first["messages"][0].keys() == {"message_id", "role", "text"}
    for words in (("1", "--turn", "1"), ("1:1",), ("commonplace://1/1",)):
        (turn,) = unchanged.json("show", *words)["turns"]
        assert turn["messages"][0]["text"] == "And the mint beside it"


def test_show_prints_branches_attachments_and_pictures(cli: Console, tmp_path: Path) -> None:
    message = {
        "uuid": "m1", "sender": "human", "content": [{"type": "text", "text": "Look"}],
        "attachments": [
            {"file_name": "notes.txt", "extracted_content": "Water it daily"},
            {"file_name": "scan.pdf"},
        ],
        "files": [{"file_name": "leaf.png"}],
    }  # fmt: skip
    thought = {"type": "thinking", "thinking": "A leaf."}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "green"}
    reply = {"uuid": "m2", "sender": "assistant", "content": [thought, result]}
    claude = [{"uuid": "c1", "name": "Leaves", "chat_messages": [message, reply]}]
    (tmp_path / "branched.json").write_text(json.dumps([chatgpt_branches("Colors")]))
    (tmp_path / "conversations.json").write_text(json.dumps(claude))
    cli.done("import", tmp_path / "branched.json", tmp_path / "conversations.json")
    assert len(cli.json("show", 4)["turns"]) == 1
    assert len(cli.json("show", 4, "--branches")["turns"]) == 2
    shown = cli.done("show", 5).out
    assert "Look\nnotes.txt:\nWater it daily\nscan.pdf\npicture: leaf.png\n" in shown
    assert "reasoning: 7 characters\nresult: 5 characters\n" in shown


def test_archived_and_deleted_conversations_leave_list_and_search(cli: Console) -> None:
    assert cli.json("archive", 1, 2) == {"archived": [1, 2]}
    assert (cli.titles(), cli.titles("--archived")) == (["Secret"], ["Bicycle", "Herbs"])
    assert (hits(cli, "basil"), hits(cli, "basil is:archived")) == ([], ["Herbs"])
    assert cli.json("unarchive", 1, 2) == {"unarchived": [1, 2]}
    assert hits(cli, "basil") == ["Herbs"]
    assert cli.json("delete", 1, 2) == {"deleted": [1, 2]}
    assert (cli.titles(), cli.titles("--trash")) == (["Secret"], ["Bicycle", "Herbs"])
    assert hits(cli, "basil") == []
    assert cli.json("undelete", 1) == {"restored": [1]}
    assert (cli.titles(), hits(cli, "basil")) == (["Herbs", "Secret"], ["Herbs"])


def test_conversations_are_changed_together(cli: Console) -> None:
    store = cli.services.store
    for command in ("archive", "unarchive", "delete", "undelete"):
        before = store.journal.last_position
        cli.done(command, 1, 2)
        assert store.journal.last_position == before + 1


def test_forgotten_text_is_in_no_file(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(herbs(), data_dir)
    cli = CommandLine(data_dir, capsys)
    assert hits(cli, "basil windowsill") == ["Herbs"]
    assert files_with(data_dir, "windowsill")
    ran = cli.done("forget", 1, "--yes", "--json")
    assert ran.document["forgotten"] == [1]
    assert len(ran.document["remains"]) == ran.err.count("\n") == 2
    assert (cli.titles(), hits(cli, "basil")) == (["Bicycle", "Secret"], [])
    assert hits(cli, "saddle") == ["Bicycle"]
    assert cli.json("status")["deletions_owed"] == 0, "a small library pays at once"
    assert files_with(data_dir, "windowsill") == set()


def test_a_turn_a_message_and_a_fact_are_forgotten_by_their_ids(cli: Console) -> None:
    fact = cli.json("facts", "add", "The saddle is blue")["fact"]["id"]
    cli.is_watched = False
    for words in (("turn", "1:0"), ("message", 3), ("fact", fact)):
        assert cli("forget", *words).code == 1
    assert cli.json("forget", "turn", "1:0", "--yes")["forgotten"] == ["1:0"]
    first, second = cli.json("show", 1)["turns"]
    assert [each["text"] for each in first["messages"]] == ["", ""]
    wanted = second["messages"][0]["message_id"]
    assert cli.json("forget", "message", wanted, "--yes")["forgotten"] == [wanted]
    assert "[forgotten]" in cli.done("show", 1).out
    assert cli.json("show", 1)["turns"][1]["messages"][0]["text"] == ""
    assert cli.json("forget", "fact", fact, "--yes")["forgotten"] == [fact]
    assert cli.json("facts", "list")["total"] == 0
    for words in (("turn", "1"), ("turn", "1:9"), ("message", 99), ("fact", 99)):
        assert cli("forget", *words, "--yes").code == 1
    for wrong in (("turn",), ("message", "x"), ("herbs",)):
        assert cli("forget", *wrong, "--yes").code == 2


@pytest.mark.parametrize("answer", ["", "no", "yes please"])
def test_nothing_is_forgotten_without_a_confirmation(cli: Console, answer: str) -> None:
    cli.typed = answer
    for cli.is_watched in (True, False):
        ran = cli("forget", "1")
        assert (ran.code, ran.out) == (1, "")
        first, *_, last = ran.err.splitlines()
        assert (first, "--yes" in last) == ("1: Herbs (2 turns)", True)
    assert cli("forget", 1, 99, 2, "--yes").code == 1
    assert cli.titles() == ["Bicycle", "Herbs", "Secret"]
    cli.typed, cli.is_watched = " Yes\n", True
    assert cli.done("forget", "1").out == ""
    assert cli.titles() == ["Bicycle", "Secret"]


@pytest.mark.parametrize("words", [("delete",), ("forget", "--yes")], ids=" ".join)
def test_a_running_reply_is_stopped_before_deletion(cli: Console, words: tuple[str, ...]) -> None:
    models = FakeModels(ScriptedModel([Text("Half an ans"), asyncio.Event()]))
    with closing(ExchangeLoop(cli.services.store, cli.services.settings, models)) as loop:
        own, cli.services.chat = cli.services.chat, loop
        reply = loop.send(None, (Text("Tell me a story"),)).result(10)
        reply.wait(10)
        cli.done(*words, reply.plan.conversation.id)
        assert reply.done.done()
        assert loop.running(reply.plan.conversation.id) is None
        cli.services.chat = own


def test_tags(cli: Console) -> None:
    assert cli.json("tag", 1, "garden", "to do") == {
        "conversation_id": 1, "tags": ["garden", "to do"],
    }  # fmt: skip
    assert cli.titles("--tag", "GARDEN") == hits(cli, "tag:garden mint") == ["Herbs"]
    assert cli.json("tag", 1, "--remove", "to do")["tags"] == ["garden"]
    assert cli.done("tag", 1).out == "garden\n"
    ran = cli("tag", 1, "x" * 41)
    assert (ran.code, "1 to 40 characters" in ran.err) == (1, True)
    assert cli.json("tag", 1)["tags"] == ["garden"]


@pytest.mark.parametrize("command", ["archive", "delete"])
def test_one_unknown_conversation_changes_nothing(unchanged: Console, command: str) -> None:
    assert unchanged(command, 1, 99, 2).code == 1
    assert unchanged.titles() == ["Bicycle", "Herbs", "Secret"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *(
            (words, "There is no conversation ")
            for words in (
                "show 99", "show 0", "show 99999999999999999999999", "archive 99", "tag 99 x",
                "delete 99999999999999999999999", "forget 99", "export --conversation 99 -",
                "facts list --conversation 99", "facts list --conversation 0",
                "recall Which? --conversation 99",
            )
        ),
        ("show 1:7", "There is no turn 1:7. The conversation has 1:0 to 1:1."),
        *((f"show {place}", f"'{place}' is not ") for place in ("herbs", "1:x", "-", "1.5", "²")),
        ("search b", "The query 'b' is too short."),
        (("search", ""), "The query '' is too short."),
        ("search basil --limit 0", "0 results cannot be requested."),
        ("search basil --limit 51", "51 results cannot be requested."),
        (f"search {'x' * 501}", "The query is 501 characters long."),
        (f"search {'x' * 1_000_000}", "The query is 1,000,000 characters long."),
        ("search before:yesterday", "'before:yesterday' is not a date."),
        ("search title:", "'title:' has no value."),
        ("search basil --why 1", "'1' is not a turn."),
        ("search basil --why herbs", "'herbs' is not a turn."),
        ("search basil --why 1:9", "There is no turn 1:9."),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)  # fmt: skip
def test_what_does_not_exist_is_reported_in_a_line(
    unchanged: Console, words: str | tuple[str, ...], message: str
) -> None:
    ran = unchanged(*(words.split() if isinstance(words, str) else words))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(message)
    assert ran.err.count("\n") == 1


# -- search
def test_search(unchanged: Console) -> None:
    first, question, snippet = unchanged.done("search", "basil windowsill").out.splitlines()[:3]
    assert re.fullmatch(r" 1\. +\d+%  Herbs  \[1:0\]  2026-03-01  m", first)
    assert (question.strip(), "basil" in snippet) == (BASIL, True)
    assert unchanged.done("search", "winter wheat bread").out.splitlines()[0].endswith("weak match")
    ran = unchanged.done("search", "xylophone")
    assert (ran.out, ran.err) == ("", "Nothing was found. Try other or fewer words.\n")
    assert unchanged.json("search", "basil", "--kind", "exchange_summary")["results"] == []
    kinds = ("--kind", "exchange_summary", "--kind", "turn")
    assert {each["kind"] for each in unchanged.json("search", "basil", *kinds)["results"]} == {
        "turn"
    }


def test_a_snippet_that_is_the_question_is_not_repeated(cli: Console) -> None:
    add_conversation(cli.services.store, ("Which nut fits?", "None."))
    assert cli.done("search", "nut").out.count("Which nut fits?") == 1


def test_a_search_document(unchanged: Console) -> None:
    document = unchanged.json("search", "basil windowsill", "--limit", 1)
    assert document.keys() == {"query", "took_ms", "results"}
    assert document["query"] == "basil windowsill"
    assert document["took_ms"] > 0
    (result,) = document["results"]
    assert result.keys() == {
        "kind", "id", "source", "conversation_id", "conversation_title", "turn_number",
        "exchange_id", "message_id", "relevance", "cosine", "user_question", "snippet",
        "created_at", "model",
    }  # fmt: skip
    assert (result["kind"], result["source"], result["cosine"]) == ("turn", "commonplace", None)
    assert (result["conversation_id"], result["turn_number"]) == (1, 0)
    assert 0.7 < result["relevance"] <= 1
    assert result["model"] == unchanged.json("show", 1)["turns"][0]["model"]
    assert result["created_at"] == "2026-03-01T12:00:00+00:00"
    for query in ("the of and", "\U0001f600 ok", '"left open', "a\x00b \ud800 c"):
        assert unchanged.json("search", query).keys() == document.keys()


def test_why_a_turn_is_found_or_not(cli: Console) -> None:
    found = cli.done("search", "basil windowsill", "--why", "1:0").out
    assert "Found as number 1 of 2." in found
    assert "Words found: basil, windowsill; not: none" in found
    assert "Share of the question's words in the message" in found
    cli.done("archive", 1)
    lost = cli.done("search", "basil windowsill", "--why", "1:0").out
    assert "Not found." in lost
    assert "- Its conversation is archived." in lost
    document = cli.json("search", "basil", "--why", "1:0")
    assert (document["obstacles"][0]["cause"], document["rank"]) == ("archived", None)


def test_probes_are_added_run_and_removed(cli: Console) -> None:
    for words, code in (
        ("add only_a_question", 2), ("add x 1:0", 1), ("add basil 1:7", 1), ("remove 1", 1),
        ("remove one", 1), ("run it", 2), ("burn", 2),
    ):  # fmt: skip
        ran = cli("probes", *words.split())
        assert (words, ran.code, ran.out, ran.err.count("\n")) == (words, code, "", 1)
    assert cli.json("probes") == {"probes": []}
    cli.done("probes", "add", "herbs in winter", "1:0")
    added = cli.done("probes", "add", "saddle bolt", "2:0")
    assert added.out.splitlines()[1].split() == ["2.", "number", "1", "saddle", "bolt", "[2:0]"]
    cli.done("archive", 2)
    first, second = cli.json("probes", "run")["probes"]
    assert (first["rank"], first["before"]) == (1, 1)
    assert (second["rank"], second["before"]) == (None, 1)
    assert second["ran_at"] > second["before_at"]
    assert "not found, was number 1" in cli.done("probes", "list").out
    assert len(cli.json("probes", "remove", 1)["probes"]) == 1
    cli.done("forget", 2, "--yes")
    assert cli.json("probes", "run") == {"probes": []}
