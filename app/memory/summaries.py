"""What the user does with summaries: write one by hand, bring an earlier one back.

A summary the user chose bears the stamp of what it is of, so the summarisers leave it alone until
that changes; theirs is then the newest and the user's is kept below it. Blocking.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from app.domain.changes import PassagesPut, SummaryPut
from app.domain.errors import InvalidInput, NotFound
from app.domain.facts import BY_USER
from app.domain.ids import ConversationId, ExchangeId
from app.domain.passages import Passage, PassageKind
from app.domain.text import clean
from app.domain.turn_text import content_hash, estimate_tokens
from app.storage.conversations import Conversations
from app.storage.exchanges import Exchanges
from app.storage.passages import Passages
from app.storage.store import Store
from app.storage.summaries import Summaries, Summary
from app.storage.summary_work import conversation_stamp, exchange_stamp
from app.storage.times import now

SUMMARY_LIMIT_CHARS = 4_000


class SummaryOf(StrEnum):
    """What a summary is of."""

    EXCHANGE = "exchange"
    CONVERSATION = "conversation"


_PASSAGES = {
    SummaryOf.EXCHANGE: PassageKind.EXCHANGE_SUMMARY,
    SummaryOf.CONVERSATION: PassageKind.CONVERSATION_SUMMARY,
}


@dataclass(frozen=True, slots=True)
class _Source:
    """An exchange or a conversation as it is now; `said_at` is the time its passage bears."""

    conversation_id: ConversationId
    exchange_id: ExchangeId | None
    stamp: str
    said_at: datetime


class SummaryBook:
    """The summaries of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._conversations = Conversations(store)
        self._exchanges = Exchanges(store)
        self._passages = Passages(store)
        self._summaries = Summaries(store)

    def write(self, of: SummaryOf, source_id: int, text: str) -> Summary:
        """Keep the user's own summary as the newest; raise NotFound, InvalidInput."""
        words = clean(text).strip()
        if not 0 < len(words) <= SUMMARY_LIMIT_CHARS:
            raise InvalidInput(
                f"A summary cannot have {len(words):,} characters"
                if words
                else "A summary cannot be empty",
                f"Allowed: 1 to {SUMMARY_LIMIT_CHARS:,} characters.",
            )
        return self._put(of, source_id, words, BY_USER)

    def restore(self, of: SummaryOf, source_id: int, made_at: datetime) -> Summary:
        """Make an earlier summary the newest, by whom it was made; raise NotFound."""
        for version in self._summaries.versions(of, source_id):
            if version.made_at == made_at:
                return self._put(of, source_id, version.text, version.model)
        raise NotFound("There is no such version of this summary any more")

    def _put(self, of: SummaryOf, source_id: int, text: str, model: str) -> Summary:
        source = self._source(of, source_id)
        latest = self._summaries.latest(of, [source_id]).get(source_id)
        at = now()
        if latest is not None:  # the newest, even if the clock was set back
            at = max(at, latest.made_at + timedelta(microseconds=1))
        summary = Summary(source_id, text, model, at)
        put = SummaryPut(
            kind=of.value,
            source_id=source_id,
            conversation_id=source.conversation_id,
            text=text,
            model=model,
            source_hash=source.stamp,
            made_at=at,
        )
        passage = Passage(
            id=self._store.ids.passage(),
            kind=_PASSAGES[of],
            source_id=source_id,
            conversation_id=source.conversation_id,
            exchange_id=source.exchange_id,
            content_hash=content_hash(text),
            created_at=source.said_at,
            tokens=estimate_tokens(text),
        )
        replaced = self._passages.of_source(_PASSAGES[of], source_id)
        self._store.save(put, PassagesPut((passage,), replaced))
        return summary

    def _source(self, of: SummaryOf, source_id: int) -> _Source:
        if of is SummaryOf.EXCHANGE:
            exchange = self._exchanges.get(source_id)
            conversation = self._conversations.get(exchange.conversation_id)
            source = _Source(
                conversation.id, exchange.id, exchange_stamp(exchange), exchange.started_at
            )
        else:
            conversation = self._conversations.get(source_id)
            stamp = conversation_stamp(self._exchanges.of(source_id))
            source = _Source(conversation.id, None, stamp, conversation.updated_at)
        if conversation.private:
            raise InvalidInput(
                "A private conversation has no summary", "It is never summarised or indexed."
            )
        return source
