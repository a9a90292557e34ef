"""Regeneration of summaries, facts and vectors: what it would do and cost, and its start.

Front ends show `plan().text` and call `begin` after a yes; the workers then do the work. The
queries that find what is to be made again are in `app.storage.work.queue`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.errors import InvalidInput, NotFound
from app.domain.passages import PassageKind
from app.domain.translation import format_estimate, format_number, tr, trn
from app.domain.workers import WorkerName
from app.memory.search.embedders import EmbedderDirectory
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.storage.work.extraction_work import ExtractionWork
from app.storage.work.queue import FACTS, SUMMARIES, RegeneratedKind, request_regeneration
from app.workers.board import WorkerBoard
from app.workers.jobs.embedding_pipeline import EmbeddingPipeline
from app.workers.jobs.part_reader import READERS
from app.workers.model_choice import BackgroundModelChoice, BackgroundPlan, Workload

_PATTERNS = "the patterns on this computer"
_EXTRACTIVE = "the extractive summarizer on this computer"


@dataclass(frozen=True, slots=True)
class RegenerationPlan:
    """How many items would be made again, and a description with the price; 0 is nothing to do.

    Of embeddings, `vectors` of `space` would be deleted.
    """

    count: int
    text: str
    space: str = ""
    vectors: int = 0


class ModelRegeneration:
    """Makes again what others than the chosen model made. Thread-safe; blocks.

    Attributes:
        workers: The workers that do it.
    """

    workers: tuple[WorkerName, ...]
    _what: RegeneratedKind

    def __init__(
        self, store: Store, settings: Settings, choice: BackgroundModelChoice, board: WorkerBoard
    ) -> None:
        self._work = ExtractionWork(store)
        self._settings = settings
        self._choice = choice
        self._board = board

    def plan(self) -> RegenerationPlan:
        """Return what would be made again.

        Raises InvalidInput or NotFound if the chosen model does not exist or lacks consent.
        """
        raise NotImplementedError

    def begin(self) -> None:
        """Start it, for the workers that are on. Raises StorageError."""
        request_regeneration(self._settings, self._what)
        self._board.wake(READERS)  # any of them may be the one that asks the model


class SummaryRegeneration(ModelRegeneration):
    """Makes again the summaries that others than the chosen model made."""

    workers = (WorkerName.EXCHANGE_SUMMARIZER, WorkerName.CONVERSATION_SUMMARIZER)
    _what = SUMMARIES

    def plan(self) -> RegenerationPlan:
        exchanges, conversations, load = self._choice.workloads.summaries_again()
        plan = _allowed_plan(self._choice, load)
        count = exchanges + conversations
        maker = _EXTRACTIVE if plan is None else plan.model
        if not count:
            return RegenerationPlan(
                0,
                tr(
                    "Every summary was made by {maker} or by you: there is nothing to regenerate."
                ).format(maker=maker),
            )
        return RegenerationPlan(
            count,
            tr(
                "{capital} would regenerate {exchanges} and {conversations}: {price}. Earlier versions are kept, and what you wrote yourself does not change."
            ).format(
                capital=_capital(maker),
                exchanges=trn("{count} turn summary", "{count} turn summaries", exchanges),
                conversations=trn(
                    "{count} conversation summary", "{count} conversation summaries", conversations
                ),
                price=_price(plan),
            ),
        )


class FactRegeneration(ModelRegeneration):
    """Reads again the exchanges that others than the chosen model read."""

    workers = (WorkerName.KNOWLEDGE_EXTRACTOR,)
    _what = FACTS

    def plan(self) -> RegenerationPlan:
        load = self._choice.workloads.facts_again()
        plan = _allowed_plan(self._choice, load)
        maker = _PATTERNS if plan is None else plan.model
        if not load.turns:
            return RegenerationPlan(
                0,
                tr(
                    "Every turn was read for facts by {maker}: there is nothing to read again."
                ).format(maker=maker),
            )
        text = tr(
            "{capital} would read {turns} again: {price}. {facts_by_other_models} found there stay current until then. A fact that is not found again becomes a past fact and keeps its earlier versions. What you wrote, edited, pinned or forgot does not change."
        ).format(
            capital=_capital(maker),
            turns=trn("{count} turn", "{count} turns", load.turns),
            price=_price(plan),
            facts_by_other_models=trn(
                "{count} fact", "{count} facts", self._work.facts_by_other_models()
            ),
        )
        if not self._settings.flag("knowledge_extractor_enabled"):
            text += tr(" The knowledge extractor is off: nothing happens until it is on.")
        return RegenerationPlan(load.turns, text)


class EmbeddingRegeneration:
    """Deletes the vectors of the embedder in use and makes them again. Thread-safe; blocks."""

    def __init__(
        self, settings: Settings, board: WorkerBoard, embedders: EmbedderDirectory
    ) -> None:
        self._settings = settings
        self._board = board
        self._embedders = embedders

    def plan(self, kinds: Sequence[PassageKind] = ()) -> RegenerationPlan:
        """Return what would be deleted and embedded, of some kinds of passages or (empty) all.

        Raises NotFound or EmbedderUnavailable without a usable embedder.
        """
        amount = self._pipeline.amount(kinds)
        count = max(amount.passages, amount.vectors)
        if not count:
            return RegenerationPlan(0, tr("There is nothing to read yet."), amount.space, 0)
        estimate = self._embedders.estimate(amount.passages, amount.tokens)
        text = tr(
            "This deletes the {vectors} of {space} and embeds {passages} again: about {tokens} tokens, {format_estimate}. Until a passage has a vector again, search finds it by its words only. No messages are lost."
        ).format(
            vectors=trn("{count} vector", "{count} vectors", amount.vectors),
            space=amount.space,
            passages=trn("{count} passage", "{count} passages", amount.passages),
            tokens=format_number(amount.tokens),
            format_estimate=format_estimate(estimate.minutes, estimate.cost_usd),
        )
        if estimate.sent_to:
            text += tr(" The texts are sent to {sent_to}.").format(sent_to=estimate.sent_to)
        if not self._settings.flag("embedding_pipeline_enabled"):
            text += tr(
                " Search by meaning is off: until it is on, what is new is found by its words only."
            )
        return RegenerationPlan(count, text, amount.space, amount.vectors)

    def begin(self, kinds: Sequence[PassageKind] = ()) -> None:
        """Delete the vectors and wake the pipeline. Raises as `plan`, and StorageError."""
        self._pipeline.start_over(kinds)
        self._board.wake([WorkerName.EMBEDDING_PIPELINE])

    @property
    def _pipeline(self) -> EmbeddingPipeline:
        if self._board.embedding is None:
            raise NotFound("There is no embedder", "Choose one in the settings.")
        return self._board.embedding


def _allowed_plan(choice: BackgroundModelChoice, *loads: Workload) -> BackgroundPlan | None:
    """Return the plan of the chosen model (None: without one); raise InvalidInput without consent."""
    plan = choice.plan(loads=loads)
    if plan is not None and plan.needs_consent:
        raise InvalidInput(
            f"{plan.model} may not read your history yet",
            "Allow it first in the settings, under Background work.",
        )
    return plan


def _capital(maker: str) -> str:
    """Return the beginning of a sentence; the name of a model keeps its spelling."""
    return maker[:1].upper() + maker[1:] if maker in (_PATTERNS, _EXTRACTIVE) else maker


def _price(plan: BackgroundPlan | None) -> str:
    if plan is None:
        return tr("at no cost")
    time = format_estimate(plan.minutes, plan.cost_usd)
    return tr("{requests}, about {tokens} tokens, {time}").format(
        requests=trn("{count} request", "{count} requests", plan.requests),
        tokens=format_number(plan.tokens),
        time=time,
    )
