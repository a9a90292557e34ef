"""JSON out of what a model said: found among other words, mended a little, checked against a schema."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
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


def without_thoughts(text: str) -> str:
    """Return what was said but for reasoning that a model writes into its answer."""
    return _THOUGHTS.sub("", text).strip()


def object_in(text: str, schema: Schema) -> dict[str, Any] | None:
    """Return the first JSON object in `text` that fits `schema`, None if there is none.

    Fences, words around it and commas too many are forgiven. Of JSON schema are known: type (one
    or several), enum, required, properties, items. Members that the schema does not name stay.
    """
    said = without_thoughts(text)
    for candidate in _objects(said):
        if fits(candidate, schema):
            return candidate
    return None


def fits(value: object, schema: Schema) -> bool:
    """Return whether a value fits a schema, as far as schemas are known here."""
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
