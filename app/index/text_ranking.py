"""One commit of the text index as searches see it: what a query means to it, and what it finds."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import tantivy
from tantivy import Query

from app.domain.ids import PassageId
from app.domain.passages import SearchQuery
from app.index.analyser import query_languages, surface_of, wanted_words
from app.index.text_query import Need, QueryMaker
from app.index.text_schema import ID

_COST_BY_ID = 4  # asking for a passage by id takes as long as fetching so many and filtering
_SPARE = 32
_COVERAGE_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Ask:
    """A query against one commit.

    Phrases and exclusions are rows of surface words; `weight` is that of all words together.
    """

    needs: tuple[Need, ...]
    phrases: tuple[tuple[str, ...], ...]
    excluded: tuple[tuple[str, ...], ...]
    weight: float

    @property
    def is_list(self) -> bool:
        """Whether nothing ranks, because words are only excluded."""
        return not self.needs and not self.phrases

    def share(self, held_weight: float) -> float:
        """Return `held_weight` as a share (0-1) of all the query's words; 1 without any."""
        return min(1.0, held_weight / self.weight) if self.weight else 1.0


class Commit:
    """What searches see between two commits. Thread-safe.

    `likely_languages` are those that most passages are in, for queries too short to tell.
    """

    def __init__(
        self,
        searcher: tantivy.Searcher,
        schema: tantivy.Schema,
        likely_languages: tuple[str, ...],
    ) -> None:
        self._searcher = searcher
        self._queries = QueryMaker(searcher, schema)
        self._likely = likely_languages

    @property
    def passage_count(self) -> int:
        """How many passages there are."""
        return self._searcher.num_docs

    def highest_id(self) -> int:
        """Return the largest passage id; 0 without any."""
        newest = self._fetch(Query.all_query(), 1, newest_first=True)
        return newest[0][0] if newest else 0

    def passage_ids(self) -> frozenset[PassageId]:
        """Return all passages."""
        found = self._fetch(Query.all_query(), self.passage_count)
        return frozenset(each for each, _ in found)

    def understood(self, query: SearchQuery | str) -> Ask:
        """Return what `query` asks of this commit; a plain text is words alone."""
        asked = query if isinstance(query, SearchQuery) else SearchQuery(words=query)
        words = wanted_words(asked.words, query_languages(asked.words, self._likely))
        needs = tuple(self._queries.needs(words))
        weight = sum(need.weight for need in needs)
        return Ask(needs, _surfaces(asked.phrases), _surfaces(asked.excluded), weight)

    def ranked(
        self,
        ask: Ask,
        limit: int,
        allowed: Collection[int] | None = None,
        excluded: Collection[int] = (),
    ) -> list[tuple[PassageId, float]]:
        """Return (passage, score), best first, filtered; of equals the newer passage first."""
        if limit < 1 or (allowed is not None and not allowed):
            return []
        ranking = self._queries.ranking(ask.needs, ask.phrases, ask.excluded)
        kept = allowed if isinstance(allowed, set | frozenset | None) else frozenset(allowed)
        wanted = limit + min(len(excluded), limit + _SPARE)
        if kept is not None:
            share = min(1.0, len(kept) / max(1, self.passage_count))
            spread = min(int(wanted / share * 1.5) + _SPARE, self.passage_count)
            if len(kept) * _COST_BY_ID <= spread:
                ranking = self._queries.among(kept, ranking)
            else:
                wanted = spread
        while True:
            fetched = self._fetch(ranking, min(wanted, self.passage_count), ask.is_list)
            found = [
                each
                for each in fetched
                if (kept is None or each[0] in kept) and each[0] not in excluded
            ]
            if len(found) >= limit or len(fetched) < wanted or wanted >= self.passage_count:
                return sorted(found, key=lambda each: (-each[1], -each[0]))[:limit]
            wanted *= 8

    def held_weight(self, ask: Ask, passage_ids: Sequence[PassageId]) -> dict[PassageId, float]:
        """Return by passage the weight of the words that it holds."""
        held = dict.fromkeys(passage_ids, 0.0)
        for start in range(0, len(passage_ids) if ask.needs else 0, _COVERAGE_AT_ONCE):
            few = passage_ids[start : start + _COVERAGE_AT_ONCE]
            held.update(self._fetch(self._queries.coverage(ask.needs, few), len(few)))
        return held

    def _fetch(
        self, query: Query, limit: int, newest_first: bool = False
    ) -> list[tuple[PassageId, float]]:
        if newest_first:
            newest = self._searcher.search(query, max(1, limit), count=False, order_by_field=ID)
            return [(PassageId(each), 0.0) for each, _ in newest.hits]
        hits = self._searcher.search(query, max(1, limit), count=False).hits
        ids = self._searcher.fast_field_values(ID, [address for _, address in hits])
        pairs = zip(ids, hits, strict=True)
        return [(PassageId(int(each or 0)), score) for each, (score, _) in pairs]


def _surfaces(texts: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(surface) for each in texts if (surface := surface_of(each)))
