"""Which embedder makes vectors and which one answers: the setting `embedder`, made into objects.

A choice is written `builtin`, `onnx:FOLDER` or `PROVIDER:MODEL`. The embedders themselves live in
`app.providers`; what they made, in the tables of their spaces.
"""

import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.domain.chat import ModelRef
from app.domain.errors import ConsentMissing, EmbedderUnavailable, KnownError, StorageError
from app.domain.passages import Space
from app.domain.ports import Embedder
from app.domain.settings_schema import setting_for
from app.providers.base_url import BaseUrl
from app.providers.configuration import DEFAULT_URLS, ProviderConfig, ProviderKind
from app.providers.connection import Endpoint
from app.providers.embedding_models import embedding_models, may_embed
from app.providers.limits import Network
from app.providers.local_embedder import LocalEmbedder
from app.providers.loop_thread import LoopThread
from app.providers.own_prices import OwnPrices
from app.providers.prices import PriceBook
from app.providers.registry import ProviderRegistry
from app.providers.remote_embedder import (
    BATCH_LIMIT_S,
    MOST_INPUTS,
    QUESTION_LIMIT_S,
    RemoteEmbedder,
    remote_model,
)
from app.providers.request_pace import RequestPace
from app.providers.retry import RetryPolicy
from app.storage.settings import Settings
from app.storage.store import Store
from app.system.keys import KeyStore

BUILT_IN = "builtin"
_BUILT_IN_FOLDER = Path(__file__).resolve().parents[2] / "resources/models/all-MiniLM-L6-v2"
ONNX = "onnx:"
_ENOUGH_SHARE = 0.95  # of the passages, for a newly chosen space to answer
_DECISION_S = 5.0  # counting takes some 30 ms, asking a server that hangs 2 s: not at each key
_HOSTED_TOKENS_PER_MINUTE = 1_000_000  # OpenAI's limit for new accounts (rate limits, tier 1)
_LOCAL_TOKENS_PER_MINUTE = 300_000  # MiniLM reads 480,000 on two busy cores, others fewer
_REQUEST_S = 1.0


@dataclass(frozen=True, slots=True)
class EmbedderChoice:
    """One line of the list to choose from; `leaves_machine` when texts are sent away for it."""

    value: str
    title: str
    leaves_machine: bool


@dataclass(frozen=True, slots=True)
class Estimate:
    """What embedding all history would take, roughly.

    `cost_usd` is None when the price is unknown. `sent_to` is the base URL that history would be
    sent to, "" when it stays on this machine; `is_agreed` whether the user has agreed to that.
    """

    minutes: float
    cost_usd: float | None
    sent_to: str
    is_agreed: bool


@dataclass(frozen=True, slots=True)
class _Decision:
    """Which of two choices `answers`, until a moment of the monotonic clock."""

    chosen: str
    before: str
    answers: str
    until_s: float

    def still_holds(self, chosen: str, before: str) -> bool:
        return (self.chosen, self.before) == (chosen, before) and time.monotonic() < self.until_s


