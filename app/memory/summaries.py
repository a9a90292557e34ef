"""Summary service: summaries written by the user, and earlier versions restored.

Such a summary has the stamp of its source, so summarizers keep it until the source changes; then
theirs is the newest, and the user's remains an earlier version. Blocking.
"""

from datetime import datetime
from enum import StrEnum

from app.domain.errors import InvalidInput
from app.domain.records.facts import BY_USER
from app.domain.records.summaries import SummarySource, SummaryText, summary_changes
from app.memory.user_texts import checked_text, later_than, version_at
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.passages.queries import Passages
from app.storage.tables.summaries import Summaries, Summary
from app.storage.work.summary_work import SummaryWork

SUMMARY_LIMIT_CHARS = 4_000


class SummaryTarget(StrEnum):
    """The kind of source of a summary."""

    EXCHANGE = "exchange"
    CONVERSATION = "conversation"


class SummaryService:
    """The summaries of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._conversations = Conversations(store)
        self._exchanges = Exchanges(store)
        self._passages = Passages(store)
        self._summaries = Summaries(store)
        self._work = SummaryWork(store)

    def write(self, of: SummaryTarget, source_id: int, text: str) -> Summary:
        """Store the user's summary as the newest; raises NotFound, InvalidInput."""
        words = checked_text(text, SUMMARY_LIMIT_CHARS, "summary")
        return self._put(of, source_id, words, BY_USER)

    def restore(self, of: SummaryTarget, source_id: int, made_at: datetime) -> Summary:
        """Make an earlier summary the newest, with its own author; raises NotFound."""
        version = version_at(self._summaries.versions(of, source_id), made_at, "the summary")
        return self._put(of, source_id, version.text, version.model)

    def _put(self, of: SummaryTarget, source_id: int, text: str, model: str) -> Summary:
        source, stamp = self._source(of, source_id)
        latest = self._summaries.latest(of, [source_id]).get(source_id)
        at = now() if latest is None else later_than(latest.made_at)
        replaced = tuple(self._passages.of_source(source.passage_kind, source_id))
        summary, own = SummaryText(text, model, stamp), self._store.ids.passage()
        self._store.save(*summary_changes(source, summary, at, own, replaced))
        return Summary(source_id, text, model, at)

    def _source(self, of: SummaryTarget, source_id: int) -> tuple[SummarySource, str]:
        if of is SummaryTarget.EXCHANGE:
            exchange = self._exchanges.get(source_id)
            conversation = self._conversations.get(exchange.conversation_id)
            source = SummarySource(conversation.id, exchange.id, exchange.started_at)
        else:
            conversation = self._conversations.get(source_id)
            source = SummarySource(conversation.id, None, conversation.updated_at)
        if conversation.private:
            raise InvalidInput(
                "A private conversation has no summary", "It is never summarized or indexed."
            )
        return source, self._work.stamp(of.value, source_id)
