"""One commit of the text index as searches see it: what a query means to it, and what it finds."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import tantivy
from tantivy import Query

from app.domain.ids import PartId, PassageId, passage_of
from app.domain.passages import PassageKind, SearchQuery
from app.index.analyser import query_languages, surface_of, wanted_words
from app.index.dates import near_dates
from app.index.id_set import IdSet
from app.index.text_query import Need, QueryMaker
from app.index.text_schema import AFTER, BEFORE, KIND, LEADS, PART, PASSAGE, SPEAKER, TRAITS

_COST_BY_ID = 4  # asking for a passage by id takes as long as fetching so many and filtering
_SPARE = 32
_AT_ONCE = 500

Ids = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ask:
    """A query against one commit.

    Phrases and exclusions are rows of surface words; `weight` is that of all words together. `dates`
    are terms of the dates it names and those near them, with how near they are.
    """

    needs: tuple[Need, ...]
    phrases: tuple[tuple[str, ...], ...]
    excluded: tuple[tuple[str, ...], ...]
    weight: float
    dates: Mapping[str, float]

    @property
    def is_list(self) -> bool:
        """Whether nothing ranks, because words are only excluded."""
        return not self.needs and not self.phrases

    def share(self, held_weight: float) -> float:
        """Return `held_weight` as a share (0-1) of all the query's words; 1 without any."""
        return min(1.0, held_weight / self.weight) if self.weight else 1.0


@dataclass(frozen=True, slots=True)
class Survey:
    """What the text index knows of the candidates for a query; n rows, in no order.

    `words` and `context` are BM25 scores of the message itself and of its context, `coverage` the
    idf-weighted share (0-1) of the query's words in the message, `traits` packed `Traits`,
    `speakers` speakers' numbers (0 without). `before` and `after` (n, NEAR) are the parts of the
    context, nearest first, 0 where there is none. `asked_words` and `asked_traits` are those of the
    message just before, if it is part of the context. `dated` is how near (0-1) its date is to one that the
    query names. `weight` is the summed idf of the query.
    """

    parts: Ids
    words: Numbers
    context: Numbers
    coverage: Numbers
    traits: Ids
    speakers: Ids
    before: Ids
    after: Ids
    asked_words: Numbers
    asked_traits: Ids
    dated: Numbers
    weight: float


