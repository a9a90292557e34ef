"""The README names every command there is, and none that there is not."""

import re
from pathlib import Path

from app.cli.commands import COMMANDS

_README = Path(__file__).parents[2] / "README.md"


def test_the_readme_names_the_commands_that_exist() -> None:
    named = set[str]()
    for line in re.findall(
        r"^commonplace (.*)$", _README.read_text(encoding="utf-8"), re.MULTILINE
    ):
        named.update(re.findall(r"(?:^|(?<=\| ))[a-z]+", line.split(" ID")[0].split(" [")[0]))
    words_of_commands = {"add", "edit", "embeddings", "get", "remove", "reset", "set", "test"}
    named -= words_of_commands
    assert named == {*COMMANDS, "restore"}
