"""Summaries and facts made again by who makes them now: counted, priced, asked for.

The queries that find them are `app.storage.remaking`'s.
"""

from dataclasses import dataclass

from app.domain.errors import InvalidInput
from app.domain.workers import WorkerName
from app.storage.extraction_work import ExtractionWork
from app.storage.remaking import FACTS, SUMMARIES, make_again
from app.storage.settings import Settings
from app.storage.store import Store
from app.workers.background_choice import BackgroundChoice, BackgroundPlan, Load
from app.workers.background_load import BackgroundLoad
from app.workers.board import WorkerBoard
from app.workers.wording import counted, estimate_words

SUMMARISERS = (WorkerName.EXCHANGE_SUMMARIZER, WorkerName.CONVERSATION_SUMMARIZER)
EXTRACTORS = (WorkerName.KNOWLEDGE_EXTRACTOR,)
_PATTERNS = "The patterns on this computer"
_EXTRACTIVE = "The extractive summariser on this computer"


@dataclass(frozen=True, slots=True)
class RedoPlan:
    """How many summaries others made than `plan`'s model, None for the extractive way."""

    exchanges: int
    conversations: int
    plan: BackgroundPlan | None

    @property
    def count(self) -> int:
        """All of them."""
        return self.exchanges + self.conversations

    @property
    def words(self) -> str:
        """What would be done again, by whom, at what price, and what stays."""
        maker = _EXTRACTIVE if self.plan is None else self.plan.model
        if not self.count:
            return f"Every summary was made by {_inside(maker)}, or by you: there is nothing to make again."
        return (
            f"{maker} would make {_summaries(self.exchanges, 'exchange')} and "
            f"{_summaries(self.conversations, 'conversation')} again: {_price(self.plan)}. Earlier versions "
            "stay, and what you wrote yourself is left alone."
        )


class SummaryRedo:
    """Plans it and begins it. Thread-safe; blocks."""

    def __init__(
        self,
        settings: Settings,
        load: BackgroundLoad,
        choice: BackgroundChoice,
        workers: WorkerBoard,
    ) -> None:
        self._settings = settings
        self._load = load
        self._choice = choice
        self._workers = workers

    def plan(self) -> RedoPlan:
        """Return what would be made again.

        Raises InvalidInput, NotFound for a model that is none, or waits for the user's word.
        """
        loads = self._load.summaries_again()
        return RedoPlan(loads[0].requests, loads[1].requests, _agreed(self._choice, *loads))

    def begin(self) -> None:
        """Let them be made again, by the workers that are on. Raises StorageError."""
        make_again(self._settings, SUMMARIES)
        self._workers.wake(SUMMARISERS)


@dataclass(frozen=True, slots=True)
class FactRedoPlan:
    """How many exchanges others read for facts than `plan`'s model, None for patterns.

    `facts` hold that were learned there and are not the user's own; `is_on` says whether the
    extractor is.
    """

    exchanges: int
    facts: int
    plan: BackgroundPlan | None
    is_on: bool

    @property
    def count(self) -> int:
        """What there is to do."""
        return self.exchanges

    @property
    def words(self) -> str:
        """What would be read again, by whom, at what price, what goes and what stays."""
        maker = _PATTERNS if self.plan is None else self.plan.model
        if not self.count:
            return f"Every exchange was read for facts by {_inside(maker)}: there is nothing to read again."
        one = self.facts == 1
        off = (
            "" if self.is_on else " The knowledge extractor is off: nothing happens until it is on."
        )
        return (
            f"{maker} would read {counted(self.exchanges, 'exchange')} again: "
            f"{_price(self.plan)}. {counted(self.facts, 'fact')} learned there {'holds' if one else 'hold'} "
            f"until then; what is not found again ends, and is kept among the ended ones with its "
            f"earlier wordings. What you wrote, edited, pinned or forgot stays as it is.{off}"
        )


class FactRedo:
    """Plans it and begins it. Thread-safe; blocks."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        load: BackgroundLoad,
        choice: BackgroundChoice,
        workers: WorkerBoard,
    ) -> None:
        self._work = ExtractionWork(store)
        self._settings = settings
        self._load = load
        self._choice = choice
        self._workers = workers

    def plan(self) -> FactRedoPlan:
        """Return what would be read again. Raises as `SummaryRedo.plan`."""
        load = self._load.facts_again()
        is_on = self._settings.flag("knowledge_extractor_enabled")
        facts = self._work.learned_by_others()
        return FactRedoPlan(load.turns, facts, _agreed(self._choice, load), is_on)

    def begin(self) -> None:
        """Let them be read again, by the extractor once it is on. Raises StorageError."""
        make_again(self._settings, FACTS)
        self._workers.wake(EXTRACTORS)


def _agreed(choice: BackgroundChoice, *loads: Load) -> BackgroundPlan | None:
    """Return what the model that is chosen would take; raise InvalidInput if it may not be asked."""
    plan = choice.plan(loads=loads)
    if plan is not None and plan.needs_consent:
        raise InvalidInput(
            f"{plan.model} may not read your history yet",
            "Allow it first, under Background work in the settings.",
        )
    return plan


def _inside(maker: str) -> str:
    """Return who makes it as it stands within a sentence; the name of a model is as it is."""
    return maker[:1].lower() + maker[1:] if maker in (_PATTERNS, _EXTRACTIVE) else maker


def _price(plan: BackgroundPlan | None) -> str:
    if plan is None:
        return "at no cost"
    time = estimate_words(plan.minutes, plan.cost_usd)
    return f"{counted(plan.requests, 'request')}, about {plan.tokens:,} tokens, {time}"


def _summaries(count: int, noun: str) -> str:
    return f"{counted(count, 'summary').replace('summarys', 'summaries')} of {noun}s"
