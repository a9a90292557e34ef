"""Prompts of background work: the templates in resources/prompts, with history as a quotation.

A template has two parts separated by a line `---`: the instructions, and a reminder after the
quotation. `$quotation` stands for the paragraph that explains quotations.
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

_FOLDER = Path(__file__).resolve().parents[2] / "resources/prompts"
_DIVIDER = "\n---\n"
_MARK_BYTES = 8


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of one request: `system` holds the instructions, `user` the quotation."""

    system: str
    user: str


@dataclass(frozen=True, slots=True)
class Quoted:
    """A piece of history: `label` is ours (user, assistant, notes 2), `text` is untrusted."""

    label: str
    text: str


def fill_prompt(name: str, quoted: Sequence[Quoted], **values: str) -> Prompt:
    """Return the prompt of the template `NAME.txt`; `values` fill its other placeholders.

    Each piece begins with a line of its label and a random mark that no piece contains, and the
    last is followed by such a line: quoted text can neither end the quotation nor change its
    labels.
    """
    mark = secrets.token_hex(_MARK_BYTES)
    while any(mark in each.text for each in quoted):
        mark = secrets.token_hex(_MARK_BYTES)
    before, _, after = _file(name).partition(_DIVIDER)
    filled = values | {"quotation": Template(_file("quotation")).substitute(mark=mark).strip()}
    pieces = [f"[{mark} {each.label}]\n{each.text}\n" for each in quoted]
    ending = Template(after).substitute(filled).strip()
    return Prompt(
        Template(before).substitute(filled).strip(), f"{''.join(pieces)}[{mark} end]\n\n{ending}"
    )


def prompt_lines(name: str) -> Mapping[str, str]:
    """Return the lines of `NAME.txt` by the word before their first colon."""
    lines = (line.partition(": ") for line in _file(name).splitlines())
    return {key: text for key, _, text in lines if text}


def with_schema(prompt: Prompt, schema: Mapping[str, Any]) -> Prompt:
    """Return a prompt that requests JSON of a schema."""
    shown = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    text = Template(_file("json")).substitute(schema=shown)
    return replace(prompt, system=f"{prompt.system}\n\n{text.strip()}")


def with_json_reminder(prompt: Prompt) -> Prompt:
    """Return a prompt that says that the previous answer was not JSON."""
    return replace(prompt, user=f"{prompt.user}\n{_file('json_again').strip()}")


@cache
def _file(name: str) -> str:
    return (_FOLDER / f"{name}.txt").read_text(encoding="utf-8")
