"""Where the words of a query stand in a text, found with the index's own analysis.

A long text is read in slices, and beyond its first quarter of a million characters a slice that
cannot hold a word not yet seen is not analysed: 10 MB take about 50 ms.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.domain.passages import SearchQuery
from app.index.analyser import (
    COMPOUND_CHARS,
    Wanted,
    chunk_spans,
    is_unspaced,
    query_languages,
    slices,
    surface_of,
    terms_of,
    wanted_words,
)
from app.index.languages import COMPOUNDING

_THOROUGH_CHARS = 262_144
_MANY_MATCHES = 4_000  # then, too, only what is missing is looked for
_TOO_MANY_MATCHES = 40_000
_MIN_PART = 4
_MIN_PREFIX = 3


@dataclass(frozen=True, slots=True)
class Match:
    """A place in a text where a word of the query stands.

    `word` tells which: numbers of words come first, then those of phrases.
    """

    start: int
    end: int
    word: int


class Finder:
    """Finds the words of one query in texts of one language."""

    def __init__(self, query: SearchQuery, language: str) -> None:
        self._language = language
        languages = query_languages(query.words, (language,))
        self._words = list(_flat(wanted_words(query.words, languages)))
        self._phrases = [surface for each in query.phrases if (surface := surface_of(each))]
        self._by_term: dict[str, int] = {}
        for number, word in enumerate(self._words):
            for term in word.terms:
                self._by_term.setdefault(term, number)
        self._known: dict[str, int | None] = {}

    def matches(self, text: str) -> list[Match]:
        """Return where words and phrases of the query stand, in order."""
        found: list[Match] = []
        for start, piece in self._worth_reading(text, found):
            found += self._in_piece(start, piece)
            if len(found) > _TOO_MANY_MATCHES:
                break
        return found or self._prefixes(text[:_THOROUGH_CHARS])

    def _worth_reading(self, text: str, found: list[Match]) -> Iterator[tuple[int, str]]:
        start, seen, missing = 0, 0, self._beginnings(())
        for piece in slices(text):
            if start < _THOROUGH_CHARS and len(found) < _MANY_MATCHES:
                yield start, piece
            else:
                if seen < len(found):
                    seen = len(found)
                    missing = self._beginnings({match.word for match in found})
                if not missing:
                    return
                plain = piece if piece.isascii() else unicodedata.normalize("NFKC", piece)
                folded = plain.casefold()
                if any(each in folded for each in missing):
                    yield start, piece
            start += len(piece)

    def _beginnings(self, seen: Iterable[int]) -> list[str]:
        """Return what any text with one of the words not yet seen must hold."""
        numbers = set(seen)
        starts = [
            _common_start(word.terms) for at, word in enumerate(self._words) if at not in numbers
        ]
        starts += [
            max(phrase, key=len)
            for at, phrase in enumerate(self._phrases, len(self._words))
            if at not in numbers
        ]
        return starts

    def _in_piece(self, start: int, piece: str) -> list[Match]:
        found: list[Match] = []
        surface: list[tuple[str, int, int]] = []
        for begin, end, chunk in chunk_spans(piece):
            found += self._in_chunk(chunk, start + begin, start + end)
            if self._phrases:
                surface += _surface_spans(chunk, start + begin, start + end)
        for number, phrase in enumerate(self._phrases, len(self._words)):
            found += _rows(surface, phrase, number)
        return sorted(found, key=lambda match: (match.start, -match.end))

    def _in_chunk(self, chunk: str, start: int, end: int) -> Iterator[Match]:
        if not is_unspaced(chunk):
            if chunk not in self._known:
                self._known[chunk] = self._word_of(chunk)
            if (number := self._known[chunk]) is not None:
                yield Match(start, end, number)
            return
        run = unicodedata.normalize("NFKC", chunk)
        even = len(run) == len(chunk)  # else offsets do not carry over, and all of it is marked
        for width in (1, 2):
            for at in range(len(run) - width + 1):
                number = self._by_term.get(run[at : at + width])
                if number is not None:
                    yield (
                        Match(start + at, start + at + width, number)
                        if even
                        else Match(start, end, number)
                    )

    def _word_of(self, chunk: str) -> int | None:
        terms = terms_of(chunk, self._language)
        numbers = [self._by_term[term] for term in terms if term in self._by_term]
        if numbers:
            return min(numbers)
        if self._language in COMPOUNDING:
            for number, word in enumerate(self._words):
                if any(_is_compound_of(term, part) for term in terms for part in word.terms):
                    return number
        return None

    def _prefixes(self, text: str) -> list[Match]:
        """Return words that begin with one of the query's: it may be half typed."""
        starts = tuple(
            (term, number)
            for number, word in enumerate(self._words)
            for term in word.terms
            if len(term) >= _MIN_PREFIX and not is_unspaced(term)
        )
        found = []
        for begin, end, chunk in chunk_spans(text) if starts else ():
            longer = terms_of(chunk, self._language)
            number = next((at for start, at in starts if _any_begins(longer, start)), None)
            if number is not None:
                found.append(Match(begin, end, number))
            if len(found) > _MANY_MATCHES:
                break
        return found


def _flat(words: Iterable[Wanted]) -> Iterator[Wanted]:
    for word in words:
        yield word
        yield from _flat(word.parts)


def _any_begins(terms: Iterable[str], prefix: str) -> bool:
    return any(term.startswith(prefix) for term in terms)


def _common_start(terms: Sequence[str]) -> str:
    first, last = min(terms), max(terms)
    same = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), None)
    return first if same is None else first[:same]


def _is_compound_of(term: str, part: str) -> bool:
    return (
        len(term) >= COMPOUND_CHARS
        and len(part) >= _MIN_PART
        and (term.startswith(part) or term.endswith(part))
    )


def _surface_spans(chunk: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    words = surface_of(chunk)
    if is_unspaced(chunk) and len(words) == end - start:
        yield from ((word, start + at, start + at + 1) for at, word in enumerate(words))
    else:
        yield from ((word, start, end) for word in words)


def _rows(
    surface: Sequence[tuple[str, int, int]], phrase: Sequence[str], number: int
) -> Iterator[Match]:
    """Yield where the words of `phrase` stand one after the other."""
    length = len(phrase)
    for at, (word, start, _) in enumerate(surface):
        if word == phrase[0] and [each[0] for each in surface[at : at + length]] == phrase:
            yield Match(start, surface[at + length - 1][2], number)
