"""`memory`, as a user types it: core memory and texts saved on purpose."""

from pathlib import Path

import pytest

from tests.fakes.command_line import CommandLine, typed


@pytest.fixture
def cli(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(data_dir, capsys)


def test_core_memory_is_shown_set_and_added_to(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.done("memory", "show").out == ""
    cli.done("memory", "set", "Lives in Graz.")
    monkeypatch.setattr("sys.stdin", typed("Drinks tea."))
    assert cli.done("memory", "append", "-").out == "Lives in Graz.\nDrinks tea.\n"
    shown = cli.json("memory", "show")
    assert shown == {
        "core_memory": "Lives in Graz.\nDrinks tea.", "tokens": 6, "max_tokens": 500,
    }  # fmt: skip


def test_what_is_too_long_is_a_known_error(cli: CommandLine) -> None:
    ran = cli("memory", "set", "tea " * 1000)
    assert ran.code == 1
    assert "core_memory_max_tokens allows 500" in ran.err


def test_a_text_is_saved_listed_found_and_forgotten(cli: CommandLine) -> None:
    assert cli.done("memory", "list").err.startswith("Nothing is saved.")
    number = cli.json("memory", "save", "The gate code is 4711.")["saved"]
    assert "The gate code is 4711." in cli.done("memory", "list").out
    assert cli.json("search", "gate code", "--kind", "memory")["results"][0]["id"] == number
    assert cli("memory", "forget", number).code == 1
    assert cli.json("memory", "forget", number, "--yes")["forgotten"] == [number]
    assert cli.json("memory", "list") == {"memories": []}
    assert cli.json("search", "gate code", "--kind", "memory")["results"] == []
    assert b"4711" not in b"".join(each.read_bytes() for each in files(cli.data_dir))


def files(root: Path) -> list[Path]:
    return [each for each in root.rglob("*") if each.is_file() and "text" not in each.parts]


@pytest.mark.parametrize(
    "words", [("set",), ("show", "x"), ("forget",), ("forget", "tea", "--yes"), ("save", "a", "b")]
)
def test_wrong_words_are_wrong_usage(cli: CommandLine, words: tuple[str, ...]) -> None:
    assert cli("memory", *words).code == 2
