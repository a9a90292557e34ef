"""What the summaries that are missing would take from a language model, roughly."""

from app.storage.settings import Settings
from app.storage.store import Store
from app.storage.summary_work import SummaryWork
from app.workers.background_choice import Load

# A message is read up to 12,000 characters for an exchange, 3,000 for a conversation of 60 turns.
_EXCHANGE_READS_TOKENS = 3_000
_TURN_READS_TOKENS, _CONVERSATION_READS_TOKENS = 1_500, 90_000
_EXCHANGE_PROMPT_TOKENS, _CONVERSATION_PROMPT_TOKENS = 350, 500
_EXCHANGE_ANSWER_TOKENS, _CONVERSATION_ANSWER_TOKENS = 90, 180


class SummaryLoad:
    """Counts what waits for the summarisers that are on. Blocking."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._work = SummaryWork(store)

    def exchanges(self) -> Load:
        """Return what waits for the exchange summariser."""
        if not self._settings.flag("summarizer_exchange_enabled"):
            return Load(0, 0, 0, 0)
        tally = self._work.exchange_tally(
            self._settings.number("min_messages_for_exchange_summary")
        )
        count = tally.total - tally.done
        read = count * (
            _EXCHANGE_PROMPT_TOKENS + self._mean(_EXCHANGE_MEAN, _EXCHANGE_READS_TOKENS)
        )
        return Load(count, count, round(read), count * _EXCHANGE_ANSWER_TOKENS)

    def conversations(self) -> Load:
        """Return what waits for the conversation summariser."""
        if not self._settings.flag("summarizer_conversation_enabled"):
            return Load(0, 0, 0, 0)
        tally = self._work.conversation_tally(
            self._settings.number("min_exchanges_for_conversation_summary")
        )
        count = tally.total - tally.done
        mean = self._mean(_CONVERSATION_MEAN, _TURN_READS_TOKENS, _CONVERSATION_READS_TOKENS)
        read = count * (_CONVERSATION_PROMPT_TOKENS + mean)
        return Load(0, count, round(read), count * _CONVERSATION_ANSWER_TOKENS)

    def _mean(self, query: str, *limits: int) -> float:
        row = self._store.read(lambda cursor: cursor.execute(query, [*limits]).fetchone())
        return float(row[0]) if row and row[0] is not None else 0.0


_EXCHANGE_MEAN = "SELECT avg(least(tokens, $1)) FROM passage WHERE kind = 'turn'"
_CONVERSATION_MEAN = (
    "SELECT avg(least(tokens, $2)) FROM (SELECT sum(least(tokens, $1)) AS tokens FROM passage "
    "WHERE kind = 'turn' GROUP BY conversation_id)"
)
