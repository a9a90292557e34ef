"""The choice of the background model: what it would do and cost, consent, and the choice itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.domain.chat import ModelRef, UsageReported
from app.domain.errors import InvalidInput, KnownError
from app.domain.formatting import format_estimate
from app.domain.translation import format_number, tr, trn
from app.domain.workers import WorkerName
from app.providers.configuration import ProviderConfig
from app.providers.pricing.prices import PriceList
from app.providers.registry import ProviderRegistry
from app.providers.vendors.recall import RECALL
from app.storage.tables.attempts import Attempts
from app.storage.tables.settings import Settings
from app.workers.background_model import CONSENTS, consent, lacks_consent
from app.workers.spend_limits import SPEND_LIMIT_KEYS

_HOSTED_REQUEST_S = 2.5  # one or two sentences from a small hosted model
_LOCAL_INPUT_PER_S, _LOCAL_OUTPUT_PER_S = 500, 25  # a model of 8 billion weights on a small card
_KEY = "background_model"

MODEL_WORKERS = (
    WorkerName.EXCHANGE_SUMMARIZER,
    WorkerName.CONVERSATION_SUMMARIZER,
    WorkerName.KNOWLEDGE_EXTRACTOR,
    WorkerName.TOOL_SUMMARIZER,
    WorkerName.PROFILE_WRITER,
)


@dataclass(frozen=True, slots=True)
class Workload:
    """The estimated work that waits for one worker: turns, requests and tokens."""

    turns: int
    requests: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class BackgroundPlan:
    """The estimated work that waits for a model.

    `turns` are those that the busiest worker reads. `cost_usd` is None when the price is unknown.
    `sent_to` is the base URL that history would be sent to, "" if it stays on this computer;
    `needs_consent` means that the user has not agreed to that.
    """

    model: str
    turns: int
    requests: int
    tokens: int
    minutes: float
    cost_usd: float | None
    sent_to: str
    needs_consent: bool


class BackgroundModelChoice:
    """Plans, chooses and allows background models. Thread-safe; blocks.

    `loads` return the work that waits, one for each worker that may use the model; `attempts` are
    the failed attempts of those workers.
    """

    def __init__(
        self,
        settings: Settings,
        registry: ProviderRegistry,
        prices: PriceList,
        loads: Sequence[Callable[[], Workload]],
        attempts: Sequence[Attempts],
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._prices = prices
        self._loads = loads
        self._attempts = attempts

    def plan(
        self, model: str | None = None, loads: Sequence[Workload] | None = None
    ) -> BackgroundPlan | None:
        """Return the plan of a model (None: the chosen one); None if none is chosen.

        `loads` is its work (None: all that waits). Raises NotFound, InvalidInput.
        """
        if not (name := self._settings.text(_KEY) if model is None else model):
            return None
        ref, config = self._checked(name)
        base_url = config.url()
        if loads is None:
            loads = [load() for load in self._loads]
        given = sum(each.input_tokens for each in loads)
        made = sum(each.output_tokens for each in loads)
        requests = max((each.requests for each in loads), default=0)
        seconds = (
            given / _LOCAL_INPUT_PER_S + made / _LOCAL_OUTPUT_PER_S
            if base_url.is_loopback
            else requests * _HOSTED_REQUEST_S  # the workers run in parallel
        )
        return BackgroundPlan(
            model=str(ref),
            turns=max((each.turns for each in loads), default=0),
            requests=sum(each.requests for each in loads),
            tokens=given + made,
            minutes=seconds / 60,
            cost_usd=self._prices.cost(ref, UsageReported(given, made)).cost_usd,
            sent_to="" if base_url.is_loopback else base_url.text,
            needs_consent=lacks_consent(self._settings, ref, config),
        )

    def choose(self, model: str, *, agreed: bool = False) -> None:
        """Use `model` for background work, "" for extraction; `agreed` records the user's consent.

        Without consent a remote model is chosen too, but its workers wait. Failed attempts of the
        previous model are cleared. Raises NotFound, InvalidInput, StorageError.
        """
        if not model:
            self._put(None)
            return
        ref, config = self._checked(model)
        if agreed and (given := consent(ref, config)) not in self._consents:
            self._settings.set(CONSENTS, " ".join((*self._consents, given)))
        self._put(str(ref))

    @property
    def model(self) -> str:
        """PROVIDER:MODEL as chosen now, "" for extractive; never blocks."""
        return self._settings.text(_KEY)

    @property
    def has_spend_limit(self) -> bool:
        """Whether a daily or monthly spend limit is set; never blocks."""
        return any(self._settings.get(key) is not None for key in SPEND_LIMIT_KEYS)

    def needs_consent(self) -> bool:
        """Return whether the chosen model waits for the user's consent."""
        if not (name := self._settings.text(_KEY)):
            return False
        try:
            return lacks_consent(self._settings, *self._checked(name))
        except KnownError:
            return False

    def revoke_consents(self) -> str:
        """Make every remote model wait for a new consent; return what `restore_consents` takes.

        For an import, which adds more history than the user has agreed to send.
        """
        taken = self._settings.text(CONSENTS)
        if taken:
            self._settings.set(CONSENTS, "")
        return taken

    def restore_consents(self, taken: str) -> None:
        """Restore consents beside those given meanwhile: the import added nothing."""
        if taken:
            both = dict.fromkeys((*taken.split(), *self._consents))
            self._settings.set(CONSENTS, " ".join(both))

    def price_text(self, ref: ModelRef) -> str:
        """Return the price of a model as text."""
        return self._prices.cost(ref, UsageReported(0, 0)).price

    def _put(self, chosen: str | None) -> None:
        if (chosen or "") != self._settings.text(_KEY):
            for each in self._attempts:  # before the setting wakes the workers
                each.clear_failures()
        self._settings.set(_KEY, chosen)

    @property
    def _consents(self) -> list[str]:
        return self._settings.text(CONSENTS).split()

    def _checked(self, model: str) -> tuple[ModelRef, ProviderConfig]:
        ref = ModelRef.parse(model)
        if ref.provider == RECALL:
            raise InvalidInput(
                tr("'{model}' cannot do background work: it only quotes your history").format(
                    model=model
                ),
                tr("Choose a model of a provider, or none for extraction."),
            )
        config = self._registry.config(ref.provider)
        if not ref.model or any(character.isspace() for character in ref.model):
            raise InvalidInput(
                tr("'{model}' does not name a model").format(model=model),
                tr("Write PROVIDER:MODEL."),
            )
        return ref, config


def plan_text(plan: BackgroundPlan) -> str:
    """Return the work of a model and its price as text."""
    if not plan.requests:
        return tr("{model} will do background work. Nothing is waiting for it now.").format(
            model=plan.model
        )
    return tr(
        "{model} would read {turns} of your history now: {requests}, about {tokens} tokens, {format_estimate}."
    ).format(
        model=plan.model,
        turns=trn("{count} turn", "{count} turns", plan.turns),
        requests=trn("{count} request", "{count} requests", plan.requests),
        tokens=format_number(plan.tokens),
        format_estimate=format_estimate(plan.minutes, plan.cost_usd),
    )


def sending_text(plan: BackgroundPlan) -> str:
    """Return what would be sent to a server."""
    return tr(
        "These messages, and those of every later conversation that is not private, would be sent to {sent_to}."
    ).format(sent_to=plan.sent_to)
