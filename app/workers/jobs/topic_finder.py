"""The topic finder: conversations get topics once their turns are embedded."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.changes import ChangeSet
from app.domain.errors import KnownError
from app.domain.formatting import format_count
from app.domain.passages import Space
from app.domain.workers import WORKERS, WorkerName
from app.memory.topics.finder import FoundTopics, TopicFinder
from app.storage.tables.attempts import Attempts
from app.storage.tables.topics import TopicWork
from app.storage.tables.vectors import Vectors
from app.storage.work.queue import Tally
from app.workers.job import ActiveEmbedder, IsCancelled, Job, Pace, Saved
from app.workers.jobs import JobParts
from app.workers.jobs.limited_embedding import space_name_of

_ITEM = 1
_PIPELINE_KEY = WORKERS[WorkerName.EMBEDDING_PIPELINE].enabled_key


@dataclass(frozen=True, slots=True)
class DueTopics:
    """All topics, as one item."""

    space: Space
    work: TopicWork
    id: int = _ITEM


class TopicJob(Job[DueTopics, FoundTopics]):
    """A `Job` with one item: all topics, while conversations lack one or topics lack a name."""

    name = WorkerName.TOPIC_FINDER
    pace = Pace(save_items=1, retries=2)
    concerned = frozenset(("embedder",))

    def __init__(self, parts: JobParts, embedder: ActiveEmbedder) -> None:
        self._settings = parts.settings
        self._vectors = Vectors(parts.store)
        self._finder = TopicFinder(parts.store)
        self._embedder = embedder
        self._attempts = Attempts(parts.store, self.name)

    def find(self, at: datetime) -> Sequence[DueTopics]:
        """Return the topics if they are due."""
        retry = self._attempts.next_try(_ITEM)
        if retry is not None and (retry[0] is None or retry[0] > at):
            return ()
        due = self._due()
        if due is None or not self._finder.is_due(due.work) or self._is_early(due.space, at):
            return ()
        return (due,)

    def describe(self, item: DueTopics) -> str:
        """Return the number of conversations."""
        return format_count(item.work.conversations, "conversation")

    def make(self, items: Sequence[DueTopics], is_cancelled: IsCancelled) -> FoundTopics:  # noqa: ARG002
        """Return the topics of all conversations; 10,000 take some seconds."""
        (due,) = items
        return self._finder.find(due.space)

    def save(self, results: Sequence[FoundTopics]) -> Saved:
        """Store the topics."""
        for each in results:
            self._finder.store(each)
        return Saved(sum(len(each.members) for each in results))

    def tally(self) -> Tally:
        """Return the counts of conversations with a topic."""
        due = self._due()
        if due is None or not due.work.fitted:
            return Tally(0, 0)
        return Tally(due.work.conversations - due.work.unassigned, due.work.conversations)

    def wakes_for(self, changed: ChangeSet) -> bool:
        """Return whether conversations changed; it follows the embedding pipeline."""
        return bool(changed.conversations or changed.settings & self.concerned)

    def _is_early(self, space: Space, at: datetime) -> bool:
        """Return whether turns are still to be embedded."""
        if not self._settings.flag(_PIPELINE_KEY):
            return False
        least = self._settings.number("min_message_tokens")
        return bool(self._vectors.missing(space, least, 1, at))

    def _due(self) -> DueTopics | None:
        try:
            name = space_name_of(self._embedder())
        except KnownError:
            return None
        spaces = {each.space.name: each.space for each in self._vectors.spaces()}
        return DueTopics(spaces[name], self._finder.work(spaces[name])) if name in spaces else None


def build(parts: JobParts) -> TopicJob | None:
    """Return the job, None without an embedder."""
    return None if parts.embedder is None else TopicJob(parts, parts.embedder)
