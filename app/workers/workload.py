"""Estimates of the background work that waits for a language model."""

import math
from collections.abc import Callable

from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.storage.work.extraction_work import ExtractionWork
from app.storage.work.part_work import PartWork, WantedResults
from app.storage.work.summary_work import SummaryWork
from app.storage.work.tool_call_work import ToolCallWork
from app.workers.model_choice import Workload

_MOST_TURNS_OF_A_PART = 25
_TURN_READS_TOKENS = 6_000
_PART_PROMPT_TOKENS, _PART_ANSWER_TOKENS, _TURN_ANSWER_TOKENS = 1_400, 180, 130
_CALLS_OF_A_REQUEST, _CALL_READS_TOKENS, _CALL_ANSWER_TOKENS = 10, 400, 40
_NOTHING = Workload(0, 0, 0, 0)


class Workloads:
    """Estimates the work of the workers that are on and may use a model. Blocking."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._work = SummaryWork(store)

    def all(self) -> tuple[Callable[[], Workload], ...]:
        """Return the estimates, one for each kind of request."""
        return self.parts, self.tool_calls

    def parts(self) -> Workload:
        """Return the work of the summarizers and the extractor, which read conversations together."""

        def least(flag: str, key: str) -> int | None:
            return self._settings.number(key) if self._settings.flag(flag) else None

        wanted = WantedResults(
            least("summarizer_exchange_enabled", "min_messages_for_exchange_summary"),
            least("summarizer_conversation_enabled", "min_exchanges_for_conversation_summary"),
            self._settings.flag("knowledge_extractor_enabled"),
        )
        return self._of_parts(*PartWork(self._store).amount(wanted))

    def summaries_again(self) -> tuple[int, int, Workload]:
        """Return how many summaries of exchanges and of conversations others than the model made.

        With them, the work of regenerating them.
        """
        exchanges, conversations = self._work.count_by_other_models(
            self._settings.number("min_messages_for_exchange_summary"),
            self._settings.number("min_exchanges_for_conversation_summary"),
        )
        return exchanges, conversations, self._of_parts(conversations, exchanges)

    def facts_again(self) -> Workload:
        """Return the work of extracting other models' facts again."""
        turns = ExtractionWork(self._store).exchanges_read_by_other_models()
        return self._of_parts(math.ceil(turns / max(1.0, self._mean(_TURNS_MEAN))), turns)

    def _of_parts(self, conversations: int, turns: int) -> Workload:
        requests = max(conversations, math.ceil(turns / _MOST_TURNS_OF_A_PART))
        read = turns * self._mean(_TURN_MEAN, _TURN_READS_TOKENS) + requests * _PART_PROMPT_TOKENS
        made = turns * _TURN_ANSWER_TOKENS + requests * _PART_ANSWER_TOKENS
        return Workload(turns, requests, round(read), made)

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


_TURN_MEAN = "SELECT avg(least(tokens, $1)) FROM passage WHERE kind = 'turn'"
_TURNS_MEAN = (
    "SELECT avg(turns) FROM (SELECT count(*) AS turns FROM exchange WHERE status = 'completed' "
    "GROUP BY conversation_id)"
)
