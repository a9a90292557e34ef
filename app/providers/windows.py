"""Context windows of models: the user's own setting, the server's, the bundled table, or 8,192 tokens.

A refusal that names a smaller window is kept for its model, until another source names another
window than the one that was refused.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock

from app.domain.chat import UNKNOWN_WINDOW_TOKENS, ModelRef
from app.domain.errors import ContextTooLong, InvalidInput, KnownError, NotFound, Unreachable
from app.providers.http.json_fields import json_object
from app.providers.registry import ProviderRegistry
from app.providers.vendors.model_list import ServerWindow, server_window
from app.storage.tables.settings import Settings

_OWN, _REFUSED = "own_windows", "refused_windows"
_LEAST_TOKENS, _MOST_TOKENS = 512, 100_000_000
_KEPT_S, _KEPT_BRIEFLY_S = 300.0, 20.0  # briefly: no answer, or it changes when the model loads
_SHORTER = 0.75  # where a refusal names no window


class WindowSource(StrEnum):
    """Who says how much a model reads."""

    USER = "set by you"
    REFUSAL = "named in a refusal"
    SERVER = "reported by the server"
    TABLE = "from the bundled list"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class ModelWindow:
    """A window and where it comes from."""

    tokens: int
    source: WindowSource


class ModelWindows:
    """The windows of all models. Thread-safe; may block for a few seconds while a server is asked.

    `listed` returns the window in the bundled table, None if the model is not there.
    """

    def __init__(
        self,
        settings: Settings,
        registry: ProviderRegistry,
        listed: Callable[[ModelRef], int | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._listed = listed
        self._clock = clock
        self._lock, self._writing = Lock(), Lock()
        self._reported: dict[tuple[object, str], tuple[float, ServerWindow | None]] = {}

    def tokens(self, ref: ModelRef) -> int:
        return self.find(ref).tokens

    def find(self, ref: ModelRef, *, asks_server: bool = True) -> ModelWindow:
        """Return a model's window and where it comes from; without asking, as last reported."""
        known = self._known(ref, asks_server=asks_server)
        refused, assumed = self._refused().get(str(ref), (0, 0))
        is_refused = assumed == known.tokens
        return ModelWindow(refused, WindowSource.REFUSAL) if is_refused else known

    def note_refusal(self, ref: ModelRef, refusal: ContextTooLong) -> None:
        """Keep what a refusal says about a model's window. Blocking; raises StorageError.

        A window that it names is kept as it is, also where only a long reply exceeded it; one that
        is known otherwise does not grow. Where a prompt is longer than its estimate, a window is less
        in estimated tokens: else the same prompt would seem to fit.
        """
        known, tokens = self._known(ref), refusal.limit_tokens
        if tokens is None:
            tokens = int(self.tokens(ref) * _SHORTER)
        elif known.source is not WindowSource.ASSUMED:
            tokens = min(tokens, known.tokens)
        estimated, prompt = refusal.estimated_tokens, refusal.prompt_tokens or 0
        if estimated is not None and max(estimated, tokens) < prompt:
            tokens = tokens * estimated // prompt
        row = (max(tokens, _LEAST_TOKENS), known.tokens)
        with self._writing:
            self._settings.set(_REFUSED, json.dumps(self._refused() | {str(ref): row}))

    # -- the user's own

    def own(self) -> Mapping[str, int]:
        """Return the windows that the user set, by PROVIDER:MODEL."""
        rows = json_object(self._settings.text(_OWN))
        return {model: each for model, each in rows.items() if type(each) is int}

    def put(self, model: str, tokens: int) -> str:
        """Set a model's window; return the model's normalized name. Blocking.

        Raises InvalidInput, StorageError.
        """
        ref = ModelRef.parse(model)
        if not ref.provider or not ref.model:
            raise InvalidInput(f"'{model}' names no model", "Write PROVIDER:MODEL.")
        if not _LEAST_TOKENS <= tokens <= _MOST_TOKENS:
            raise InvalidInput(
                f"'{tokens}' is not a context window",
                f"A window is a number of tokens from {_LEAST_TOKENS:,} to {_MOST_TOKENS:,}.",
            )
        self._settings.set(_OWN, json.dumps({**self.own(), str(ref): tokens}))
        return str(ref)

    def remove(self, model: str) -> None:
        """Let a model's window be found again; raise NotFound if the user set none. Blocking."""
        rows = dict(self.own())
        if rows.pop(str(ModelRef.parse(model)), None) is None:
            models = ", ".join(rows) or "none"
            raise NotFound(
                f"You have not set a window for '{model}'", f"Models with one: {models}."
            )
        self._settings.set(_OWN, json.dumps(rows))

    # -- other sources

    def _known(self, ref: ModelRef, *, asks_server: bool = True) -> ModelWindow:
        if (own := self.own().get(str(ref))) is not None:
            return ModelWindow(own, WindowSource.USER)
        if (reported := self._report(ref, asks_server=asks_server)) is not None:
            return ModelWindow(reported.tokens, WindowSource.SERVER)
        if (listed := self._listed(ref)) is not None:
            return ModelWindow(listed, WindowSource.TABLE)
        return ModelWindow(UNKNOWN_WINDOW_TOKENS, WindowSource.ASSUMED)

    def _refused(self) -> dict[str, tuple[int, int]]:
        found = {}
        for model, row in json_object(self._settings.text(_REFUSED)).items():
            match row:
                case [int() as tokens, int() as assumed]:
                    found[model] = (tokens, assumed)
        return found

    def _report(self, ref: ModelRef, *, asks_server: bool) -> ServerWindow | None:
        """Return what the server says, asked at most every five minutes, or said last.

        A final report stands until another final one, whatever happens to the server meanwhile.
        None for a vendor and for gateways to it, whose models the table knows.
        """
        try:
            config = self._registry.config(ref.provider)
            base_url = config.url()
            is_near = base_url.is_loopback or base_url.is_private
            if config.vendor.price_key and not is_near:
                return None
            key, now_s = (config, ref.model), self._clock()
            with self._lock:
                until_s, reported = self._reported.get(key, (now_s, None))
            if now_s < until_s or not asks_server:
                return reported
            endpoint = self._registry.endpoint(config)
        except KnownError:
            return None
        try:
            found = asyncio.run(server_window(endpoint, config.vendor.models_path, ref.model))
            kept_s = _KEPT_S if found is None or found.is_final else _KEPT_BRIEFLY_S
        except Unreachable:
            found, kept_s = None, _KEPT_BRIEFLY_S
        with self._lock:
            _, reported = self._reported.get(key, (now_s, None))
            if found is not None and (found.is_final or reported is None or not reported.is_final):
                reported = found
            self._reported[key] = (now_s + kept_s, reported)
        return reported
