"""The exchange summarizer: one or two sentences for each completed exchange, newest first.

They say what was asked, what was done, and how it ended.
"""

from collections.abc import Sequence
from datetime import datetime

from app.domain.summaries import SummarySource
from app.domain.text import one_line
from app.domain.workers import WorkerName
from app.language.extractive.summaries import TurnMarkdown, summarize_exchange
from app.storage.work.queue import Tally
from app.storage.work.summary_work import Summarizable, WaitingExchange
from app.workers.job import PrefetchingJob
from app.workers.jobs.summarizers import Summarize, Summarized, SummaryJob

_PREFETCH = 1_000  # finding them takes 10 ms in a library of 10,000


class ExchangeSummarizer(PrefetchingJob[WaitingExchange, Summarized], SummaryJob):
    """A `Job`: summaries of exchanges."""

    name = WorkerName.EXCHANGE_SUMMARIZER
    minimum = "min_messages_for_exchange_summary"
    batch = 100
    summarize: Summarize = staticmethod(lambda turns, _: summarize_exchange(turns[0]))

    def find_own(self, at: datetime) -> Sequence[WaitingExchange]:
        """Return the newest completed exchanges without a current summary, with their text.

        They come from a prefetched list; `save` checks again whether each may have a summary.
        """
        skipped = self._opened.skipped(at)
        minimum = self._settings.number(self.minimum)
        self.refetch(lambda: self._work.exchange_ids(_PREFETCH, minimum, skipped, at))
        while self.prefetched:
            waiting = self._work.exchanges(self.take(self.batch))
            if items := [each for each in waiting if each.conversation_id != skipped]:
                return items
        return ()

    def describe_own(self, item: WaitingExchange) -> str:
        """Return the beginning of the question."""
        return one_line(item.text.asked or item.text.answered, 60) or f"exchange {item.id}"

    def summarized(self, item: WaitingExchange) -> Summarized:
        """Return the turn of an exchange."""
        source = SummarySource(item.conversation_id, item.id, item.said_at)
        return Summarized(item, source, [TurnMarkdown(item.text.asked, item.text.answered)])

    def tally(self) -> Tally:
        """Return the counts of exchanges that should have a summary and that do."""
        return self._work.exchange_tally(self._settings.number(self.minimum))

    def _summarizable(self, ids: Sequence[int]) -> Summarizable:
        return self._work.summarizable_exchanges(ids)


build = ExchangeSummarizer
