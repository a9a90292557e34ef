"""Prompts of background work: the files of resources/prompts filled in, with history as a quotation.

A file has two parts divided by a line `---`: what the model is told, and what is said once more
after the quotation. `$quotation` in it is the paragraph that says what a quotation is.
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
    """What one request says: `system` is ours, `user` holds the quotation."""

    system: str
    user: str


@dataclass(frozen=True, slots=True)
class Quoted:
    """A piece of history: `label` is a word of ours (user, assistant, notes 2), `text` anybody's."""

    label: str
    text: str


def prompt(name: str, quoted: Sequence[Quoted], **words: str) -> Prompt:
    """Return the prompt in `NAME.txt` about what is quoted; `words` fill its other placeholders.

    Each piece begins with a line of its label and a random mark that none of the pieces holds, and
    the last is followed by such a line: what is quoted can neither end the quotation nor change
    who speaks in it.
    """
    mark = _mark(quoted)
    told, _, after = _file(name).partition(_DIVIDER)
    filled = words | {"quotation": Template(_file("quotation")).substitute(mark=mark).strip()}
    pieces = [f"[{mark} {each.label}]\n{each.text}\n" for each in quoted]
    ending = Template(after).substitute(filled).strip()
    return Prompt(
        Template(told).substitute(filled).strip(), f"{''.join(pieces)}[{mark} end]\n\n{ending}"
    )


def with_schema(asked: Prompt, schema: Mapping[str, Any]) -> Prompt:
    """Return a prompt that asks for JSON of a schema."""
    shown = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    words = Template(_file("json")).substitute(schema=shown)
    return replace(asked, system=f"{asked.system}\n\n{words.strip()}")


def asked_again(asked: Prompt) -> Prompt:
    """Return a prompt that says that the answer before was no JSON."""
    return replace(asked, user=f"{asked.user}\n{_file('json_again').strip()}")


def _mark(quoted: Sequence[Quoted]) -> str:
    while True:
        mark = secrets.token_hex(_MARK_BYTES)
        if not any(mark in each.text for each in quoted):
            return mark


@cache
def _file(name: str) -> str:
    return (_FOLDER / f"{name}.txt").read_text(encoding="utf-8")
