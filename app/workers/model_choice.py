"""The choice of the background model: the work that waits for it, its price, consent, and the choice."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.chat import ModelRef, UsageReported
from app.domain.errors import InvalidInput, KnownError
from app.domain.translation import format_estimate, format_number, tr, trn
from app.domain.workers import WorkerName
from app.memory.profile import ENABLED
from app.providers.configuration import ProviderConfig
from app.providers.pricing.prices import PriceList
from app.providers.registry import ProviderRegistry
from app.providers.vendors.recall import RECALL
from app.storage.engine.store import Store
from app.storage.tables.attempts import Attempts
from app.storage.tables.settings import Settings
from app.storage.tables.topics import TopicRows
from app.storage.work.part_work import PartWork, WantedResults
from app.storage.work.summary_work import CONVERSATION_SUMMARIES, EXCHANGE_SUMMARIES, SummaryWork
from app.storage.work.tool_call_work import ToolCallWork
from app.workers.background_model import CONSENTS, consent, lacks_consent
from app.workers.jobs.topic_finder import TOPICS_OF_A_REQUEST
from app.workers.spend_limits import SPEND_LIMIT_KEYS

_HOSTED_REQUEST_S = 2.5  # one or two sentences from a small hosted model
_LOCAL_INPUT_PER_S, _LOCAL_OUTPUT_PER_S = 500, 25  # a model of 8 billion weights on a small card
_KEY = "background_model"

_MOST_TURNS_OF_A_PART = 25
_TURN_READS_TOKENS = 6_000
_SUMMARY_TOKENS, _OFFERED_FACTS_TOKENS = 225, 800  # what came before; 20 known facts
_PART_PROMPT_TOKENS, _PART_ANSWER_TOKENS, _TURN_ANSWER_TOKENS = 1_400, 180, 130
_CALLS_OF_A_REQUEST, _CALL_READS_TOKENS, _CALL_ANSWER_TOKENS = 10, 400, 40
_NAMES_PROMPT_TOKENS, _TOPIC_READS_TOKENS, _NAME_TOKENS = 400, 130, 20
_FACT_TOKENS, _PROFILE_PROMPT_TOKENS, _PROFILE_READS_TOKENS = 20, 900, 8_000

MODEL_WORKERS = (
    WorkerName.EXCHANGE_SUMMARIZER,
    WorkerName.CONVERSATION_SUMMARIZER,
    WorkerName.KNOWLEDGE_EXTRACTOR,
    WorkerName.TOOL_SUMMARIZER,
    WorkerName.PROFILE_WRITER,
    WorkerName.TOPIC_FINDER,
)


@dataclass(frozen=True, slots=True)
class Workload:
    """The estimated work that waits for one worker: turns, requests and tokens."""

    turns: int = 0
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class Workloads:
    """Estimates the work of the workers that are on and may use a model. Blocking."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._work = SummaryWork(store)
        self._parts = PartWork(store)

    def all(self, model: str) -> tuple[Workload, ...]:
        """Return the estimates for a model, one for each kind of request."""
        parts = self.parts()
        return parts, self.tool_calls(), self.topic_names(model), self._profile(parts.turns)

    def parts(self) -> Workload:
        """Return the work of the summarizers and the extractor, which read conversations together."""
        (lines, summaries), flag = self._least_sizes(), self._settings.flag
        wanted = WantedResults(
            lines if flag("summarizer_exchange_enabled") else None,
            summaries if flag("summarizer_conversation_enabled") else None,
            flag("knowledge_extractor_enabled"),
        )
        return self._of_parts(wanted)

    def summaries_again(self) -> tuple[int, int, Workload]:
        """Return how many summaries of exchanges and of conversations others than the model made.

        With them, the work of regenerating them.
        """
        least = self._least_sizes()
        load = self._of_parts(WantedResults(*least, facts=False), again=True)
        exchanges, conversations = (
            self._work.count_by_other_models(work, size)
            for work, size in zip((EXCHANGE_SUMMARIES, CONVERSATION_SUMMARIES), least, strict=True)
        )
        return exchanges, conversations, load

    def facts_again(self) -> Workload:
        """Return the work of extracting other models' facts again."""
        return self._of_parts(WantedResults(None, None, facts=True), again=True)

    def _least_sizes(self) -> tuple[int, int]:
        number = self._settings.number
        return (
            number("min_messages_for_exchange_summary"),
            number("min_exchanges_for_conversation_summary"),
        )

    def _of_parts(self, wanted: WantedResults, *, again: bool = False) -> Workload:
        sizes = self._parts.unread(wanted, again=again).values()
        turns = sum(sizes)
        requests = sum(math.ceil(size / _MOST_TURNS_OF_A_PART) for size in sizes)
        around = _PART_PROMPT_TOKENS + _SUMMARY_TOKENS + wanted.facts * _OFFERED_FACTS_TOKENS
        mean = "SELECT coalesce(avg(least(tokens, $1)), 0) FROM passage WHERE kind = 'turn'"
        (turn_tokens,) = self._store.column(mean, [_TURN_READS_TOKENS])
        read = turns * turn_tokens + requests * around
        made = turns * _TURN_ANSWER_TOKENS + requests * _PART_ANSWER_TOKENS
        return Workload(turns, requests, round(read), made)

    def tool_calls(self) -> Workload:
        if not self._settings.flag("tool_summarizer_enabled"):
            return Workload()
        tally = ToolCallWork(self._store).tally()
        count = tally.total - tally.done
        requests = math.ceil(count / _CALLS_OF_A_REQUEST)
        return Workload(0, requests, count * _CALL_READS_TOKENS, count * _CALL_ANSWER_TOKENS)

    def topic_names(self, model: str) -> Workload:
        """Return the work of naming topics, from titles."""
        if not self._settings.flag("topic_finder_enabled"):
            return Workload()
        count = TopicRows(self._store).names_wanted(model)
        requests = math.ceil(count / TOPICS_OF_A_REQUEST)
        read = requests * _NAMES_PROMPT_TOKENS + count * _TOPIC_READS_TOKENS
        return Workload(0, requests, read, count * _NAME_TOKENS)

    def _profile(self, turns: int) -> Workload:
        """Return the work of the profile writer: a request with the facts there are and those of `turns`.

        None without turns that wait to be read.
        """
        flag, new_tokens = self._settings.flag, turns * _FACT_TOKENS
        if not (flag(ENABLED) and flag("knowledge_extractor_enabled") and new_tokens):
            return Workload()
        known = "SELECT coalesce(sum(tokens), 0)::BIGINT FROM passage WHERE kind = 'fact'"
        (known_tokens,) = self._store.column(known)
        read = _PROFILE_PROMPT_TOKENS + min(_PROFILE_READS_TOKENS, known_tokens + new_tokens)
        return Workload(0, 1, read, 2 * self._settings.number("profile_max_tokens"))


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

    Attributes:
        workloads: The work that waits for the model.
    """

    def __init__(
        self, store: Store, settings: Settings, registry: ProviderRegistry, prices: PriceList
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._prices = prices
        self._attempts = [Attempts(store, name) for name in MODEL_WORKERS]
        self.workloads = Workloads(store, settings)

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
            loads = self.workloads.all(str(ref))
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
                f"'{model}' cannot do background work: it only quotes your history",
                "Choose a model of a provider, or none for extraction.",
            )
        config = self._registry.config(ref.provider)
        if not ref.model or any(character.isspace() for character in ref.model):
            raise InvalidInput(f"'{model}' does not name a model", "Write PROVIDER:MODEL.")
        return ref, config


def plan_text(plan: BackgroundPlan) -> str:
    """Return the work of a model and its price as text."""
    if not plan.requests:
        return tr("{model} will do background work. Nothing is waiting for it now.").format(
            model=plan.model
        )
    if not plan.turns:
        text = tr(
            "{model} would do background work now: {requests}, about {tokens} tokens, {format_estimate}."
        )
    else:
        text = tr(
            "{model} would read {turns} of your history now: {requests}, about {tokens} tokens, {format_estimate}."
        )
    return text.format(
        model=plan.model,
        turns=trn("{count} turn", "{count} turns", plan.turns),
        requests=trn("{count} request", "{count} requests", plan.requests),
        tokens=format_number(plan.tokens),
        format_estimate=format_estimate(plan.minutes, plan.cost_usd),
    )


def sending_text(plan: BackgroundPlan) -> str:
    """Return what would be sent to a server."""
    return tr(
        "These messages, titles for the names of topics, and those of every later conversation that is not private, "
        "would be sent to {sent_to}. Instructions of presets and projects are not sent for it."
    ).format(sent_to=plan.sent_to)
