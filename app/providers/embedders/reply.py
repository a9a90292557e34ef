"""Validation of embedding replies: vectors of unit length, or an error.

Source: platform.openai.com/docs/api-reference/embeddings; Ollama, LM Studio and llama.cpp send
numbers where base64 was asked for, some servers leave out `index` and `usage`.
"""

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from app.domain.errors import EmbedderUnavailable
from app.providers.http.error_translation import StreamError
from app.providers.http.json_fields import count_at, list_at, member

Vectors = npt.NDArray[np.float32]

MAX_DIMENSION = 16_384  # of one vector; the largest models in use have 4,096
_HINT = "Choose another embedding model in Settings."


def unit_vectors(reply: object, count: int, dimension: int | None, source: str) -> Vectors:
    """Return float32, (count, dim), rows of unit length, in the order of the texts.

    `dimension` None accepts any dimension that all rows share. `source` names the model in errors.
    Raises StreamError for an error sent as a success, EmbedderUnavailable unless there is exactly
    one valid vector for each text.
    """
    if not isinstance(member(reply, "data"), list):
        if member(reply, "error"):
            raise StreamError(reply)
        raise EmbedderUnavailable(f"{source} did not answer with vectors", _HINT)
    entries = list_at(reply, "data")
    if len(entries) != count:
        raise EmbedderUnavailable(f"{source} gave {len(entries)} vectors for {count} texts", _HINT)
    rows = [_numbers(member(entry, "embedding"), source) for entry in _in_order(entries, source)]
    width = dimension or len(rows[0])
    if odd := next((len(row) for row in rows if len(row) != width), None):
        raise EmbedderUnavailable(
            f"{source} gave a vector of {odd} numbers where {width} were expected",
            "If the server now runs another model by that name, choose it under its own name.",
        )
    return _of_unit_length(np.stack(rows), source)


def reported_tokens(reply: object) -> int | None:
    """Return the tokens the server counted, None when it reports none."""
    tokens = count_at(reply, "usage", "prompt_tokens")
    return tokens if tokens is not None else count_at(reply, "usage", "total_tokens")


def _in_order(entries: list[Any], source: str) -> list[Any]:
    """The entries by their `index`; in their given order where the server sends none."""
    indexes = [count_at(entry, "index") for entry in entries]
    if all(index is None for index in indexes):
        return entries
    if sorted(-1 if index is None else index for index in indexes) != list(range(len(entries))):
        raise EmbedderUnavailable(
            f"{source} does not say which vector belongs to which text", _HINT
        )
    ordered = list(entries)
    for index, entry in zip(indexes, entries, strict=True):
        ordered[index or 0] = entry
    return ordered


def _numbers(value: object, source: str) -> npt.NDArray[np.float64]:
    try:
        if isinstance(value, str):
            packed = base64.b64decode(value, validate=True)
            numbers = np.frombuffer(packed, np.dtype("<f4")).astype(np.float64)
        elif isinstance(value, list) and all(type(each) in (float, int) for each in value):
            numbers = np.asarray(value, np.float64)
        else:
            numbers = np.empty(0)
    except (ValueError, OverflowError):
        numbers = np.empty(0)
    if not 0 < len(numbers) <= MAX_DIMENSION:
        raise EmbedderUnavailable(f"{source} did not answer with vectors", _HINT)
    return numbers


def _of_unit_length(rows: npt.NDArray[np.float64], source: str) -> Vectors:
    """Rows divided by their length; a vector of zeros has no direction."""
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(length).all():
        raise EmbedderUnavailable(f"{source} gave a vector with NaN", _HINT)
    if not length.all():
        raise EmbedderUnavailable(f"{source} gave a vector of zeros", _HINT)
    unit: Vectors = (rows / length).astype(np.float32)
    return unit
