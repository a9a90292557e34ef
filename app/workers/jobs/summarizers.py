"""Base of the jobs of both summarizers: extractive summaries, a batch in one commit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from app.domain.changes import Change
from app.domain.errors import Cancelled
from app.domain.records.summaries import SummaryText, summary_changes
from app.domain.text import one_line
from app.domain.turns import TurnMarkdown
from app.domain.workers import WORKERS
from app.language.extractive import MODEL
from app.storage.engine.stamps import now
from app.storage.work.queue import SUMMARIES, Tally, WorkQuery, is_superseded
from app.storage.work.summary_work import SummaryWork, Unsummarized
from app.workers.background_model import MODEL_KEYS
from app.workers.job_interface import CONVERSATIONS, IsCancelled, Pace, PrefetchingJob, Saved
from app.workers.jobs import JobParts
from app.workers.jobs.reading_job import ReadingJob

# Returns the summary of turns in their language, "" for turns without text. Raises `Cancelled`.
Summarize = Callable[[Sequence[TurnMarkdown], IsCancelled], str]
_PREFETCH = 1_000  # finding them takes 10 ms in a library of 10,000


@dataclass(frozen=True, slots=True)
class Summarized:
    """An exchange or a conversation and its summary."""

    item: Unsummarized
    text: str
    made_at: datetime = field(default_factory=now)


class SummaryJob(PrefetchingJob[Unsummarized, Summarized], ReadingJob):
    """A `Job` of either summarizer: one item a call, summaries and passages in one commit.

    Attributes:
        work: What lacks a summary.
        minimum: The setting that says how much a source must hold.
        batch: How many summaries are saved together.
        summarize: Summarizes without a model.
    """

    work: WorkQuery
    minimum: str
    batch: int
    summarize: Summarize

    def __init__(self, parts: JobParts) -> None:
        super().__init__(parts)
        self._store = parts.store
        self._settings = parts.settings
        self._opened = parts.open_conversation
        self._work = SummaryWork(parts.store)
        keys = (self.minimum, "summarizer_quiet_minutes", SUMMARIES.key)
        self.wakes_on = CONVERSATIONS | MODEL_KEYS.union(keys)
        self.own_pace = Pace(save_items=self.batch)  # many summaries in one commit

    def poll_interval_s(self) -> float:
        """Return `summarizer_idle_timeout`."""
        return float(self._settings.number("summarizer_idle_timeout"))

    def find_own(self, at: datetime) -> Sequence[Unsummarized]:
        """Return what lacks a current summary, with its text, the newest or latest changed first.

        It comes from a prefetched list; `save` checks again whether each may have a summary.
        """
        skipped = self._opened.skipped(at)
        self.refetch(
            lambda: self._work.missing(self.work, _PREFETCH, self._least_size, skipped, at)
        )
        while self.prefetched:
            found = self._work.with_turns(self.work, self.take(self.batch))
            if items := [each for each in found if each.source.conversation_id != skipped]:
                return items
        return ()

    def describe_own(self, item: Unsummarized) -> str:
        """Return the title of a conversation, or the beginning of a question."""
        texts = (item.title, *(text for turn in item.turns for text in (turn.asked, turn.answered)))
        text = one_line(next(filter(None, texts), ""), 60)
        return text or f"{WORKERS[self.name].items} {item.id}"

    def make_own(self, items: Sequence[Unsummarized], is_cancelled: IsCancelled) -> Summarized:
        if is_cancelled():
            raise Cancelled("The worker was stopped")
        (item,) = items
        return Summarized(item, self.summarize(item.turns, is_cancelled))

    def save_own(self, results: Sequence[Summarized]) -> Saved:
        """Store summaries and passages, except of sources that may no longer have one."""

        def commit() -> Saved:
            stored = self._work.summarizable(self.work, [each.item.id for each in results])
            first_at = min(each.made_at for each in results)
            is_late = self._store.read(is_superseded, SUMMARIES, first_at, MODEL)
            kept = [each for each in results if each.item.id in stored.ids and not is_late]
            changes: list[Change] = []
            for each in kept:
                summary = SummaryText(each.text, MODEL, each.item.stamp)
                replaced = stored.passages.get(each.item.id, ())
                own = self._store.ids.passage()
                changes += summary_changes(each.item.source, summary, now(), own, replaced)
            if changes:
                self._store.commit_now(*changes)
            made = sum(bool(each.text) for each in kept)
            return Saved(made, len(results) - made)

        return self._store.on_writer(commit).result()

    def tally(self) -> Tally:
        """Return how many should have a summary, and how many have a current one."""
        return self._work.tally(self.work, self._least_size)

    @property
    def _least_size(self) -> int:
        return self._settings.number(self.minimum)
