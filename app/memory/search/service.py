"""Search service: from a query to results, by words and by meaning."""

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

from app.domain.errors import IndexUnavailable
from app.domain.ids import ConversationId, PartId, part_id, passage_id_of
from app.domain.passages import PassageKind, SearchQuery
from app.domain.results import SearchResponse, SearchResult
from app.index.id_set import IdSet
from app.index.named_questions import days_searched_for
from app.index.query import parse_query, sentence_query, single_filters, within_days
from app.index.question import parse_question
from app.index.ranking import Nearness, Ranked, context_parts
from app.index.relevance import HIGHEST_RELEVANCE, RankingInput, ranked_with_relevance
from app.index.text_index import TantivyTextIndex
from app.index.text_sync import TextIndexSync
from app.memory.search.query_vectors import QueryVector
from app.memory.search.results import (
    SIDE_KINDS,
    ResultBuilder,
    fused_with_cosine,
    merge_side_results,
    side_limit,
)
from app.memory.search.scope import (
    Boundaries,
    Boundary,
    CachedReads,
    PassagePools,
    SearchScope,
    read_pools,
)
from app.memory.search.vector_search import VectorSearch
from app.storage.engine.store import Store
from app.storage.tables.passages.queries import Passages
from app.storage.tables.settings import Settings

_SIDE_CANDIDATES = 60  # of a kind of which a few are shown
_NO_ANSWER = 0.25  # the highest relevance of a non-answer
_BEHIND_BEST = 0.5  # and its highest share of the best result's, if that has words of the query
_ALL = 1_000_000
_PREFERENCE = 1.0  # log odds of what a project prefers


@dataclass(frozen=True, slots=True)
class SearchInspection:
    """The ranking of a search with its input, for explanations.

    `ranking_input` may contain more parts than are ranked; None when nothing ranks and filters list
    passages by date. `problem` says why vectors were not used, if they should have been.
    """

    query: SearchQuery
    ranked: tuple[Ranked, ...]
    ranking_input: RankingInput | None
    problem: str = ""


