"""Text snapshots: searches against one commit of the text index."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import tantivy
from tantivy import Query

from app.domain.ids import PartId, PassageId, passage_id_of
from app.domain.passages import PassageKind, SearchQuery
from app.index.document_writer import (
    AFTER,
    BEFORE,
    KIND,
    LABEL,
    LEADS,
    MESSAGE,
    PART,
    PASSAGE,
    STATED_IN,
    TRAITS,
)
from app.index.text_query import QueryBuilder, QueryTerm
from app.language.analyzer import query_languages, query_words, surface_words_of
from app.language.date_terms import near_dates

_COST_BY_ID = 4  # a query by passage id costs as much as fetching so many hits and filtering
_SPARE = 32
_AT_ONCE = 500
_MOST_FACTS = 3_000

IdT = TypeVar("IdT", bound=int)
Ids = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ResolvedQuery:
    """A query resolved against one commit.

    Phrases and exclusions are sequences of surface words; `weight` is the summed weight of the
    words, `reach` that of words and their Han characters, which rank too. `dates` maps the terms of
    named and near dates to how near they are.
    """

    terms: tuple[QueryTerm, ...]
    phrases: tuple[tuple[str, ...], ...]
    excluded: tuple[tuple[str, ...], ...]
    weight: float
    reach: float
    dates: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class CandidateTable:
    """The features that the text index has of the candidates of a query; n rows, unordered.

    `words` and `context` are the BM25 scores of the message and of its context; `coverage` is the
    idf-weighted share (0-1) of the query's words in the message. For words and coverage the best of
    the message and the facts from it counts, which say the same in other words; `facts`, (m, 2), has
    the row of a candidate and the part of a fact. `traits` are packed `Traits`;
    `labels` are the numbers of their labels (0 for none). `before` and `after`, (n, NEAR), are the
    parts of the context, nearest first, 0 for none. `asked_words` and `asked_traits` belong to the
    previous message, if it is in the context. `dated` is how near (0-1) its date is to one in the
    query. `weight` and `reach` are those of `ResolvedQuery`.
    """

    parts: Ids
    words: Numbers
    context: Numbers
    coverage: Numbers
    traits: Ids
    labels: Ids
    before: Ids
    after: Ids
    asked_words: Numbers
    asked_traits: Ids
    dated: Numbers
    weight: float
    reach: float
    facts: Ids = field(default_factory=lambda: np.empty((0, 2), np.int64))

    def best(self, own: Numbers, of_facts: Numbers) -> Numbers:
        """Return the largest of each candidate's value, (n,), and those of its facts, (m,); NaN is unknown."""
        return _largest(own, self.facts, of_facts)


