"""The workers' jobs: each worker's job is made by `build` of the module of its name.

To add a worker, add its row to `app.domain.workers` and a module here.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class JobParts:
    """What jobs are made from; None where there is no embedder or model.

    Attributes:
        model: The background model.
        limits: The spend limits that all workers share.
        nearest: Finds the known facts that the model is told of.
        routines: Returns what runs routines.
        reader: Shared by the workers that read conversations.
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
    open_conversation: OpenConversation = field(init=False)
    reader: PartReader | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.open_conversation = opened = OpenConversation(self.store, self.settings)
        if self.model is not None:
            self.reader = PartReader(self.store, self.settings, self.model, opened, self.nearest)


def build_jobs(parts: JobParts) -> tuple[Job[Any, Any], ...]:
    """Return the jobs of all workers that can work with the parts, in the order of their names."""
    made = (import_module(f"{__name__}.{name.value}").build(parts) for name in WorkerName)
    return tuple(job for job in made if job is not None)
