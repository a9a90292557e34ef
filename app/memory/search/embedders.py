"""Embedder selection: the embedders that the settings name, for new vectors and for questions.

A choice is `builtin`, `builtin-multilingual`, `onnx:FOLDER` or `PROVIDER:MODEL`.

The multilingual one is suggested where the English one cannot read the library. A new library has it from the start
if the user's system is not in English.
"""

import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.domain.chat import ModelRef, UsageReported
from app.domain.errors import ConsentMissing, EmbedderUnavailable, KnownError, StorageError
from app.domain.passages import EmbeddingEstimate, Space
from app.domain.ports import Embedder
from app.domain.settings_schema import setting_for
from app.domain.translation import ENGLISH, format_percent, system_language, tr
from app.language.languages import is_english
from app.providers.configuration import ProviderConfig
from app.providers.embedders.local import LocalEmbedder
from app.providers.embedders.remote import MAX_INPUTS, QUERY_LIMIT_S, RateLimiter, RemoteEmbedder
from app.providers.embedders.remote_models import embedding_models, remote_model
from app.providers.http.base_url import BaseUrl
from app.providers.http.loop_thread import EventLoopThread
from app.providers.pricing.prices import OwnPrices, PriceList
from app.providers.registry import ProviderRegistry
from app.storage.engine.store import Store
from app.storage.tables.passages.queries import Passages
from app.storage.tables.settings import Settings

BUILT_IN = "builtin"
MULTILINGUAL = "builtin-multilingual"
_MODELS = Path(__file__).resolve().parents[3] / "resources/models"
_BUILT_IN_FOLDERS = {
    BUILT_IN: _MODELS / "all-MiniLM-L6-v2",  # English
    MULTILINGUAL: _MODELS / "multilingual-e5-small",
}
ONNX = "onnx:"
_ENOUGH_SHARE = 0.95  # of the passages, before a newly chosen space answers
_DECISION_S = 5.0  # counting takes some 30 ms, a hanging server 2 s: not for every key press
_HOSTED_TOKENS_PER_MINUTE = 1_000_000  # OpenAI's limit for new accounts (rate limits, tier 1)
_LOCAL_TOKENS_PER_MINUTE = 300_000  # MiniLM reads 480,000 on two busy cores, other models fewer
_REQUEST_S = 1.0
_TEXTS_OF_A_PASSAGE = 2  # a question and its answer; 2.1 in a library of 100,000 turns


@dataclass(frozen=True, slots=True)
class EmbedderChoice:
    """A choice in the list; `leaves_machine` when texts are sent to another machine."""

    value: str
    title: str
    leaves_machine: bool


