"""What the background work that waits would take from a language model, roughly."""

import math
from collections.abc import Callable

from app.storage.extraction_work import ExtractionWork
from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.summary_work import SummaryWork
from app.storage.tool_call_work import ToolCallWork
from app.workers.background_choice import Load
from app.workers.fact_engines import MOST_MESSAGES

# A message is read up to 12,000 characters for an exchange, 3,000 for a conversation of 60 turns.
_EXCHANGE_READS_TOKENS = 3_000
_TURN_READS_TOKENS, _CONVERSATION_READS_TOKENS = 1_500, 90_000
_EXCHANGE_PROMPT_TOKENS, _CONVERSATION_PROMPT_TOKENS = 350, 500
_EXCHANGE_ANSWER_TOKENS, _CONVERSATION_ANSWER_TOKENS = 90, 180
_FACTS_PROMPT_TOKENS, _FACTS_ANSWER_TOKENS = 900, 60  # of a request, of an exchange
_CALLS_OF_A_REQUEST, _CALL_READS_TOKENS, _CALL_ANSWER_TOKENS = 10, 400, 40
_NOTHING = Load(0, 0, 0, 0)


class BackgroundLoad:
    """Counts what waits for the workers that are on and may ask a model. Blocking."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._work = SummaryWork(store)

    def all(self) -> tuple[Callable[[], Load], ...]:
        """Return what counts, one for each worker."""
        return self.exchanges, self.conversations, self.facts, self.tool_calls

    def exchanges(self) -> Load:
        """Return what waits for the exchange summariser."""
        if not self._settings.flag("summarizer_exchange_enabled"):
            return _NOTHING
        tally = self._work.exchange_tally(
            self._settings.number("min_messages_for_exchange_summary")
        )
        return self._of_exchanges(tally.total - tally.done)

    def _of_exchanges(self, count: int) -> Load:
        read = count * (
            _EXCHANGE_PROMPT_TOKENS + self._mean(_EXCHANGE_MEAN, _EXCHANGE_READS_TOKENS)
        )
        return Load(count, count, round(read), count * _EXCHANGE_ANSWER_TOKENS)

    def conversations(self) -> Load:
        """Return what waits for the conversation summariser."""
        if not self._settings.flag("summarizer_conversation_enabled"):
            return _NOTHING
        tally = self._work.conversation_tally(
            self._settings.number("min_exchanges_for_conversation_summary")
        )
        return self._of_conversations(tally.total - tally.done)

    def _of_conversations(self, count: int) -> Load:
        mean = self._mean(_CONVERSATION_MEAN, _TURN_READS_TOKENS, _CONVERSATION_READS_TOKENS)
        read = count * (_CONVERSATION_PROMPT_TOKENS + mean)
        return Load(0, count, round(read), count * _CONVERSATION_ANSWER_TOKENS)

    def summaries_again(self) -> tuple[Load, Load]:
        """Return what making the summaries of others again takes, of exchanges, of conversations."""
        exchanges, conversations = self._work.made_by_others(
            self._settings.number("min_messages_for_exchange_summary"),
            self._settings.number("min_exchanges_for_conversation_summary"),
        )
        return self._of_exchanges(exchanges), self._of_conversations(conversations)

    def facts(self) -> Load:
        """Return what waits for the knowledge extractor, which reads many exchanges at once."""
        if not self._settings.flag("knowledge_extractor_enabled"):
            return _NOTHING
        tally = ExtractionWork(self._store).tally()
        return self._of_facts(tally.total - tally.done)

    def facts_again(self) -> Load:
        """Return what learning the facts of others again takes."""
        return self._of_facts(ExtractionWork(self._store).read_by_others())

    def _of_facts(self, count: int) -> Load:
        messages = max(1.0, self._mean(_MESSAGES_MEAN))
        together = max(1.0, MOST_MESSAGES // messages)  # an exchange's messages stay together
        requests = math.ceil(count / together * max(1.0, messages / MOST_MESSAGES))
        read = count * self._mean(_EXCHANGE_MEAN, _EXCHANGE_READS_TOKENS)
        read += requests * _FACTS_PROMPT_TOKENS
        return Load(count, requests, round(read), count * _FACTS_ANSWER_TOKENS)

    def tool_calls(self) -> Load:
        """Return what waits for the tool-call summariser."""
        if not self._settings.flag("tool_summarizer_enabled"):
            return _NOTHING
        tally = ToolCallWork(self._store).tally()
        count = tally.total - tally.done
        requests = math.ceil(count / _CALLS_OF_A_REQUEST)
        return Load(0, requests, count * _CALL_READS_TOKENS, count * _CALL_ANSWER_TOKENS)

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
