"""Prompts of background work: the templates in resources/prompts, with history as a quotation; JSON in answers.

A template has two parts separated by a line `---`: the instructions, and a reminder after the
quotation. `$quotation` stands for the paragraph that explains quotations.
"""

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
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


Schema = Mapping[str, Any]

_BEGINNING = re.compile(r"\{")
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_MOST_BEGINNINGS = 200
_TYPES: Mapping[str, Callable[[object], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "null": lambda value: value is None,
}


def list_of(*required: str, **members: Schema) -> Schema:
    """Return the schema of a list of objects with these members; all are required by default."""
    row = {"type": "object", "properties": members, "required": list(required or members)}
    return {"type": "array", "items": row}


def list_schema(name: str, /, **members: Schema) -> Schema:
    """Return the schema of an object whose member `name` is a list of objects with these members."""
    return {"type": "object", "properties": {name: list_of(**members)}, "required": [name]}


def find_object(text: str, schema: Schema) -> dict[str, Any] | None:
    """Return the first JSON object in `text` that fits `schema`, None if there is none.

    Code fences, text around it and trailing commas are ignored, and values are converted to the wanted
    types. Supported keywords of JSON schema: type (one or several), enum, required, properties, items.
    Unknown members are kept.
    """
    for candidate in _objects(text):
        converted: dict[str, Any] = _converted(candidate, schema)
        if fits(converted, schema):
            return converted
    return None


def _converted(value: Any, schema: Schema) -> Any:
    """Return a value in the type that a schema wants, as far as it says so in another one.

    Models write "true", 1 and lists of texts where nothing enforces a schema. What is not clearly
    true is false.
    """
    kinds = schema.get("type", ())
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return {name: _converted(each, properties.get(name, {})) for name, each in value.items()}
    if isinstance(value, list) and "items" in schema:
        return [_converted(each, schema["items"]) for each in value]
    if isinstance(value, list) and "string" in kinds and all(isinstance(e, str) for e in value):
        return " ".join(value)
    if isinstance(value, str) and kinds and "string" not in kinds:
        with suppress(ValueError, RecursionError):
            value = json.loads(value.casefold())
    return value == 1 if "boolean" in kinds and value is not None else value


def fits(value: object, schema: Schema) -> bool:
    """Return whether a value fits a schema, by the supported keywords."""
    kinds = schema.get("type")
    if kinds is not None:
        names = [kinds] if isinstance(kinds, str) else kinds
        if not any(_TYPES[name](value) for name in names):
            return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, dict):
        if not all(name in value for name in schema.get("required", ())):
            return False
        properties = schema.get("properties", {})
        return all(fits(value[name], each) for name, each in properties.items() if name in value)
    if isinstance(value, list) and "items" in schema:
        return all(fits(each, schema["items"]) for each in value)
    return True


def strict(schema: Schema) -> Schema:
    """Return a schema in the form that servers enforce: each member required, no others allowed.

    Members that were optional should allow null. Source:
    platform.openai.com/docs/guides/structured-outputs#supported-schemas.
    """
    made = dict(schema)
    if "properties" in made:
        made["properties"] = {name: strict(each) for name, each in made["properties"].items()}
        made["required"] = list(made["properties"])
        made["additionalProperties"] = False
    if "items" in made:
        made["items"] = strict(made["items"])
    return made


def _objects(said: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder(strict=False)
    for text in (said, _TRAILING_COMMA.sub(r"\1", said)):
        for number, match in enumerate(_BEGINNING.finditer(text)):
            if number == _MOST_BEGINNINGS:
                break
            try:
                value, _ = decoder.raw_decode(text, match.start())
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                yield value