class EmbedderDirectory:
    """Makes the embedders that the settings name, each once. Thread-safe; blocks but for `describe`.

    A change of settings takes effect with the next call.
    """

    def __init__(
        self,
        settings: Settings,
        registry: ProviderRegistry,
        *,
        built_in: Path = _BUILT_IN_FOLDER,
        batch_limit_s: float = BATCH_LIMIT_S,
        question_limit_s: float = QUESTION_LIMIT_S,
        decision_s: float = _DECISION_S,
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._prices = PriceBook(registry.find_config, OwnPrices(settings).all)
        self._built_in = built_in
        self._batch_limit_s = batch_limit_s
        self._question_limit_s = question_limit_s
        self._decision_s = decision_s
        self._decided: _Decision | None = None
        self._loop = LoopThread("embedders")
        self._lock = threading.Lock()
        self._local_ones: dict[str, LocalEmbedder] = {}
        self._remote_ones: dict[str, tuple[object, RemoteEmbedder]] = {}

    def active(self) -> LocalEmbedder | RemoteEmbedder:
        """Return the chosen embedder, which new vectors are made with.

        A local one loads its model with its first use. Raises EmbedderUnavailable when the choice
        names nothing usable, and when history would leave the machine and nobody agreed to that.
        """
        return self._agreed(self._settings.text("embedder"))

    def answering(self, coverage: Callable[[Space], float]) -> Embedder:
        """Return the embedder for questions, whose space is the one to search in.

        That is the chosen one as soon as its space covers 95 % of the passages, or as much as the
        space before; until then the one before. `coverage` gives a space's share, 0-1; it is only
        asked while the two differ, every `decision_s`. A server's embedder has a short time limit
        of its own. Raises as `active`.
        """
        chosen = self._settings.text("embedder")
        before = self._settings.text("embedder_before")
        if chosen == before:
            return self._for_questions(chosen)
        if (kept := self._decided) is not None and kept.still_holds(chosen, before):
            return self._for_questions(kept.answers)
        answers = self._decide(chosen, before, coverage)
        self._decided = _Decision(chosen, before, answers, time.monotonic() + self._decision_s)
        return self._for_questions(answers)

    @property
    def is_remote(self) -> bool:
        """Whether the chosen embedder is a server, on this machine or elsewhere."""
        return _is_remote(self._settings.text("embedder"))

    def describe(self, choice: str | None = None) -> str:
        """Return the choice (None: the one in force) in words for the screen. Never blocks."""
        value = self._settings.text("embedder") if choice is None else choice
        if value == BUILT_IN:
            return f"{self._built_in.name}, built in"
        if value.startswith(ONNX):
            return f"the ONNX model in “{value.removeprefix(ONNX)}”"
        ref = ModelRef.parse(value)
        return f"{ref.model} at {ref.provider}"

    def choices(self) -> tuple[EmbedderChoice, ...]:
        """Return what can be chosen: built in, OpenAI's, and what other servers list.

        Servers are asked, all at once and for at most 3 s; those that do not answer are left out.
        """
        found = [EmbedderChoice(BUILT_IN, self.describe(BUILT_IN), leaves_machine=False)]
        usable = [config for config in self._registry.configs() if may_embed(config)]
        listed = self._loop.call(lambda: embedding_models(self._registry, usable))
        for config, models in zip(usable, listed, strict=True):
            for model in models:
                value = f"{config.name}:{model}"
                away = not config.url().is_loopback
                found.append(EmbedderChoice(value, self.describe(value), leaves_machine=away))
        return tuple(found)

    def estimate(self, passages: int, tokens: int, choice: str | None = None) -> Estimate:
        """Return what embedding so much with a choice (None: the one in force) would take.

        Raises EmbedderUnavailable when it names nothing.
        """
        value = self._settings.text("embedder") if choice is None else choice
        if not _is_remote(value):
            self._local(value)
            return Estimate(tokens / _LOCAL_TOKENS_PER_MINUTE, 0.0, "", is_agreed=True)
        ref = ModelRef.parse(value)
        base_url = self._config(value).url()
        model = remote_model(ref.model, base_url)
        per_request = min(self._settings.number("embedding_batch_size"), MOST_INPUTS)
        requests = max(math.ceil(passages / per_request), math.ceil(tokens / model.request_tokens))
        a_minute = _LOCAL_TOKENS_PER_MINUTE if base_url.is_loopback else _HOSTED_TOKENS_PER_MINUTE
        minutes = max(tokens / a_minute, requests * _REQUEST_S / 60)
        if (limit := self._requests_per_minute()) is not None:
            minutes = max(minutes, requests / limit)
        return Estimate(
            minutes,
            self._prices.cost(ref, tokens, 0).cost_usd,
            "" if base_url.is_loopback else base_url.text,
            is_agreed=self._is_agreed(value, base_url),
        )

    def choose(self, choice: str, *, agreed: bool = False) -> None:
        """Make `choice` the embedder; `agreed` records that history may be sent to its server.

        Raises InvalidSetting for what is no choice, EmbedderUnavailable when its provider is none,
        StorageError.
        """
        setting_for("embedder").check(choice)
        if agreed and _is_remote(choice):
            consents = self._settings.text("embedder_consent").split()
            consent = _consent(choice, self._config(choice).url())
            if consent not in consents:
                self._settings.set("embedder_consent", " ".join((*consents, consent)))
        self._settings.set("embedder", choice)

    def close(self) -> None:
        """End requests and connections; at most 3 s. Blocking."""
        self._loop.close()

    def _for_questions(self, value: str) -> Embedder:
        embedder = self._agreed(value)
        return embedder.for_questions() if isinstance(embedder, RemoteEmbedder) else embedder

    def _decide(self, chosen: str, before: str, coverage: Callable[[Space], float]) -> str:
        """Which of two choices answers; the new one for good when its space covers enough."""
        try:
            share = coverage(self._for_questions(chosen).space)
        except KnownError as error:
            with suppress(KnownError):
                self._for_questions(before)
                return before
            raise error from None
        if share < _ENOUGH_SHARE and (old := self._if_there(before)) is not None:
            try:
                if share < coverage(old.space):
                    return before
            except KnownError:
                return chosen  # perhaps the other's server is only off for now
        with suppress(StorageError):
            self._settings.set("embedder_before", chosen)
        return chosen

    def _if_there(self, value: str) -> Embedder | None:
        try:
            return self._for_questions(value)
        except EmbedderUnavailable:
            return None

    def _agreed(self, value: str) -> LocalEmbedder | RemoteEmbedder:
        if not _is_remote(value):
            return self._local(value)
        config = self._config(value)  # read once: what was agreed to is what is used
        base_url = config.url()
        if not self._is_agreed(value, base_url):
            raise ConsentMissing(
                f"'{value}' would send your history to {base_url.text}",
                f"Agree to that in Settings, or with 'commonplace config set embedder {value} "
                "--yes', or choose another embedder.",
            )
        return self._remote(value, config)

    def _is_agreed(self, value: str, base_url: BaseUrl) -> bool:
        consents = self._settings.text("embedder_consent").split()
        return base_url.is_loopback or _consent(value, base_url) in consents

    def _local(self, value: str) -> LocalEmbedder:
        with self._lock:
            if (known := self._local_ones.get(value)) is None:
                folder = self._built_in if value == BUILT_IN else _folder(value)
                known = self._local_ones[value] = LocalEmbedder(folder)
            return known

    def _remote(self, value: str, config: ProviderConfig) -> RemoteEmbedder:
        """The embedder, the same one as long as what it was made from stays."""
        stamp = (config, self._network())
        with self._lock:
            known = self._remote_ones.get(value)
            if known is None or known[0] != stamp:
                known = self._remote_ones[value] = (stamp, self._new(value, *stamp))
            return known[1]

    def _new(self, value: str, config: ProviderConfig, network: Network) -> RemoteEmbedder:
        ref = ModelRef.parse(value)
        base_url = config.url()
        endpoint = Endpoint(
            provider=config.name,
            base_url=base_url,
            # A key belongs to the place it was entered for, also when that is changed meanwhile.
            find_key=lambda: (
                self._registry.find_key(config.name)
                if self._registry.find_config(config.name) == config
                else None
            ),
            needs_key=base_url.text == DEFAULT_URLS.get(config.kind),
            is_vendors=config.is_built_in,
            network=network,
        )
        return RemoteEmbedder(
            endpoint,
            remote_model(ref.model, base_url),
            self._loop,
            RequestPace(self._requests_per_minute),
            cost_of=lambda tokens: self._prices.cost(ref, tokens, 0).cost_usd,
            batch_limit_s=self._batch_limit_s,
            question_limit_s=self._question_limit_s,
        )

    def _config(self, value: str) -> ProviderConfig:
        """The provider of a choice, its base URL sound; raises EmbedderUnavailable."""
        name = ModelRef.parse(value).provider
        try:
            config = self._registry.config(name)
            config.url()
        except KnownError as error:
            raise EmbedderUnavailable(
                f"The embedder '{value}' cannot be used: {error.title}", error.hint
            ) from error
        if config.kind is ProviderKind.ANTHROPIC:
            raise EmbedderUnavailable(
                f"The embedder '{value}' cannot be used: {name} has no embedding models",
                "Choose builtin, or a model of another provider.",
            )
        return config

    def _requests_per_minute(self) -> int | None:
        value = self._settings.get("embedding_requests_per_minute")
        return value if isinstance(value, int) else None

    def _network(self) -> Network:
        return Network(
            self._settings.text("proxy_url") or None, self._settings.text("ca_bundle") or None
        )


def provider_registry(
    settings: Settings, keys: KeyStore, policy: RetryPolicy | None = None
) -> ProviderRegistry:
    """Return the providers that the settings name; `policy` says when a request is sent again."""

    def configured() -> list[ProviderConfig]:
        return [
            ProviderConfig(
                row.name, ProviderKind(row.kind), row.base_url, row.key_env, row.allow_plain_http
            )
            for row in settings.providers()
        ]

    def network() -> Network:
        return Network(settings.text("proxy_url") or None, settings.text("ca_bundle") or None)

    return ProviderRegistry(configured, keys, network=network, policy=policy)


def amount_to_embed(store: Store) -> tuple[int, int]:
    """Return how many passages there are and how many tokens they have, roughly. Blocking."""
    row = store.read(
        lambda cursor: cursor.execute(
            "SELECT count(*), coalesce(sum(tokens), 0) FROM passage"
        ).fetchone()
    )
    passages, tokens = row or (0, 0)
    return int(passages), int(tokens)


def _is_remote(value: str) -> bool:
    return value != BUILT_IN and not value.startswith(ONNX)


def _consent(value: str, base_url: BaseUrl) -> str:
    """A choice at the place it was agreed to; a changed base URL asks again."""
    return f"{value}@{base_url.origin}"


def _folder(value: str) -> Path:
    try:
        folder = Path(value.removeprefix(ONNX)).expanduser()
    except RuntimeError:  # there is no such user
        folder = Path(value.removeprefix(ONNX))
    if not folder.is_absolute():
        raise EmbedderUnavailable(
            f"The embedder '{value}' does not name the whole path of its folder",
            "Write it from the root, as onnx:/home/me/models/my-model.",
        )
    return folder
