"""Model lists of servers, and the context windows of the models.

Context sizes have the names that vLLM, llama.cpp, OpenRouter, Groq, LM Studio, Mistral and Anthropic use.
A window is asked of the routes of each kind of server. vLLM and gateways: `GET /models`. llama-server:
`GET /props`. LM Studio: `GET /api/v0/models`. Ollama: `GET /api/ps` for a loaded model, else `POST /api/show`.
What a model was trained for is not what the server allows: it counts only where nothing else is known.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from app.domain.chat import ListedModel, ModelRef
from app.domain.errors import KnownError, Unreachable
from app.providers.http.base_url import BaseUrl
from app.providers.http.endpoint import Endpoint, SizeLimits, TimeLimits
from app.providers.http.error_translation import RejectedReply
from app.providers.http.json_fields import count_at, list_at, mapping_at, member, text_at

if TYPE_CHECKING:
    from app.providers.http.client import GuardedClient

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


_TIMES = TimeLimits(connect_s=1.0, first_byte_s=2.0, idle_s=1.0)
_MOST_S = 4.0  # of all routes; a server that takes any POST for a question may answer for minutes
_SIZES = SizeLimits(reply_bytes=8 << 20)  # OpenRouter lists 400 models in 1 MB
_OLLAMA_DEFAULT_TOKENS = 4096  # docs/faq.md of Ollama: the default context
_NOT_NOW = (401, 403, 429, 500, 502, 503, 504)  # llama-server while it loads the model: 503
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ServerWindow:
    """A window in tokens; `is_final` unless it changes when the server loads the model."""

    tokens: int
    is_final: bool = True


async def server_window(endpoint: Endpoint, models_path: str, model: str) -> ServerWindow | None:
    """Return the window of a model, None if the server answers and does not report it.

    Raises Unreachable if it cannot be reached or does not answer now. `models_path` is where the server lists its models, relative to its base URL. Routes outside the base URL are used on this machine and in the user's own network only.
    """
    from app.providers.http import client as http

    endpoint = replace(endpoint, times=_TIMES, sizes=_SIZES)
    try:
        client = await asyncio.to_thread(http.GuardedClient, endpoint)
        found = await asyncio.to_thread(endpoint.find_key)
        async with asyncio.timeout(_MOST_S), client:
            if found is not None:
                key = found.secret.reveal()
                client.headers.update({"Authorization": f"Bearer {key}", "X-Api-Key": key})
            return await _Probe(client, endpoint.base_url, model).window(models_path)
    except Exception as error:
        if isinstance(error, (RejectedReply, ValueError)):
            return None
        if isinstance(error, (*http.HTTP_ERRORS, KnownError)):
            raise Unreachable("The server does not say how much the model reads") from error
        raise


class _Probe:
    """The requests to one server about one model."""

    def __init__(self, client: "GuardedClient", base_url: BaseUrl, model: str) -> None:
        self._client = client
        self._base_url = base_url
        self._model = model
        self._is_busy = False

    async def window(self, models_path: str) -> ServerWindow | None:
        """Return what the list of models says, else what the server's own routes say."""
        window = await self._found(models_path)
        if window is None and self._is_busy:
            raise Unreachable("The server does not answer now")
        return window

    async def _found(self, models_path: str) -> ServerWindow | None:
        is_near = self._base_url.is_loopback or self._base_url.is_private
        listing = await self._json(f"{self._base_url.text}{models_path}")
        entries = [*list_at(listing, "data"), *list_at(listing, "models")]
        entry = next((each for each in entries if entry_name(each) == self._model), None)
        if entry is None and is_near and len(entries) == 1:
            entry = entries[0]  # a llama-server answers for its only model by any name
        listed = window_of(entry) if isinstance(entry, Mapping) else None
        if not is_near:
            return None if listed is None else ServerWindow(listed)
        if listed is not None and member(entry, "meta") is None:
            return ServerWindow(listed)
        for found in (self._llama, self._ollama, self._lm_studio):
            if (window := await found()) is not None:
                return window
        return None if listed is None else ServerWindow(listed)

    async def _llama(self) -> ServerWindow | None:
        props = await self._json(f"{self._origin}/props")
        tokens = count_at(props, "default_generation_settings", "n_ctx") or count_at(props, "n_ctx")
        return None if not tokens else ServerWindow(tokens)

    async def _ollama(self) -> ServerWindow | None:
        """The window of the loaded model, else the model file's, else Ollama's default."""
        shown = await self._json(f"{self._origin}/api/show", {"model": self._model})
        if member(shown, "model_info") is None and not text_at(shown, "parameters"):
            return None
        running = list_at(await self._json(f"{self._origin}/api/ps"), "models")
        names = (self._model, f"{self._model}:latest")
        loaded = (count_at(each, "context_length") for each in running if entry_name(each) in names)
        if tokens := next(filter(None, loaded), None):
            return ServerWindow(tokens)
        if given := _NUM_CTX.search(text_at(shown, "parameters")):
            return ServerWindow(int(given[1][:9]))
        return ServerWindow(_OLLAMA_DEFAULT_TOKENS, is_final=False)

    async def _lm_studio(self) -> ServerWindow | None:
        listing = await self._json(f"{self._origin}/api/v0/models")
        entry = next(
            (each for each in list_at(listing, "data") if entry_name(each) == self._model), None
        )
        if loaded := count_at(entry, "loaded_context_length"):
            return ServerWindow(loaded)
        trained = count_at(entry, "max_context_length")
        return ServerWindow(trained, is_final=False) if trained else None

    @property
    def _origin(self) -> str:
        return self._base_url.text.removesuffix("/v1")

    async def _json(self, url: str, body: dict[str, Any] | None = None) -> object:
        """Return the JSON at a route, None if the server has no such route or is busy."""
        if body is None:
            response = await self._client.get(url)
        else:
            response = await self._client.post(url, json=body)
        if response.status_code != 200:
            self._is_busy |= response.status_code in _NOT_NOW
            return None
        try:
            return json.loads(response.content)
        except (ValueError, RecursionError):
            return None
