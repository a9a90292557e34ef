"""The knowledge extractor: what people say of themselves becomes facts, each with its turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt

from app.domain.changes import SpendAdded
from app.domain.errors import KnownError
from app.domain.events import Changed
from app.domain.facts import Fact
from app.domain.ids import PassageId
from app.domain.text import one_line
from app.domain.workers import WorkerName
from app.memory.fact_merging import SAME_COSINE, likely_same
from app.providers.fact_words import content_words
from app.providers.local_embedder import LocalEmbedder
from app.storage.extraction_work import ExtractionWork, UnreadExchange
from app.storage.remaking import FACTS
from app.storage.store import Store
from app.storage.tally import Tally
from app.workers.background_model import MODEL_KEYS
from app.workers.embedding_pipeline import ActiveEmbedder
from app.workers.fact_engines import MOST_MESSAGES, FactEngine, Learnt
from app.workers.fact_records import Compared, FactWriter, ReadExchange
from app.workers.found_ahead import FoundAhead
from app.workers.job import IsCancelled, Pace, Saved
from app.workers.open_conversation import OpenConversation
from app.workers.summary_records import ledger_of

_AHEAD = 1_000
_POLL_S = 60.0
_CONCERNED = frozenset(("summarizer_quiet_minutes", FACTS.key)) | MODEL_KEYS


@dataclass(frozen=True, slots=True)
class Read:
    """Exchanges with what they say, and what reading them did cost."""

    exchanges: tuple[ReadExchange, ...]
    spent: tuple[SpendAdded, ...]


class KnowledgeExtractor:
    """A `Job`: exchanges are read for facts, 20 messages at a time, each time in one commit.

    `embedder` tells whether statements mean the same; only one on this machine is asked, without
    any the same words must do.
    """

    name = WorkerName.KNOWLEDGE_EXTRACTOR

    def __init__(
        self,
        store: Store,
        engine: FactEngine,
        opened: OpenConversation,
        embedder: ActiveEmbedder | None = None,
    ) -> None:
        self._store = store
        self._engine = engine
        self._opened = opened
        self._embedder = embedder
        self._work = ExtractionWork(store)
        self._writer = FactWriter(store)
        self._ahead = FoundAhead(_CONCERNED)

    @property
    def pace(self) -> Pace:
        """All that was found at once: it is one request, and stored before the next."""
        return Pace(MOST_MESSAGES, save_items=1)

    def find(self, at: datetime) -> Sequence[UnreadExchange]:
        """Return the newest exchanges not read as they are now, of 20 messages or a single one."""
        left_alone = self._opened.left_alone(at)
        self._ahead.renew(lambda: self._work.exchange_ids(_AHEAD, left_alone, at))
        while self._ahead.left:
            found = self._ahead.left[:MOST_MESSAGES]
            waiting = self._work.exchanges(found)
            taken = _first_messages(waiting)
            later = {each.id for each in waiting[taken:]}
            self._ahead.drop({each for each, _ in found if each not in later})
            items = [each for each in waiting[:taken] if each.conversation_id != left_alone]
            if items:
                return items
        return ()

    def item_id(self, item: UnreadExchange) -> int:
        """Return the exchange's id."""
        return item.id

    def describe(self, item: UnreadExchange) -> str:
        """Return the beginning of what was said first."""
        words = next((one_line(each.text, 60) for each in item.messages), "")
        return words or f"exchange {item.id}"

    def make(self, items: Sequence[UnreadExchange], is_cancelled: IsCancelled) -> Read:
        """Return what exchanges say, and which known facts say the same."""
        reading = self._engine.read(items, is_cancelled)
        compared = self._compared([one for each in reading.facts for one in each])
        read = []
        for item, facts in zip(items, reading.facts, strict=True):
            own, compared = compared[: len(facts)], compared[len(facts) :]
            read.append(ReadExchange(item, tuple(own), reading.model))
        return Read(tuple(read), reading.spent)

    def save(self, results: Sequence[Read]) -> Saved:
        """Store facts, their passages, and that exchanges were read, as far as they still may be."""
        spent = [each for result in results for each in result.spent]
        read = [each for result in results for each in result.exchanges]

        def commit() -> Saved:
            records = self._writer.records(read)
            if changes := (*spent, *records.changes):
                self._store.commit_now(*changes)
            return Saved(records.covered, len(read) - records.covered, ledger_of(spent))

        return self._store.on_writer(commit).result()

    def tally(self) -> Tally:
        """Return how many exchanges there are to be read, and how many were."""
        return self._work.tally()

    def poll_interval_s(self) -> float:
        """Return a minute."""
        return _POLL_S

    def wakes_for(self, changed: Changed) -> bool:
        """Return whether an exchange ended, or a conversation left the trash or changed."""
        return self._ahead.wakes_for(changed)

    def waiting_words(self, count: int) -> str:
        """Return how many exchanges wait, in words."""
        if count == 1:
            return "1 exchange waits to be read for facts"
        return f"{count:,} exchanges wait to be read for facts"

    # -- meaning

    def _compared(self, said: Sequence[Learnt]) -> list[Compared]:
        words = {word for one in said for word in content_words(one.text)}
        known = self._work.like(words) if words else ()
        likely = [likely_same(one.text, known) for one in said]
        texts = list(dict.fromkeys(one.text for one in said))
        texts += [fact.text for facts in likely for fact in facts]
        vectors = self._vectors(texts)
        if vectors is None:
            return [Compared(one) for one in said]
        return [
            Compared(one, _same(vectors, one, facts), vectors[one.text])
            for one, facts in zip(said, likely, strict=True)
        ]

    def _vectors(self, texts: Sequence[str]) -> dict[str, npt.NDArray[np.float32]] | None:
        if self._embedder is None or not texts:
            return None
        try:
            embedder = self._embedder()
            if not isinstance(embedder, LocalEmbedder):
                return None  # asking a server costs, and this is not what the user agreed to
            return dict(zip(texts, embedder.embed(texts), strict=True))
        except KnownError:
            return None


def _first_messages(waiting: Sequence[UnreadExchange]) -> int:
    """Return how many exchanges make at most 20 messages; one at least."""
    total = 0
    for place, each in enumerate(waiting):
        total += len(each.messages)
        if total > MOST_MESSAGES:
            return max(1, place)
    return len(waiting)


def _same(
    vectors: dict[str, npt.NDArray[np.float32]], said: Learnt, known: Sequence[Fact]
) -> tuple[PassageId, ...]:
    own = vectors[said.text]
    return tuple(fact.id for fact in known if float(vectors[fact.text] @ own) >= SAME_COSINE)
