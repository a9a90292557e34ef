"""Arguments that a model sends: checked against the schema, whatever they are."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.tools.arguments import checked_arguments
from app.domain.errors import InvalidInput

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 2, "maxLength": 20},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
        "whole": {"type": "boolean", "default": False},
        "id": {"type": "integer", "minimum": 1, "maximum": 99},
    },
    "required": ["query"],
    "additionalProperties": False,
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def test_what_is_left_out_or_null_takes_its_default() -> None:
    given_ = checked_arguments('{"query": "cats", "id": null, "limit": 5.0}', SCHEMA)
    assert given_ == {"query": "cats", "limit": 5, "whole": False, "id": None}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "The argument 'query' is missing"),
        ('{"query": null}', "'query' is missing"),
        ('{"query": "a"}', "2 to 20 characters"),
        ('{"query": "cats", "limit": 0}', "'limit' cannot be 0. Give a whole number from 1 to 50."),
        ('{"query": "cats", "limit": "5"}', "cannot be \"5\""),
        ('{"query": "cats", "limit": true}', "a whole number"),
        ('{"query": "cats", "whole": 1}', "Give true or false."),
        ('{"query": "cats", "limt": 1}', "Did you mean 'limit'?"),
        ('{"query": "ca', "no valid JSON"),
        ('"cats"', "Send one JSON object"),
        ("[" * 100_000, "no valid JSON"),
        ("x" * 200_000, "Send at most"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_argument_its_value_and_what_would_do(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        checked_arguments(text, SCHEMA)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 300


@given(st.dictionaries(st.sampled_from(["query", "limit", "whole", "id", "other"]), JSON) | JSON)
def test_anything_is_taken_or_refused_in_words(value: object) -> None:
    try:
        taken = checked_arguments(json.dumps(value), SCHEMA)
    except InvalidInput:
        return
    assert 2 <= len(taken["query"]) <= 20
    assert 1 <= taken["limit"] <= 50
