"""Recall of what a question asks for by name: the conversations of days, and all that is known about the user.

Recall of documents is here too; they rank apart: a folder may have more passages than all chats.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from app.domain.ids import passage_id_of
from app.domain.passages import PassageKind
from app.domain.recall import RetrievedDocument
from app.index.id_set import IdSet
from app.index.named_questions import asks_about_user, days_asked_about
from app.index.ranking import Ranked
from app.language.date_phrases import Days
from app.memory.recall.days import DayRecall
from app.memory.recall.facts import FactRecall
from app.memory.recall.ranking import PreparedQuery, best_by_passage, ranked_in
from app.memory.recall.retrieved import Retrieval, match_score, quotable, refused
from app.memory.search.scope import Boundary, SearchScope
from app.memory.search.service import SearchService
from app.storage.engine.store import Store
from app.storage.tables.passages.queries import Passages
from app.storage.tables.passages.recall_reads import RecallReads
from app.storage.tables.prompts import Feedback


class NamedRecall:
    """Finds it without ranking. Thread-safe; calls block."""

    def __init__(self, store: Store, facts: FactRecall) -> None:
        self._days = DayRecall(store)
        self._facts = facts
        self._feedback = Feedback(store)

    def is_asked(self, question: str, recent: Sequence[str]) -> bool:
        """Return whether a question asks for anything by name, after the `recent` messages. Does not block."""
        return asks_about_user(question) or _days_of(question, recent) is not None

    def retrieve(
        self, question: str, retrieval: Retrieval, scope: SearchScope, boundary: Boundary
    ) -> None:
        """Add what is asked for to a retrieval: turns from `scope`, and facts that replaced what these state."""
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
        corrections = self._facts.retrieve(None, retrieval, boundary)
        retrieval.found = replace(retrieval.found, facts=corrections)

    def ranked(
        self,
        question: str,
        recent: Sequence[str],
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


def _days_of(question: str, recent: Sequence[str]) -> Days | None:
    before = recent[-1] if recent else ""
    return days_asked_about(question, datetime.now(UTC).astimezone().date(), before)


_MOST = 6  # passages: more than their budget takes
_CONSIDERED = 2 * _MOST
_KIND = PassageKind.DOCUMENT


class DocumentRecall:
    """Retrieves passages of documents. Thread-safe; every call blocks."""

    def __init__(self, store: Store, search: SearchService) -> None:
        self._search = search
        self._passages = Passages(store)
        self._reads = RecallReads(store)

    def ranked(
        self, prepared: PreparedQuery, excluded: IdSet, boundary: Boundary
    ) -> Sequence[Ranked]:
        """Return the parts of passages inside a boundary that are not excluded, best first."""
        kept = self._search.pools().sides[_KIND].without(excluded)
        scope = SearchScope(kept, IdSet(), kind=_KIND).inside(boundary)
        return ranked_in(self._search, prepared, scope) if len(scope.allowed or ()) else ()

    def retrieve(
        self, prepared: PreparedQuery, retrieval: Retrieval, boundary: Boundary
    ) -> tuple[RetrievedDocument, ...]:
        """Return the passages inside a boundary, best first, of copies only one."""
        if not retrieval.settings.rag_document_max_tokens:
            return ()
        ranked = self.ranked(prepared, refused(retrieval.verdicts), boundary)
        ranked = best_by_passage(retrieval.unquoted(ranked), _CONSIDERED)
        heads = self._reads.heads(passage_id_of(each.part_id) for each in ranked)
        unique: dict[str, Ranked] = {}
        for each in retrieval.with_feedback(ranked, heads):
            if (head := heads.get(passage_id_of(each.part_id))) is not None:
                unique.setdefault(head.content_hash, each)
        best = list(unique.values())[:_MOST]
        shown = self._passages.shown(passage_id_of(each.part_id) for each in best)
        found = []
        for each in best:
            if (whole := shown.get(passage_id_of(each.part_id))) is None:
                continue
            place, text = whole
            said = "\n".join(part.text for part in text.parts)
            (units,) = quotable(prepared, [said], each.relevance)
            score = match_score(each, place, retrieval.verdicts)
            found.append(
                RetrievedDocument(score, place.conversation_title, place.created_at, units)
            )
        return tuple(found)
