"""Word matches: where the words of a query occur in a text, by the analysis of the index.

A long text is read in slices. Beyond its first quarter of a million characters, slices that cannot
contain a word not yet found are skipped: 10 MB take about 100 ms.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from os.path import commonprefix

from app.domain.passages import SearchQuery
from app.language.analyzer import (
    COMPOUND_CHARS,
    AnalyzedWord,
    chunk_spans,
    chunk_surface_words,
    chunk_terms,
    is_unspaced,
    query_languages,
    query_words,
    slices,
    surface_words_of,
)
from app.language.date_terms import month_term
from app.language.languages import COMPOUNDING

_THOROUGH_CHARS = 262_144
_MANY_MATCHES = 4_000  # beyond this, too, only words not yet found are searched
_TOO_MANY_MATCHES = 40_000
_MIN_COMPONENT = 4
_MIN_START = 3


@dataclass(frozen=True, slots=True)
class WordMatch:
    """A place in a text where a word of the query occurs.

    `word` is the number of the word; words come first, then phrases.
    """

    start: int
    end: int
    word: int


class WordFinder:
    """Finds the words of one query in texts of one language."""

    def __init__(self, query: SearchQuery, language: str) -> None:
        self._language = language
        languages = query_languages(query.words, (language,))
        self._words = list(_flat(query_words(query.words, languages)))
        self._phrases = [surface for each in query.phrases if (surface := surface_words_of(each))]
        self._by_term: dict[str, int] = {}
        for number, word in enumerate(self._words):
            for term in word.terms:
                self._by_term.setdefault(term, number)
            if month := month_term(word.terms[0]):
                self._by_term.setdefault(month, number)
        lone = [term for term in self._by_term if not is_unspaced(term)]
        self._starts = tuple(term for term in lone if len(term) >= _MIN_START)
        self._initials = frozenset(term[0] for term in lone)
        builds = language in COMPOUNDING
        self._components = tuple(term for term in lone if builds and len(term) >= _MIN_COMPONENT)
        self._known: dict[str, _ChunkMatch | None] = {}

    @property
    def words(self) -> Sequence[str]:
        """The words of the query, as `WordMatch` numbers them: the term as typed."""
        return [word.terms[0] for word in self._words]

    def matches(self, text: str) -> list[WordMatch]:
        """Return the matches of words and phrases of the query, in order.

        Without any, matches of longer words that begin with one of the query's: it may be half
        typed.
        """
        found: list[WordMatch] = []
        guessed: list[WordMatch] = []
        for start, piece in self._pieces_to_read(text, found):
            self._read(start, piece, found, guessed)
            if len(found) > _TOO_MANY_MATCHES:
                break
        return sorted(found or guessed, key=lambda match: (match.start, -match.end))

    def _pieces_to_read(self, text: str, found: list[WordMatch]) -> Iterator[tuple[int, str]]:
        start, seen, missing = 0, 0, self._missing_words(())
        for piece in slices(text):
            if start < _THOROUGH_CHARS and len(found) < _MANY_MATCHES:
                yield start, piece
            else:
                if seen < len(found):
                    seen = len(found)
                    missing = self._missing_words({match.word for match in found})
                if not missing:
                    return
                plain = piece if piece.isascii() else unicodedata.normalize("NFKC", piece)
                folded = plain.casefold()
                if any(each in folded for each in missing):
                    yield start, piece
            start += len(piece)

    def _missing_words(self, seen: Iterable[int]) -> list[str]:
        """Return substrings, one of which any text with a word not yet found must contain."""
        numbers = set(seen)
        starts = [
            commonprefix(word.terms)  # noqa: RUF071 - by character
            for at, word in enumerate(self._words)
            if at not in numbers
        ]
        starts += [
            max(phrase, key=len)
            for at, phrase in enumerate(self._phrases, len(self._words))
            if at not in numbers
        ]
        return starts

    def _read(
        self, offset: int, piece: str, found: list[WordMatch], guessed: list[WordMatch]
    ) -> None:
        """Add the matches in one slice, which begins at `offset`."""
        surface: list[tuple[str, int, int]] = []
        known = self._known
        for start, end, chunk in chunk_spans(piece, offset):
            if chunk not in known:
                known[chunk] = self._match_of(chunk)
            if (match := known[chunk]) is not None:
                if match.is_run:
                    found += self._in_run(chunk, start, end)
                else:
                    (guessed if match.is_guess else found).append(WordMatch(start, end, match.word))
            if self._phrases:
                surface += _surface_spans(chunk, start, end)
        for number, phrase in enumerate(self._phrases, len(self._words)):
            found += _phrase_matches(surface, phrase, number)

    def _match_of(self, chunk: str) -> "_ChunkMatch | None":
        if chunk[1:].islower() and chunk.isascii() and chunk.isalpha() and not self._components:
            if chunk[0].lower() not in self._initials:  # three of four words end here
                return None
        elif is_unspaced(chunk):
            return _ChunkMatch(0, is_run=True)
        terms = chunk_terms(chunk, self._language)
        if numbers := [self._by_term[term] for term in terms if term in self._by_term]:
            return _ChunkMatch(min(numbers))
        for term in terms:
            if term.startswith(self._components) and len(term) >= COMPOUND_CHARS:
                return _ChunkMatch(self._word_with(self._components, term.startswith))
            if term.endswith(self._components) and len(term) >= COMPOUND_CHARS:
                return _ChunkMatch(self._word_with(self._components, term.endswith))
            if term.startswith(self._starts):
                return _ChunkMatch(self._word_with(self._starts, term.startswith), is_guess=True)
        return None

    def _word_with(self, pieces: tuple[str, ...], test: Callable[[str], bool]) -> int:
        return self._by_term[next(piece for piece in pieces if test(piece))]

    def _in_run(self, chunk: str, start: int, end: int) -> Iterator[WordMatch]:
        run = unicodedata.normalize("NFKC", chunk)
        even = len(run) == len(chunk)  # otherwise offsets differ, and the whole run is marked
        for width in (1, 2):
            for at in range(len(run) - width + 1):
                number = self._by_term.get(run[at : at + width])
                if number is not None:
                    place = (start + at, start + at + width) if even else (start, end)
                    yield WordMatch(*place, number)


@lru_cache(maxsize=16)
def word_finder(query: SearchQuery, language: str) -> WordFinder:
    """Return the finder of a query's words in a language; the last ones are cached."""
    return WordFinder(query, language)


@dataclass(frozen=True, slots=True)
class _ChunkMatch:
    """What a chunk is for a query: a word of it, a prefix match, or an unspaced run to search."""

    word: int
    is_guess: bool = False
    is_run: bool = False


def _flat(words: Iterable[AnalyzedWord]) -> Iterator[AnalyzedWord]:
    for word in words:
        yield word
        yield from _flat(word.parts)


def _surface_spans(chunk: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    words = chunk_surface_words(chunk)
    if is_unspaced(chunk) and len(words) == end - start:
        yield from ((word, start + at, start + at + 1) for at, word in enumerate(words))
    else:
        yield from ((word, start, end) for word in words)


def _phrase_matches(
    surface: Sequence[tuple[str, int, int]], phrase: Sequence[str], number: int
) -> Iterator[WordMatch]:
    """Yield the places where the words of `phrase` occur in sequence."""
    length = len(phrase)
    for at, (word, start, _) in enumerate(surface):
        if word == phrase[0] and [each[0] for each in surface[at : at + length]] == phrase:
            yield WordMatch(start, surface[at + length - 1][2], number)
