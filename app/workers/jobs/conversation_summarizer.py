"""The conversation summarizer: two or three sentences, one of them on how it ended."""

from app.domain.workers import WorkerName
from app.language.extractive import summarize_conversation
from app.storage.work.summary_work import CONVERSATION_SUMMARIES
from app.workers.jobs.summarizers import Summarize, SummaryJob


class ConversationSummarizer(SummaryJob):
    """A `Job`: summaries of conversations. Titles and tags come from a model (`part_reader`)."""

    name = WorkerName.CONVERSATION_SUMMARIZER
    work = CONVERSATION_SUMMARIES
    minimum = "min_exchanges_for_conversation_summary"
    batch = 25
    summarize: Summarize = staticmethod(lambda turns, _: summarize_conversation(turns))


build = ConversationSummarizer
