"""Requests to the background model: consent, spend limits, structured answers, and their cost.

Only an answer that should have been JSON is requested again here; workers retry everything else
where the user can see it. The model is chosen in `model_choice`.
"""

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import aclosing
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

from app.domain.changes import SpendAdded
from app.domain.chat import (
    UNKNOWN_WINDOW_TOKENS,
    ChatRequest,
    FinishReason,
    ModelRef,
    UsageReported,
)
from app.domain.conversations import Message, Role, Text
from app.domain.errors import ContextTooLong, KnownError, NotFound, StorageError
from app.domain.ids import ConversationId, MessageId
from app.domain.records.presets import Effort
from app.domain.text import clean
from app.domain.workers import WorkerName
from app.providers.configuration import ProviderConfig
from app.providers.http.loop_thread import EventLoopThread
from app.providers.partial_reply import PartialReply
from app.providers.pricing.prices import PriceList
from app.providers.pricing.usage import UsageEstimator
from app.providers.registry import OpenProviders, ProviderRegistry
from app.providers.remote_provider import RemoteProvider
from app.providers.windows import ModelWindows
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.workers.job_interface import Blocked, IsCancelled
from app.workers.prompts_and_answers import (
    Prompt,
    Schema,
    find_object,
    strict,
    with_json_reminder,
    with_schema,
)
from app.workers.spend_limits import MaxUsage, Reservation, SpendLimits, may_be_paid

_log = logging.getLogger(__name__)
CONSENTS = "background_consent"
MODEL_KEYS = frozenset(  # changes of these may unblock a worker
    ("background_model", CONSENTS, "own_prices", "spend_cap_daily_usd", "spend_cap_monthly_usd")
)
_MAX_OUTPUT_TOKENS = 4096  # reasoning counts as output
_SLACK = 1.3  # tokens are estimated
_ENVELOPE_TOKENS = 50
_REFUSED = (FinishReason.FILTERED, FinishReason.REFUSED)


class UnusableAnswer(KnownError):
    """The model's answer cannot be used; its cost is recorded."""


class AnswerTooLong(UnusableAnswer):
    """The model's answer was cut off at its maximum length."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer. `fields` is the JSON object if a schema was given, else empty.

    `spent` is stored in the commit of what is made of the answer, or by `write_off`. `model` is
    PROVIDER:MODEL.
    """

    text: str
    model: str
    spent: SpendAdded
    fields: Mapping[str, Any] = field(default_factory=dict)


class ModelClient(Protocol):
    """A language model for background work. Thread-safe."""

    @property
    def model(self) -> str:
        """PROVIDER:MODEL as chosen now, "" for none. Never blocks."""
        ...

    @property
    def is_free(self) -> bool:
        """Whether its requests cost nothing. Never blocks."""
        ...

    def context_tokens(self) -> int:
        """Return the size of the context window in tokens. May block."""
        ...

    def answer_tokens(self) -> int:
        """Return the maximum length of an answer, which is a part of the window."""
        ...

    def ask(
        self,
        prompt: Prompt,
        purpose: WorkerName,
        is_cancelled: IsCancelled,
        schema: Schema | None = None,
    ) -> Answer:
        """Return the answer to one prompt, complete and not empty; with a schema, as JSON that fits.

        Blocks. The caller stores its result with `Answer.spent` before the next request. Raises
        `Cancelled` within a second of `is_cancelled`; `Blocked` without a model or consent, and
        before a request that might exceed a spend limit; `ContextTooLong` for a prompt that has to
        be shorter; `AnswerTooLong`; `UnusableAnswer` after two invalid answers; `ProviderError`.
        """
        ...

    def write_off(self, answer: Answer) -> None:
        """Store the cost of an answer that is not used. Blocking; raises StorageError."""
        ...


