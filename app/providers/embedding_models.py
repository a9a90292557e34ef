"""Which embedding models a provider has: OpenAI's are known, other servers are asked."""

import asyncio
from collections.abc import Sequence

from app.domain.errors import KnownError
from app.providers.configuration import ProviderConfig, ProviderKind
from app.providers.registry import ProviderRegistry
from app.providers.remote_embedder import is_openai_place

_OPENAI_MODELS = ("text-embedding-3-small", "text-embedding-3-large")
_LIMIT_S = 3.0


async def embedding_models(
    registry: ProviderRegistry, configs: Sequence[ProviderConfig]
) -> list[tuple[str, ...]]:
    """Return the names of each provider's embedding models, () where it does not say in 3 s.

    All are asked at once; the base URL of each must be sound (`may_embed`).
    """
    return await asyncio.gather(*(_models_of(registry, config) for config in configs))


def may_embed(config: ProviderConfig) -> bool:
    """Whether a provider could have embedding models, and a base URL to ask at."""
    if config.kind is ProviderKind.ANTHROPIC:
        return False
    try:
        config.url()
    except KnownError:
        return False
    return True


async def _models_of(registry: ProviderRegistry, config: ProviderConfig) -> tuple[str, ...]:
    if is_openai_place(config.url()):
        return _OPENAI_MODELS
    provider = registry.build(config.name)
    try:
        async with asyncio.timeout(_LIMIT_S):
            cards = await provider.models()
    except (KnownError, TimeoutError):
        return ()
    finally:
        await provider.aclose()
    return tuple(card.ref.model for card in cards if card.is_embedding)
