"""Recall of facts and saved texts: short statements that rank apart and share one limit."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count, islice

import numpy as np

from app.domain.ids import ExchangeId, PassageId, part_id, passage_id_of
from app.domain.passages import PassageKind
from app.domain.recall import RetrievedFact
from app.domain.records.facts import BY_PATTERNS
from app.domain.results import FoundAnswer
from app.index.id_set import IdSet
from app.index.ranking import Ranked
from app.index.relevance import HIGHEST_RELEVANCE
from app.memory.recall.ranking import PreparedQuery, best_by_passage, ranked_in, shifted
from app.memory.recall.retrieved import Retrieval, first_facts, match_score, refused
from app.memory.search.query_vectors import QueryVector
from app.memory.search.scope import Boundary, SearchScope
from app.memory.search.service import SearchService
from app.storage.engine.store import Store
from app.storage.tables.facts import FactFilter, Facts, KnownFact
from app.storage.tables.memories import ArchivalMemories
from app.storage.tables.passages.recall_reads import RecallReads

STATEMENT_LOG_ODDS = -1.0  # log odds: a short text matches the words of a question too easily
_PATTERN_LOG_ODDS = -3.0  # of a user's sentence, which is judged with its message too
_LISTED = 60  # statements that a question for all of them gets
_CONSIDERED = 20  # facts beyond the limit: votes and age may move them up
_STANDS_OUT = 2.6  # deviations of the statements, beyond which a cosine adds to the relevance
_SLOPE = 3.0  # log odds for a deviation
_MOST_OF_HINT = 0.5  # relevance of what is worth a hint, not a quotation
_KINDS = (PassageKind.FACT, PassageKind.MEMORY)
Newer = Mapping[
    PassageId, Mapping[ExchangeId, float]
]  # by fact: the turns it is newer than, with their relevance


class FactRecall:
    """Retrieves facts and saved texts. Thread-safe; every call blocks."""

    def __init__(self, store: Store, search: SearchService) -> None:
        self._search = search
        self._facts = Facts(store)
        self._memories = ArchivalMemories(store)
        self._reads = RecallReads(store)

    def retrieve(
        self, prepared: PreparedQuery | None, retrieval: Retrieval, boundary: Boundary
    ) -> tuple[RetrievedFact, ...]:
        """Return facts and saved texts inside a boundary, best first.

        First come those that replaced what the turns found state; without a query only these. A fact
        that has ended has no passage, but it may end at this moment.
        """
        limit = retrieval.settings.rag_fact_limit
        if not limit:
            return ()
        turns = {each.exchange_id: each.match.relevance for each in retrieval.found.turns}
        left_out = refused(retrieval.verdicts)
        newer = self.newer_than(turns, left_out, boundary)
        others = () if prepared is None else self.ranked(prepared, left_out, limit, boundary)
        ranked = retrieval.unquoted(_newer_first(newer, others))
        found = [
            replace(each, replaces=frozenset(newer.get(each.match.passage_id, ())))
            for each in self._retrieved(ranked, retrieval)
        ]
        return first_facts(found, limit)

    def all_facts(self, retrieval: Retrieval, boundary: Boundary) -> tuple[RetrievedFact, ...]:
        """Return facts and saved texts inside a boundary, whatever they are about; see `listed`."""
        if not retrieval.settings.rag_fact_limit:
            return ()
        ranked = self.listed(refused(retrieval.verdicts), boundary)
        return self._retrieved(retrieval.unquoted(ranked), retrieval)

    def listed(self, left_out: IdSet, boundary: Boundary) -> list[Ranked]:
        """Return the saved texts and current facts inside a boundary: pinned facts, then the newest.

        At most _LISTED.
        """
        sides = self._search.pools().sides
        shown = (sides[PassageKind.FACT] | sides[PassageKind.MEMORY]).without(left_out)
        every = chain((each.id for each in self._memories.listed()), self._current_facts())
        inside = (each for each in every if each in shown and boundary.holds(each))
        return [Ranked(part_id(each, 0), 0.0, 1.0, None, 1.0) for each in islice(inside, _LISTED)]

    def _current_facts(self) -> Iterator[PassageId]:
        """Yield the current facts, pinned ones first, then the newest; read in pages."""
        for offset in count(0, _LISTED):
            page = self._facts.listed(FactFilter(limit=_LISTED, offset=offset))
            yield from (each.fact.id for each in page)
            if len(page) < _LISTED:
                return

    def _retrieved(
        self, ranked: Sequence[Ranked], retrieval: Retrieval
    ) -> tuple[RetrievedFact, ...]:
        heads = self._reads.heads(passage_id_of(each.part_id) for each in ranked)
        known = self.known(ranked)
        has_saved = any(head.kind is PassageKind.MEMORY for head in heads.values())
        saved = {each.id: each for each in self._memories.listed()} if has_saved else {}
        best = retrieval.with_feedback(ranked, heads, known)
        found = []
        for each in best:
            passage = passage_id_of(each.part_id)
            if passage not in heads:
                continue
            fact = known[passage].fact if passage in known else None
            if fact is not None and fact.valid_until is None:
                text, said_at = fact.text, fact.said_at
                source = (fact.conversation_id, fact.exchange_id, fact.message_id)
            elif (memory := saved.get(passage)) is not None:
                text, said_at = memory.text, memory.saved_at
                source = (memory.conversation_id, memory.exchange_id, None)
            else:
                continue
            match = match_score(each, heads[passage], retrieval.verdicts)
            found.append(RetrievedFact(match, text, said_at, *source))
        return tuple(found)

    def ranked(
        self, prepared: PreparedQuery, left_out: IdSet, limit: int, boundary: Boundary
    ) -> list[Ranked]:
        """Return facts and saved texts, each kind best first, with more than `limit` of each."""
        sides = self._search.pools().sides
        ranked: list[Ranked] = []
        for kind in _KINDS:
            scope = SearchScope(sides[kind].without(left_out), IdSet(), kind=kind).inside(boundary)
            if len(scope.allowed or ()):
                found_here = ranked_in(self._search, prepared, scope, _PATTERN_LOG_ODDS)
                found_here = _with_meaning(self._by_origin(found_here), prepared.vector)
                ranked += best_by_passage(found_here, limit + _CONSIDERED)
        return ranked

    def newer_than(
        self, turns: Mapping[ExchangeId, float], left_out: IdSet, boundary: Boundary
    ) -> Newer:
        """Return the facts inside a boundary that replaced what turns of these relevances (0-1) state."""
        newer: dict[PassageId, dict[ExchangeId, float]] = {}
        shown = self._search.pools().sides[PassageKind.FACT].without(left_out)
        for fact, turn in self._facts.newer_than(turns) if turns else ():
            if fact in shown and boundary.holds(fact):
                newer.setdefault(fact, {})[turn] = turns[turn]
        return newer

    def with_newer(
        self,
        answers: Sequence[FoundAnswer],
        left_out: IdSet,
        boundary: Boundary,
        listed: Callable[[Sequence[Ranked]], Sequence[FoundAnswer]],
    ) -> Sequence[FoundAnswer]:
        """Return turns with the facts that replaced what they state; `listed` returns these as answers."""
        turns = {
            each.result.exchange_id: each.result.relevance
            for each in answers
            if each.result.kind is PassageKind.TURN and each.result.exchange_id is not None
        }
        newer = self.newer_than(turns, left_out, boundary)
        facts = listed(
            [Ranked(part_id(f, 0), 0.0, max(of.values()), None, 0.0) for f, of in newer.items()]
        )
        return [
            replace(
                each,
                newer=tuple(
                    fact
                    for fact in facts
                    if each.result.exchange_id in newer[fact.result.passage_id]
                ),
            )
            for each in answers
        ]

    def _by_origin(self, ranked: Sequence[Ranked]) -> list[Ranked]:
        """Return statements with more relevance than ones by patterns have, which are hints at most.

        A model or the user words a statement so that it answers by itself. What patterns find is a
        sentence of a message, which is quoted itself where it answers.
        """
        by_patterns = self._facts.of_model(BY_PATTERNS, (passage_id_of(p.part_id) for p in ranked))
        more = STATEMENT_LOG_ODDS - _PATTERN_LOG_ODDS
        return [
            each.with_relevance(min(each.relevance, _MOST_OF_HINT))
            if passage_id_of(each.part_id) in by_patterns
            else each.with_relevance(min(HIGHEST_RELEVANCE, shifted(each.relevance, more)))
            for each in ranked
        ]

    def known(self, ranked: Iterable[Ranked]) -> Mapping[PassageId, KnownFact]:
        return self._facts.by_ids(passage_id_of(each.part_id) for each in ranked)


def _newer_first(newer: Newer, ranked: Sequence[Ranked]) -> list[Ranked]:
    """Return the `newer` facts before others.

    A fact that replaced what a turn states is as relevant as this turn: it may share no word with it.
    """
    known = {passage_id_of(each.part_id): each for each in ranked}
    first = []
    for fact, turns in newer.items():
        own = known.pop(fact, Ranked(part_id(fact, 0), 0.0, 0.0, None, 0.0))
        first.append(own.with_relevance(max(own.relevance, *turns.values())))
    return [*first, *known.values()]


def _with_meaning(ranked: Sequence[Ranked], vector: QueryVector | None) -> list[Ranked]:
    """Return short statements best first, those whose meaning stands out at least as hints.

    Relevance is fitted to messages, whose sentences beside the one that answers draw their vectors
    away from the question; a fact is nothing but that sentence. It stands out from the other
    statements: of many about one person all are near. Meaning alone never quotes one.
    """
    cosines = np.array([each.cosine for each in ranked if each.cosine is not None])
    if vector is None or not len(cosines):
        return list(ranked)
    mean, deviation = vector.background.with_sample(cosines)
    raised = []
    for each in ranked:
        out = 0.0 if each.cosine is None else (each.cosine - mean) / deviation - _STANDS_OUT
        by_meaning = min(_MOST_OF_HINT, shifted(each.relevance, _SLOPE * max(0.0, out)))
        raised.append(each.with_relevance(max(each.relevance, by_meaning)))
    return sorted(raised, key=lambda each: -each.relevance)
