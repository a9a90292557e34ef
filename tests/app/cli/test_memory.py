"""`facts`, `memory` and `recall`, and the slash command `/facts`."""

import json
from pathlib import Path
from unittest.mock import Mock

import pytest

from app.commands.command import CommandContext, CommandUsageError, Outcome, parse
from app.domain.errors import IndexUnavailable
from app.index.text_sync import TextIndexSync
from app.storage.tables.facts import Facts
from tests.fakes.canary import files_with
from tests.fakes.command_line import Console
from tests.fakes.stored import AT, add_conversation, learned, opened

FACT_FIELDS = {
    "id", "uid", "text", "category", "subject", "pinned", "model", "said_at", "made_at",
    "valid_until", "superseded_by", "conversation_id", "conversation_title", "turn_number",
    "exchange_id", "message_id", "versions",
}  # fmt: skip
SADDLE = "Which bolt holds the saddle?"


@pytest.fixture(scope="module")
def cli_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory to copy, with facts 2 (current) and 3 (past), and six conversations."""
    root = tmp_path_factory.mktemp("library") / "data"
    with opened(root) as store:
        source = add_conversation(store, "tea", title="Of drinks")
        current = learned(store, source, "The user drinks green tea.")
        learned(store, source, "The user drinks coffee.", valid_until=AT, superseded_by=current.id)
        add_conversation(store, (SADDLE, "An M8 bolt holds it."), title="Bolts")
        for topic in ("basil", "trains", "taxes", "bread", "maps"):
            add_conversation(
                store, (f"Tell me about {topic}.", f"There is much to say about {topic}.")
            )
    return root


def test_facts_are_listed_and_searched(cli: Console) -> None:
    shown = cli.done("facts", "list").out
    assert "2   The user drinks green tea." in shown
    assert "preference, 2026-03-01  Of drinks [1:0]" in shown
    assert "coffee" not in shown
    assert "1 of 2; --offset" in cli.done("facts", "list", "--all", "--limit", 1).err
    past = cli.done("facts", "list", "--all", "--conversation", 1).out
    assert "superseded by 2: The user drinks green tea." in past
    assert "no such facts" in cli.done("facts", "list", "--category", "plan").err
    listed = cli.json("facts", "list", "--all")
    assert (listed["total"], [set(each) for each in listed["facts"]]) == (2, [FACT_FIELDS] * 2)
    found = cli.json("facts", "search", "green", "tea")
    assert (found["query"], [each["id"] for each in found["facts"]]) == ("green tea", [2])
    assert "green tea" in cli.done("facts", "search", "green", "tea").out
    assert "'kumquats'" in cli.done("facts", "search", "kumquats").err
    history = cli.json("facts", "history", 2)
    assert (set(history), history["superseded"]) == ({"fact", "versions", "superseded"}, [3])
    assert set(history["versions"][0]) == {
        "text", "category", "model", "said_at", "made_at", "conversation_id", "exchange_id",
        "message_id",
    }  # fmt: skip


def test_facts_are_added_edited_pinned_and_forgotten(cli: Console) -> None:
    added = cli.json("facts", "add", "I", "live", "in", "Graz.", "--category", "identity")["fact"]
    assert (added["text"], added["category"]) == ("I live in Graz.", "identity")
    assert (added["model"], added["conversation_id"]) == ("user", None)
    edited = cli.json("facts", "edit", 2, "The user drinks tea.")["fact"]
    assert (edited["text"], edited["versions"]) == ("The user drinks tea.", 2)
    assert cli.json("facts", "edit", 2, "--category", "other")["fact"]["category"] == "other"
    assert cli.json("facts", "pin", 2)["fact"]["pinned"]
    assert "     2   The user drinks tea." in cli.done("facts", "unpin", 2).out
    shown = cli.done("facts", "history", 2).out
    assert "patterns  The user drinks green tea." in shown
    assert "replaced 3: The user drinks coffee." in shown
    refused = cli("facts", "forget", 2)
    assert (refused.code, "--yes" in refused.err) == (1, True)
    forgotten = cli.json("facts", "forget", 2, "--yes")
    assert (forgotten["forgotten"], len(forgotten["remains"])) == ([2], 3)
    assert "There is no fact 2" in cli("facts", "history", 2).err


@pytest.mark.parametrize("words", ["facts forget 2", "forget fact 2", "forget 1"])
def test_an_index_that_cannot_be_written_is_named_by_what_was_forgotten(
    cli: Console, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    failure = IndexUnavailable("The text index could not be written: no room", "Free some.")
    monkeypatch.setattr(TextIndexSync, "_catch_up", Mock(side_effect=failure))
    ran = cli(*words.split(), "--yes", "--json")
    assert failure.display_text in json.loads(ran.out)["remains"][-1]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [("facts list tea", 2, "takes nothing more"), ("facts pin", 2, "takes ID."),
     ("facts search", 2, "takes QUERY ..."),
     ("facts edit 2", 2, "takes ID, and a new TEXT or --category"),
     ("facts pin tea", 1, "'tea' is not a fact ID"), ("facts list --limit 51", 1, "is not a page"),
     ("facts list --offset -1", 1, "is not a page"),
     (("facts", "add", " "), 1, "A fact cannot be empty"), ("memory set", 2, ""),
     ("memory show x", 2, ""), ("memory forget", 2, ""), ("memory forget tea --yes", 2, ""),
     ("memory save a b", 2, ""),
     (("memory", "set", "tea " * 1000), 1, "core_memory_max_tokens allows 500"),
     ("recall Which? --set rag_min_similarity", 2, "is not KEY=VALUE"),
     ("recall Which? --set rag_min_similarity=2", 1, "a number from 0 to 1"),
     ("recall Which? --set rag_min=1", 1, "There is no setting 'rag_min'")],
    ids=str,
)  # fmt: skip
def test_refusals(
    unchanged: Console, words: str | tuple[str, ...], code: int, message: str
) -> None:
    ran = unchanged(*(words.split() if isinstance(words, str) else words))
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err


def test_the_slash_command_for_facts(cli: Console) -> None:
    commands = cli.services.commands

    def run(text: str) -> Outcome:
        return commands.run(parse(text, CommandContext()))

    assert "The user drinks green tea." in run("/facts").markdown
    assert commands.complete("/facts").is_whole
    assert "commonplace://1/0" in run("/facts list").markdown
    assert "green tea" in run("/facts search green").markdown
    assert "tea" not in run("/facts search kumquats").markdown
    with pytest.raises(CommandUsageError):
        run("/facts forget 2 3")
    first = run("/facts forget 2")
    assert Facts(cli.services.store).get(2)
    assert first.on_confirmed is not None
    assert len(first.on_confirmed().markdown) > len("The fact was forgotten.")
    assert "The user drinks coffee." in run("/facts").markdown  # it is current again
    second = run("/facts forget 3").on_confirmed
    assert second is not None
    second()
    assert run("/facts").markdown == "There are no facts yet."


def test_core_memory_is_shown_set_and_appended(cli: Console) -> None:
    assert cli.done("memory", "show").out == ""
    cli.done("memory", "set", "Lives in Graz.")
    cli.typed = "Drinks tea."
    assert cli.done("memory", "append", "-").out == "Lives in Graz.\nDrinks tea.\n"
    assert cli.json("memory") == {
        "core_memory": "Lives in Graz.\nDrinks tea.", "tokens": 6, "max_tokens": 500,
    }  # fmt: skip


def test_what_models_wrote_is_listed_kept_and_undone(cli: Console) -> None:
    writes, store = cli.services.memory_writes, cli.services.store
    here = add_conversation(store, "Read this:\nIt is from a page.")
    for line in ("From a page", "From another"):
        writes.change_core("", line, here.conversation, here.exchanges[0].id, "openai:m")
    rows = cli.json("memory", "written")["written"]
    assert [each["state"] for each in rows] == ["proposed"] * 2
    lines = cli.done("memory", "written").out.splitlines()
    shown = [line.split()[0] for line in lines]
    assert cli.json("memory", "keep", shown[0])["id"] == rows[0]["id"]
    assert cli.done("memory", "show").out.strip() == rows[0]["text"]
    assert cli.json("memory", "undo", shown[0])["state"] == "removed"
    assert cli.done("memory", "show").out == ""
    assert [each["id"] for each in cli.json("memory", "written")["written"]] == [rows[1]["id"]]
    assert cli("memory", "undo", "nothing").code == 1


def test_a_text_is_saved_found_and_forgotten(cli: Console) -> None:
    assert cli.done("memory", "list").err
    number = cli.json("memory", "save", "The gate code is swordfish.")["saved"]
    assert "The gate code is swordfish." in cli.done("memory", "list").out
    assert cli.json("search", "gate code", "--kind", "memory")["results"][0]["id"] == number
    assert cli("memory", "forget", number).code == 1
    assert cli.json("memory", "forget", number, "--yes")["forgotten"] == [number]
    assert cli.json("memory", "list") == {"memories": []}
    assert cli.json("search", "gate code", "--kind", "memory")["results"] == []
    cli.services.maintenance.erase()
    cli.close()
    assert files_with(cli.data_dir, "swordfish") == set()


def test_recall_shows_what_would_be_recalled(cli: Console) -> None:
    ran = cli.done("recall", SADDLE, "--set", "rag_min_similarity=0")
    assert f"Bolts: {SADDLE}" in ran.out
    assert "of 1,200 tokens (rag_max_tokens)" in ran.err
    strict = cli.done("recall", SADDLE, "--set", "rag_min_similarity=1.0").out
    assert "rag_min_similarity is 1" in strict
    assert cli.json("config", "get", "rag_min_similarity")["value"] == 0.7
    found = cli.json("recall", SADDLE, "--set", "rag_min_similarity=0")
    keys = [each["key"] for each in found["budgets"]]
    assert keys[:3] == ["rag_max_tokens", "rag_document_max_tokens", "auto_rag_max_tokens"]
    assert next(each for each in found["items"] if each["injected"])["title"] == "Bolts"
    assert found["tokens"] <= found["max_tokens"]
