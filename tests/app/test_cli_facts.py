"""`commonplace facts`: every deed, for people and for programs."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.bootstrap import Role, build
from app.chat.commands.parser import parse
from app.chat.commands.values import CommandOutput, Place, WrongForm
from app.cli.entry import main
from app.storage.facts import Facts
from app.system.paths import DataPaths
from tests.app.test_facts import learned
from tests.fakes.stored import AT, opened, told

FIELDS = {
    "id", "uid", "text", "category", "subject", "pinned", "model", "said_at", "made_at",
    "valid_until", "superseded_by", "conversation_id", "conversation_title", "turn_number",
    "exchange_id", "message_id", "versions",
}  # fmt: skip


@pytest.fixture
def book(data_dir: Path) -> Path:
    """Return a data directory with facts 2 (holds) and 3 (ended), learned from a talk."""
    with opened(data_dir) as store:
        source = told(store, "tea", title="Of drinks")
        now_so = learned(store, source, "The user drinks green tea.")
        learned(store, source, "The user drinks coffee.", valid_until=AT, superseded_by=now_so.id)
    return data_dir


def run(book: Path, *words: object) -> int:
    return main(["--data-dir", str(book), "facts", *map(str, words)])


def plain(book: Path, capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    capsys.readouterr()
    assert run(book, *words, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_the_list_names_what_holds_and_all_when_asked(
    book: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(book, "list") == 0
    shown = capsys.readouterr().out
    assert "2   The user drinks green tea." in shown
    assert "preference, 2026-03-01  Of drinks [1:0]" in shown
    assert "coffee" not in shown
    assert run(book, "list", "--all", "--limit", 1) == 0
    assert "1 of 2; --offset shows more." in capsys.readouterr().err
    assert run(book, "list", "--all", "--conversation", 1) == 0
    assert "superseded by 2: The user drinks green tea." in capsys.readouterr().out
    assert run(book, "list", "--category", "plan") == 0
    assert "No facts are known yet." in capsys.readouterr().err


def test_the_documents_have_the_fields_they_say(
    book: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = plain(book, capsys, "list", "--all")
    assert listed["total"] == 2
    assert [set(each) for each in listed["facts"]] == [FIELDS, FIELDS]
    history = plain(book, capsys, "history", 2)
    assert set(history) == {"fact", "versions", "superseded"}
    assert history["superseded"] == [3]
    assert set(history["versions"][0]) == {
        "text", "category", "model", "said_at", "made_at", "conversation_id", "exchange_id",
        "message_id",
    }  # fmt: skip


def test_facts_are_searched(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = plain(book, capsys, "search", "green", "tea")
    assert found["query"] == "green tea"
    assert [each["id"] for each in found["facts"]] == [2]
    assert run(book, "search", "green", "tea") == 0
    assert "green tea" in capsys.readouterr().out
    assert run(book, "search", "kumquats") == 0
    assert "No fact answers 'kumquats'." in capsys.readouterr().err


def test_a_fact_is_added_edited_and_pinned(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    added = plain(book, capsys, "add", "I", "live", "in", "Graz.", "--category", "identity")["fact"]
    assert (added["text"], added["category"], added["model"]) == (
        "I live in Graz.",
        "identity",
        "user",
    )
    assert added["conversation_id"] is None
    edited = plain(book, capsys, "edit", 2, "The user drinks tea.")["fact"]
    assert (edited["text"], edited["versions"]) == ("The user drinks tea.", 2)
    assert plain(book, capsys, "edit", 2, "--category", "other")["fact"]["category"] == "other"
    assert plain(book, capsys, "pin", 2)["fact"]["pinned"]
    assert run(book, "unpin", 2) == 0
    assert "     2   The user drinks tea." in capsys.readouterr().out
    assert run(book, "history", 2) == 0
    shown = capsys.readouterr().out
    assert "patterns  The user drinks green tea." in shown
    assert "took the place of 3: The user drinks coffee." in shown


def test_forgetting_asks_first(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(book, "forget", 2) == 1
    told_of = capsys.readouterr().err
    assert "would be gone for ever" in told_of
    assert "Add --yes to agree." in told_of
    forgotten = plain(book, capsys, "forget", 2, "--yes")
    assert forgotten["forgotten"] == [2]
    assert "still says it" in forgotten["remains"][0]
    assert run(book, "history", 2) == 1
    assert "There is no fact 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("list", "tea"), 2, "takes no more words"),
        (("pin",), 2, "takes one fact's number"),
        (("search",), 2, "takes at least 1 word"),
        (("edit", "2"), 2, "needs another wording"),
        (("pin", "tea"), 1, "'tea' is no fact's number"),
        (("list", "--limit", "51"), 1, "names no page"),
        (("list", "--offset", "-1"), 1, "names no page"),
        (("edit", "2", " "), 1, "A fact cannot be empty"),
    ],
)
def test_what_cannot_be_done_is_said(
    book: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, why: str
) -> None:
    assert run(book, *words) == code
    assert why in capsys.readouterr().err


def test_a_slash_command_lists_searches_and_forgets(book: Path) -> None:
    services = build(DataPaths(book), Role.COMMAND_LINE)
    try:

        def output(text: str) -> CommandOutput:
            return services.commands.run(parse(text, Place()))

        def said(text: str) -> str:
            return output(text).markdown

        assert "The user drinks green tea." in said("/facts")
        assert services.commands.complete("/facts").is_whole
        assert "commonplace://1/0" in said("/facts list")
        assert "green tea" in said("/facts search green")
        assert said("/facts search kumquats") == "No fact answers that."
        asked = output("/facts forget 2")
        assert "would be gone for ever" in asked.markdown
        assert Facts(services.store).get(2)
        assert asked.after_yes is not None
        assert asked.after_yes().markdown.startswith("It is forgotten.")
        with pytest.raises(WrongForm):
            output("/facts forget 2 3")
        assert "The user drinks coffee." in said("/facts")  # nothing ends it any more
        after = output("/facts forget 3").after_yes
        assert after is not None
        after()
        assert said("/facts") == "No facts are known yet."
    finally:
        services.close()
