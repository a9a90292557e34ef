"""Estimates of the background work that waits for a language model."""

import math
from collections.abc import Callable

from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.storage.work.extraction_work import ExtractionWork
from app.storage.work.summary_work import SummaryWork
from app.storage.work.tool_call_work import ToolCallWork
from app.workers.jobs.fact_reader import MOST_MESSAGES
from app.workers.model_choice import Workload

# A message is read up to 12,000 characters for an exchange, 3,000 for a conversation of 60 turns.
_EXCHANGE_READS_TOKENS = 3_000
_TURN_READS_TOKENS, _CONVERSATION_READS_TOKENS = 1_500, 90_000
_EXCHANGE_PROMPT_TOKENS, _CONVERSATION_PROMPT_TOKENS = 350, 500
_EXCHANGE_ANSWER_TOKENS, _CONVERSATION_ANSWER_TOKENS = 90, 180
_FACTS_PROMPT_TOKENS, _FACTS_ANSWER_TOKENS = 900, 60  # of a request, of an exchange
_CALLS_OF_A_REQUEST, _CALL_READS_TOKENS, _CALL_ANSWER_TOKENS = 10, 400, 40
_NOTHING = Workload(0, 0, 0, 0)


class Workloads:
    """Estimates the work of the workers that are on and may use a model. Blocking."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._work = SummaryWork(store)

    def all(self) -> tuple[Callable[[], Workload], ...]:
        """Return the estimates, one for each worker."""
        return self.exchanges, self.conversations, self.facts, self.tool_calls

    def exchanges(self) -> Workload:
        """Return the work of the exchange summarizer."""
        if not self._settings.flag("summarizer_exchange_enabled"):
            return _NOTHING
        tally = self._work.exchange_tally(
            self._settings.number("min_messages_for_exchange_summary")
        )
        return self._of_exchanges(tally.total - tally.done)

    def _of_exchanges(self, count: int) -> Workload:
        read = count * (
            _EXCHANGE_PROMPT_TOKENS + self._mean(_EXCHANGE_MEAN, _EXCHANGE_READS_TOKENS)
        )
        return Workload(count, count, round(read), count * _EXCHANGE_ANSWER_TOKENS)

    def conversations(self) -> Workload:
        """Return the work of the conversation summarizer."""
        if not self._settings.flag("summarizer_conversation_enabled"):
            return _NOTHING
        tally = self._work.conversation_tally(
            self._settings.number("min_exchanges_for_conversation_summary")
        )
        return self._of_conversations(tally.total - tally.done)

    def _of_conversations(self, count: int) -> Workload:
        mean = self._mean(_CONVERSATION_MEAN, _TURN_READS_TOKENS, _CONVERSATION_READS_TOKENS)
        read = count * (_CONVERSATION_PROMPT_TOKENS + mean)
        return Workload(0, count, round(read), count * _CONVERSATION_ANSWER_TOKENS)

    def summaries_again(self) -> tuple[Workload, Workload]:
        """Return the work of regenerating other models' summaries: of exchanges, of conversations."""
        exchanges, conversations = self._work.count_by_other_models(
            self._settings.number("min_messages_for_exchange_summary"),
            self._settings.number("min_exchanges_for_conversation_summary"),
        )
        return self._of_exchanges(exchanges), self._of_conversations(conversations)

    def facts(self) -> Workload:
        """Return the work of the knowledge extractor, which reads many exchanges per request."""
        if not self._settings.flag("knowledge_extractor_enabled"):
            return _NOTHING
        tally = ExtractionWork(self._store).tally()
        return self._of_facts(tally.total - tally.done)

    def facts_again(self) -> Workload:
        """Return the work of extracting other models' facts again."""
        return self._of_facts(ExtractionWork(self._store).exchanges_read_by_other_models())

    def _of_facts(self, count: int) -> Workload:
        messages = max(1.0, self._mean(_MESSAGES_MEAN))
        together = max(1.0, MOST_MESSAGES // messages)  # an exchange's messages stay together
        requests = math.ceil(count / together * max(1.0, messages / MOST_MESSAGES))
        read = count * self._mean(_EXCHANGE_MEAN, _EXCHANGE_READS_TOKENS)
        read += requests * _FACTS_PROMPT_TOKENS
        return Workload(count, requests, round(read), count * _FACTS_ANSWER_TOKENS)

    def tool_calls(self) -> Workload:
        """Return the work of the tool-call summarizer."""
        if not self._settings.flag("tool_summarizer_enabled"):
            return _NOTHING
        tally = ToolCallWork(self._store).tally()
        count = tally.total - tally.done
        requests = math.ceil(count / _CALLS_OF_A_REQUEST)
        return Workload(0, requests, count * _CALL_READS_TOKENS, count * _CALL_ANSWER_TOKENS)

    def _mean(self, query: str, *limits: int) -> float:
        row = self._store.read(lambda cursor: cursor.execute(query, [*limits]).fetchone())
        return float(row[0]) if row and row[0] is not None else 0.0


_EXCHANGE_MEAN = "SELECT avg(least(tokens, $1)) FROM passage WHERE kind = 'turn'"
_MESSAGES_MEAN = (
    "SELECT avg(said) FROM (SELECT count(*) AS said FROM exchange_message l JOIN message m "
    "ON m.id = l.message_id WHERE m.role IN ('user', 'assistant') AND m.text <> '' "
    "GROUP BY l.exchange_id)"
)
_CONVERSATION_MEAN = (
    "SELECT avg(least(tokens, $2)) FROM (SELECT sum(least(tokens, $1)) AS tokens FROM passage "
    "WHERE kind = 'turn' GROUP BY conversation_id)"
)
