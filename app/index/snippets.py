"""Snippets: the excerpt of a passage with the matching words, which are marked.

Where the words of a query occur in a text is found by the analysis of the index. A long text is read in slices.
Beyond its first quarter of a million characters, slices that cannot contain a word not yet found are skipped: 10 MB
take about 100 ms.
"""

import unicodedata
from collections import Counter
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
from app.language.languages import COMPOUNDING, language_of
from app.language.titles import strip_markdown

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


SNIPPET_CHARS = 200

_LEAD_CHARS = 60  # of context before the first mark
_MARGIN_CHARS = 400  # taken on either side of the window before Markdown is stripped
_SENTENCE_ENDS = frozenset(".!?。！？…")
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")
_MAX_CLUSTER = 32


@dataclass(frozen=True, slots=True)
class Snippet:
    """A line of a passage; `marks` are (start, end) in `text`, in order, never overlapping."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


def snippet(text: str, query: SearchQuery, limit_chars: int = SNIPPET_CHARS) -> Snippet:
    """Return the best excerpt of `text` for `query`, at most `limit_chars` long, on one line.

    The best has the most different words and phrases of the query, the first of equals. Without a
    match it is the beginning, unmarked. Takes 0.3 ms for 170 words, about 100 ms for
    10 MB. Thread-safe.
    """
    if (found := matching_snippet(text, query, limit_chars)) is not None:
        return found
    return Snippet(_excerpt(strip_markdown(text[: _MARGIN_CHARS * 2]), 0, limit_chars)[0])


def matching_snippet(
    text: str, query: SearchQuery, limit_chars: int = SNIPPET_CHARS
) -> Snippet | None:
    """Return the best excerpt as `snippet` does; None without a match."""
    finder = word_finder(query, language_of(text))
    matches = finder.matches(text)
    if not matches:
        return None
    line = strip_markdown(_region(text, *_best_window(matches, limit_chars)))
    marked = matches if line == text else finder.matches(line)
    begin = _best_window(marked, limit_chars)[0] if marked else 0
    cut, offset = _excerpt(line, begin, limit_chars)
    return Snippet(cut, _marks(marked, offset, cut))


@dataclass(frozen=True, slots=True)
class Marks:
    """The matches in a text as (start, end), in order, never overlapping; `best` has most words.

    `best` has the most different words of the query, as the snippet does; None without a match.
    """

    spans: tuple[tuple[int, int], ...] = ()
    best: tuple[int, int] | None = None


def marks_in(text: str, query: SearchQuery) -> Marks:
    """Return the matches of the words and phrases of `query` in a text. Thread-safe."""
    matches = word_finder(query, language_of(text)).matches(text)
    if not matches:
        return Marks()
    return Marks(_marks(matches, 0, text), _best_window(matches, SNIPPET_CHARS))


def best_region(text: str, query: SearchQuery, limit_chars: int) -> str:
    """Return about `limit_chars` of a text around the query's words, else its beginning."""
    matches = word_finder(query, language_of(text)).matches(text)
    if not matches:
        return text[:limit_chars]
    start, end = _best_window(matches, limit_chars // 2)
    first = max(0, (start + end - limit_chars) // 2)
    begin = text.find("\n", first, start) + 1 if first else 0
    return text[begin or first : (begin or first) + limit_chars]


def _region(text: str, start: int, end: int) -> str:
    """Return the window from `start` to `end` with a margin, beginning at a line or word."""
    first = max(0, start - _MARGIN_CHARS)
    if first:
        gaps = (text.find(gap, first, start) for gap in "\n ")
        first = next((gap + 1 for gap in gaps if gap >= 0), start)
    return text[first : min(end, start + _MARGIN_CHARS) + _MARGIN_CHARS]


def _best_window(matches: Sequence[WordMatch], limit_chars: int) -> tuple[int, int]:
    """Return the (start, end) around the matches with the most different words."""
    held: Counter[int] = Counter()
    best, best_span = -1.0, (matches[0].start, matches[0].end)
    first = 0
    for last, match in enumerate(matches):
        held[match.word] += match.end - match.start
        while first < last and match.end - matches[first].start > limit_chars - _LEAD_CHARS:
            dropped = matches[first]
            held[dropped.word] -= dropped.end - dropped.start
            if not held[dropped.word]:
                del held[dropped.word]
            first += 1
        worth = len(held) + sum(held.values()) / 10_000
        if worth > best:
            best, best_span = worth, (matches[first].start, match.end)
    return best_span


def _excerpt(line: str, begin: int, limit_chars: int) -> tuple[str, int]:
    """Return at most `limit_chars` of `line` around `begin`, and the shift of its offsets."""
    if len(line) <= limit_chars:
        return line, 0
    start = min(_start_near(line, begin), _word_start(line, len(line) - limit_chars + 1))
    lead = "…" if start else ""
    room = limit_chars - len(lead)
    if len(line) - start <= room:
        return lead + line[start:], len(lead) - start
    end = start + room - 1
    gap = line.rfind(" ", start + room * 2 // 3, end + 1)
    end = gap if gap > 0 else _between_clusters(line, end)
    return lead + line[start:end].rstrip(" ,;:") + "…", len(lead) - start


def _start_near(line: str, begin: int) -> int:
    """Return the start of the sentence of `begin` if it is near, else of a word."""
    earliest = max(0, begin - _LEAD_CHARS)
    if earliest == 0:
        return 0
    for at in range(begin, earliest, -1):
        if line[at - 1] == " " and line[at - 2] in _SENTENCE_ENDS:
            return at
    return min(begin, _word_start(line, earliest))


def _word_start(line: str, at: int) -> int:
    """Return the start of the first word from `at` on, or a position between characters."""
    gap = line.find(" ", max(0, at - 1), at + _LEAD_CHARS)
    return gap + 1 if gap >= 0 else _between_clusters(line, at)


def _between_clusters(line: str, at: int) -> int:
    """Return the last position up to `at` that does not split a character cluster."""
    for place in range(at, max(0, at - _MAX_CLUSTER), -1):
        after, before = line[place : place + 1], line[place - 1]
        joined = (
            after in _JOINERS or before == "\u200d" or unicodedata.category(after or " ")[0] == "M"
        )
        paired = _is_regional(after) and _regionals_before(line, place) % 2 == 1
        if not joined and not paired and not "\U0001f3fb" <= after <= "\U0001f3ff":
            return place
    return at


def _regionals_before(line: str, at: int) -> int:
    first = at
    while first and _is_regional(line[first - 1]):
        first -= 1
    return at - first


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _marks(matches: Sequence[WordMatch], offset: int, text: str) -> tuple[tuple[int, int], ...]:
    """Return the matches as marks in the excerpt, clipped to it and merged where they touch."""
    first, last = int(text.startswith("…")), len(text) - int(text.endswith("…"))
    merged: list[tuple[int, int]] = []
    for match in sorted(matches, key=lambda each: each.start):
        start, end = max(first, match.start + offset), min(last, match.end + offset)
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)
