"""`preset`, `ask --preset` and `/preset`: what is stored, sent on each wire, printed and refused."""

from pathlib import Path
from typing import Any

import pytest

from app.commands.command import ChoosePreset, CommandContext
from app.commands.table import CommandSession
from app.domain.ids import ConversationId
from tests.fakes.command_line import Console
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import text

FIELDS = {
    "preset_id", "is_default", "name", "system_prompt", "model", "temperature",
    "reasoning_effort", "max_output_tokens", "tools",
}  # fmt: skip
SENT = {
    "compatible": (
        "qwen3", {"temperature": 0.3, "reasoning_effort": "high", "max_tokens": 700},
    ),
    "openai": (
        "gpt-5.1", {"reasoning": {"summary": "auto", "effort": "high"}, "max_output_tokens": 700},
    ),
    "anthropic": (
        "claude-sonnet-5-5",
        {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": "high"}, "max_tokens": 700,
        },
    ),
}  # fmt: skip
OPTIONS = {
    "temperature", "reasoning_effort", "reasoning", "thinking", "output_config", "max_tokens",
    "max_output_tokens", "max_completion_tokens",
}  # fmt: skip


def listed(cli: Console) -> dict[str, dict[str, Any]]:
    rows = cli.json("preset", "list")["presets"]
    assert all(row.keys() == FIELDS for row in rows)
    return {row["name"]: row for row in rows}


@pytest.mark.parametrize("kind", SENT)
def test_a_preset_reaches_the_wire(cli: Console, server: Loopback, kind: str) -> None:
    server.always(text("Yes."))
    model, sent = SENT[kind]
    cli.done("provider", "add", "mine", "--kind", kind, "--base-url", server.v1)
    cli.services.models.registry.save_key("mine", "sk-1")
    cli.done(
        "preset", "add", "Careful", "--prompt", "Take care.", "--model", f"mine:{model}",
        "--temperature", "0.3", "--effort", "high", "--max-output", "700", "--tool", "none",
    )  # fmt: skip
    asked = cli.json("ask", "xylophone", "--preset", "careful")
    assert (asked["answer"], asked["model"]) == ("Yes.", f"mine:{model}")
    cli.done("ask", "Again", "--conversation", asked["conversation_id"])
    for seen in server.posts:
        assert {name: value for name, value in seen.body.items() if name in OPTIONS} == sent
        assert "tools" not in seen.body
        assert "Take care." in str(seen.body.get("system") or seen.body)


def test_presets_are_added_changed_and_removed(cli: Console, tmp_path: Path) -> None:
    cli.typed = "Be terse."
    added = cli.json("preset", "add", "Terse", "--prompt", "-", "--temperature", "1")
    assert added["added"] == "Terse"
    cli.done("preset", "edit", "terse", "--temperature", "default", "--tool", "conversation_search")
    cli.done("preset", "default", "Terse")
    terse = listed(cli)["Terse"]
    assert (terse["preset_id"], terse["is_default"]) == (added["preset_id"], True)
    assert (terse["system_prompt"], terse["temperature"]) == ("Be terse.", None)
    assert terse["tools"] == ["conversation_search"]
    assert "Terse  (default)  tools: conversation_search" in cli.done("preset", "list").out
    conversation = cli.json("ask", "xylophone")["conversation_id"]
    cli.done("export", "--conversation", conversation, tmp_path / "one.json")
    cli.done("preset", "remove", "Terse")
    assert listed(cli).keys() == {"Commonplace"}
    cli.done("import", tmp_path / "one.json")
    assert listed(cli).keys() == {"Commonplace", "Terse"}
    assert listed(cli)["Commonplace"]["is_default"]


def test_wrong_words_change_nothing(cli: Console) -> None:
    for words, code in (
        ("add", 2), ("list x", 2), ("remove Commonplace --effort low", 2), ("add x --effort most", 2),
        ("add x --temperature hot", 1), ("add x --temperature 3", 1), ("add x --max-output 0", 1),
        ("add x --max-output many", 1), ("add x --tool hammer", 1), ("add x --model nosuch:m", 1),
        ("add commonplace", 1), ("edit x", 1), ("default x", 1), ("remove x", 1),
    ):  # fmt: skip
        ran = cli("preset", *words.split())
        assert (words, ran.code, ran.out, ran.err.count("\n")) == (words, code, "", 1)
        assert listed(cli).keys() == {"Commonplace"}


def test_an_unknown_preset_stores_no_question(cli: Console) -> None:
    assert cli("ask", "Hello", "--preset", "nothing").code == 1
    assert len(cli.titles()) == 3


def test_the_slash_command_chooses_for_a_new_or_an_open_conversation(cli: Console) -> None:
    services = cli.services
    session, terse = CommandSession(services.commands), cli.json("preset", "add", "Terse *")
    outcome = session.run("/preset terse *", CommandContext())
    assert outcome.action == ChoosePreset(terse["preset_id"])
    assert session.run("/preset terse *", CommandContext(ConversationId(1))).action is None
    assert services.presets.of(services.library.open(1).conversation).name == "Terse *"
    lines = session.run("/preset", CommandContext(ConversationId(1))).markdown.splitlines()
    assert ["used here" in line for line in lines] == [False, True]
    assert "Terse \\*" in lines[1]
