"""Hypothesis strategies for the domain's values, drawn from their type annotations."""

import types
import typing
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from hypothesis import strategies as st

from app.domain import codec

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
_FIRST, _LAST = (datetime.fromisoformat(f"{year}-01-01") for year in (1990, 2090))
TIMES = st.datetimes(_FIRST, _LAST, timezones=st.just(UTC))
IDS = st.integers(1, 2**53)
_SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXTS, int: st.integers(0, 2**53), bool: st.booleans(), float: st.floats(0, 1e9),
    datetime: TIMES, type(None): st.none(),
}  # fmt: skip


def values(annotation: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for values of a type of the domain."""
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]
    if isinstance(annotation, typing.NewType):
        return IDS
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return st.one_of([values(each) for each in arguments])
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return st.lists(values(arguments[0]), max_size=3).map(tuple)
        return st.tuples(*map(values, arguments))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return st.sampled_from(annotation)
    if not is_dataclass(annotation):
        return st.one_of([values(each) for each in codec.dataclasses_of(annotation)])
    hints = typing.get_type_hints(annotation)
    return st.builds(
        typing.cast(Any, annotation),
        **{each.name: values(hints[each.name]) for each in fields(annotation)},
    )
