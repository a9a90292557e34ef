"""Ask a language model once, from a worker's thread: the model that `background_model` names.

Before each request it is checked that the user agreed to send history there and that the caps
hold. Nothing is tried again here but an answer that should have been JSON: a worker waits and
tries again where the user can see it. Who chooses the model is `background_choice`.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

from app.domain.changes import SpendAdded
from app.domain.chat import (
    ChatRequest,
    Finished,
    FinishReason,
    ModelRef,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    TokensReported,
)
from app.domain.conversations import Message, Role, Text
from app.domain.errors import KnownError, NotFound, StorageError
from app.domain.ids import ConversationId, MessageId
from app.domain.provider_errors import ContextTooLong
from app.domain.text import clean
from app.domain.workers import WorkerName
from app.providers.configuration import ProviderConfig
from app.providers.estimated_tokens import estimated_tokens
from app.providers.loop_thread import LoopThread
from app.providers.prices import PriceBook
from app.providers.registry import ProviderRegistry
from app.providers.remote import RemoteProvider
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.times import now
from app.workers.job import Blocked, IsCancelled
from app.workers.prompts import Prompt, asked_again, with_schema
from app.workers.spend_guard import Hold, Most, SpendGuard, may_be_paid
from app.workers.structured import Schema, object_in, without_thoughts

_log = logging.getLogger(__name__)
CONSENTS = "background_consent"
MODEL_KEYS = frozenset(  # what may let a worker that waits go on
    ("background_model", CONSENTS, "own_prices", "spend_cap_daily_usd", "spend_cap_monthly_usd")
)
_CONTEXT_TOKENS = 4096  # of a model that says nothing: what Ollama gives one unless told more
_MOST_OUTPUT_TOKENS = 4096  # reasoning counts as output, and comes first
_SLACK = 1.3  # tokens are estimated, a cap is not
_ENVELOPE_TOKENS = 50
_SPOILT = (FinishReason.FILTERED, FinishReason.REFUSED)


class UnusableAnswer(KnownError):
    """The model answered, and nothing can be made of it; what that cost is on record already."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said. `fields` is the JSON object where a schema was given, else empty.

    `spent` is to be stored in the commit of what is made of the answer; where nothing is, hand it
    to `write_off`. `model` is PROVIDER:MODEL, for the record.
    """

    text: str
    model: str
    spent: SpendAdded
    fields: Mapping[str, Any] = field(default_factory=dict)


class AsksModel(Protocol):
    """A language model for background work, one question at a time. Thread-safe."""

    @property
    def model(self) -> str:
        """PROVIDER:MODEL as chosen now, "" when work is done without a model. Never blocks."""
        ...

    def context_tokens(self) -> int:
        """Return how many tokens it reads and writes at most; a guess of 4,096 where unknown."""
        ...

    def ask(
        self,
        asked: Prompt,
        purpose: WorkerName,
        is_cancelled: IsCancelled,
        schema: Schema | None = None,
    ) -> Answer:
        """Return the answer to one prompt, complete and not empty; with a schema, as JSON that fits.

        Blocks. The caller stores what it makes of the answer, with `Answer.spent`, before it asks
        again. Raises `Cancelled` within a second of `is_cancelled`, also in mid-request; `Blocked`
        without a model, without consent, and before a cap is passed; `ContextTooLong` for a prompt
        that has to be shorter; `UnusableAnswer` after garbage twice; `ProviderError`.
        """
        ...

    def write_off(self, answer: Answer) -> None:
        """Put on record what an answer did cost that comes to nothing. Blocking; StorageError."""
        ...


@dataclass(slots=True)
class _Heard:
    """What has come of an answer so far."""

    parts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    tokens: TokensReported | None = None
    finished: Finished | None = None

    @property
    def text(self) -> str:
        return without_thoughts(clean("".join(self.parts)))

    @property
    def has_begun(self) -> bool:
        """Whether the server has begun to answer, and to count."""
        return bool(self.parts or self.thoughts or self.tokens or self.finished)

    def take(self, event: StreamEvent) -> None:
        if isinstance(event, TextDelta):
            self.parts.append(event.text)
        elif isinstance(event, ThinkingDelta):
            self.thoughts.append(event.text)
        elif isinstance(event, TokensReported):
            self.tokens = event
        elif isinstance(event, Finished):
            self.finished = event


class BackgroundModel:
    """Asks the model that the settings name; requests run on a loop in a thread of their own.

    `registry` should try nothing again by itself. A change of settings or providers takes effect
    with the next request. `guard` is the one of all workers.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        registry: ProviderRegistry,
        prices: PriceBook,
        clock: Callable[[], datetime] = now,
        guard: SpendGuard | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._registry = registry
        self._prices = prices
        self._clock = clock
        self._guard = guard or SpendGuard(store, settings, clock)
        self._loop = LoopThread("background model")
        self._loop.at_close(self._close_providers)
        self._lock = threading.Lock()
        self._built: dict[str, tuple[ProviderConfig, tuple[str, str], RemoteProvider]] = {}

    @property
    def model(self) -> str:
        """PROVIDER:MODEL as chosen now, "" when work is done without a model."""
        return self._settings.text("background_model")

    def context_tokens(self) -> int:
        """Return how many tokens the model reads and writes at most; see `AsksModel`."""
        known = self._prices.context_tokens(ModelRef.parse(self.model)) if self.model else None
        return known or _CONTEXT_TOKENS

    def ask(
        self,
        asked: Prompt,
        purpose: WorkerName,
        is_cancelled: IsCancelled,
        schema: Schema | None = None,
    ) -> Answer:
        """Return the answer to one prompt; see `AsksModel`."""
        if schema is None:
            return self._ask_once(asked, purpose, is_cancelled)
        wanted = with_schema(asked, schema)
        for each in (wanted, asked_again(wanted)):
            answer = self._ask_once(each, purpose, is_cancelled)
            if (found := object_in(answer.text, schema)) is not None:
                return Answer(answer.text, answer.model, answer.spent, found)
            self.write_off(answer)
        raise UnusableAnswer(
            f"{answer.model} answered twice with something else than the JSON it was asked for",
            "Try again, or choose another model for background work.",
        )

    def write_off(self, answer: Answer) -> None:
        """Put on record what an answer did cost that comes to nothing."""
        self._store.save(answer.spent)

    def close(self) -> None:
        """End requests and connections; at most 3 s. Blocking."""
        self._loop.close()

    # -- one request

    def _ask_once(self, asked: Prompt, purpose: WorkerName, is_cancelled: IsCancelled) -> Answer:
        ref = self._ref()
        provider = self._provider(ref)
        request = self._request(ref, asked)
        input_tokens = estimated_tokens(asked.system + asked.user, ref.model) + _ENVELOPE_TOKENS
        most = self._most(ref, round(input_tokens * _SLACK), request.max_output_tokens or 0)
        held = self._guard.hold(purpose, str(ref), most)
        heard = _Heard()
        try:
            self._loop.call(partial(_listen, provider, request, heard), is_cancelled)
        except BaseException as error:
            if not heard.has_begun and not may_be_paid(error):
                self._guard.release(held)
            else:  # the server has counted, whatever came of it
                spent = self._spent(held, ref, purpose, heard, input_tokens)
                self._guard.settle(held, spent)
                self._store_quietly(spent)
            raise
        spent = self._spent(held, ref, purpose, heard, input_tokens)
        self._guard.settle(held, spent)
        answer = Answer(heard.text, str(ref), spent)
        if (fault := _fault(answer, heard)) is not None:
            self.write_off(answer)
            raise fault
        return answer

    def _most(self, ref: ModelRef, input_tokens: int, output_tokens: int) -> Most:
        cost = self._prices.cost(ref, input_tokens, output_tokens)
        return Most(input_tokens, output_tokens, cost.cost_usd)

    def _request(self, ref: ModelRef, asked: Prompt) -> ChatRequest:
        message = Message(
            MessageId(0), "", ConversationId(0), None, Role.USER, (Text(asked.user),),
            datetime.now(UTC),
        )  # fmt: skip
        most_output = min(_MOST_OUTPUT_TOKENS, self.context_tokens() // 4)
        return ChatRequest(
            ref.model, (message,), system=asked.system, max_output_tokens=most_output
        )

    def _spent(
        self, held: Hold, ref: ModelRef, purpose: WorkerName, heard: _Heard, input_tokens: int
    ) -> SpendAdded:
        """What a request did cost: by the server's own count, or estimated as far as there is none.

        A server that is cut off has counted what it was given at most.
        """
        told = heard.tokens or TokensReported(input_tokens, 0)
        if heard.tokens is None or heard.finished is None:
            words = "".join((*heard.thoughts, *heard.parts))
            made = estimated_tokens(words, ref.model) if words else 0
            told = replace(told, output_tokens=max(told.output_tokens, made))
        cost = self._prices.cost(ref, told.input_tokens, told.output_tokens, told.cached_tokens)
        return SpendAdded(
            self._clock(), purpose, str(ref), told.input_tokens, told.output_tokens,
            told.cached_tokens, cost.cost_usd, held=held.uid, is_estimated=heard.finished is None,
        )  # fmt: skip

    def _store_quietly(self, spent: SpendAdded) -> None:
        """Put on record what a failed request did cost; what ended it matters more."""
        try:
            self._store.save(spent)
        except StorageError:
            _log.warning("what a failed request did cost could not be stored")

    # -- who is asked

    def _ref(self) -> ModelRef:
        if not (chosen := self.model):
            raise Blocked("No model is chosen for background work", "Choose one in Settings.")
        return ModelRef.parse(chosen)

    def _provider(self, ref: ModelRef) -> RemoteProvider:
        """Return the model's provider, built anew where it has changed. Raises Blocked."""
        try:
            config = self._registry.config(ref.provider)
            base_url = config.url()
        except (NotFound, KnownError) as error:
            raise Blocked(
                f"'{ref}' cannot do background work: {error.title}", error.hint
            ) from error
        if not base_url.is_loopback and consent(ref, config) not in self.consents:
            raise Blocked(
                f"'{ref}' would be sent your history, to {base_url.text}, and nobody has agreed to "
                "that",
                "Allow it in Settings, Background work, or with 'commonplace config set "
                f"background_model {ref} --yes'.",
            )
        return self._built_for(config)

    @property
    def consents(self) -> list[str]:
        """What the user has agreed to: models, each with the place it was at."""
        return self._settings.text(CONSENTS).split()

    def _built_for(self, config: ProviderConfig) -> RemoteProvider:
        network = (self._settings.text("proxy_url"), self._settings.text("ca_bundle"))
        with self._lock:
            known = self._built.get(config.name)
            if known is not None and known[:2] == (config, network):
                return known[2]
            provider = self._registry.build(config.name)
            if self._registry.config(config.name) != config:
                raise Blocked(f"{config.name} is being changed", retry_after_s=0.0)
            self._built[config.name] = (config, network, provider)
            return provider

    async def _close_providers(self) -> None:
        for _, _, provider in self._built.values():
            with suppress(KnownError):
                await provider.aclose()


def consent(ref: ModelRef, config: ProviderConfig) -> str:
    """Return what is kept when the user agrees: the model at its place; another place asks again."""
    return f"{ref}@{config.url().origin}"


async def _listen(provider: RemoteProvider, request: ChatRequest, heard: _Heard) -> None:
    stream: Any = provider.chat_model().stream(request)
    async with aclosing(stream) as events:
        async for event in events:
            heard.take(event)


def _fault(answer: Answer, heard: _Heard) -> KnownError | None:
    """Return why an answer cannot be used, None if it can."""
    reason = heard.finished.reason if heard.finished is not None else FinishReason.UNKNOWN
    if reason is FinishReason.CONTEXT_EXCEEDED:
        return ContextTooLong(f"The text is longer than {answer.model} can read")
    if reason in _SPOILT:
        return UnusableAnswer(
            f"{answer.model} refused to answer", "Choose another model for background work."
        )
    if not answer.text:
        return UnusableAnswer(
            f"{answer.model} answered nothing", "Choose another model for background work."
        )
    return None
