"""Recall of what a question asks for by name: the conversations of days, and all that is known about the user."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from app.domain.recall import RecentTurn
from app.index.id_set import IdSet
from app.index.named_questions import asks_about_user, days_asked_about
from app.index.ranking import Ranked
from app.language.date_phrases import Days
from app.memory.boundaries import Boundary
from app.memory.day_recall import DayRecall
from app.memory.fact_recall import FactRecall
from app.memory.retrieval import Retrieval, refused
from app.memory.search_scope import SearchScope
from app.storage.engine.store import Store
from app.storage.tables.prompts import Feedback


class NamedRecall:
    """Finds it without ranking. Thread-safe; calls block."""

    def __init__(self, store: Store, facts: FactRecall) -> None:
        self._days = DayRecall(store)
        self._facts = facts
        self._feedback = Feedback(store)

    def is_asked(self, question: str, recent: Sequence[RecentTurn]) -> bool:
        """Return whether a question asks for anything by name, after the `recent` turns. Does not block."""
        return asks_about_user(question) or _days_of(question, recent) is not None

    def retrieve(
        self, question: str, retrieval: Retrieval, scope: SearchScope, boundary: Boundary
    ) -> None:
        """Add what is asked for to a retrieval, turns from `scope`."""
        days = _days_of(question, retrieval.segment.recent)
        retrieval.verdicts = self._feedback.verdicts()
        if days is None:
            facts = self._facts.all_facts(retrieval, boundary)
            retrieval.found = replace(retrieval.found, asked_facts=facts)
            return
        left_out = scope.left_out | refused(retrieval.verdicts)
        found = self._days.conversations(
            days, replace(scope, left_out=left_out), retrieval.verdicts, retrieval.segment.quoted
        )
        retrieval.found = replace(retrieval.found, mentioned=found)

    def ranked(
        self,
        question: str,
        recent: Sequence[RecentTurn],
        scope: SearchScope,
        left_out: IdSet,
        boundary: Boundary,
        limit: int,
    ) -> Sequence[Ranked]:
        """Return it as a ranking: at most `limit` turns of `scope`, or statements inside a boundary.

        `left_out` are statements that may not be used.
        """
        if (days := _days_of(question, recent)) is not None:
            return self._days.ranked(days, scope, limit)
        if asks_about_user(question):
            return self._facts.listed(left_out, boundary)
        return ()


def _days_of(question: str, recent: Sequence[RecentTurn]) -> Days | None:
    before = recent[-1].user if recent else ""
    return days_asked_about(question, datetime.now(UTC).astimezone().date(), before)
