"""Tantivy queries for the words of a query: ranking, restriction and coverage.

A builder uses one searcher for term counts and search, so that both are of the same commit.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import tantivy
from tantivy import Occur, Query

from app.index.document_writer import BODY, COMPOUNDS, CONTEXT, KIND, PART, SURFACE, TITLE, WEIGHTS
from app.language.analyzer import AnalyzedWord, chunk_spans, chunk_terms, is_unspaced
from app.language.date_terms import month_term
from app.language.languages import COMPOUNDING, DEFAULT_LANGUAGE, UNSPACED_STOP_WORDS
from app.language.word_forms import normalize, written_form

_COMPOUND_WEIGHT = 0.5
_PREFIX_WEIGHT = 0.4
_MIN_COMPOUND_PART = 4
_MIN_COMPOUND_REST = 3
_MIN_PREFIX = 3
_MAX_EXPANSIONS = 16
_MANY_IDS = 3_000  # above this, a term set query is faster: 20 ms for 20,000
_COUNTED = (BODY, "tools", SURFACE)  # fields that determine the document frequency
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_TITLE_SHARE = 0.5  # of a word that only the title contains, for coverage


@dataclass(frozen=True, slots=True)
class TermVariant:
    """One term in one field that matches a word."""

    field: str
    term: str
    weight: float


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """A word of the query, resolved against one commit: the terms that match it, and its frequency.

    `documents` is the number of parts with its most frequent term. `share` is the share of the
    word's weight that a match counts for coverage: less than 1 for a prefix match.
    """

    word: str
    alternatives: tuple[TermVariant, ...]
    documents: int
    idf: float
    parts: tuple["QueryTerm", ...] = ()
    share: float = 1.0

    @property
    def weight(self) -> float:
        return sum(part.weight for part in self.parts) or self.idf


def token_weights(
    text: str, terms: Sequence[QueryTerm], spans: npt.NDArray[np.int32]
) -> npt.NDArray[np.float64]:
    """Return the idf of the word at each (start, end) of `text`, as `TantivyTextIndex` does."""
    idf = {term.word: term.idf for term in terms}
    of_characters = np.zeros(len(text))
    for start, end, chunk in chunk_spans(text):
        forms = {written_form(chunk), *chunk_terms(chunk, DEFAULT_LANGUAGE)}
        of_characters[start:end] = max((idf.get(each, 0.0) for each in forms), default=0.0)
    weights = np.array([of_characters[start:end].max(initial=0.0) for start, end in spans])
    return weights if weights.any() else np.ones(len(weights))


def _characters(terms: Sequence[QueryTerm]) -> list[str]:
    """Return the Han characters of words, each once, without stop words.

    A character that is a word by itself is a term.
    """
    words = (term.word for term in terms if len(term.word) > 1)
    found = dict.fromkeys(each for word in words for each in _HAN.findall(word))
    return [each for each in found if each not in UNSPACED_STOP_WORDS]


class QueryBuilder:
    """Builds queries against one commit of the index."""

    def __init__(self, searcher: tantivy.Searcher, schema: tantivy.Schema) -> None:
        self._searcher = searcher
        self._schema = schema

    def ranking(
        self,
        terms: Sequence[QueryTerm],
        phrases: Sequence[Sequence[str]],
        *,
        by_context: bool = False,
    ) -> Query:
        """Return a query that ranks by any word and requires all phrases (surface words).

        By the words of the message itself, or by those of its context. Han characters of words rank
        too: different words with one in common are often related.
        """
        ways = [each for term in terms for each in self._word_queries(term, by_context)]
        ways += [self._term(SURFACE, each) for each in _characters(terms)]
        clauses = [(Occur.Should, each) for each in ways]
        clauses += [(Occur.Must, self._phrase(phrase)) for phrase in phrases]
        return Query.boolean_query(clauses) if clauses else Query.empty_query()

    def any_of(self, phrases: Sequence[Sequence[str]]) -> Query:
        """Return a query for parts with any of the phrases, all with the same score."""
        rows = [(Occur.Should, self._phrase(phrase)) for phrase in phrases]
        return Query.const_score_query(Query.boolean_query(rows), 1.0)

    def among(self, field: str, ids: Collection[int], query: Query, *, must: bool = True) -> Query:
        """Return `query` restricted to a few ids of PART or PASSAGE.

        Unless they `must` match, those that do not match are returned with score 0.
        """
        occur = Occur.Must if must else Occur.Should
        return Query.boolean_query([(Occur.Must, self.ids(field, ids)), (occur, query)])

    def of_kind(self, kind: str, query: Query) -> Query:
        only = Query.const_score_query(self._term(KIND, kind), 0.0)
        return Query.boolean_query([(Occur.Must, only), (Occur.Must, query)])

    def coverage(self, terms: Sequence[QueryTerm], part_ids: Collection[int]) -> Query:
        """Return a query whose score is the weight of the words that each part contains."""
        clauses = [(Occur.Should, self._coverage_of(term)) for term in terms if term.weight]
        return Query.boolean_query([(Occur.Must, self.ids(PART, part_ids)), *clauses])

    def near_dates(self, dates: Mapping[str, float], part_ids: Collection[int]) -> Query:
        """Return a query that scores how near dates are; `dates` maps date terms to nearness."""
        terms = {each: near for each, near in dates.items() if self._searcher.doc_freq(BODY, each)}
        ways = [Query.const_score_query(self._term(BODY, each), terms[each]) for each in terms]
        nearest = Query.disjunction_max_query(ways) if ways else Query.empty_query()
        return self.among(PART, part_ids, nearest, must=False)

    def terms_of(
        self, text: str, words: Iterable[AnalyzedWord], language: str
    ) -> tuple[QueryTerm, ...]:
        """Return the resolved words of `text`; pairs of characters across words weigh nothing.

        Those are matched all the same, which favors the phrase as it was asked. Where only they are
        left they keep their weight.
        """
        has_compounds = language in COMPOUNDING
        terms = tuple(self._resolved(word, has_compounds) for word in words)
        pairs = {each.word for each in terms if len(each.word) == 2 and is_unspaced(each.word)}
        if not pairs:
            return terms
        runs = [chunk for _, _, chunk in chunk_spans(text) if is_unspaced(chunk)]
        own = {word for run in runs for word in self._words_of(normalize(run))}
        weighed = tuple(
            replace(each, idf=0.0) if each.word in pairs - own else each for each in terms
        )
        return weighed if any(each.weight for each in weighed) else terms

    def reach(self, terms: Sequence[QueryTerm]) -> float:
        """Return the summed weight of words and of the Han characters in them."""
        counts = (self._searcher.doc_freq(SURFACE, each) for each in _characters(terms))
        return sum(each.weight for each in terms) + sum(map(self._idf, counts))

    def _words_of(self, run: str) -> list[str]:
        """Return an unspaced run as words of one or two characters with the least summed idf.

        Two characters that are a word occur together more often than the ends of two neighbors do.
        """
        best: list[tuple[float, list[str]]] = [(0.0, [])]
        for end in range(1, len(run) + 1):
            ways = []
            for start in range(max(0, end - 2), end):
                word, (idf, before) = run[start:end], best[start]
                field = SURFACE if len(word) == 1 else BODY
                own = self._counted(word, [(field, word, 1.0)])
                is_stop = len(word) == 2 and word in UNSPACED_STOP_WORDS
                ways.append((idf + own.idf * (not is_stop), [*before, word]))
            best.append(min(ways))
        return best[-1][1]

    def _resolved(self, word: AnalyzedWord, has_compounds: bool) -> QueryTerm:
        if word.is_character:
            return self._counted(word.terms[0], [(SURFACE, word.terms[0], 1.0)])
        terms = [(field, term, WEIGHTS[field]) for field in WEIGHTS for term in word.terms]
        terms += [(CONTEXT, term, 1.0) for term in word.terms]
        if month := month_term(word.terms[0]):
            terms += [(field, month, 1.0) for field in (BODY, CONTEXT)]
        term = self._counted(word.terms[0], terms + self._compounds_with(word))
        parts = tuple(self._resolved(part, has_compounds) for part in word.parts)
        if term.alternatives or any(part.alternatives for part in parts):
            return QueryTerm(term.word, term.alternatives, term.documents, term.idf, parts)
        return self._guessed(term, word, has_compounds)

    def _counted(self, word: str, terms: Iterable[tuple[str, str, float]]) -> QueryTerm:
        count_of = self._searcher.doc_freq
        counted = [(count_of(field, term), field, term, weight) for field, term, weight in terms]
        documents = max((count for count, field, *_ in counted if field in _COUNTED), default=0)
        alternatives = tuple(
            TermVariant(field, term, weight) for count, field, term, weight in counted if count
        )
        return QueryTerm(word, alternatives, documents, self._idf(documents))

    def _idf(self, documents: int) -> float:
        """Return BM25's inverse document frequency as in Lucene and tantivy: never below 0."""
        absent = max(0, self._searcher.num_docs - documents)
        return math.log(1 + (absent + 0.5) / (documents + 0.5))

    def _compounds_with(self, word: AnalyzedWord) -> list[tuple[str, str, float]]:
        """Return compounds in the index that begin or end with the word."""
        found: dict[str, None] = {}
        for term in word.terms if not word.parts else ():
            if len(term) < _MIN_COMPOUND_PART or not term.isalpha():
                continue
            beginning = self._terms_from(COMPOUNDS, term)
            ending = [each[:0:-1] for each in self._terms_from(COMPOUNDS, "<" + term[::-1])]
            found.update(
                (each, None)
                for each in (*beginning, *ending)
                if len(each) >= len(term) + _MIN_COMPOUND_REST
            )
        return [
            (field, each, _COMPOUND_WEIGHT)
            for each in found
            if each not in word.terms
            for field in (BODY, CONTEXT)
        ]

    def _guessed(self, term: QueryTerm, word: AnalyzedWord, has_compounds: bool) -> QueryTerm:
        """Return what a word that no part contains may mean.

        It may be half typed, or a compound of which only the last word is used here.
        """
        known = [each for each in word.terms if len(each) >= _MIN_PREFIX and each.isalnum()]
        found = dict.fromkeys(longer for each in known for longer in self._terms_from(BODY, each))
        if has_compounds and not found:
            found = dict.fromkeys(filter(None, map(self._ending_of, known)))
        guesses = tuple(
            TermVariant(field, each, _PREFIX_WEIGHT) for each in found for field in (BODY, CONTEXT)
        )
        return QueryTerm(term.word, guesses, term.documents, term.idf, term.parts, share=0.5)

    def _ending_of(self, compound: str) -> str:
        """Return the longest ending of a compound that the index contains, "" for none."""
        starts = range(_MIN_COMPOUND_REST, len(compound) - _MIN_COMPOUND_PART + 1)
        endings = (compound[start:] for start in starts)
        return next((each for each in endings if self._searcher.doc_freq(BODY, each)), "")

    def _terms_from(self, field: str, prefix: str) -> list[str]:
        found = self._searcher.terms_with_prefix(field, prefix, limit=_MAX_EXPANSIONS)
        return [term for term, _ in found]

    def _word_queries(self, term: QueryTerm, by_context: bool) -> list[Query]:
        """Return a query for the best variant of a word, and queries for its parts."""
        own = [
            self._term(each.field, each.term, each.weight)
            for each in term.alternatives
            if (each.field == CONTEXT) == by_context or each.field == SURFACE
        ]
        best = [Query.disjunction_max_query(own)] if len(own) > 1 else own
        return best + [each for part in term.parts for each in self._word_queries(part, by_context)]

    def _coverage_of(self, term: QueryTerm) -> Query:
        full = term.weight * term.share
        ways = [
            Query.const_score_query(
                self._term(each.field, each.term),
                full * (_TITLE_SHARE if each.field == TITLE else 1.0),
            )
            for each in term.alternatives
            if each.field != CONTEXT  # the context repeats the other fields
        ]
        if term.parts:
            parts = [(Occur.Should, self._coverage_of(part)) for part in term.parts]
            ways.append(Query.boolean_query(parts))
        return Query.disjunction_max_query(ways) if ways else Query.empty_query()

    def _phrase(self, words: Sequence[str]) -> Query:
        if len(words) == 1:
            return self._term(SURFACE, words[0])
        return Query.phrase_query(self._schema, SURFACE, list(words))

    def _term(self, field: str, term: str, weight: float = 1.0) -> Query:
        query = Query.term_query(self._schema, field, term, "basic" if field == KIND else "freq")
        return query if weight == 1.0 else Query.boost_query(query, weight)

    def ids(self, field: str, ids: Collection[int]) -> Query:
        """Return a query for documents with one of some ids in a numeric field, all with score 0."""
        if len(ids) > _MANY_IDS:
            any_of = Query.term_set_query(self._schema, field, list(ids))
        else:
            terms = [(Occur.Should, Query.term_query(self._schema, field, each)) for each in ids]
            any_of = Query.boolean_query(terms)
        return Query.const_score_query(any_of, 0.0)
