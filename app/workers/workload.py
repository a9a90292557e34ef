"""Estimates of the background work that waits for a language model."""

import math
from collections.abc import Callable

from app.memory.profile import ENABLED
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.storage.work.part_work import PartWork, WantedResults
from app.storage.work.summary_work import SummaryWork
from app.storage.work.tool_call_work import ToolCallWork
from app.workers.model_choice import Workload

_MOST_TURNS_OF_A_PART = 25
_TURN_READS_TOKENS = 6_000
_SUMMARY_TOKENS, _OFFERED_FACTS_TOKENS = 225, 800  # what came before; 20 known facts
_PART_PROMPT_TOKENS, _PART_ANSWER_TOKENS, _TURN_ANSWER_TOKENS = 1_400, 180, 130
_CALLS_OF_A_REQUEST, _CALL_READS_TOKENS, _CALL_ANSWER_TOKENS = 10, 400, 40
_FACT_TOKENS, _PROFILE_PROMPT_TOKENS, _PROFILE_READS_TOKENS = 20, 900, 8_000
_NOTHING = Workload(0, 0, 0, 0)


class Workloads:
    """Estimates the work of the workers that are on and may use a model. Blocking."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._work = SummaryWork(store)
        self._parts = PartWork(store)

    def all(self) -> tuple[Callable[[], Workload], ...]:
        """Return the estimates, one for each kind of request."""
        return self.parts, self.tool_calls, self.profile

    def parts(self) -> Workload:
        """Return the work of the summarizers and the extractor, which read conversations together."""
        lines, summaries = self._least_sizes()
        flag = self._settings.flag
        wanted = WantedResults(
            lines if flag("summarizer_exchange_enabled") else None,
            summaries if flag("summarizer_conversation_enabled") else None,
            flag("knowledge_extractor_enabled"),
        )
        return self._of_parts(wanted)

    def summaries_again(self) -> tuple[int, int, Workload]:
        """Return how many summaries of exchanges and of conversations others than the model made.

        With them, the work of regenerating them.
        """
        least = self._least_sizes()
        load = self._of_parts(WantedResults(*least, facts=False), again=True)
        return *self._work.count_by_other_models(*least), load

    def facts_again(self) -> Workload:
        """Return the work of extracting other models' facts again."""
        return self._of_parts(WantedResults(None, None, facts=True), again=True)

    def _least_sizes(self) -> tuple[int, int]:
        number = self._settings.number
        return (
            number("min_messages_for_exchange_summary"),
            number("min_exchanges_for_conversation_summary"),
        )

    def _of_parts(self, wanted: WantedResults, *, again: bool = False) -> Workload:
        sizes = self._parts.unread(wanted, again=again).values()
        turns = sum(sizes)
        requests = sum(math.ceil(size / _MOST_TURNS_OF_A_PART) for size in sizes)
        around = _PART_PROMPT_TOKENS + _SUMMARY_TOKENS + wanted.facts * _OFFERED_FACTS_TOKENS
        read = turns * self._mean(_TURN_READS_TOKENS) + requests * around
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

    def profile(self) -> Workload:
        """Return the work of the profile writer: a request with the facts there are and those to come.

        None while nothing waits to be read.
        """
        flag = self._settings.flag
        if not (flag(ENABLED) and flag("knowledge_extractor_enabled")):
            return _NOTHING
        if not (new_tokens := self.parts().turns * _FACT_TOKENS):
            return _NOTHING
        row = self._store.row("SELECT sum(tokens) FROM passage WHERE kind = 'fact'")
        known_tokens = int(row[0] or 0) if row else 0
        read = _PROFILE_PROMPT_TOKENS + min(_PROFILE_READS_TOKENS, known_tokens + new_tokens)
        return Workload(0, 1, read, 2 * self._settings.number("profile_max_tokens"))

    def _mean(self, limit: int) -> float:
        """Return the mean tokens of a turn, each up to `limit`."""
        row = self._store.row(
            "SELECT avg(least(tokens, $1)) FROM passage WHERE kind = 'turn'", [limit]
        )
        return float(row[0]) if row and row[0] is not None else 0.0
