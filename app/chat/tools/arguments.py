"""A tool call's arguments: JSON text of a model's making, checked against the tool's schema.

Of JSON Schema (draft 2020-12) it knows what our tools use: an object's `properties`, `required`
and, always, no others; `string` with minLength and maxLength, `integer` with minimum and maximum,
`boolean`; `default`.
"""

import json
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from app.domain.errors import InvalidInput
from app.domain.text import clean, one_line

_SHOWN_CHARS = 60
_MOST_CHARS = 100_000


def checked_arguments(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments, defaults filled in; raise InvalidInput that says what will not do.

    An optional argument that is null counts as left out, as some models write it.
    """
    given = _decoded(text)
    properties: Mapping[str, Mapping[str, Any]] = schema["properties"]
    required = schema.get("required", ())
    for name in given:
        if name not in properties:
            raise _unexpected(name, properties)
    checked = {}
    for name, property_schema in properties.items():
        value = given.get(name)
        if value is None:
            if name in required:
                raise InvalidInput(f"The argument '{name}' is missing", "It is required.")
            value = property_schema.get("default")
        else:
            value = _CHECKS[property_schema["type"]](name, value, property_schema)
        checked[name] = value
    return checked


def _decoded(text: str) -> dict[str, Any]:
    if len(text) > _MOST_CHARS:
        raise InvalidInput(
            f"The arguments are {len(text):,} characters long",
            f"Send at most {_MOST_CHARS:,} characters.",
        )
    try:
        decoded = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"The arguments are no valid JSON: {one_line(str(error), _SHOWN_CHARS)}",
            "Send one JSON object.",
        ) from error
    if not isinstance(decoded, dict):
        raise InvalidInput(f"The arguments are {_shown(decoded)}", "Send one JSON object.")
    return decoded


def _unexpected(name: str, properties: Mapping[str, Any]) -> InvalidInput:
    near = get_close_matches(name, properties, n=1)
    allowed = f"The arguments are: {', '.join(properties)}." if properties else "It takes none."
    hint = f"Did you mean '{near[0]}'?" if near else allowed
    return InvalidInput(f"There is no argument '{one_line(name, _SHOWN_CHARS)}'", hint)


def _string(name: str, value: Any, schema: Mapping[str, Any]) -> str:
    if not isinstance(value, str):
        raise _refusal(name, value, "a string")
    least, most = schema.get("minLength", 0), schema.get("maxLength", _MOST_CHARS)
    words = clean(value)
    if len(words.strip()) < least or len(words) > most:
        raise _refusal(name, words, f"a string of {least:,} to {most:,} characters")
    return words


def _integer(name: str, value: Any, schema: Mapping[str, Any]) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 5.0 is an integer in JSON Schema
    least, most = schema["minimum"], schema["maximum"]
    if type(value) is not int or not least <= value <= most:
        raise _refusal(name, value, f"a whole number from {least} to {most}")
    return value


def _boolean(name: str, value: Any, _: Mapping[str, Any]) -> bool:
    if not isinstance(value, bool):
        raise _refusal(name, value, "true or false")
    return value


_CHECKS: Mapping[str, Callable[[str, Any, Mapping[str, Any]], Any]] = {
    "string": _string,
    "integer": _integer,
    "boolean": _boolean,
}


def _refusal(name: str, value: Any, wanted: str) -> InvalidInput:
    return InvalidInput(f"'{name}' cannot be {_shown(value)}", f"Give {wanted}.")


def _shown(value: Any) -> str:
    return one_line(json.dumps(value, ensure_ascii=False), _SHOWN_CHARS)