class EmbedderDirectory:
    """Creates the embedders of the settings, each once. Thread-safe; `describe` never blocks.

    A changed setting takes effect with the next call.
    """

    def __init__(
        self,
        settings: Settings,
        registry: ProviderRegistry,
        *,
        query_limit_s: float = QUERY_LIMIT_S,
        decision_s: float = _DECISION_S,
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._prices = PriceList(registry.find_config, OwnPrices(settings).all)
        self._question_limit_s = query_limit_s
        self._decision_s = decision_s
        self._decided: tuple[tuple[str, str], str, float] | None = None
        self._loop = EventLoopThread("embedders")
        self._lock = threading.Lock()
        self._local_ones: dict[str, LocalEmbedder] = {}
        self._remote_ones: dict[str, tuple[object, RemoteEmbedder]] = {}

    def active(self) -> LocalEmbedder | RemoteEmbedder:
        """Return the chosen embedder, which makes new vectors.

        A local one loads its model on first use. Raises EmbedderUnavailable when the choice is not
        usable, and when the history would leave the machine without consent.
        """
        return self._agreed(self._settings.text("embedder"))

    def answering(self, coverage: Callable[[Space], float]) -> Embedder:
        """Return the embedder for questions; its space is the one to search.

        That is the chosen one once its space covers 95 % of the passages or as much as the previous
        space; until then the previous one. `coverage` returns a space's share (0-1) and is called
        only while the two differ, every `decision_s`. A server's embedder has a short time limit.
        Raises as `active`.
        """
        chosen = self._settings.text("embedder")
        before = self._settings.text("embedder_before")
        if chosen == before:
            return self._for_questions(chosen)
        choices, at_s = (chosen, before), time.monotonic()
        if (kept := self._decided) is None or kept[0] != choices or kept[2] <= at_s:
            answers = self._decide(chosen, before, coverage)
            kept = self._decided = (choices, answers, time.monotonic() + self._decision_s)
        return self._for_questions(kept[1])

    @property
    def is_remote(self) -> bool:
        """Whether the chosen embedder is a server, on this machine or elsewhere."""
        return _is_remote(self._settings.text("embedder"))

    def describe(self, choice: str | None = None) -> str:
        """Return the description of a choice (None: the current one). Never blocks."""
        value = self._settings.text("embedder") if choice is None else choice
        if (folder := _BUILT_IN_FOLDERS.get(value)) is not None:
            return tr("{name}, built in").format(name=folder.name)
        if value.startswith(ONNX):
            return tr("the ONNX model in “{folder}”").format(folder=value.removeprefix(ONNX))
        ref = ModelRef.parse(value)
        return tr("{model} at {provider}").format(model=ref.model, provider=ref.provider)

    def choices(self) -> tuple[EmbedderChoice, ...]:
        """Return all choices: built in, OpenAI's, and the models that other servers list.

        Servers are queried concurrently for at most 3 s; those that do not answer are omitted.
        """
        built_in = (EmbedderChoice(each, self.describe(each), False) for each in _BUILT_IN_FOLDERS)
        found = list(built_in)
        usable = [config for config in self._registry.configs() if config.can_embed()]
        listed = self._loop.call(lambda: embedding_models(self._registry, usable))
        for config, models in zip(usable, listed, strict=True):
            for model in models:
                value = f"{config.name}:{model}"
                away = not config.url().is_loopback
                found.append(EmbedderChoice(value, self.describe(value), leaves_machine=away))
        return tuple(found)

    def estimate(self, passages: int, tokens: int, choice: str | None = None) -> EmbeddingEstimate:
        """Return the effort of embedding so much with a choice (None: the current one).

        Raises EmbedderUnavailable when the choice is not usable.
        """
        value = self._settings.text("embedder") if choice is None else choice
        if not _is_remote(value):
            self._local(value)
            minutes = tokens / _LOCAL_TOKENS_PER_MINUTE
            return EmbeddingEstimate(value, passages, tokens, minutes, 0.0, "", needs_consent=False)
        ref = ModelRef.parse(value)
        base_url = self._config(value).url()
        model = remote_model(ref.model, base_url)
        per_request = min(self._settings.number("embedding_batch_size"), MAX_INPUTS)
        texts = _TEXTS_OF_A_PASSAGE * passages
        requests = max(math.ceil(texts / per_request), math.ceil(tokens / model.request_tokens))
        a_minute = _LOCAL_TOKENS_PER_MINUTE if base_url.is_loopback else _HOSTED_TOKENS_PER_MINUTE
        minutes = max(tokens / a_minute, requests * _REQUEST_S / 60)
        if (limit := self._requests_per_minute()) is not None:
            minutes = max(minutes, requests / limit)
        return EmbeddingEstimate(
            value,
            passages,
            tokens,
            minutes,
            self._prices.cost(ref, UsageReported(tokens, 0)).cost_usd,
            "" if base_url.is_loopback else base_url.text,
            needs_consent=not self._is_agreed(value, base_url),
        )

    def choose(self, choice: str, *, agreed: bool = False) -> None:
        """Make `choice` the embedder; `agreed` stores the consent to send history to its server.

        Raises InvalidSetting for an invalid choice, EmbedderUnavailable for an unusable provider,
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
        """End requests and connections, in at most 3 s. Blocking."""
        self._loop.close()

    def _for_questions(self, value: str) -> Embedder:
        embedder = self._agreed(value)
        return embedder.for_queries() if isinstance(embedder, RemoteEmbedder) else embedder

    def _decide(self, chosen: str, before: str, coverage: Callable[[Space], float]) -> str:
        """Return which of two choices answers; switch for good when the new space covers enough."""
        try:
            share = coverage(self._for_questions(chosen).space)
        except KnownError as error:
            with suppress(KnownError):
                self._for_questions(before)
                return before
            raise error from None
        if share < _ENOUGH_SHARE:
            old: Embedder | None = None
            with suppress(EmbedderUnavailable):
                old = self._for_questions(before)
            try:
                if old is not None and share < coverage(old.space):
                    return before
            except KnownError:
                return chosen  # the other server may be off only for now
        with suppress(StorageError):
            self._settings.set("embedder_before", chosen)
        return chosen

    def _agreed(self, value: str) -> LocalEmbedder | RemoteEmbedder:
        if not _is_remote(value):
            return self._local(value)
        config = self._config(value)  # read once: the URL in use is the one that was agreed to
        base_url = config.url()
        if not self._is_agreed(value, base_url):
            raise ConsentMissing(
                f"'{value}' would send your history to {base_url.text}",
                f"Agree to that in Settings, or with 'commonplace config set embedder {value} --yes', or choose another embedder.",
            )
        stamp = (config, self._registry.network())
        with self._lock:  # the same embedder as long as its configuration stays
            known = self._remote_ones.get(value)
            if known is None or known[0] != stamp:
                known = self._remote_ones[value] = (stamp, self._new(value, config))
            return known[1]

    def _is_agreed(self, value: str, base_url: BaseUrl) -> bool:
        consents = self._settings.text("embedder_consent").split()
        return base_url.is_loopback or _consent(value, base_url) in consents

    def _local(self, value: str) -> LocalEmbedder:
        with self._lock:
            if (known := self._local_ones.get(value)) is None:
                folder = _BUILT_IN_FOLDERS.get(value) or _folder(value)
                known = self._local_ones[value] = LocalEmbedder(folder)
            return known

    def _new(self, value: str, config: ProviderConfig) -> RemoteEmbedder:
        ref = ModelRef.parse(value)
        return RemoteEmbedder(
            self._registry.endpoint(config),
            remote_model(ref.model, config.url()),
            self._loop,
            RateLimiter(self._requests_per_minute),
            cost_of=lambda tokens: self._prices.cost(ref, UsageReported(tokens, 0)).cost_usd,
            query_limit_s=self._question_limit_s,
        )

    def _config(self, value: str) -> ProviderConfig:
        """Return the provider of a choice with a valid base URL; raises EmbedderUnavailable."""
        name = ModelRef.parse(value).provider
        try:
            config = self._registry.config(name)
            config.url()
        except KnownError as error:
            raise EmbedderUnavailable(
                f"The embedder '{value}' cannot be used: {error.title}", error.hint
            ) from error
        if not config.vendor.has_embeddings:
            raise EmbedderUnavailable(
                f"The embedder '{value}' cannot be used: {name} has no embedding models",
                "Choose builtin or builtin-multilingual, or a model of another provider.",
            )
        return config

    def _requests_per_minute(self) -> int | None:
        value = self._settings.get("embedding_requests_per_minute")
        return value if isinstance(value, int) else None


def embedding_workload(store: Store) -> tuple[int, int]:
    """Return the numbers of passages and of tokens to embed. Blocking."""
    row = store.read(
        lambda cursor: cursor.execute(
            "SELECT count(*), coalesce(sum(tokens), 0) FROM passage"
        ).fetchone()
    )
    passages, tokens = row or (0, 0)
    return int(passages), int(tokens)


def _is_remote(value: str) -> bool:
    return value not in _BUILT_IN_FOLDERS and not value.startswith(ONNX)


def _consent(value: str, base_url: BaseUrl) -> str:
    """Return the consent for a choice at a base URL; a changed URL needs a new consent."""
    return f"{value}@{base_url.origin}"


def _folder(value: str) -> Path:
    try:
        folder = Path(value.removeprefix(ONNX)).expanduser()
    except RuntimeError:  # unknown user name
        folder = Path(value.removeprefix(ONNX))
    if not folder.is_absolute():
        raise EmbedderUnavailable(
            f"The embedder '{value}' does not have the full path of its folder",
            "Enter an absolute path, such as onnx:/home/me/models/my-model.",
        )
    return folder


_SAMPLE = 400  # exchanges; the share is then within .05 of the truth
_FEWEST_MESSAGES = 20  # of known language, before a share says anything
_FOREIGN_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class EmbedderSuggestion:
    """An embedder that suits the library better, and why."""

    choice: str
    reason: str


class EmbedderSuggestions:
    """Suggests an embedder until the user has dismissed that. Blocking."""

    def __init__(
        self, settings: Settings, embedders: EmbedderDirectory, passages: Passages
    ) -> None:
        self._settings = settings
        self._embedders = embedders
        self._passages = passages

    def read(self) -> EmbedderSuggestion | None:
        """Return what to suggest now; None if the embedder suits or the user dismissed it.

        Judged by a sample of the messages, in some 30 ms.
        """
        is_wanted = self._settings.flag("suggest_embedder")
        if not is_wanted or self._settings.text("embedder") != BUILT_IN:
            return None
        judged = [is_english(text) for text in self._passages.sample_messages(_SAMPLE)]
        known = [each for each in judged if each is not None]
        share = known.count(False) / max(1, len(known))
        if len(known) < _FEWEST_MESSAGES or share < _FOREIGN_SHARE:
            return None
        reason = tr(
            "{share} of your messages are not in English, but search by meaning uses a model that reads only English. Another one, which reads some 100 languages, is built in."
        ).format(share=format_percent(share))
        return EmbedderSuggestion(MULTILINGUAL, reason)

    def accept(self, suggestion: EmbedderSuggestion) -> None:
        """Make the suggested embedder the chosen one; raises StorageError."""
        self._embedders.choose(suggestion.choice)

    def dismiss(self) -> None:
        """Suggest no embedder any more; raises StorageError."""
        self._settings.set("suggest_embedder", value=False)


def choose_first_embedder(settings: Settings) -> None:
    """Choose the embedder of a new library by the language of the user's system."""
    if system_language() != ENGLISH:
        for key in ("embedder", "embedder_before"):
            settings.set(key, MULTILINGUAL)
