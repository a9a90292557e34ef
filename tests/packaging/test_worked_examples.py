"""The worked examples of changes, carried out on a copy of the tree: none touches more than two files."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.stored import add_conversation, opened

ROOT = Path(__file__).resolve().parents[2]
_STEP = re.compile(r"(New file )?`([^`\n]+\.py)`:\n\n```(?:python|diff)\n(.*?)```\n", re.DOTALL)


def steps_of(title: str) -> list[tuple[str, str, str]]:
    """Return (non-empty for a new file, path, code or hunks) for each step of an example."""
    section = (ROOT / "README.md").read_text("utf-8").partition("### Worked examples")[2]
    return _STEP.findall(section.partition(f"**{title}**")[2].partition("\n**")[0])


def changed(text: str, hunks: str) -> str:
    """Return `text` with the "+" lines of each hunk after the context that comes before them."""
    for hunk in hunks.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        context = "".join(each[1:] for each in lines if each[0] == " ")
        added = "".join(each[1:] for each in lines if each[0] == "+")
        before, found, after = text.partition(context)
        assert found, f"there is no such text:\n{context}"
        text = before + found + added + after
    return text


@dataclass(frozen=True)
class ChangedTree:
    """A copy of the program with a change, and the command line on a library of its own."""

    root: Path
    data: Path

    def run(self, *arguments: str, **environment: str) -> str:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=self.root, capture_output=True, text=True, check=True,
            env=os.environ | {"PYTHONPATH": str(self.root)} | environment,
        ).stdout  # fmt: skip

    def cli(self, *arguments: str, **environment: str) -> str:
        return self.run("-m", "app", "--data-dir", str(self.data), *arguments, **environment)

    def json(self, *arguments: str, **environment: str) -> Any:
        return json.loads(self.cli(*arguments, "--json", **environment))


def a_provider(tree: ChangedTree) -> None:
    listed = tree.json("provider", "list", MISTRAL_API_KEY="sk-m")["providers"]
    (mistral,) = (each for each in listed if each["name"] == "mistral")
    assert mistral["base_url"] == "https://api.mistral.ai/v1"


def a_worker(tree: ChangedTree) -> None:
    tree.cli("config", "set", "title_counter_enabled", "false")
    worker = tree.json("status")["workers"]["title_counter"]
    assert (worker["done"], worker["total"], worker["enabled"]) == (2, 3, False)


def a_recall_setting(tree: ChangedTree) -> None:
    tree.cli("config", "set", "auto_rag_min_turns", "7")
    read = f"""
from pathlib import Path
from app.bootstrap import RunMode, build
from app.domain.recall import RecallSettings
from app.system.paths import DataPaths
services = build(DataPaths(Path({str(tree.data)!r})), RunMode.COMMAND_LINE)
print(RecallSettings().auto_rag_min_turns, RecallSettings.read(services.settings.get))
services.close()
"""
    default, _, values = tree.run("-c", read).partition(" ")
    assert default == "4"
    assert "auto_rag_min_turns=7" in values


def a_column(tree: ChangedTree) -> None:
    with opened(tree.data) as store:
        add_conversation(store, "How long does sourdough proof", title="Bread")
    (result,) = tree.json("search", "sourdough")["results"]
    assert result["words"] == 5
    assert "5 words" in tree.cli("search", "sourdough")


CHECKS: dict[str, Callable[[ChangedTree], None]] = {
    "A provider": a_provider, "A worker": a_worker, "A recall setting": a_recall_setting,
    "A column of the search results": a_column,
}  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> ChangedTree:
    """A copy of the program that the examples change one after the other."""
    folder = tmp_path_factory.mktemp("examples")
    shutil.copytree(ROOT / "app", folder / "app", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "resources").symlink_to(ROOT / "resources")
    return ChangedTree(folder, folder / "data")


@pytest.mark.parametrize("name", CHECKS)
def test_an_example_works_and_touches_two_files(
    tree: ChangedTree, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COVERAGE_PROCESS_START", raising=False)  # it has no place for the copy
    steps = steps_of(name)
    assert 1 <= len({path for _, path, _ in steps}) <= 2
    for is_new, path, code in steps:
        file = tree.root / path
        assert file.exists() != bool(is_new)
        content = code if is_new else changed(file.read_text("utf-8"), code)
        file.write_text(content, encoding="utf-8")
    CHECKS[name](tree)
