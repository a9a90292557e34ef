"""`ask`, as a user types it: Recall, and a scripted server behind a real client."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.command_line import CommandLine, typed
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import CutAfter, Http, text, tool_call, usage
from tests.fakes.stored import made, opened, told

BASIL = "How do I keep basil alive on a windowsill in winter"


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory of three conversations, to be copied."""
    root = tmp_path_factory.mktemp("book") / "data"
    with opened(root) as store:
        told(store, BASIL, "And the mint beside it", title="Herbs")
        told(store, "Which bolt fits the saddle", title="Bicycle")
        told(store, "A basil nobody may know of", title="Secret", private=True)
    return root


@pytest.fixture
def cli(book: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    shutil.copytree(book, data_dir)
    return CommandLine(data_dir, capsys)


def test_recall_quotes_and_links_another_conversation(cli: CommandLine) -> None:
    ran = cli.done("ask", "What did we say about basil in winter?")
    assert "From your conversations" in ran.out
    assert f"[{BASIL}](commonplace://1/0)" in ran.out
    assert "> " in ran.out
    assert "Recall answered, not a language model" in ran.out
    assert "nobody may know" not in ran.out
    assert ran.err == "[4:0]\n"


def test_what_begins_with_a_slash_is_asked_like_anything_else(cli: CommandLine) -> None:
    for words in ("/new", "/search basil"):
        document = cli.json("ask", words)
        asked = cli.json("show", str(document["conversation_id"]))["turns"][0]["messages"][0]
        assert asked["text"] == words


def test_recall_is_honest_when_there_is_nothing(cli: CommandLine) -> None:
    answer = cli.done("ask", "xylophone quartets").out
    assert answer.startswith("I found nothing about that in your conversations.")
    assert "commonplace://" not in answer


def test_ask_as_json_has_the_documented_fields(cli: CommandLine) -> None:
    document = cli.json("ask", "basil")
    assert document.keys() >= {
        "conversation_id", "exchange_id", "turn_number", "answer", "model", "usage", "recalled",
    }  # fmt: skip
    assert document["usage"].keys() == {
        "input_tokens", "output_tokens", "cached_tokens", "cost_usd",
    }  # fmt: skip
    assert (document["conversation_id"], document["turn_number"]) == (4, 0)
    assert document["model"] == "recall:"
    assert document["recalled"][0].keys() == {
        "kind", "id", "conversation_id", "turn_number", "relevance", "injected",
    }  # fmt: skip


def test_what_recall_quoted_is_in_the_document(cli: CommandLine) -> None:
    document = cli.json("ask", "What did we say about basil in winter?")
    (first, *rest) = document["recalled"]
    assert (first["kind"], first["conversation_id"], first["turn_number"]) == ("turn", 1, 0)
    assert first["injected"] is True
    assert f"{first['relevance']:.0%}" in document["answer"]
    assert len([first, *rest]) == document["answer"].count("](commonplace://")
    assert cli.json("ask", "xylophone quartets")["recalled"] == []
    assert cli.json("show", 4)["turns"][0]["messages"][1]["text"] == document["answer"]


def test_ask_goes_on_with_a_conversation(cli: CommandLine) -> None:
    document = cli.json("ask", "And parsley?", "--conversation", 1)
    assert (document["conversation_id"], document["turn_number"]) == (1, 2)
    assert cli.json("show", "1:2")["turns"][0]["messages"][0]["text"] == "And parsley?"


def test_a_question_may_come_by_standard_input(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", typed("Zwei Zeilen\nmit Größe"))
    conversation = cli.json("ask", "-")["conversation_id"]
    (turn,) = cli.json("show", conversation)["turns"]
    assert turn["messages"][0]["text"] == "Zwei Zeilen\nmit Größe"


def test_input_that_is_no_utf_8_is_taken_as_far_as_it_can_be_read(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", typed(b"Gr\xf6\xdfe"))
    conversation = cli.json("ask", "-")["conversation_id"]
    (turn,) = cli.json("show", conversation)["turns"]
    assert turn["messages"][0]["text"] == "Gr\ufffd\ufffde"


def test_nothing_to_ask_is_a_known_error(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", typed(" \n"))
    ran = cli("ask", "-")
    assert (ran.code, ran.err) == (1, "There is nothing to send. Type a message first.\n")
    assert len(cli.json("list")["conversations"]) == 3


def test_a_private_conversation_is_never_found(cli: CommandLine) -> None:
    conversation = cli.json("ask", "My heart murmur", "--private")["conversation_id"]
    assert cli.json("show", conversation)["private"] is True
    cli.done("ask", "And the murmur again", "--conversation", conversation)
    assert cli.json("search", "murmur")["results"] == []
    assert "I found nothing" in cli.done("ask", "What about the murmur?").out


def test_a_private_conversation_still_recalls_the_others(cli: CommandLine) -> None:
    assert "commonplace://1/0" in cli.done("ask", "basil on the windowsill", "--private").out


def test_private_means_a_new_conversation(cli: CommandLine) -> None:
    ran = cli("ask", "Hello", "--private", "--conversation", 1)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "--private begins a conversation. Leave out --conversation.\n"


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        ("nosuch:model", "There is no provider 'nosuch'"),
        ("openai:", "'openai:' names no model"),
        ("openai", "'openai' names no model"),
    ],
)
def test_a_model_that_cannot_be_is_refused_before_anything_is_stored(
    cli: CommandLine, model: str, complaint: str
) -> None:
    ran = cli("ask", "Hello", "--model", model)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(complaint)
    assert len(cli.json("list")["conversations"]) == 3


# -- ask, with a server


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


@pytest.fixture
def served(cli: CommandLine, server: Loopback, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.setattr("app.chat.looking_up.LIMIT_S", 20.0)  # a busy machine is no matter here
    cli.done("provider", "add", "local", "--kind", "compatible", "--base-url", server.v1)
    cli.done("config", "set", "default_model", "local:test-model")
    return cli


def test_a_model_answers_word_by_word(served: CommandLine, server: Loopback) -> None:
    server.reply(text("Basil wants light.", chunks=6), usage(21, 7))
    ran = served.done("ask", "What does basil want?")
    assert (ran.out, ran.err) == ("Basil wants light.\n", "[4:0]\n")
    (seen,) = server.posts
    assert seen.body["model"] == "test-model"
    assert seen.body["messages"][-1]["content"] == "What does basil want?"


def test_what_a_model_used_is_in_the_document(served: CommandLine, server: Loopback) -> None:
    server.reply(text("Light."), usage(21, 7, 5))
    document = served.json("ask", "What does basil want?")
    assert (document["answer"], document["model"]) == ("Light.", "local:test-model")
    assert document["usage"] == {
        "input_tokens": 21, "output_tokens": 7, "cached_tokens": 5, "cost_usd": 0.0,
    }  # fmt: skip


def test_the_model_of_a_conversation_is_kept(served: CommandLine, server: Loopback) -> None:
    server.always(text("Yes."))
    asked = served.json("ask", "Hello", "--model", "local:test-model-mini")
    served.done("ask", "Again", "--conversation", asked["conversation_id"])
    assert [seen.body["model"] for seen in server.posts] == ["test-model-mini"] * 2
    assert [each["content"] for each in server.posts[1].body["messages"]] == [
        "Hello",
        "Yes.",
        "Again",
    ]


def test_what_memory_contributed_is_told_and_can_be_looked_at(
    served: CommandLine, server: Loopback
) -> None:
    served.done("config", "set", "rag_min_similarity", "0.1")
    server.always(text("It wants light; see [there](commonplace://1/0)."))
    ran = served.done("ask", "How do I keep basil alive on a windowsill?")
    assert ran.out == "It wants light; see [there](commonplace://1/0).\n"
    assert "Recalled from 'Herbs'" in ran.err
    asked = served.json("ask", "How do I keep basil alive on a windowsill?")
    first = asked["recalled"][0]
    assert first.keys() == {
        "kind", "id", "conversation_id", "turn_number", "relevance", "injected",
    }  # fmt: skip
    assert (first["conversation_id"], first["injected"]) == (1, True)
    shown = served.json("prompt", "4:0")
    assert BASIL in shown["recalled"]
    assert any(each["cited"] for each in shown["items"])
    printed = served.done("prompt", "4:0")
    assert "## related: " in printed.out
    assert "cited" in printed.out
    assert served("prompt", "1:0").code == 1
    assert served("prompt", "4").code == 2
    assert served("prompt", "4:9").code == 1


def test_a_saved_text_goes_into_the_prompt_and_out_of_it_when_forgotten(
    served: CommandLine, server: Loopback
) -> None:
    served.done("memory", "save", "The boat house key hangs behind the blue barometer.")
    server.always(text("Behind it."))
    served.done("ask", "Where does the boat house key hang?")
    shown = served.json("prompt", "4:0")
    assert "behind the blue barometer" in shown["recalled"]
    (item,) = [each for each in shown["items"] if each["kind"] == "memory"]
    served.done("memory", "forget", item["passage_id"], "--yes")
    assert "barometer" not in served.done("prompt", "4:0").out


def test_tools_that_were_called_are_shown_and_counted(
    served: CommandLine, server: Loopback
) -> None:
    served.done("config", "set", "rag_min_similarity", "0.1")
    server.reply(tool_call("conversation_search", '{"query": "basil"}', "call_a"), usage(9, 2))
    server.reply(text("It wants light."), usage(20, 4))
    served.done("ask", "How do I keep basil alive on a windowsill?")
    shown = served.done("show", "4").out
    assert '\nconversation_search {"query": "basil"}\n' in shown
    assert re.search(r"\nconversation_search: [\d,]+ characters\n", shown)
    printed = served.done("prompt", "4:0")
    assert "2 requests: the later ones also held the tool calls and results" in printed.err
    assert " turn 0 of 'Herbs': " in printed.out
    assert served.json("prompt", "4:0")["requests"] == 2


def test_a_failing_server_is_told_in_a_line_and_the_question_kept(
    served: CommandLine, server: Loopback
) -> None:
    server.always(Http(401, error={"type": "invalid_api_key", "message": "Wrong key"}))
    ran = served("ask", "Are you there?")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.count("\n") == 1
    assert "key" in ran.err
    assert ran.err.endswith("What was said is kept in [4:0].\n")
    (turn,) = served.json("show", 4)["turns"]
    assert (turn["status"], turn["messages"][0]["text"]) == ("failed", "Are you there?")


def test_a_failure_as_json_is_one_document_and_exit_code_1(
    served: CommandLine, server: Loopback
) -> None:
    server.always(Http(404, error={"type": "not_found", "message": "No such model"}))
    ran = served("ask", "Are you there?", "--json")
    assert ran.code == 1
    assert (ran.document["status"], ran.document["answer"]) == ("failed", "")
    assert ran.err.count("\n") == 1


def test_a_broken_stream_keeps_what_had_come(served: CommandLine, server: Loopback) -> None:
    server.always(text("All that came through", chunks=8), CutAfter(900))
    ran = served("ask", "Are you there?")
    assert ran.code == 1
    words = ran.out.rstrip("\n")
    assert words
    assert "All that came through".startswith(words)
    (turn,) = served.json("show", 4)["turns"]
    assert (turn["status"], turn["messages"][1]["text"]) == ("interrupted", words)


def test_a_server_that_is_gone_is_a_known_error(cli: CommandLine) -> None:
    with Loopback() as closed:
        address = closed.v1
    cli.done("provider", "add", "local", "--kind", "compatible", "--base-url", address)
    ran = cli("ask", "Are you there?", "--model", "local:any")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.endswith("What was said is kept in [4:0].\n")


def test_a_question_without_a_reply_is_found_once(served: CommandLine, server: Loopback) -> None:
    server.reply(Http(401, error={"message": "Wrong key"})).reply(text("Here I am."))
    served("ask", "Is anybody out there?")
    served.done("ask", "Hello?", "--conversation", 4)
    (result,) = served.json("search", "anybody out there")["results"]
    assert (result["conversation_id"], result["turn_number"]) == (4, 0)
    assert served.json("status")["passages"] == {"turn": 4}


def test_an_empty_book_can_be_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path / "empty")
    ran = CommandLine(tmp_path / "empty", capsys).done("ask", "Hello?")
    assert "I found nothing" in ran.out
