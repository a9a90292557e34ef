"""Choosing who does background work: what a model would take, and the user's word that it may.

A model of a server elsewhere is asked nothing before the user has agreed to it in sight of the
turns, minutes and USD; an import takes that back until its own are agreed to. The requests
themselves are `background_model`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.domain.chat import ModelRef
from app.domain.errors import InvalidInput, KnownError
from app.domain.workers import WorkerName
from app.providers.configuration import ProviderConfig
from app.providers.prices import PriceBook
from app.providers.recall import RECALL
from app.providers.registry import ProviderRegistry
from app.storage.attempts import Attempts
from app.storage.settings import Settings
from app.workers.background_model import CONSENTS, consent

_HOSTED_REQUEST_S = 2.5  # a sentence or two from a small hosted model
_LOCAL_INPUT_PER_S, _LOCAL_OUTPUT_PER_S = 500, 25  # a model of 8 billion weights on a small card
_KEY = "background_model"

ASKING = (
    WorkerName.EXCHANGE_SUMMARIZER,
    WorkerName.CONVERSATION_SUMMARIZER,
    WorkerName.KNOWLEDGE_EXTRACTOR,
    WorkerName.TOOL_SUMMARIZER,
)


@dataclass(frozen=True, slots=True)
class Load:
    """What waits for one worker: items, and the requests and tokens they would take, roughly."""

    turns: int
    requests: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class BackgroundPlan:
    """What the work that waits would take with a model.

    `turns` are those that the most busy worker reads. `cost_usd` is None when the price is unknown.
    `sent_to` is the base URL that history would go to, "" when it stays on this machine;
    `needs_consent` whether nobody has agreed to that.
    """

    model: str
    turns: int
    requests: int
    tokens: int
    minutes: float
    cost_usd: float | None
    sent_to: str
    needs_consent: bool


class BackgroundChoice:
    """Plans, chooses and allows models. Thread-safe; blocks.

    `loads` say what waits, one for each worker that may ask a model; `attempts` are what those
    failed at.
    """

    def __init__(
        self,
        settings: Settings,
        registry: ProviderRegistry,
        prices: PriceBook,
        loads: Sequence[Callable[[], Load]],
        attempts: Sequence[Attempts],
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._prices = prices
        self._loads = loads
        self._attempts = attempts

    def plan(
        self, model: str | None = None, loads: Sequence[Load] | None = None
    ) -> BackgroundPlan | None:
        """Return what a model (None: the one chosen) would take; None where none is chosen.

        `loads` (None: all that waits) is what it would do. Raises NotFound, InvalidInput for what is no model of a provider.
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
            else requests * _HOSTED_REQUEST_S  # the workers ask at the same time
        )
        return BackgroundPlan(
            model=str(ref),
            turns=max((each.turns for each in loads), default=0),
            requests=sum(each.requests for each in loads),
            tokens=given + made,
            minutes=seconds / 60,
            cost_usd=self._prices.cost(ref, given, made).cost_usd,
            sent_to="" if base_url.is_loopback else base_url.text,
            needs_consent=not base_url.is_loopback and consent(ref, config) not in self._consents,
        )

    def choose(self, model: str, *, agreed: bool = False) -> None:
        """Make `model` do background work, "" for extractive; `agreed` records the user's consent.

        Without consent a model elsewhere is chosen all the same, and its workers wait. What the one
        before failed at is tried again. Raises NotFound, InvalidInput, StorageError.
        """
        if not model:
            self._put(None)
            return
        ref, config = self._checked(model)
        if agreed and (given := consent(ref, config)) not in self._consents:
            self._settings.set(CONSENTS, " ".join((*self._consents, given)))
        self._put(str(ref))

    def waits_for_consent(self) -> bool:
        """Return whether the model that is chosen may not be asked before the user agrees."""
        if not (name := self._settings.text(_KEY)):
            return False
        try:
            ref, config = self._checked(name)
            is_elsewhere = not config.url().is_loopback
        except KnownError:
            return False
        return is_elsewhere and consent(ref, config) not in self._consents

    def take_consents_back(self) -> str:
        """Let every model wait for a new consent; return what `give_consents_back` takes.

        For an import, which takes more than the user has agreed to: also of a model that is not
        chosen now and may be again.
        """
        taken = self._settings.text(CONSENTS)
        if taken:
            self._settings.set(CONSENTS, "")
        return taken

    def give_consents_back(self, taken: str) -> None:
        """Let consents hold again, those given meanwhile too: the import brought nothing new."""
        if taken:
            both = dict.fromkeys((*taken.split(), *self._consents))
            self._settings.set(CONSENTS, " ".join(both))

    def price_words(self, ref: ModelRef) -> str:
        """Return which price applies to a model, in words."""
        return self._prices.cost(ref, 0, 0).price

    def _put(self, chosen: str | None) -> None:
        if (chosen or "") != self._settings.text(_KEY):
            for each in self._attempts:  # before the setting wakes who reads them
                each.forgive()
        self._settings.set(_KEY, chosen)

    @property
    def _consents(self) -> list[str]:
        return self._settings.text(CONSENTS).split()

    def _checked(self, model: str) -> tuple[ModelRef, ProviderConfig]:
        ref = ModelRef.parse(model)
        if ref.provider == RECALL:
            raise InvalidInput(
                f"'{model}' cannot do background work: it only quotes",
                "Choose a model of a provider, or none for extractive summaries.",
            )
        config = self._registry.config(ref.provider)
        if not ref.model or any(character.isspace() for character in ref.model):
            raise InvalidInput(f"'{model}' names no model", "Write PROVIDER:MODEL.")
        return ref, config
