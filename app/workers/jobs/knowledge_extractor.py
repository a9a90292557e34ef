"""The knowledge extractor: facts that people state about themselves, each with its turn; found by patterns without a model."""

from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate

from app.domain.errors import KnownError
from app.domain.records.facts import BY_PATTERNS
from app.domain.text import one_line
from app.domain.workers import WorkerName
from app.language.sentences import content_terms
from app.memory.facts import similar_facts
from app.providers.embedders.local import LocalEmbedder
from app.storage.work.extraction_work import ExchangeToRead, ExtractionWork
from app.storage.work.queue import FACTS, Tally
from app.workers.background_model import MODEL_KEYS
from app.workers.job_interface import CONVERSATIONS, IsCancelled, Pace, PrefetchingJob, Saved
from app.workers.jobs import JobParts
from app.workers.jobs.fact_writer import Compared, ExtractedFact, FactWriter, ReadExchange
from app.workers.jobs.part_reader import read_by_patterns
from app.workers.jobs.reading_job import ReadingJob

_PREFETCH = 1_000
_MOST_MESSAGES = 20

ExchangesRead = Sequence[ReadExchange]


class KnowledgeExtractor(PrefetchingJob[ExchangeToRead, ExchangesRead], ReadingJob):
    """A `Job`: finds facts in exchanges by patterns, 20 messages at a time, each batch in one commit.

    The embedder decides whether statements have the same meaning; only a local one is used. Without
    it their words are compared.
    """

    name = WorkerName.KNOWLEDGE_EXTRACTOR
    wakes_on = CONVERSATIONS | MODEL_KEYS.union(("summarizer_quiet_minutes", FACTS.key))
    own_pace = Pace(_MOST_MESSAGES, save_items=1)

    def __init__(self, parts: JobParts) -> None:
        super().__init__(parts)
        self._store = parts.store
        self._opened = parts.open_conversation
        self._embedder = parts.embedder
        self._work = ExtractionWork(parts.store)
        self._writer = FactWriter(parts.store)

    def find_own(self, at: datetime) -> Sequence[ExchangeToRead]:
        """Return the newest exchanges that were not read in their present form: 20 messages, or one exchange."""
        skipped = self._opened.skipped(at)
        self.refetch(lambda: self._work.exchange_ids(_PREFETCH, skipped, at))
        while self.prefetched:
            found = self.prefetched[:_MOST_MESSAGES]
            waiting = self._work.exchanges(found)
            sizes = accumulate(len(each.messages) for each in waiting)
            taken = max(1, sum(size <= _MOST_MESSAGES for size in sizes))
            later = {each.id for each in waiting[taken:]}
            done = {each for each, _ in found if each not in later}
            self.prefetched = [each for each in self.prefetched if each[0] not in done]
            items = [each for each in waiting[:taken] if each.conversation_id != skipped]
            if items:
                return items
        return ()

    def describe_own(self, item: ExchangeToRead) -> str:
        """Return the beginning of the first message."""
        text = next((one_line(each.text, 60) for each in item.messages), "")
        return text or f"exchange {item.id}"

    def make_own(self, items: Sequence[ExchangeToRead], is_cancelled: IsCancelled) -> ExchangesRead:
        """Return the facts of exchanges, and the known facts with the same meaning."""
        found = read_by_patterns(items, is_cancelled)
        compared = self._compared([one for each in found for one in each])
        read = []
        for item, facts in zip(items, found, strict=True):
            own, compared = compared[: len(facts)], compared[len(facts) :]
            read.append(ReadExchange(item, tuple(own), BY_PATTERNS))
        return read

    def save_own(self, results: Sequence[ExchangesRead]) -> Saved:
        """Store facts and passages, and that exchanges were read, unless they may no longer be."""
        read = [each for result in results for each in result]

        def commit() -> Saved:
            changes, covered = self._writer.changes(read)
            if changes:
                self._store.commit_now(*changes)
            return Saved(covered, len(read) - covered)

        return self._store.on_writer(commit).result()

    def tally(self) -> Tally:
        """Return the counts of exchanges to read and of those read."""
        return self._work.tally()

    # -- meaning

    def _compared(self, said: Sequence[ExtractedFact]) -> list[Compared]:
        terms = {term for one in said for term in content_terms(one.text)}
        known = self._work.like(terms) if terms else ()
        likely = [similar_facts(one.text, known) for one in said]
        texts = list(dict.fromkeys(one.text for one in said))
        texts += [fact.text for facts in likely for fact in facts]
        try:
            embedder = self._embedder() if self._embedder is not None and texts else None
            # Asking a server costs, and this is not what the user agreed to.
            if not isinstance(embedder, LocalEmbedder):
                return [Compared(one) for one in said]
            vectors = dict(zip(texts, embedder.embed(texts), strict=True))
        except KnownError:
            return [Compared(one) for one in said]
        least = embedder.same_cosine
        compared = []
        for one, facts in zip(said, likely, strict=True):
            own = vectors[one.text]
            same = tuple(each.id for each in facts if float(vectors[each.text] @ own) >= least)
            compared.append(Compared(one, same, own, least))
        return compared


build = KnowledgeExtractor
