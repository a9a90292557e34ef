"""Embedding models of providers: their limits, lists of them, and the validation of their replies.

Vectors have unit length, or there is an error. Source: platform.openai.com/docs/api-reference/embeddings;
Ollama, LM Studio and llama.cpp send numbers where base64 was asked for, some servers leave out `index` and
`usage`.
"""

import asyncio
import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from app.domain.errors import EmbedderUnavailable, KnownError
from app.providers.configuration import ProviderConfig
from app.providers.http.base_url import BaseUrl
from app.providers.http.error_translation import StreamError
from app.providers.http.json_fields import count_at, list_at, member
from app.providers.registry import ProviderRegistry
from app.providers.vendors import openai

_OPENAI_REQUEST_TOKENS = 300_000  # platform.openai.com/docs/api-reference/embeddings/create
_OTHER_REQUEST_TOKENS = 32_768
_OPENAI_TEXT_TOKENS = 8191
_OTHER_TEXT_TOKENS = 512  # what most small models read, and the default of llama.cpp
_OPENAI_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
_LIST_LIMIT_S = 3.0


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """An embedding model of a server.

    Attributes:
        dimension: None until the first request has found it out.
        max_tokens: The longest text, in estimated tokens.
        request_tokens: The largest request, in estimated tokens.
        sends_base64: Whether the server can send vectors as base64.
    """

    name: str
    space_name: str
    dimension: int | None
    max_tokens: int
    request_tokens: int
    sends_base64: bool = False


def remote_model(name: str, base_url: BaseUrl) -> RemoteModel:
    """Return what is known of a model at a base URL.

    OpenAI's spaces have the model's name. Elsewhere eight digits of a hash of the model's name and
    the host follow, so that two servers do not share a space by accident.
    """
    short = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:40] or "model"
    if openai.SPEC.owns(base_url):
        return RemoteModel(
            name,
            short,
            _OPENAI_DIMENSIONS.get(name),
            _OPENAI_TEXT_TOKENS,
            _OPENAI_REQUEST_TOKENS,
            sends_base64=True,
        )
    digest = hashlib.sha256(f"{name} at {base_url.origin.partition('://')[2]}".encode()).hexdigest()
    space_name = f"{short}_{digest[:8]}"
    return RemoteModel(name, space_name, None, _OTHER_TEXT_TOKENS, _OTHER_REQUEST_TOKENS)


async def embedding_models(
    registry: ProviderRegistry, configs: Sequence[ProviderConfig]
) -> list[tuple[str, ...]]:
    """Return the names of each provider's embedding models, () where it does not answer in 3 s.

    All are queried at once. The base URL of each must be valid (`ProviderConfig.can_embed`).
    """
    return await asyncio.gather(*(_models_of(registry, config) for config in configs))


async def _models_of(registry: ProviderRegistry, config: ProviderConfig) -> tuple[str, ...]:
    if openai.SPEC.owns(config.url()):
        return openai.SPEC.embedding_models
    provider = registry.build(config)
    try:
        async with asyncio.timeout(_LIST_LIMIT_S):
            models = await provider.models()
    except (KnownError, TimeoutError):
        return ()
    finally:
        await provider.aclose()
    return tuple(model.ref.model for model in models if model.is_embedding)


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