class TextSnapshot:
    """The searchable state of one commit. Thread-safe.

    `likely_languages` are those of most passages, for queries that are too short to tell.
    """

    def __init__(
        self, searcher: tantivy.Searcher, schema: tantivy.Schema, likely_languages: tuple[str, ...]
    ) -> None:
        self._searcher = searcher
        self._schema = schema
        self._queries = QueryBuilder(searcher, schema)
        self._likely = likely_languages
        self._last: tuple[SearchQuery, date, ResolvedQuery] | None = None

    @property
    def passage_count(self) -> int:
        first = Query.term_query(self._schema, LEADS, 1)
        return self._searcher.search(first, 1).count or 0  # type: ignore[attr-defined]

    def highest_id(self) -> int:
        """Return the largest passage id; 0 without any."""
        newest = self._searcher.search(Query.all_query(), 1, count=False, order_by_field=PASSAGE)
        return int(newest.hits[0][0]) if newest.hits else 0

    def resolved(self, asked: SearchQuery, today: date) -> ResolvedQuery:
        """Return a query resolved against this commit; `today` is that of whoever asks.

        The last one is cached: a search resolves its query three times, 1 ms each.
        """
        if (last := self._last) is not None and last[:2] == (asked, today):
            return last[2]
        languages = query_languages(asked.words, self._likely)
        words = query_words(asked.words, languages)
        terms = self._queries.terms_of(asked.words, words, languages[0])
        weight = sum(each.weight for each in terms)
        phrases, excluded = _surfaces(asked.phrases), _surfaces(asked.excluded)
        reach, dates = self._queries.reach(terms), near_dates(asked.words, today)
        resolved = ResolvedQuery(terms, phrases, excluded, weight, reach, dates)
        self._last = (asked, today, resolved)
        return resolved

    def excluded_passages(self, resolved: ResolvedQuery) -> frozenset[PassageId]:
        """Return the passages that contain what the query excludes."""
        if not resolved.excluded:
            return frozenset()
        query = self._queries.any_of(resolved.excluded)
        hits = self._searcher.search(query, self._documents, count=False).hits
        return frozenset(PassageId(each) for each in self._values(PASSAGE, hits))

    def ranked(
        self,
        resolved: ResolvedQuery,
        limit: int,
        allowed: Collection[int] | None = None,
        excluded: Collection[int] = (),
        *,
        by_context: bool = False,
        kind: PassageKind | None = None,
    ) -> list[PartId]:
        """Return the best parts, as `TantivyTextIndex.candidates`; the newer of equals first."""
        if (
            limit < 1
            or not (resolved.terms or resolved.phrases)
            or (allowed is not None and not len(allowed))
        ):
            return []
        ranking = self._queries.ranking(resolved.terms, resolved.phrases, by_context=by_context)
        everything = self._documents
        if kind is not None:
            ranking = self._queries.of_kind(kind.value, ranking)
        wanted = least = limit + min(len(excluded), limit + _SPARE)
        by_id = allowed is None
        if allowed is not None:
            searcher = self._searcher
            count = searcher.doc_freq(KIND, kind.value) if kind else self.passage_count
            share = min(1.0, len(allowed) / max(1, count))
            spread = min(int(wanted / share * 1.5) + _SPARE, everything)
            if len(allowed) * _COST_BY_ID <= spread:
                ranking, by_id = self._queries.among(PASSAGE, allowed, ranking), True
            else:
                wanted = spread
        while True:
            fetched = self._fetch(ranking, min(wanted, everything))
            found = [
                hit
                for hit in fetched
                if (allowed is None or passage_id_of(hit[0]) in allowed)
                and passage_id_of(hit[0]) not in excluded
            ]
            if len(found) >= limit or len(fetched) < wanted or wanted >= everything:
                found.sort(key=lambda hit: (-hit[1], -hit[0]))
                return [part for part, _ in found[:limit]]
            wanted *= 8
            if allowed is not None and not by_id and len(allowed) <= wanted:  # by ids is cheaper
                ranking, by_id = self._queries.among(PASSAGE, allowed, ranking), True
                wanted = least

    def candidate_table(
        self, resolved: ResolvedQuery, parts: Collection[PartId], *, with_facts: bool
    ) -> CandidateTable:
        """Return the features of the parts that are indexed and have all phrases of the query."""
        if resolved.phrases:
            must = self._queries.ranking((), resolved.phrases)
            parts = [*self._scores(parts, lambda few: self._queries.among(PART, few, must))]
        by_context = self._queries.ranking(resolved.terms, (), by_context=True)
        near, fields = self._rows(parts, by_context, (TRAITS, LABEL, MESSAGE, *BEFORE, *AFTER))
        rows = [each for each in parts if each in near]
        asked = _column(fields[BEFORE[0]], rows)
        messages = _column(fields[MESSAGE], rows) if with_facts else np.zeros(len(rows), np.int64)
        facts = self._facts_from(messages)
        of_facts = np.unique(facts[:, 1]).tolist()
        both = {*rows, *of_facts, *(each for each in asked.tolist() if each)}
        own, asked_fields = self._rows(both, self._queries.ranking(resolved.terms, ()), (TRAITS,))
        terms, weight = resolved.terms, resolved.weight
        held = self._scores(
            [*rows, *of_facts] if terms else (), lambda few: self._queries.coverage(terms, few)
        )
        dates = resolved.dates
        dated = self._scores(
            rows if dates else (), lambda few: self._queries.near_dates(dates, few)
        )
        covered = _with_facts(held, rows, facts) / weight if weight else np.ones(len(rows))
        return CandidateTable(
            parts=np.array(rows, np.int64),
            words=_with_facts(own, rows, facts),
            context=_numbers(near, rows),
            coverage=np.minimum(1.0, covered),
            traits=_column(fields[TRAITS], rows),
            labels=_column(fields[LABEL], rows),
            before=np.stack([_column(fields[name], rows) for name in BEFORE], axis=1),
            after=np.stack([_column(fields[name], rows) for name in AFTER], axis=1),
            asked_words=_numbers(own, asked.tolist()),
            asked_traits=_column(asked_fields[TRAITS], asked.tolist()),
            dated=_numbers(dated, rows),
            weight=weight,
            reach=resolved.reach,
            facts=facts,
        )

    def _facts_from(self, messages: Ids) -> Ids:
        """Return the facts from messages (0: none), (m, 2): the row of a message, the part of a fact."""
        wanted = np.unique(messages[messages > 0]).tolist()
        hits = self._searcher.search(
            self._queries.ids(STATED_IN, wanted), _MOST_FACTS, count=False
        ).hits
        parts, of = (np.array(self._values(name, hits), np.int64) for name in (PART, STATED_IN))
        row, fact = np.nonzero(messages[:, None] == of)
        return np.stack([row, parts[fact]], axis=1)

    @property
    def _documents(self) -> int:
        return max(1, self._searcher.num_docs)

    def _rows(
        self, parts: Collection[int], ranking: Query, names: Sequence[str]
    ) -> tuple[dict[int, float], dict[str, dict[int, int]]]:
        """Return the score (0 without a match) and numeric fields of each indexed part."""
        scores: dict[int, float] = {}
        fields: dict[str, dict[int, int]] = {name: {} for name in names}
        for few in _slices(parts):
            query = self._queries.among(PART, few, ranking, must=False)
            hits = self._searcher.search(query, len(few), count=False).hits
            ids = self._values(PART, hits)
            scores.update(zip(ids, (score for score, _ in hits), strict=True))
            for name in names:
                fields[name].update(zip(ids, self._values(name, hits), strict=True))
        return scores, fields

    def _scores(
        self, parts: Collection[PartId], query_of: Callable[[Sequence[PartId]], Query]
    ) -> dict[PartId, float]:
        """Return the scores of matching parts; `query_of` returns the query for some of them."""
        scores: dict[PartId, float] = {}
        for few in _slices(parts):
            scores.update(self._fetch(query_of(few), len(few)))
        return scores

    def _fetch(self, query: Query, limit: int) -> list[tuple[PartId, float]]:
        hits = self._searcher.search(query, max(1, limit), count=False).hits
        pairs = zip(self._values(PART, hits), hits, strict=True)
        return [(PartId(each), score) for each, (score, _) in pairs if each]

    def _values(self, name: str, hits: Sequence[tuple[float, tantivy.DocAddress]]) -> list[int]:
        values = self._searcher.fast_field_values(name, [address for _, address in hits])
        return [int(each or 0) for each in values]


def _largest(own: Numbers, facts: Ids, of_facts: Numbers) -> Numbers:
    largest = own.copy()
    np.fmax.at(largest, facts[:, 0], of_facts)
    return largest


def _with_facts(scores: Mapping[Any, float], parts: Sequence[int], facts: Ids) -> Numbers:
    of_facts = _numbers(scores, facts[:, 1].tolist())
    return _largest(_numbers(scores, parts), facts, of_facts)


def _slices(parts: Collection[IdT]) -> Iterator[list[IdT]]:
    ids = list(parts)
    return (ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE))


def _numbers(scores: Mapping[Any, float], parts: Sequence[int]) -> Numbers:
    return np.array([scores.get(each, 0.0) for each in parts])


def _column(values: Mapping[int, int], parts: Sequence[int]) -> Ids:
    return np.array([values.get(each, 0) for each in parts], np.int64)


def _surfaces(texts: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(surface) for each in texts if (surface := surface_words_of(each)))
