"""The topic finder: conversations get topics once their turns are embedded, and topics names.

Names are frequent words, or by the background model if one may be used; it is asked once for each topic.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.change_set import ChangeSet
from app.domain.errors import Cancelled, KnownError
from app.domain.passages import Space
from app.domain.records.topics import NAME_LIMIT_CHARS, TopicId
from app.domain.text import clean, one_line
from app.domain.translation import format_count
from app.domain.workers import WORKERS, WorkerName
from app.memory.topics.finder import FoundTopics, TopicFinder
from app.storage.tables.attempts import Attempts
from app.storage.tables.passages.vectors import Vectors
from app.storage.tables.topics import TopicWork
from app.storage.work.queue import Tally
from app.workers.background_model import MODEL_KEYS, ModelClient
from app.workers.job_interface import ActiveEmbedder, IsCancelled, Job, Pace, Saved
from app.workers.jobs import JobParts
from app.workers.jobs.chunk_vectors import space_name_of
from app.workers.prompts_and_answers import Quoted, fill_prompt, list_schema

_log = logging.getLogger(__name__)
_ITEM = 1
TOPICS_OF_A_REQUEST = 20
_TITLES_OF_A_TOPIC = 8
_TITLE_CHARS = 80
_SCHEMA = list_schema("names", number={"type": "integer"}, name={"type": "string"})
_PIPELINE_KEY = WORKERS[WorkerName.EMBEDDING_PIPELINE].enabled_key


@dataclass(frozen=True, slots=True)
class DueTopics:
    """All topics, as one item."""

    space: Space
    work: TopicWork
    id: int = _ITEM


class TopicJob(Job[DueTopics, FoundTopics]):
    """A `Job` with one item: all topics, while conversations lack one or topics lack a name.

    Where the model does not answer, names are frequent words until the settings of models change or topics are
    found again.
    """

    name = WorkerName.TOPIC_FINDER
    pace = Pace(save_items=1, retries=2)
    wakes_on = MODEL_KEYS.union(("conversations", "embedder"))

    def __init__(self, parts: JobParts, embedder: ActiveEmbedder) -> None:
        self._settings = parts.settings
        self._vectors = Vectors(parts.store)
        self._finder = TopicFinder(parts.store)
        self._embedder = embedder
        self._model = parts.model
        self._has_failed = False
        self._store = parts.store
        self._attempts = Attempts(parts.store, self.name)
        self._found: tuple[DueTopics | None, ...] = ()  # until it is counted or worked on

    def find(self, at: datetime) -> Sequence[DueTopics]:
        """Return the topics if they are due."""
        if self._attempts.is_postponed(_ITEM, at):
            return ()
        due = self._due()
        self._found = (due,)
        if due is None or not self._finder.is_due(due.work, self._chosen()):
            return ()
        least = self._settings.number("min_message_tokens")
        if self._settings.flag(_PIPELINE_KEY) and self._vectors.missing(due.space, least, 1, at):
            return ()  # turns are still to be embedded
        return (due,)

    def describe(self, item: DueTopics) -> str:
        return format_count(item.work.conversations, "conversation")

    def make(self, items: Sequence[DueTopics], is_cancelled: IsCancelled) -> FoundTopics:
        """Return the topics of all conversations; 10,000 take some seconds."""
        self._found = ()
        (due,) = items
        chosen = self._chosen()
        found = self._finder.find(due.space, chosen)
        if self._model is None or not chosen:
            return found
        try:
            return found.with_names(self._names(found, self._model, is_cancelled), chosen)
        except Cancelled:
            raise
        except KnownError as error:
            _log.info("the background model named no topics: %s", error)
            self._has_failed = True
            return found

    def save(self, results: Sequence[FoundTopics]) -> Saved:
        for each in results:
            self._finder.store(each)
        return Saved(sum(len(each.members) for each in results))

    def tally(self) -> Tally:
        found, self._found = self._found, ()
        due = found[0] if found else self._due()
        if due is None or not due.work.fitted:
            return Tally(0, 0)
        return Tally(due.work.conversations - due.work.unassigned, due.work.conversations)

    def note(self, changed: ChangeSet) -> None:
        """Let another model name topics."""
        if changed.settings & MODEL_KEYS:
            self._has_failed = False

    def _chosen(self) -> str:
        """Return the background model, "" where there is none to ask."""
        return "" if self._model is None or self._has_failed else self._model.model

    def _names(
        self, found: FoundTopics, model: ModelClient, is_cancelled: IsCancelled
    ) -> dict[TopicId, str]:
        """Return the model's names of topics that have none by a model or by the user."""
        words = {each.id: each.name for each in found.topics}
        asked = list(found.unnamed)
        names: dict[TopicId, str] = {}
        for first in range(0, len(asked), TOPICS_OF_A_REQUEST):
            some = asked[first : first + TOPICS_OF_A_REQUEST]
            quoted = []
            for number, each in enumerate(some, start=1):
                titles = found.unnamed[each][:_TITLES_OF_A_TOPIC]
                lines = (words[each], *(one_line(title, _TITLE_CHARS) for title in titles))
                quoted.append(Quoted(f"topic {number}", "\n".join(lines)))
            prompt = fill_prompt("topic_names", quoted, numbers=f"1 to {len(some)}")
            answer = model.ask(prompt, self.name, is_cancelled, _SCHEMA)
            self._store.save(answer.spent)
            for given in answer.fields["names"]:
                name = one_line(clean(given["name"]), NAME_LIMIT_CHARS)
                if name and 1 <= given["number"] <= len(some) and name not in names.values():
                    names[some[given["number"] - 1]] = name
        return names

    def _due(self) -> DueTopics | None:
        try:
            name = space_name_of(self._embedder())
        except KnownError:
            return None
        spaces = {each.space.name: each.space for each in self._vectors.spaces()}
        return DueTopics(spaces[name], self._finder.work(spaces[name])) if name in spaces else None


def build(parts: JobParts) -> TopicJob | None:
    return None if parts.embedder is None else TopicJob(parts, parts.embedder)
