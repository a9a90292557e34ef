"""The workers' jobs: each worker's job is made by `build` of the module of its name.

To add a worker, add its row to `app.domain.workers` and a module here.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from app.domain.workers import WorkerName
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.workers.background_model import ModelClient
from app.workers.job_interface import ActiveEmbedder, Clock, Job, OpenConversation
from app.workers.jobs.part_reader import NearestFacts, PartReader
from app.workers.spend_limits import SpendLimits

if TYPE_CHECKING:
    from app.index.token_sync import TokenIndexSync
    from app.workers.jobs.routine_runner import RoutineRunner


@dataclass(frozen=True)
class JobParts:
    """What jobs are made from; None where there is no embedder or model.

    Attributes:
        model: The background model.
        limits: The spend limits that all workers share.
        nearest: Finds the known facts that the model is told of.
        routines: Returns what runs routines.
    """

    store: Store
    settings: Settings
    embedder: ActiveEmbedder | None = None
    model: ModelClient | None = None
    limits: SpendLimits | None = None
    nearest: NearestFacts | None = None
    tokens: "TokenIndexSync | None" = None
    routines: "Callable[[], RoutineRunner] | None" = None
    clock: Clock = field(default_factory=Clock)

    @cached_property
    def open_conversation(self) -> OpenConversation:
        return OpenConversation(self.store, self.settings)

    @cached_property
    def reader(self) -> PartReader | None:
        """What the workers that read conversations share; None without a model."""
        if self.model is None:
            return None
        return PartReader(
            self.store, self.settings, self.model, self.open_conversation, self.nearest
        )


def build_jobs(parts: JobParts) -> tuple[Job[Any, Any], ...]:
    """Return the jobs of all workers that can work with the parts, in the order of their names."""
    made = (import_module(f"{__name__}.{name.value}").build(parts) for name in WorkerName)
    return tuple(job for job in made if job is not None)
