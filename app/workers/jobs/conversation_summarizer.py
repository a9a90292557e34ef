"""The conversation summarizer: two or three sentences."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from app.domain.text import one_line
from app.domain.workers import WorkerName
from app.language.extractive.summaries import TurnMarkdown
from app.storage.work.queue import Tally
from app.storage.work.summary_work import Summarizable, WaitingConversation
from app.workers.job import IsCancelled, Job
from app.workers.jobs import JobParts
from app.workers.jobs.part_reader import ReadingJob
from app.workers.jobs.summarizers import (
    Summarized,
    SummaryJob,
    conversation_passage,
    extract_conversation,
)


class ConversationSummarizer(SummaryJob):
    """A `Job`: summaries of conversations. Titles and tags come from a model (`part_reader`)."""

    name = WorkerName.CONVERSATION_SUMMARIZER
    minimum = "min_exchanges_for_conversation_summary"
    batch = 25

    def find(self, at: datetime) -> Sequence[WaitingConversation]:
        """Return conversations whose summary is missing or outdated, latest changed first."""
        minimum = self._settings.number(self.minimum)
        return self._work.conversations(self.batch, minimum, self._opened.skipped(at), at)

    def describe(self, item: WaitingConversation) -> str:
        """Return the title."""
        return one_line(item.title, 60) or f"conversation {item.id}"

    def make(self, items: Sequence[WaitingConversation], is_cancelled: IsCancelled) -> Summarized:
        """Return the summary of the one conversation given."""
        (item,) = items
        turns = [TurnMarkdown(text.asked, text.answered) for text in item.texts]
        passage = conversation_passage(item.id, item.said_at)
        return Summarized(item, passage, self._summarize(turns, is_cancelled))

    def tally(self) -> Tally:
        """Return the counts of conversations that should have a summary and that have a current one."""
        return self._work.conversation_tally(self._settings.number(self.minimum))

    def _summarizable(self, ids: Sequence[int]) -> Summarizable:
        return self._work.summarizable_conversations(ids)


def build(parts: JobParts) -> Job[Any, Any]:
    """Return the job."""
    job = ConversationSummarizer(
        parts.store, parts.settings, parts.open_conversation, extract_conversation
    )
    return job if parts.reader is None else ReadingJob(job, parts.reader)
