"""`recall`, as a user types it: what a question would bring back."""

from pathlib import Path

import pytest

from tests.fakes.command_line import CommandLine
from tests.fakes.stored import opened, told


@pytest.fixture
def cli(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    with opened(data_dir) as store:
        told(store, ("Which bolt holds the saddle?", "An M8 bolt holds it."), title="Bolts")
        for topic in ("basil", "trains", "taxes", "bread", "maps"):
            told(store, (f"Tell me about {topic}.", f"There is much to say about {topic}."))
    return CommandLine(data_dir, capsys)


def test_what_would_be_brought_in_is_printed_with_why_the_rest_would_not(cli: CommandLine) -> None:
    ran = cli.done("recall", "Which bolt holds the saddle?", "--set", "rag_min_similarity=0")
    assert "Bolts: Which bolt holds the saddle?" in ran.out
    assert "are brought in" in ran.err
    assert "of 1,200 tokens (rag_max_tokens)" in ran.err
    assert "rag_min_similarity is 1" in (
        cli.done("recall", "Which bolt holds the saddle?", "--set", "rag_min_similarity=1.0").out
    )
    assert cli.json("config", "get", "rag_min_similarity")["value"] == 0.7


def test_the_document_holds_items_and_budgets(cli: CommandLine) -> None:
    found = cli.json("recall", "Which bolt holds the saddle?", "--set", "rag_min_similarity=0")
    assert [each["key"] for each in found["budgets"]][:2] == [
        "rag_max_tokens", "auto_rag_max_tokens",
    ]  # fmt: skip
    injected = [each for each in found["items"] if each["injected"]]
    assert injected[0]["title"] == "Bolts"
    assert found["tokens"] <= found["max_tokens"]


@pytest.mark.parametrize(
    ("words", "code", "told_of"),
    [
        (("--set", "rag_min_similarity"), 2, "is no KEY=VALUE"),
        (("--set", "rag_min_similarity=2"), 1, "a number from 0 to 1"),
        (("--set", "rag_min=1"), 1, "There is no setting 'rag_min'"),
        (("--conversation", "999"), 1, "999"),
    ],
)
def test_what_cannot_be_tried_is_told(
    cli: CommandLine, words: tuple[str, ...], code: int, told_of: str
) -> None:
    ran = cli("recall", "Which bolt?", *words)
    assert ran.code == code
    assert told_of in ran.err
