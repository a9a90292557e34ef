"""The exchange summarizer: one or two sentences for each completed exchange, newest first.

They say what was asked, what was done, and how it ended.
"""

from app.domain.workers import WorkerName
from app.language.extractive import summarize_exchange
from app.storage.work.summary_work import EXCHANGE_SUMMARIES
from app.workers.jobs.summarizers import Summarize, SummaryJob


class ExchangeSummarizer(SummaryJob):
    """A `Job`: summaries of exchanges."""

    name = WorkerName.EXCHANGE_SUMMARIZER
    work = EXCHANGE_SUMMARIES
    minimum = "min_messages_for_exchange_summary"
    batch = 100
    summarize: Summarize = staticmethod(lambda turns, _: summarize_exchange(turns[0]))


build = ExchangeSummarizer
