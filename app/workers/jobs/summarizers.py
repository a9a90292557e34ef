"""What the jobs of both summarizers share: extractive summaries, a batch in one commit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from app.domain.changes import Change
from app.domain.errors import Cancelled
from app.domain.summaries import SummarySource, SummaryText, summary_changes
from app.language.extractive.summaries import MODEL, TurnMarkdown
from app.storage.engine.times import now
from app.storage.work.queue import SUMMARIES, is_superseded
from app.storage.work.summary_work import Summarizable, SummaryWork
from app.workers.background_model import MODEL_KEYS
from app.workers.job import IsCancelled, Pace, Saved
from app.workers.jobs import JobParts
from app.workers.jobs.part_reader import ReadingJob

# Returns the summary of turns in their language, "" for turns without text. Raises `Cancelled`.
Summarize = Callable[[Sequence[TurnMarkdown], IsCancelled], str]


@dataclass(frozen=True, slots=True)
class Summarized:
    """An item, what is summarized, its turns, and then its summary."""

    item: Any
    source: SummarySource
    turns: Sequence[TurnMarkdown]
    text: str = ""
    made_at: datetime = field(default_factory=now)


class SummaryJob(ReadingJob):
    """What the two summarizers share: one item a call, summaries and passages in one commit.

    Attributes:
        minimum: The setting that says how much a source must hold.
        batch: How many summaries are saved together.
        summarize: Summarizes without a model.
    """

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
        self.concerned = MODEL_KEYS.union(keys)
        self.own_pace = Pace(save_items=self.batch)  # many summaries in one commit

    def poll_interval_s(self) -> float:
        """Return `summarizer_idle_timeout`."""
        return float(self._settings.number("summarizer_idle_timeout"))

    def summarized(self, item: Any) -> Summarized:
        """Return the turns of an item."""
        raise NotImplementedError

    def make_own(self, items: Sequence[Any], is_cancelled: IsCancelled) -> Summarized:
        """Return the summary of the one source given."""
        if is_cancelled():
            raise Cancelled("The worker was stopped")
        found = self.summarized(*items)
        return replace(found, text=self.summarize(found.turns, is_cancelled))

    def save_own(self, results: Sequence[Summarized]) -> Saved:
        """Store summaries and passages, except of sources that may no longer have one."""

        def commit() -> Saved:
            stored = self._summarizable([each.item.id for each in results])
            first_at = min(each.made_at for each in results)
            is_late = self._store.read(lambda c: is_superseded(c, SUMMARIES, first_at, MODEL))
            kept = [each for each in results if each.item.id in stored.ids and not is_late]
            changes: list[Change] = []
            for each in kept:
                summary = SummaryText(each.text, MODEL, each.item.stamp)
                replaced = stored.passages.get(each.item.id, ())
                own = self._store.ids.passage()
                changes += summary_changes(each.source, summary, now(), own, replaced)
            if changes:
                self._store.commit_now(*changes)
            made = sum(bool(each.text) for each in kept)
            return Saved(made, len(results) - made)

        return self._store.on_writer(commit).result()

    def _summarizable(self, ids: Sequence[int]) -> Summarizable:
        """Return which of the sources may have a summary now, and their present passages."""
        raise NotImplementedError
