"""Summaries made again by who makes them now: counted, priced, asked for.

The queries that find them are `app.storage.remaking`'s.
"""

from dataclasses import dataclass

from app.domain.errors import InvalidInput
from app.domain.workers import WorkerName
from app.storage.remaking import make_again
from app.storage.settings import Settings
from app.workers.background_choice import BackgroundChoice, BackgroundPlan
from app.workers.background_load import BackgroundLoad
from app.workers.board import WorkerBoard
from app.workers.wording import counted, estimate_words

SUMMARISERS = (WorkerName.EXCHANGE_SUMMARIZER, WorkerName.CONVERSATION_SUMMARIZER)
_EXTRACTIVE = "the extractive summariser on this computer"


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
            return f"Every summary was made by {maker}, or by you: there is nothing to make again."
        price = "at no cost"
        if self.plan is not None:
            time = estimate_words(self.plan.minutes, self.plan.cost_usd)
            price = f"{counted(self.plan.requests, 'request')}, about {self.plan.tokens:,} tokens, {time}"
        return (
            f"{maker[:1].upper()}{maker[1:]} would make {_summaries(self.exchanges, 'exchange')} and "
            f"{_summaries(self.conversations, 'conversation')} again: {price}. Earlier versions "
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
        plan = self._choice.plan(loads=loads)
        if plan is not None and plan.needs_consent:
            raise InvalidInput(
                f"{plan.model} may not read your history yet",
                "Allow it first, under Background work in the settings.",
            )
        return RedoPlan(loads[0].requests, loads[1].requests, plan)

    def begin(self) -> None:
        """Let them be made again, by the workers that are on. Raises StorageError."""
        make_again(self._settings)
        self._workers.wake(SUMMARISERS)


def _summaries(count: int, noun: str) -> str:
    return f"{counted(count, 'summary').replace('summarys', 'summaries')} of {noun}s"
