"""Model lists: what a server's `GET /models` says about its models.

Context sizes have the names that vLLM, llama.cpp, OpenRouter, Groq, LM Studio, Mistral and
Anthropic use.
"""

import re
from collections.abc import Mapping
from typing import Any

from app.domain.chat import ListedModel, ModelRef
from app.providers.http.json_fields import count_at, list_at, mapping_at, member, text_at

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


def listed_models(
    provider: str, listing: object, unlisted: re.Pattern[str] | None = None
) -> tuple[ListedModel, ...]:
    """Return the models of a decoded `GET /models`, newest first, else in the server's order.

    Retired models are left out, and those with a name like `unlisted` unless they embed.
    """
    entries = list_at(listing, "data") or list_at(listing, "models")
    usable = [
        entry for entry in entries if entry_name(entry) and text_at(entry, "lifecycle") != "retired"
    ]
    usable.sort(key=lambda entry: -_created_at(entry))
    found: dict[str, ListedModel] = {}
    for entry in usable:
        name = entry_name(entry)
        embeds = bool(_EMBEDDING.search(f"{name} {text_at(entry, 'type')}"))
        if unlisted and not embeds and unlisted.search(name):
            continue
        title = text_at(entry, "display_name") or text_at(entry, "name") or name
        model = ListedModel(
            ModelRef(provider, name), title, window_of(entry), embeds, _sees_images(entry)
        )
        found.setdefault(name, model)
    return tuple(found.values())


def is_model_list(listing: object) -> bool:
    """Whether a decoded answer is a list of models, possibly an empty one; some of them may have no name."""
    entries = member(listing, "data")
    if entries is None:
        entries = member(listing, "models")
    return isinstance(entries, list) and (not entries or any(map(entry_name, entries)))


def entry_name(entry: Any) -> str:
    """Return the name of a model in a list, "" for none."""
    return text_at(entry, "id") or text_at(entry, "model")


def _created_at(entry: Mapping[str, Any]) -> float:
    """Unix time, from a number (OpenAI) or the ISO text (Anthropic); 0 if unknown."""
    created = entry.get("created")
    if isinstance(created, int | float):
        return float(created)
    digits = re.sub(r"\D", "", text_at(entry, "created_at"))[:14]
    return float(digits) if digits else 0.0


def _sees_images(entry: Any) -> bool | None:
    """Return what OpenRouter, Mistral, Anthropic or LM Studio says about images; None for nothing."""
    modalities = list_at(mapping_at(entry, "architecture"), "input_modalities")
    if modalities:
        return "image" in modalities
    for path in (("vision",), ("image_input", "supported")):
        if isinstance(value := member(mapping_at(entry, "capabilities"), *path), bool):
            return value
    kind = text_at(entry, "type")
    return kind == "vlm" if kind in ("vlm", "llm") else None


def window_of(entry: Any) -> int | None:
    """Return the size of a model's context in tokens as a list says, None if it does not."""
    found = (count_at(entry, *path) for path in _CONTEXT_PATHS)
    return next((tokens for tokens in found if tokens), None)
