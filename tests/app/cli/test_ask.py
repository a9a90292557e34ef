"""`ask` and `prompt`: answers of Recall, and of a scripted server behind a real client."""

import re
from pathlib import Path

import pytest

from app.chat.context_fetcher import RecallLimits
from app.domain.conversations import Draft
from tests.fakes.command_line import BASIL, Console
from tests.fakes.files import pdf, png
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import CutAfter, Http, text, tool_call, usage

RECALLED_FIELDS = {"kind", "id", "conversation_id", "turn_number", "relevance", "injected"}


def question_in(cli: Console, place: object) -> str:
    """Return the user's text in a conversation of one turn."""
    (turn,) = cli.json("show", place)["turns"]
    return str(turn["messages"][0]["text"])


def test_recall_quotes_and_links_other_conversations(cli: Console) -> None:
    cli.services.library.save_draft(None, Draft("Typed in the window"))
    ran = cli.done("ask", "What did we say about basil in winter?")
    assert cli.services.library.draft(None) == Draft("Typed in the window")
    assert "](commonplace://1/0)" in ran.out
    assert "> " in ran.out
    assert "nobody may know" not in ran.out
    assert ran.err == "[4:0]\n"
    follow_up = cli.done("ask", "And why is that?", "--conversation", 4).out
    assert "](commonplace://1/0)" in follow_up, "searched with the question before"
    assert "not a language model" in ran.out
    assert "not a language model" not in follow_up
    answer = cli.done("ask", "xylophone quartets").out
    assert "commonplace://" not in answer
    assert cli.json("ask", "xylophone quartets")["recalled"] == []


def test_the_document_of_an_answer(cli: Console) -> None:
    document = cli.json("ask", "What did we say about basil in winter?")
    assert document.keys() == {
        "conversation_id", "exchange_id", "turn_number", "answer", "model", "status", "usage",
        "recalled",
    }  # fmt: skip
    assert document["usage"].keys() == {
        "input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "cost_usd",
    }  # fmt: skip
    assert (document["conversation_id"], document["turn_number"]) == (4, 0)
    assert document["model"] == "recall:"
    first = document["recalled"][0]
    assert first.keys() == RECALLED_FIELDS
    assert (first["kind"], first["conversation_id"], first["turn_number"]) == ("turn", 1, 0)
    assert first["injected"] is True
    assert len(document["recalled"]) == document["answer"].count("](commonplace://")
    assert cli.json("show", 4)["turns"][0]["messages"][1]["text"] == document["answer"]


def test_the_question(cli: Console) -> None:
    for words in ("/new", "/search basil"):
        assert question_in(cli, cli.json("ask", words)["conversation_id"]) == words
    document = cli.json("ask", "And parsley?", "--conversation", 1)
    assert (document["conversation_id"], document["turn_number"]) == (1, 2)
    assert question_in(cli, "1:2") == "And parsley?"
    cli.typed = "Zwei Zeilen\nmit Größe"
    assert question_in(cli, cli.json("ask", "-")["conversation_id"]) == cli.typed
    cli.done("ask", "Where does the word serendipity come from")
    (result,) = cli.json("search", "serendipity")["results"]
    assert result["conversation_id"] == 7


def test_a_private_conversation_is_never_found_but_recalls_others(cli: Console) -> None:
    conversation = cli.json("ask", "My heart murmur", "--private")["conversation_id"]
    assert cli.json("show", conversation)["private"] is True
    cli.done("ask", "And the murmur again", "--conversation", conversation)
    assert cli.json("search", "murmur")["results"] == []
    assert cli.json("ask", "What about the murmur?")["recalled"] == []
    assert "commonplace://1/0" in cli.done("ask", "basil on the windowsill", "--private").out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [("Hello --private --conversation 1", 2, "--private starts a new conversation"),
     ("Hello --conversation 99", 1, "There is no conversation "),
     ("Hello --model nosuch:model", 1, "There is no provider 'nosuch'"),
     ("Hello --model openai:", 1, "'openai:' is not a model"),
     ("Hello --model openai", 1, "'openai' is not a model"), ("-", 1, "The message is empty.")],
)  # fmt: skip
def test_refusals_store_nothing(cli: Console, words: str, code: int, message: str) -> None:
    cli.typed = " \n"
    ran = cli("ask", *words.split())
    assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1)
    assert ran.err.startswith(message)
    assert len(cli.titles()) == 3


