"""The conversation summarizer: two or three sentences, one of them on how it ended."""

from collections.abc import Sequence
from datetime import datetime

from app.domain.summaries import SummarySource
from app.domain.text import one_line
from app.domain.workers import WorkerName
from app.language.extractive.summaries import TurnMarkdown, summarize_conversation
from app.storage.work.queue import Tally
from app.storage.work.summary_work import Summarizable, WaitingConversation
from app.workers.jobs.summarizers import Summarize, Summarized, SummaryJob


class ConversationSummarizer(SummaryJob):
    """A `Job`: summaries of conversations. Titles and tags come from a model (`part_reader`)."""

    name = WorkerName.CONVERSATION_SUMMARIZER
    minimum = "min_exchanges_for_conversation_summary"
    batch = 25
    summarize: Summarize = staticmethod(lambda turns, _: summarize_conversation(turns))

    def find_own(self, at: datetime) -> Sequence[WaitingConversation]:
        """Return conversations whose summary is missing or outdated, latest changed first."""
        minimum = self._settings.number(self.minimum)
        return self._work.conversations(self.batch, minimum, self._opened.skipped(at), at)

    def describe_own(self, item: WaitingConversation) -> str:
        """Return the title."""
        return one_line(item.title, 60) or f"conversation {item.id}"

    def summarized(self, item: WaitingConversation) -> Summarized:
        """Return the turns of a conversation."""
        turns = [TurnMarkdown(text.asked, text.answered) for text in item.texts]
        return Summarized(item, SummarySource(item.id, None, item.said_at), turns)

    def tally(self) -> Tally:
        """Return the counts of conversations that should have a summary and that have a current one."""
        return self._work.conversation_tally(self._settings.number(self.minimum))

    def _summarizable(self, ids: Sequence[int]) -> Summarizable:
        return self._work.summarizable_conversations(ids)


build = ConversationSummarizer