@dataclass(slots=True)
class _Rows:
    """Scores and numbers of parts, by part id."""

    scores: dict[int, float] = field(default_factory=dict)
    numbers: dict[str, dict[int, int]] = field(default_factory=dict)

    def column(self, name: str, parts: Sequence[int]) -> list[int]:
        known = self.numbers[name]
        return [known.get(each, 0) for each in parts]


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
        self._schema = schema
        self._queries = QueryMaker(searcher, schema)
        self._likely = likely_languages
        self._last: tuple[SearchQuery, Ask] | None = None

    @property
    def passage_count(self) -> int:
        """How many passages there are."""
        first = Query.term_query(self._schema, LEADS, 1)
        return self._searcher.search(first, 1).count or 0  # type: ignore[attr-defined]

    def highest_id(self) -> int:
        """Return the largest passage id; 0 without any."""
        newest = self._searcher.search(Query.all_query(), 1, count=False, order_by_field=PASSAGE)
        return int(newest.hits[0][0]) if newest.hits else 0

    def passage_ids(self) -> frozenset[PassageId]:
        """Return all passages."""
        hits = self._searcher.search(Query.all_query(), self._documents, count=False).hits
        return frozenset(self._values(PASSAGE, hits))  # type: ignore[arg-type]

    def understood(self, query: SearchQuery | str) -> Ask:
        """Return what `query` asks of this commit; a plain text is words alone.

        A search asks three times in a row; reading a query takes 1 ms.
        """
        asked = query if isinstance(query, SearchQuery) else SearchQuery(words=query)
        if (last := self._last) is not None and last[0] == asked:
            return last[1]
        words = wanted_words(asked.words, query_languages(asked.words, self._likely))
        needs = tuple(self._queries.needs(words))
        weight = sum(need.weight for need in needs)
        phrases, excluded = _surfaces(asked.phrases), _surfaces(asked.excluded)
        ask = Ask(needs, phrases, excluded, weight, near_dates(asked.words))
        self._last = (asked, ask)
        return ask

    def holding(self, ask: Ask) -> frozenset[PassageId]:
        """Return the passages that hold what the query excludes."""
        if not ask.excluded:
            return frozenset()
        query = self._queries.any_of(ask.excluded)
        hits = self._searcher.search(query, self._documents, count=False).hits
        return frozenset(PassageId(each) for each in self._values(PASSAGE, hits))

    def ranked(
        self,
        ask: Ask,
        limit: int,
        allowed: Collection[int] | None = None,
        excluded: Collection[int] = (),
        *,
        by_context: bool = False,
        kind: PassageKind | None = None,
    ) -> list[tuple[PartId, float]]:
        """Return (part, score), best first, filtered by passage; of equals the newer part first.

        `kind` says that all of `allowed` are of one kind, where that is known: it is faster then.
        """
        if limit < 1 or ask.is_list or (allowed is not None and not len(allowed)):
            return []
        ranking = self._queries.ranking(ask.needs, ask.phrases, by_context=by_context)
        kept = (
            allowed if isinstance(allowed, set | frozenset | IdSet | None) else frozenset(allowed)
        )
        everything = self._documents
        if kind is not None:
            ranking = self._queries.of_kind(kind.value, ranking)
        wanted = least = limit + min(len(excluded), limit + _SPARE)
        by_id = kept is None
        if kept is not None:
            share = min(1.0, len(kept) / max(1, self._count_of(kind)))
            spread = min(int(wanted / share * 1.5) + _SPARE, everything)
            if len(kept) * _COST_BY_ID <= spread:
                ranking, by_id = self._queries.among(PASSAGE, kept, ranking), True
            else:
                wanted = spread
        while True:
            fetched = self._fetch(ranking, min(wanted, everything))
            found = [
                (part, score)
                for part, score in fetched
                if (kept is None or passage_of(part) in kept) and passage_of(part) not in excluded
            ]
            if len(found) >= limit or len(fetched) < wanted or wanted >= everything:
                return sorted(found, key=lambda each: (-each[1], -each[0]))[:limit]
            wanted *= 8
            if kept is not None and not by_id and len(kept) <= wanted:  # a set of ids is cheaper
                ranking, by_id = self._queries.among(PASSAGE, kept, ranking), True
                wanted = least

    def survey(self, ask: Ask, parts: Collection[PartId]) -> Survey:
        """Return what is known of some parts; those that the index does not hold are left out.

        Nor are those that lack a phrase of the query.
        """
        if ask.phrases:
            must = self._queries.ranking((), ask.phrases)
            parts = [each for each, _ in self._fetch_among(parts, must)]
        by_context = self._queries.ranking(ask.needs, (), by_context=True)
        near = self._rows(parts, by_context, (TRAITS, SPEAKER, *BEFORE, *AFTER))
        rows = [each for each in parts if each in near.scores]
        asked = near.column(BEFORE[0], rows)
        both = {*rows, *(each for each in asked if each)}
        own = self._rows(both, self._queries.ranking(ask.needs, ()), (TRAITS,))
        held = self.held_weight(ask, rows)
        return Survey(
            parts=np.array(rows, np.int64),
            words=_numbers(own.scores, rows),
            context=_numbers(near.scores, rows),
            coverage=np.array([ask.share(held[each]) for each in rows]),
            traits=np.array(near.column(TRAITS, rows), np.int64),
            speakers=np.array(near.column(SPEAKER, rows), np.int64),
            before=_columns([near.column(name, rows) for name in BEFORE]),
            after=_columns([near.column(name, rows) for name in AFTER]),
            asked_words=_numbers(own.scores, asked),
            asked_traits=np.array(own.column(TRAITS, asked), np.int64),
            dated=_numbers(self._near_dates(ask, rows), rows),
            weight=ask.weight,
        )

    def held_weight(self, ask: Ask, parts: Collection[PartId]) -> dict[PartId, float]:
        """Return by part the weight of the words that it holds."""
        held = dict.fromkeys(parts, 0.0)
        if ask.needs:
            for few in _slices(parts):
                held.update(self._fetch(self._queries.coverage(ask.needs, few), len(few)))
        return held

    def _near_dates(self, ask: Ask, parts: Collection[PartId]) -> dict[int, float]:
        """Return by part how near its date is to one that the query names."""
        near: dict[int, float] = {}
        for few in _slices(parts) if ask.dates else ():
            near.update(self._fetch(self._queries.near_dates(ask.dates, few), len(few)))
        return near

    def _count_of(self, kind: PassageKind | None) -> int:
        """How many passages there are of a kind, or in all: parts of a kind that has several."""
        if kind is None:
            return self.passage_count
        return self._searcher.doc_freq(KIND, kind.value)

    @property
    def _documents(self) -> int:
        return max(1, self._searcher.num_docs)

    def _rows(self, parts: Collection[int], ranking: Query, names: Sequence[str]) -> _Rows:
        """Return the score of each part that the index holds, 0 without a match, and its numbers."""
        rows = _Rows(numbers={name: {} for name in names})
        for few in _slices(parts):
            query = self._queries.among(PART, few, ranking, must=False)
            hits = self._searcher.search(query, len(few), count=False).hits
            ids = self._values(PART, hits)
            rows.scores.update(zip(ids, (score for score, _ in hits), strict=True))
            for name in names:
                rows.numbers[name].update(zip(ids, self._values(name, hits), strict=True))
        return rows

    def _fetch_among(self, parts: Collection[int], query: Query) -> list[tuple[PartId, float]]:
        return [
            each
            for few in _slices(parts)
            for each in self._fetch(self._queries.among(PART, few, query), len(few))
        ]

    def _fetch(self, query: Query, limit: int) -> list[tuple[PartId, float]]:
        hits = self._searcher.search(query, max(1, limit), count=False).hits
        pairs = zip(self._values(PART, hits), hits, strict=True)
        return [(PartId(each), score) for each, (score, _) in pairs if each]

    def _values(self, name: str, hits: Sequence[tuple[float, tantivy.DocAddress]]) -> list[int]:
        values = self._searcher.fast_field_values(name, [address for _, address in hits])
        return [int(each or 0) for each in values]


def _slices(parts: Collection[int]) -> list[list[int]]:
    ids = list(parts)
    return [ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE)]


def _numbers(scores: dict[int, float], parts: Sequence[int]) -> Numbers:
    return np.array([scores.get(each, 0.0) for each in parts])


def _columns(columns: list[list[int]]) -> Ids:
    return np.array(columns, np.int64).T


def _surfaces(texts: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(surface) for each in texts if (surface := surface_of(each)))