class BackgroundModel:
    """The model that the settings name; its requests run on a loop in a thread of its own.

    `registry` must not retry. A change of settings or providers takes effect with the next request.
    `limits` are shared by all workers. `reader` is a model that has received what it is asked to read
    at `reader_origin` and is used instead.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        registry: ProviderRegistry,
        prices: PriceList,
        windows: ModelWindows,
        clock: Callable[[], datetime] = now,
        limits: SpendLimits | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._registry = registry
        self._prices = prices
        self._usage = UsageEstimator()
        self._windows = windows
        self._clock = clock
        self._limits = limits or SpendLimits(store, settings, clock)
        self._loop = EventLoopThread("background model")
        self._open = OpenProviders(registry)
        self._loop.at_close(self._open.aclose)
        self.reader = self.reader_origin = ""

    def for_reader(self, model: str, origin: str) -> "BackgroundModel":
        """Return this if a model is chosen, else the same with `model`, which needs no consent.

        `model` has received what it will be asked to read, from the server at `origin`; it is not
        asked on another one. The spend limits apply.
        """
        if self.model:
            return self
        own = copy(self)
        own.reader, own.reader_origin = model, origin
        return own

    def origin_of(self, model: str) -> str:
        """Return the origin of the server that a model is on now, "" for none."""
        config = self._registry.find_config(ModelRef.parse(model).provider)
        url = None if config is None else config.valid_url()
        return "" if url is None else url.origin

    @property
    def model(self) -> str:
        """PROVIDER:MODEL as chosen now, "" for none."""
        return self.reader or self._settings.text("background_model")

    @property
    def is_free(self) -> bool:
        """Whether its requests cost nothing; see `ModelClient`."""
        cost = self._prices.cost(ModelRef.parse(self.model), UsageReported(1_000, 1_000))
        return cost.cost_usd == 0

    def context_tokens(self) -> int:
        """Return the size of the context window; see `ModelClient`."""
        ref = ModelRef.parse(self.model)
        config = self._registry.find_config(ref.provider)
        if config is None or config.valid_url() is None or self._lacks_consent(ref, config):
            return UNKNOWN_WINDOW_TOKENS  # nothing is asked of a server that may not be used
        return self._windows.tokens(ref)

    def answer_tokens(self) -> int:
        """Return the maximum length of an answer; see `ModelClient`."""
        return min(_MAX_OUTPUT_TOKENS, self.context_tokens() // 4)

    def ask(
        self,
        prompt: Prompt,
        purpose: WorkerName,
        is_cancelled: IsCancelled,
        schema: Schema | None = None,
    ) -> Answer:
        if schema is None:
            return self._ask_once(prompt, purpose, is_cancelled)
        wanted = with_schema(prompt, schema)
        for each in (wanted, with_json_reminder(wanted)):
            answer = self._ask_once(each, purpose, is_cancelled, schema)
            if (found := find_object(answer.text, schema)) is not None:
                return Answer(answer.text, answer.model, answer.spent, found)
            self.write_off(answer)
        raise UnusableAnswer(
            f"{answer.model} gave two answers that are not the requested JSON",
            "Try again, or choose another model for background work.",
        )

    def write_off(self, answer: Answer) -> None:
        """Store the cost of an answer that is not used."""
        self._store.save(answer.spent)

    def close(self) -> None:
        """End requests and connections; at most 3 s. Blocking."""
        self._loop.close()

    # -- one request

    def _ask_once(
        self,
        prompt: Prompt,
        purpose: WorkerName,
        is_cancelled: IsCancelled,
        schema: Schema | None = None,
    ) -> Answer:
        if not (chosen := self.model):
            raise Blocked("No model is chosen for background work", "Choose one in Settings.")
        ref = ModelRef.parse(chosen)
        provider = self._provider(ref)
        request = self._request(ref, prompt, schema)
        input_tokens = self._usage.input_tokens(ref, request) + _ENVELOPE_TOKENS
        given, made = round(input_tokens * _SLACK), request.max_output_tokens or 0
        written = UsageReported(given, made, cache_write_tokens=given)
        cost = self._prices.cost(ref, written)  # what costs most is a prompt written to the cache
        most = MaxUsage(given, made, cost.cost_usd)
        reservation = self._limits.reserve(purpose, str(ref), most)
        reply = PartialReply(MessageId(0))
        try:
            self._loop.call(partial(_receive, provider, request, reply), is_cancelled)
        except BaseException as error:
            if isinstance(error, ContextTooLong):
                self._windows.note_refusal(ref, error)
            if not reply.has_begun and not may_be_paid(error):
                self._limits.release(reservation)
            else:  # the server has charged for it
                spent = self._spent(reservation, ref, purpose, reply, request)
                self._limits.settle(reservation, spent)
                try:
                    self._store.save(spent)
                except StorageError:  # the request's own error is more important
                    _log.warning("the cost of a failed request could not be stored")
            raise
        spent = self._spent(reservation, ref, purpose, reply, request)
        self._limits.settle(reservation, spent)
        answer = Answer(clean(reply.answer).strip(), str(ref), spent)
        if (fault := _fault(answer, reply, request)) is not None:
            self.write_off(answer)
            raise fault
        return answer

    def _request(self, ref: ModelRef, prompt: Prompt, schema: Schema | None) -> ChatRequest:
        message = Message(
            MessageId(0), "", ConversationId(0), None, Role.USER, (Text(prompt.user),),
            datetime.now(UTC),
        )  # fmt: skip
        return ChatRequest(
            ref.model,
            (message,),
            system=prompt.system,
            reasoning_effort=Effort.NONE,
            max_output_tokens=self.answer_tokens(),
            answer_schema_json="" if schema is None else json.dumps(strict(schema)),
        )

    def _spent(
        self,
        reservation: Reservation,
        ref: ModelRef,
        purpose: WorkerName,
        reply: PartialReply,
        request: ChatRequest,
    ) -> SpendAdded:
        """Return the cost of a request: as reported by the server, else estimated."""
        reported = self._usage.complete(
            ref, request, reply.written, reply.tokens, is_finished=reply.finished is not None
        )
        cost = self._prices.cost(ref, reported)
        return SpendAdded(
            self._clock(), purpose, str(ref), reported.input_tokens, reported.output_tokens,
            reported.cached_tokens, cost.cost_usd, held=reservation.uid, is_estimated=reply.finished is None,
        )  # fmt: skip

    # -- the provider

    def _provider(self, ref: ModelRef) -> RemoteProvider:
        """Return the model's provider, rebuilt after a change. Raises Blocked."""
        try:
            config = self._registry.config(ref.provider)
            base_url = config.url()
        except (NotFound, KnownError) as error:
            raise Blocked(
                f"'{ref}' cannot do background work: {error.title}", error.hint
            ) from error
        if self._lacks_consent(ref, config):
            raise Blocked(
                f"'{ref}' would receive your history at {base_url.text}, and you have not agreed to "
                "that",
                "Allow it in Settings, Background work, or with 'commonplace config set "
                f"background_model {ref} --yes'.",
            )
        return self._open.get(config)

    def _lacks_consent(self, ref: ModelRef, config: ProviderConfig) -> bool:
        if self.reader:
            return config.url().origin != self.reader_origin
        return lacks_consent(self._settings, ref, config)


