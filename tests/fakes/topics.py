"""A library with conversations about three subjects, and the workers that find its topics."""

from datetime import timedelta
from random import Random

from app.domain.records.topics import Topic
from app.domain.workers import WorkerName, WorkerStatus
from app.memory.search.scope import Boundaries
from app.memory.topics.service import TopicService
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.workers.background_model import ModelClient
from app.workers.board import WorkerBoard
from app.workers.jobs import JobParts
from app.workers.jobs.topic_finder import TopicJob
from tests.fakes.embedders import BagOfWords
from tests.fakes.jobs import JumpingClock
from tests.fakes.stored import AT, ConversationRecord, add_all, new_conversation

SUBJECTS = {
    "heron": "heron gateway retries timeout requests latency proxy backoff header",
    "tomato": "tomato seedlings greenhouse watering compost blight harvest trellis soil",
    "sonata": "sonata violin bowing rehearsal tempo phrasing cello concert tuning",
}


class TopicLibrary:
    """A store that a topic finder and an embedding pipeline work on when they are told to."""

    def __init__(self, store: Store, model: ModelClient | None = None) -> None:
        self.store = store
        self.settings = Settings(store)
        self.bag = BagOfWords(dimension=256)
        parts = JobParts(store, self.settings, lambda: self.bag, model, clock=JumpingClock())
        self.job = TopicJob(parts, lambda: self.bag)
        self.board = WorkerBoard(parts, (self.job,))
        self.service = TopicService(store, Boundaries(store))
        self._random = Random(1)
        self._count = 0

    def talk(self, subject: str, extra: str = "", **more: object) -> ConversationRecord:
        """Add a conversation about a subject, a day after the last one."""
        talk = self._new(subject, extra, **more)
        self.store.save(*talk.changes)
        return talk

    def _new(self, subject: str, extra: str = "", **more: object) -> ConversationRecord:
        words = SUBJECTS[subject].split()
        self._count += 1
        said = " ".join([words[0], *self._random.sample(words[1:], 6), extra])
        options = {"title": f"{words[0]} {words[1]}", "at": AT + timedelta(days=self._count)}
        return new_conversation(self.store, f"{said} please", **(options | more))  # type: ignore[arg-type]

    def fill(self, each: int = 8) -> dict[str, list[ConversationRecord]]:
        """Add conversations about every subject, and find topics."""
        made = {subject: [self._new(subject) for _ in range(each)] for subject in SUBJECTS}
        add_all(self.store, (talk for own in made.values() for talk in own))
        self.find()
        return made

    def find(self) -> WorkerStatus:
        """Embed what is new, then find topics."""
        return {each.name: each for each in self.board.run_until_idle()}[WorkerName.TOPIC_FINDER]

    def topic_of(self, record: ConversationRecord) -> Topic:
        found = [
            topic
            for topic in self.service.topics(hidden=True)
            if any(
                each.id == record.conversation.id for each in self.service.conversations(topic.id)
            )
        ]
        (topic,) = found
        return topic