def test_a_missing_key_is_reported_with_the_place_of_the_conversation(
    cli: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ran = cli("ask", "Hello", "--model", "openai:gpt-5")
    assert ran.code == 1
    assert ran.err.endswith("or set OPENAI_API_KEY. The conversation is stored in [4:0].\n")


# -- with a server
@pytest.fixture
def served(cli: Console, server: Loopback, monkeypatch: pytest.MonkeyPatch) -> Console:
    """Return a command line whose default model is served, and which waits for recall."""
    monkeypatch.setattr(cli.services.context_fetcher, "_limits", RecallLimits(20.0, 20.0, 20.0))
    cli.done("provider", "add", "local", "--kind", "compatible", "--base-url", server.v1)
    cli.done("config", "set", "default_model", "local:test-model")
    cli.done("config", "set", "rag_min_similarity", "0.1")
    return cli


def test_an_answer_is_streamed_and_its_usage_reported(served: Console, server: Loopback) -> None:
    server.reply(text("Basil wants light.", chunks=6), usage(21, 7))
    ran = served.done("ask", "xylophone?")
    assert (ran.out, ran.err) == ("Basil wants light.\n", "[4:0]\n")
    (seen,) = server.posts
    assert seen.body["model"] == "test-model"
    assert seen.body["messages"][-1]["content"].endswith("\n\nxylophone?")
    server.reply(text("Light."), usage(21, 7, 5))
    document = served.json("ask", "xylophone?")
    assert (document["answer"], document["model"]) == ("Light.", "local:test-model")
    assert document["usage"] == {
        "input_tokens": 21, "output_tokens": 7, "cached_tokens": 5, "cache_write_tokens": 0, "cost_usd": 0.0,
    }  # fmt: skip


def test_a_conversation_keeps_its_model(served: Console, server: Loopback) -> None:
    server.always(text("Yes."))
    asked = served.json("ask", "xylophone", "--model", "local:test-model-mini")
    served.done("ask", "Again", "--conversation", asked["conversation_id"])
    assert [seen.body["model"] for seen in server.posts] == ["test-model-mini"] * 2
    contents = [each["content"] for each in server.posts[1].body["messages"][1:]]
    assert [each.rpartition("\n\n")[2] for each in contents] == ["xylophone", "Yes.", "Again"]


def test_what_was_recalled_is_printed_and_inspected(served: Console, server: Loopback) -> None:
    server.always(text("It wants light; see [there](commonplace://1/0)."))
    ran = served.done("ask", "How do I keep basil alive on a windowsill?")
    assert ran.out == "It wants light; see [there](commonplace://1/0).\n"
    assert "'Herbs'" in ran.err
    first = served.json("ask", "How do I keep basil alive on a windowsill?")["recalled"][0]
    assert first.keys() == RECALLED_FIELDS
    assert (first["conversation_id"], first["injected"]) == (1, True)
    shown = served.json("prompt", "4:0")
    assert BASIL in shown["recalled"]
    assert any(each["cited"] for each in shown["items"])
    printed = served.done("prompt", "4:0").out
    assert "## related: " in printed
    assert "cited" in printed
    assert [served("prompt", place).code for place in ("1:0", "4", "4:9")] == [1, 2, 1]


def test_a_saved_text_is_in_the_prompt_until_forgotten(served: Console, server: Loopback) -> None:
    served.done("memory", "save", "The boat house key hangs behind the blue barometer.")
    server.always(text("Behind it."))
    served.done("ask", "Where does the boat house key hang?")
    shown = served.json("prompt", "4:0")
    assert "behind the blue barometer" in shown["recalled"]
    (item,) = [each for each in shown["items"] if each["kind"] == "memory"]
    served.done("memory", "forget", item["passage_id"], "--yes")
    assert "barometer" not in served.done("prompt", "4:0").out


def test_tool_calls_are_shown_and_counted(served: Console, server: Loopback) -> None:
    server.reply(tool_call("conversation_search", '{"query": "basil"}', "call_a"), usage(9, 2))
    server.reply(text("It wants light."), usage(20, 4))
    ran = served.done("ask", "How do I keep basil alive on a windowsill?")
    assert re.match(r"conversation_search: [\d,]+ characters in [\d,]+ ms\n", ran.err)
    shown = served.done("show", "4").out
    assert '\nconversation_search {"query": "basil"}\n' in shown
    assert re.search(r"\nconversation_search: [\d,]+ characters\n", shown)
    printed = served.done("prompt", "4:0")
    assert "2 requests" in printed.err
    assert " turn [1:0] of 'Herbs': " in printed.out
    assert served.json("prompt", "4:0")["requests"] == 2


@pytest.mark.parametrize(
    ("reply", "status", "message"),
    [(Http(401, error={"type": "invalid_api_key", "message": "Wrong key"}), "failed", "key"),
     (Http(404, error={"type": "not_found", "message": "No such model"}), "failed", "model"),
     (CutAfter(900), "interrupted", "connection")],
    ids=["no key", "no model", "cut"],
)  # fmt: skip
def test_a_reply_that_fails_keeps_what_arrived(
    served: Console, server: Loopback, reply: Http | CutAfter, status: str, message: str
) -> None:
    script = (reply,) if isinstance(reply, Http) else (text("All that arrived", chunks=8), reply)
    server.always(*script)
    ran = served("ask", "Are you there?")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert message in ran.err
    assert ran.err.endswith("The conversation is stored in [4:0].\n")
    (turn,) = served.json("show", 4)["turns"]
    arrived = ran.out.rstrip("\n")
    assert [turn["status"], *(each["text"] for each in turn["messages"])] == [
        status, "Are you there?", *([arrived] if arrived else []),
    ]  # fmt: skip
    assert bool(arrived) == (status == "interrupted")
    assert "All that arrived".startswith(arrived)
    document = served("ask", "Are you there?", "--json").document
    assert (document["status"], document["answer"]) == (status, arrived)


def test_a_server_that_does_not_respond(cli: Console) -> None:
    with Loopback() as closed:
        address = closed.v1
    cli.done("provider", "add", "local", "--kind", "compatible", "--base-url", address)
    ran = cli("ask", "Are you there?", "--model", "local:any")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.endswith("The conversation is stored in [4:0].\n")


def test_a_question_without_a_reply_is_found_once(served: Console, server: Loopback) -> None:
    server.reply(Http(401, error={"message": "Wrong key"})).reply(text("Here I am."))
    served("ask", "Is anybody out there?")
    served.done("ask", "Hello?", "--conversation", 4)
    (result,) = served.json("search", "anybody out there")["results"]
    assert (result["conversation_id"], result["turn_number"]) == (4, 0)
    assert served.json("status")["passages"] == {"turn": 4}


# -- attached files
def test_files_are_sent_with_the_question_and_again_with_the_next(
    served: Console, server: Loopback, tmp_path: Path
) -> None:
    server.always(text("yes"))
    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "b.pdf").write_bytes(pdf("Invoice quarterly"))
    (tmp_path / "scan.pdf").write_bytes(pdf())
    names = ("a.png", "b.pdf", "scan.pdf")
    options = [word for name in names for word in ("--attach", tmp_path / name)]
    ran = served("ask", "What is this?", *options)
    assert ran.code == 0
    assert "'scan.pdf'" in ran.err
    first = server.posts[-1].body["messages"][-1]["content"]
    assert first[0]["image_url"]["url"].startswith("data:image/png;base64,")
    assert "> Invoice quarterly" in first[1]["text"]
    place = served.json("search", "quarterly invoice")["results"][0]
    assert (place["conversation_id"], place["turn_number"]) == (4, 0)
    served.done("ask", "And now?", "--conversation", 4)
    before, after = (seen.body["messages"] for seen in server.posts[-2:])
    assert after[: len(before)] == before
    again = next(each for each in server.posts[-1].body["messages"] if each["role"] == "user")
    assert again["content"][0] == first[0]
    served.services.attachments.path(image_hash(served)).unlink()
    assert served("check").code == 1
    served.done("forget", 4, "--yes")
    assert list(served.services.paths.attachments.iterdir()) == []
    assert served("check").code == 0


def image_hash(cli: Console) -> str:
    paths = cli.services.paths.attachments.iterdir()
    (found,) = [each.name for each in paths if each.read_bytes().startswith(b"\x89PNG")]
    return found


def test_recall_says_that_it_cannot_see_images(cli: Console, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    ran = cli.done("ask", "basil", "--attach", tmp_path / "a.png")
    assert "cannot see images" in ran.out
    assert "commonplace://1/0" in ran.out
    assert "names only" in ran.err


@pytest.mark.parametrize("name", ["missing.png", ".", "empty.txt"])
def test_a_file_that_is_refused_stores_nothing(cli: Console, tmp_path: Path, name: str) -> None:
    (tmp_path / "empty.txt").touch()
    assert cli("ask", "Look", "--attach", tmp_path / name).code == 1
    assert len(cli.titles()) == 3