class SearchService:
    """Runs searches. Thread-safe; every call blocks.

    Attributes:
        index: The text index, kept up to date by `sync`.
        boundaries: The recall boundaries of projects.
        vector_search: Search by meaning; None where only words are searched.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        index: TantivyTextIndex,
        sync: TextIndexSync,
        vector_search: VectorSearch | None = None,
    ) -> None:
        self._passages = Passages(store)
        self._results = ResultBuilder(self._passages, settings)
        self.boundaries = Boundaries(store)
        self.index = index
        self.sync = sync
        self.vector_search = vector_search
        self._pools: CachedReads[None, PassagePools] = CachedReads(
            store,
            lambda _: read_pools(self._passages),
            lambda changed: bool(changed.conversations or changed.passages),
        )

    def search(
        self,
        text: str,
        limit: int = 20,
        kinds: Collection[PassageKind] | None = None,
        *,
        by_meaning: bool = True,
        among: Collection[int] | None = None,
        boundary: Boundary | None = None,
    ) -> SearchResponse:
        """Return the results of a query in the search language, best first.

        Without `by_meaning` only words rank, which needs no embedding; `among` are the passages
        that may be found, None for all; nothing outside the `boundary` is searched, None for the
        user's own search of everything. Summaries of exchanges are found only when `kinds` contains
        them: their turns rank better. Facts, memories, tool summaries, manual pages and documents
        rank apart, each kind by itself, and take at most a quarter of the places from turns, unless
        `kinds` contains them. So do non-answers, by words only, after all possible answers. Raises
        InvalidInput for an invalid query or limit, IndexUnavailable.
        """
        started = time.perf_counter()
        query = _within_named_days(parse_query(text, limit))
        vector: QueryVector | None = None
        if query.is_list:
            listed = self._listed(query, kinds, among, boundary)
            (results,) = self._results.of_each(query, [(listed, limit)])
        else:
            vector = self.query_vector(query) if by_meaning else None
            results = self._found(query, vector, kinds, among, boundary)
        results = self._inside(results, boundary)
        took_ms = (time.perf_counter() - started) * 1000
        problem = self.vector_search.problem if self.vector_search and by_meaning else ""
        return SearchResponse(
            text, tuple(results), took_ms, self.sync.covered_share, vector is not None, problem,
            query.is_list, () if results else tuple(self._unmatched(text)),
        )  # fmt: skip

    def by_sentence(
        self,
        sentence: str,
        limit: int,
        kinds: Collection[PassageKind],
        boundary: Boundary | None,
        topics: tuple[str, ...] = (),
    ) -> tuple[SearchResult, ...]:
        """Return the passages of some kinds that a sentence finds inside a boundary, best first.

        `topics` are names that its conversations must belong to. It is read as plain words; archived
        conversations are left out. Raises as `search`.
        """
        query = replace(sentence_query(sentence, limit), topics=topics, is_message=True)
        if (dated := _within_named_days(query)).is_list:
            listed = self._listed(dated, kinds, boundary=boundary)
            (results,) = self._results.of_each(dated, [(listed, limit)])
            return tuple(self._inside(results, boundary))
        found = self._found(query, self.query_vector(query), kinds, None, boundary)
        return tuple(self._inside(found, boundary))

    def parts_ranked(
        self,
        text: str,
        conversation_ids: Collection[ConversationId] = (),
        *,
        by_meaning: bool = True,
        is_message: bool = False,
    ) -> list[PartId]:
        """Return the parts that a question finds in some conversations (none: in all), best first.

        For measuring the ranking and for marks in a conversation: nothing is grouped. Raises as `search`.
        """
        query = replace(sentence_query(text), is_message=is_message)
        own = IdSet(self._passages.of_conversations(conversation_ids))
        vector = self.query_vector(query) if by_meaning else None
        scope = SearchScope(own if conversation_ids else None, self.pools().excluded)
        ranked = ranked_with_relevance(self.ranking_input(query, vector, scope))
        return [each.part_id for each in ranked]

    def inspect(self, text: str, parts: Collection[PartId] = ()) -> SearchInspection:
        """Return the ranking for `text` with its input. Raises as `search`.

        If none of `parts` ranks, they are added to the candidates, so that their features are known.
        """
        query = _within_named_days(parse_query(text))
        scope = self._scope(query, None)
        if query.is_list:
            whole = replace(query, limit=_ALL)
            return SearchInspection(query, tuple(self._listed(whole, None)), None)
        vector = self.query_vector(query)
        found = self.ranking_input(query, vector, scope)
        ranked = ranked_with_relevance(found)
        if parts and not any(each.part_id in parts for each in ranked):
            found = self.ranking_input(query, vector, scope, parts)
        return SearchInspection(
            query, tuple(ranked), found, self.vector_search.problem if self.vector_search else ""
        )

    def _found(
        self,
        query: SearchQuery,
        vector: QueryVector | None,
        kinds: Collection[PassageKind] | None,
        among: Collection[int] | None,
        boundary: Boundary | None,
    ) -> list[SearchResult]:
        """Return the results, best first; without `kinds`, turns merged with side results."""
        scope = self._scope(query, kinds)
        allowed = scope.allowed
        if among is not None:
            chosen = IdSet(among)
            allowed = chosen if allowed is None else allowed & chosen
            scope = replace(scope, allowed=allowed)
        ranked = self.ranked(query, vector, scope.inside(boundary))
        if kinds is not None and set(kinds) <= set(SIDE_KINDS):
            ranked = fused_with_cosine(ranked)
        if kinds is not None and PassageKind.DOCUMENT in kinds:
            ranked = [*self._files_named(query, allowed, boundary), *ranked]
        ranked = ranked if vector is not None else with_any_word(ranked)
        sides = self._sides(query, vector, allowed, boundary) if kinds is None else []
        if kinds is None or PassageKind.TURN in kinds:
            behind = [_BEHIND_BEST * each.relevance for each in ranked[:1] if each.coverage]
            sides.append(self._unanswered(query, allowed, boundary, min([*behind, _NO_ANSWER])))
        most = side_limit(query.limit, len({passage_id_of(each.part_id) for each in ranked}))
        rankings = [(ranked, query.limit), *((side, most) for side in sides)]
        results, *beside = self._results.of_each(query, rankings)
        return merge_side_results(results, beside, query.limit)

    def _unmatched(self, text: str) -> Iterator[str]:
        """Yield the filters of a query that match nothing by themselves."""
        for name, alone in single_filters(text):
            either = (alone, replace(alone, archived=True))
            if not any(len(self._passages.allowed(each, None)) for each in either):
                yield name

    def _inside(self, results: list[SearchResult], boundary: Boundary | None) -> list[SearchResult]:
        """Return the results still inside the boundary: a conversation may have been moved."""
        if boundary is None:
            return results
        kept = self.boundaries.still_within(
            boundary.uid, (each.conversation_id for each in results)
        )
        return [each for each in results if each.conversation_id in kept]

    def _sides(
        self,
        query: SearchQuery,
        vector: QueryVector | None,
        allowed: IdSet | None,
        boundary: Boundary | None,
    ) -> list[list[Ranked]]:
        ranked = []
        for kind, side in self.pools().sides.items():
            kept = side if allowed is None else side & allowed
            scope = SearchScope(kept, IdSet(), _SIDE_CANDIDATES, kind).inside(boundary)
            found = fused_with_cosine(self.ranked(query, vector, scope))
            if kind is PassageKind.DOCUMENT:
                found = [*self._files_named(query, allowed, boundary), *found]
            if found:
                ranked.append(found)
        return ranked

    def _files_named(
        self, query: SearchQuery, allowed: IdSet | None, boundary: Boundary | None
    ) -> list[Ranked]:
        """Return the beginning of each document whose file name is the query."""
        named = self._passages.of_file(query.words)
        left_out = self.index.excluded_passages(query) if named and query.excluded else ()
        return [
            Ranked(part_id(each, 0), 0.0, HIGHEST_RELEVANCE, None, 1.0)
            for each in named
            if (allowed is None or each in allowed)
            and (each not in left_out and (boundary is None or boundary.holds(each)))
        ]

    def _unanswered(
        self, query: SearchQuery, allowed: IdSet | None, boundary: Boundary | None, most: float
    ) -> list[Ranked]:
        """Return the non-answers, with at most this relevance.

        The same question asked before contains all of its words and answers none of them.
        """
        pools = self.pools()
        asked = pools.unanswered
        kept = asked.without(pools.hidden) if allowed is None else asked & allowed
        scope = SearchScope(kept, IdSet(), _SIDE_CANDIDATES).inside(boundary)
        ranked = with_any_word(self.ranked(query, None, scope))
        return [each.with_relevance(min(each.relevance, most)) for each in ranked]

    def query_vector(self, query: SearchQuery) -> QueryVector | None:
        """Return the query's vector in the answering space, None if only words are searched."""
        if self.vector_search is None or not query.words:
            return None
        return self.vector_search.query_vector(parse_question(query.words).core)

    def ranked(
        self, query: SearchQuery, vector: QueryVector | None, scope: SearchScope, prior: float = 0.0
    ) -> list[Ranked]:
        """Return a scope's parts, best first; `prior` is added to their log odds.

        What is preferred ranks by itself. Raises IndexUnavailable.
        """
        if (own := scope.preferred) is not None:
            others = replace(scope, left_out=scope.left_out | own, preferred=None)
            kept = own.without(scope.left_out) if scope.allowed is None else scope.allowed & own
            first = replace(scope, allowed=kept, preferred=None)
            found = [
                *self.ranked(query, vector, first, prior + _PREFERENCE),
                *self.ranked(query, vector, others, prior),
            ]
            return sorted(found, key=lambda each: -each.relevance)
        if scope.allowed is not None and not len(scope.allowed):
            return []
        return ranked_with_relevance(self.ranking_input(query, vector, scope), prior)

    def ranking_input(
        self,
        query: SearchQuery,
        vector: QueryVector | None,
        scope: SearchScope,
        parts: Collection[PartId] = (),
    ) -> RankingInput:
        """Return candidates and `parts` with their features. Raises IndexUnavailable."""
        question = parse_question(query.words, is_message=query.is_message)
        asked = replace(query, words=question.core) if question.core else query
        has_facts = not question.is_keywords
        try:
            found = self.index.candidates(
                asked, scope.candidates, scope.allowed, scope.left_out, scope.kind
            )
            found = found.union(parts)
            if vector is None:
                table = self.index.candidate_table(asked, found, with_facts=has_facts)
                return RankingInput(question, table, None, None, self.size(scope))
            near = vector.index.search(
                vector.vector, scope.candidates, scope.allowed, scope.left_out
            )
            found = found.union(hit.part_id for hit in near)
            table = self.index.candidate_table(asked, found, with_facts=has_facts)
        except IndexUnavailable:
            self.sync.wake()  # it may have to rebuild the index
            raise
        tokens, context = vector.tokens, context_parts(table)
        nearness = Nearness(
            vector.index.cosines(vector.vector, context),
            tokens.matches(self.index.token_weights(asked, tokens.spans), table)
            if tokens is not None
            else None,
            vector.index.cosines(vector.preference, context),
            vector.request,
        )
        return RankingInput(question, table, nearness, vector.background, self.size(scope))

    def size(self, scope: SearchScope) -> int:
        """Return about how many passages a scope has."""
        if scope.allowed is not None:
            return len(scope.allowed.without(scope.left_out))
        return max(1, self.index.passage_count - len(scope.left_out))

    def _scope(self, query: SearchQuery, kinds: Collection[PassageKind] | None) -> SearchScope:
        plain = SearchQuery(
            words=query.words, phrases=query.phrases, excluded=query.excluded, limit=query.limit
        )
        if kinds is None and query == plain:
            return SearchScope(None, self.pools().excluded)
        allowed = IdSet(self._passages.allowed(query, kinds))
        pools = self.pools()
        return SearchScope(allowed, pools.unanswered if kinds else pools.separate)

    def _listed(
        self,
        query: SearchQuery,
        kinds: Collection[PassageKind] | None,
        among: Collection[int] | None = None,
        boundary: Boundary | None = None,
    ) -> list[Ranked]:
        """Return the newest passages that the filters leave, when nothing ranks."""
        left_out = self.index.excluded_passages(query)
        listed = (
            PassageKind.TURN,
            *([PassageKind.DOCUMENT] if query.titles or query.projects else ()),
        )
        newest = self._passages.newest(query, kinds or listed)
        kept = (
            each
            for each in newest
            if each not in left_out
            and (among is None or each in among)
            and (boundary is None or boundary.holds(each))
        )
        first = islice(kept, query.limit)
        return [Ranked(part_id(each, 0), 0.0, 1.0, None, 1.0) for each in first]

    def pools(self) -> PassagePools:
        """Return the passages that rank apart or not at all; cached until something changes."""
        return self._pools.get(None)


def _within_named_days(query: SearchQuery) -> SearchQuery:
    """Return a query that names only days, as "yesterday", as one for what was said in them."""
    if not query.words or query.phrases or query.after or query.before:
        return query
    days = days_searched_for(query.words, datetime.now(UTC).astimezone().date())
    return query if days is None else within_days(query, days)


def with_any_word(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Return the parts of passages with any query word: context alone is no match."""
    holding = {passage_id_of(each.part_id) for each in ranked if each.coverage > 0}
    return [each for each in ranked if passage_id_of(each.part_id) in holding]
