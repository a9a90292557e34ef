"""Embedding models of providers: their limits, and lists of them."""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.errors import KnownError
from app.providers.configuration import ProviderConfig
from app.providers.http.base_url import BaseUrl
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
