"""Turns the words of a query into tantivy queries: what ranks, what must be there, what was found.

Needs one searcher for its counts and answers, so that both are of the same commit.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import tantivy
from tantivy import Occur, Query

from app.index.analyser import Wanted
from app.index.dates import month_term
from app.index.text_schema import BODY, COMPOUNDS, CONTEXT, KIND, PART, SURFACE, WEIGHTS

_COMPOUND_WEIGHT = 0.5
_PREFIX_WEIGHT = 0.4
_MIN_COMPOUND_PART = 4
_MIN_COMPOUND_REST = 3
_MIN_PREFIX = 3
_MAX_EXPANSIONS = 16
_MANY_IDS = 3_000  # from here on a set of terms is faster: 20 ms for 20,000
_COUNTED = (BODY, "tools", SURFACE)  # the fields that say how rare a word is
_TITLE_SHARE = 0.5  # of a word that only the title holds, for coverage


@dataclass(frozen=True, slots=True)
class Alternative:
    """One term in one field that stands for a word."""

    field: str
    term: str
    weight: float


@dataclass(frozen=True, slots=True)
class Need:
    """A word of the query against this index: what stands for it here, and how rare it is.

    `documents` is in how many parts the most frequent of its terms occurs. `share` is how much
    of the word a part has that holds one of the alternatives: less than 1 for a mere guess.
    """

    word: str
    alternatives: tuple[Alternative, ...]
    documents: int
    idf: float
    parts: tuple["Need", ...] = ()
    share: float = 1.0

    @property
    def weight(self) -> float:
        """What the word weighs in the coverage."""
        return sum(part.weight for part in self.parts) or self.idf


class QueryMaker:
    """Makes queries against one commit of the index."""

    def __init__(self, searcher: tantivy.Searcher, schema: tantivy.Schema) -> None:
        self._searcher = searcher
        self._schema = schema

    def needs(self, words: Iterable[Wanted]) -> list[Need]:
        """Return what each word needs here, in order."""
        return [self._need(word) for word in words]

    def ranking(
        self,
        needs: Sequence[Need],
        phrases: Sequence[Sequence[str]],
        *,
        by_context: bool = False,
    ) -> Query:
        """Return what finds and ranks: any word, all phrases (surface words).

        By the words of the message itself, or by those of its context.
        """
        clauses = [
            (Occur.Should, each) for need in needs for each in self._scored(need, by_context)
        ]
        clauses += [(Occur.Must, self._in_a_row(phrase)) for phrase in phrases]
        return Query.boolean_query(clauses) if clauses else Query.empty_query()

    def any_of(self, phrases: Sequence[Sequence[str]]) -> Query:
        """Return what finds every part that holds one of the phrases, all with the same score."""
        rows = [(Occur.Should, self._in_a_row(phrase)) for phrase in phrases]
        return Query.const_score_query(Query.boolean_query(rows), 1.0)

    def among(self, field: str, ids: Collection[int], query: Query, *, must: bool = True) -> Query:
        """Return `query` restricted to a few ids of PART or PASSAGE.

        Those that do not match are found too, with score 0, unless they `must`.
        """
        occur = Occur.Must if must else Occur.Should
        return Query.boolean_query([(Occur.Must, self._ids(field, ids)), (occur, query)])

    def of_kind(self, kind: str, query: Query) -> Query:
        """Return `query` restricted to the parts of one kind of passages."""
        only = Query.const_score_query(self._term(KIND, kind), 0.0)
        return Query.boolean_query([(Occur.Must, only), (Occur.Must, query)])

    def coverage(self, needs: Sequence[Need], part_ids: Collection[int]) -> Query:
        """Return a query whose score is the weight of the words that each part holds."""
        clauses = [(Occur.Should, self._found(need)) for need in needs if need.weight]
        return Query.boolean_query([(Occur.Must, self._ids(PART, part_ids)), *clauses])

    def near_dates(self, dates: Mapping[str, float], part_ids: Collection[int]) -> Query:
        """Return a query whose score is how near each part's date is; `dates` is by date term."""
        terms = {each: near for each, near in dates.items() if self._searcher.doc_freq(BODY, each)}
        ways = [Query.const_score_query(self._term(BODY, each), terms[each]) for each in terms]
        nearest = Query.disjunction_max_query(ways) if ways else Query.empty_query()
        return self.among(PART, part_ids, nearest, must=False)

    def _need(self, word: Wanted) -> Need:
        if word.is_character:
            return self._looked_up(word.terms[0], [(SURFACE, word.terms[0], 1.0)])
        terms = [(field, term, WEIGHTS[field]) for field in WEIGHTS for term in word.terms]
        terms += [(CONTEXT, term, 1.0) for term in word.terms]
        if month := month_term(word.terms[0]):
            terms += [(field, month, 1.0) for field in (BODY, CONTEXT)]
        need = self._looked_up(word.terms[0], terms + self._compounds_with(word))
        parts = tuple(self._need(part) for part in word.parts)
        if need.alternatives or any(part.alternatives for part in parts):
            return Need(need.word, need.alternatives, need.documents, need.idf, parts)
        return self._guessed(need, word)

    def _looked_up(self, word: str, terms: Iterable[tuple[str, str, float]]) -> Need:
        counted = [
            (self._searcher.doc_freq(field, term), field, term, weight)
            for field, term, weight in terms
        ]
        documents = max((count for count, field, *_ in counted if field in _COUNTED), default=0)
        alternatives = tuple(
            Alternative(field, term, weight) for count, field, term, weight in counted if count
        )
        return Need(word, alternatives, documents, self._idf(documents))

    def _compounds_with(self, word: Wanted) -> list[tuple[str, str, float]]:
        """Return compounds that begin or end with the word, where the index holds any."""
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

    def _guessed(self, need: Need, word: Wanted) -> Need:
        """Return a need for words that begin with one nobody wrote: it may be half typed."""
        longer = dict.fromkeys(
            longer
            for term in word.terms
            if len(term) >= _MIN_PREFIX and term.isalnum()
            for longer in self._terms_from(BODY, term)
        )
        guesses = tuple(
            Alternative(field, term, _PREFIX_WEIGHT) for term in longer for field in (BODY, CONTEXT)
        )
        return Need(need.word, guesses, need.documents, need.idf, need.parts, share=0.5)

    def _terms_from(self, field: str, prefix: str) -> list[str]:
        found = self._searcher.terms_with_prefix(field, prefix, limit=_MAX_EXPANSIONS)
        return [term for term, _ in found]

    def _idf(self, documents: int) -> float:
        """BM25's inverse document frequency, as Lucene and tantivy have it: never below 0."""
        absent = max(0, self._searcher.num_docs - documents)
        return math.log(1 + (absent + 0.5) / (documents + 0.5))

    def _scored(self, need: Need, by_context: bool) -> list[Query]:
        """Return the best of a word's forms and fields, and its parts besides."""
        own = [
            self._term(each.field, each.term, each.weight)
            for each in need.alternatives
            if (each.field == CONTEXT) == by_context or each.field == SURFACE
        ]
        best = [Query.disjunction_max_query(own)] if len(own) > 1 else own
        return best + [each for part in need.parts for each in self._scored(part, by_context)]

    def _found(self, need: Need) -> Query:
        full = need.weight * need.share
        ways = [
            Query.const_score_query(
                self._term(each.field, each.term),
                full * (_TITLE_SHARE if each.field == "title" else 1.0),
            )
            for each in need.alternatives
            if each.field != CONTEXT  # which holds what the others hold
        ]
        if need.parts:
            parts = [(Occur.Should, self._found(part)) for part in need.parts]
            ways.append(Query.boolean_query(parts))
        return Query.disjunction_max_query(ways) if ways else Query.empty_query()

    def _in_a_row(self, words: Sequence[str]) -> Query:
        if len(words) == 1:
            return self._term(SURFACE, words[0])
        return Query.phrase_query(self._schema, SURFACE, list(words))

    def _term(self, field: str, term: str, weight: float = 1.0) -> Query:
        query = Query.term_query(self._schema, field, term, "basic" if field == KIND else "freq")
        return query if weight == 1.0 else Query.boost_query(query, weight)

    def _ids(self, field: str, ids: Collection[int]) -> Query:
        if len(ids) > _MANY_IDS:
            any_of = Query.term_set_query(self._schema, field, list(ids))
        else:
            terms = [(Occur.Should, Query.term_query(self._schema, field, each)) for each in ids]
            any_of = Query.boolean_query(terms)
        return Query.const_score_query(any_of, 0.0)