def consent(ref: ModelRef, config: ProviderConfig) -> str:
    """Return the consent to a model on a server; another server needs a new consent."""
    return f"{ref}@{config.url().origin}"


def lacks_consent(settings: Settings, ref: ModelRef, config: ProviderConfig) -> bool:
    """Return whether a model is remote and the user has not agreed to send it the history."""
    is_remote = not config.url().is_loopback
    return is_remote and consent(ref, config) not in settings.text(CONSENTS).split()


async def _receive(provider: RemoteProvider, request: ChatRequest, reply: PartialReply) -> None:
    stream: Any = provider.chat_model().stream(request)
    async with aclosing(stream) as events:
        async for event in events:
            reply.add(event)


def _fault(answer: Answer, reply: PartialReply, request: ChatRequest) -> KnownError | None:
    """Return why an answer cannot be used; None if it can."""
    reason = reply.finished.reason if reply.finished is not None else FinishReason.UNKNOWN
    if reason is FinishReason.CONTEXT_EXCEEDED:
        return ContextTooLong(f"The text is longer than {answer.model} can read")
    if reason is FinishReason.LENGTH:
        return AnswerTooLong(
            f"{answer.model} did not finish within {request.max_output_tokens or 0:,} tokens",
            "Choose another model for background work, one that thinks less or follows instructions better.",
        )
    if reason in _REFUSED:
        found = f"{answer.model} refused to answer"
    elif reason is FinishReason.UNKNOWN:
        found = f"{answer.model} stopped for an unknown reason"
    elif not answer.text:
        found = f"{answer.model} gave an empty answer"
    else:
        return None
    return UnusableAnswer(found, "Choose another model for background work.")
