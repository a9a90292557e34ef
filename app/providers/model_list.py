"""The models a server lists, as cards: what it says about them, and which of them can chat.

Context sizes come under the names that vLLM, llama.cpp, OpenRouter, Groq, LM Studio, Mistral and
Anthropic use.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from app.domain.chat import ModelCard, ModelRef
from app.providers.lenient import count_at, list_at, member, text_at

_CONTEXT_PATHS = (
    ("context_length",),
    ("max_model_len",),
    ("max_input_tokens",),
    ("max_context_length",),
    ("context_window",),
    ("meta", "n_ctx"),
    ("meta", "n_ctx_train"),
)
_EMBEDDING = re.compile(r"embed|(?:^|[/_-])(?:bge|gte|e5|minilm)(?:[._-]|$)", re.IGNORECASE)
_OTHER_TRADES = re.compile(
    r"tts|whisper|dall-e|image|sora|moderation|realtime|transcri|audio|babbage|davinci|rerank"
)


def model_cards(
    provider: str, listing: object, *, is_openai: bool = False
) -> tuple[ModelCard, ...]:
    """Return the cards of a decoded `GET /models`, newest first, else in the server's order.

    OpenAI lists everything it runs; what neither chats nor embeds is left out there.
    """
    entries = list_at(listing, "data") or list_at(listing, "models")
    usable = [entry for entry in entries if _name(entry) and not _is_retired(entry)]
    usable.sort(key=lambda entry: -_made_at(entry))
    cards: dict[str, ModelCard] = {}
    for entry in usable:
        name = _name(entry)
        embeds = bool(_EMBEDDING.search(f"{name} {text_at(entry, 'type')}"))
        if is_openai and not embeds and _OTHER_TRADES.search(name):
            continue
        title = text_at(entry, "display_name") or text_at(entry, "name") or name
        card = ModelCard(ModelRef(provider, name), title, _context(entry), embeds)
        cards.setdefault(name, card)
    return tuple(cards.values())


def is_model_list(listing: object) -> bool:
    """Whether a decoded answer is a list of models, maybe an empty one."""
    entries = member(listing, "data")
    if entries is None:
        entries = member(listing, "models")
    return isinstance(entries, list) and all(_name(entry) for entry in entries)


def with_known_contexts(
    cards: tuple[ModelCard, ...], context_tokens: Callable[[ModelRef], int | None]
) -> Iterator[ModelCard]:
    """Yield the cards, a context size filled in where the server names none and we know it."""
    for card in cards:
        known = card.context_tokens or context_tokens(card.ref)
        yield ModelCard(card.ref, card.title, known, card.is_embedding)


def _name(entry: Any) -> str:
    return text_at(entry, "id") or text_at(entry, "model")


def _is_retired(entry: Any) -> bool:
    return text_at(entry, "lifecycle") == "retired"


def _made_at(entry: Mapping[str, Any]) -> float:
    """Unix time, from a number (OpenAI) or the ISO text (Anthropic); 0 if unknown."""
    created = entry.get("created")
    if isinstance(created, int | float):
        return float(created)
    digits = re.sub(r"\D", "", text_at(entry, "created_at"))[:14]
    return float(digits) if digits else 0.0


def _context(entry: Any) -> int | None:
    found = (count_at(entry, *path) for path in _CONTEXT_PATHS)
    return next((tokens for tokens in found if tokens), None)
