"""`search` and `probes`, as a user types them."""

import re
import shutil
from pathlib import Path

import pytest

from tests.fakes.command_line import CommandLine
from tests.fakes.stored import opened, told

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


# -- search


def test_search_shows_the_place_to_go_to(cli: CommandLine) -> None:
    ran = cli.done("search", "basil windowsill")
    first, question, snippet = ran.out.splitlines()[:3]
    assert re.fullmatch(r" 1\. +\d+%  Herbs  \[1:0\]  2026-03-01", first)
    assert question.strip() == BASIL
    assert "basil" in snippet
    assert ran.err == ""


def test_a_weak_match_is_marked(cli: CommandLine) -> None:
    ran = cli.done("search", "winter wheat bread")
    assert ran.out.splitlines()[0].endswith("  weak match")


def test_search_as_json_has_exactly_the_documented_fields(cli: CommandLine) -> None:
    document = cli.json("search", "basil windowsill", "--limit", 1)
    assert document.keys() == {"query", "took_ms", "results"}
    assert document["query"] == "basil windowsill"
    assert document["took_ms"] > 0
    (result,) = document["results"]
    assert result.keys() == {
        "kind", "id", "source", "conversation_id", "conversation_title", "turn_number",
        "exchange_id", "message_id", "relevance", "cosine", "user_question", "snippet",
        "created_at", "model",
    }  # fmt: skip
    assert (result["kind"], result["source"]) == ("turn", "commonplace")
    assert (result["conversation_id"], result["turn_number"]) == (1, 0)
    assert 0.7 < result["relevance"] <= 1
    assert result["cosine"] is None
    assert result["model"] == cli.json("show", 1)["turns"][0]["model"]
    assert result["created_at"] == "2026-03-01T12:00:00+00:00"


def test_a_search_without_results_says_so_and_succeeds(cli: CommandLine) -> None:
    ran = cli.done("search", "xylophone")
    assert (ran.out, ran.err) == ("", "Nothing was found. Try other or fewer words.\n")
    assert cli.json("search", "xylophone")["results"] == []


def test_search_can_be_kept_to_a_kind_of_passage(cli: CommandLine) -> None:
    assert cli.json("search", "basil", "--kind", "exchange_summary")["results"] == []
    kinds = ("--kind", "exchange_summary", "--kind", "turn")
    results = cli.json("search", "basil", *kinds)["results"]
    assert {each["kind"] for each in results} == {"turn"}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("b",), "The query 'b' is too short. Type 2 to 500 characters."),
        (("",), "The query '' is too short. Type 2 to 500 characters."),
        (("basil", "--limit", "0"), "0 results cannot be asked for."),
        (("basil", "--limit", "51"), "51 results cannot be asked for."),
        (("x" * 501,), "The query is 501 characters long."),
        (("x" * 1_000_000,), "The query is 1,000,000 characters long."),
        (("before:yesterday",), "'before:yesterday' names no date."),
        (("title:",), "'title:' has no value."),
    ],
)
def test_a_query_that_cannot_be_taken_is_a_known_error(
    cli: CommandLine, words: tuple[str, ...], complaint: str
) -> None:
    ran = cli("search", *words)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(complaint)


@pytest.mark.parametrize("query", ["the of and", "\U0001f600 ok", '"left open', "a\x00b \ud800 c"])
def test_a_strange_query_is_answered(cli: CommandLine, query: str) -> None:
    assert cli.json("search", query).keys() == {"query", "took_ms", "results"}


def test_search_finds_at_once_what_was_just_asked(cli: CommandLine) -> None:
    cli.done("ask", "Where does the word serendipity come from")
    (result,) = cli.json("search", "serendipity")["results"]
    assert result["conversation_id"] == 4


# -- why


def test_why_tells_the_place_the_points_and_what_kept_it_back(cli: CommandLine) -> None:
    found = cli.done("search", "basil windowsill", "--why", "1:0").out
    assert "Found as number 1 of 2." in found
    assert "Words held: basil, windowsill; not: none" in found
    assert "Share of the question's words that it holds" in found

    cli.done("archive", 1)
    lost = cli.done("search", "basil windowsill", "--why", "1:0").out
    assert "Not found." in lost
    assert "- Its conversation is archived. Add is:archived to the question." in lost
    document = cli.json("search", "basil", "--why", "1:0")
    assert document["obstacles"][0]["cause"] == "archived"
    assert document["rank"] is None


@pytest.mark.parametrize(
    ("place", "complaint"),
    [
        ("1", "'1' names no turn. Write ID:TURN, such as 12:3.\n"),
        ("herbs", "'herbs' names no turn. Write ID or ID:TURN, such as 12:3.\n"),
        ("1:9", "Conversation 1 has no turn 9. It has turns 0 to 1.\n"),
    ],
)
def test_why_needs_a_turn(cli: CommandLine, place: str, complaint: str) -> None:
    ran = cli("search", "basil", "--why", place)
    assert (ran.code, ran.out, ran.err) == (1, "", complaint)


# -- probe questions


def test_probe_questions_are_kept_asked_and_dropped(cli: CommandLine) -> None:
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
    assert cli.json("probes", "run") == {"probes": []}, (
        "a question about what is forgotten goes too"
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("add", "only a question"), 2),
        (("add", "x", "1:0"), 1),
        (("add", "basil", "1:7"), 1),
        (("remove", "1"), 1),
        (("remove", "one"), 1),
        (("run", "it"), 2),
        (("burn",), 2),
    ],
)
def test_what_makes_no_probe_is_refused(
    cli: CommandLine, words: tuple[str, ...], code: int
) -> None:
    ran = cli("probes", *words)
    assert (ran.code, ran.out) == (code, "")
    assert len(ran.err.splitlines()) == 1
    assert cli.json("probes") == {"probes": []}
