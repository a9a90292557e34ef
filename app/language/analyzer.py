"""Text analysis for index, query and highlighting: words of any language as index terms.

A text is split into **chunks**: words with connecting punctuation (`don't`, `getUserName`,
`3.11.7`, an address), runs of a script without spaces between words, and single emoji. A chunk
yields **terms**: the word as written (NFKC, case folded), its stem, both without diacritics, the
parts of an identifier, the month of a date in digits; a run yields overlapping pairs of characters.
**Surface** words are the words as written and in order, for exact phrases.

Chunks are matched without backtracking, so the time is linear for any text. No chunk contains white
space: for the index a text is split there, and each piece looked up among known ones, which
takes a third of the time. Long texts are processed in slices so that other threads can run.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from app.language.date_terms import month_term, written_date_terms
from app.language.languages import (
    COMPOUNDING,
    DEFAULT_LANGUAGE,
    UNSPACED_STOP_WORDS,
    is_stop_word,
    language_of,
)
from app.language.word_forms import (
    MAX_TERM_CHARS,
    normalize,
    split_chunk,
    surface_words,
    written_form,
)

SLICE_CHARS = 32_768  # at most 64 KB of Latin, Greek or Cyrillic; about 3 ms
COMPOUND_CHARS = 9  # words at least this long may be compounds ("Haustüren" is 9)
_BLOB_CHARS = 300  # a longer run of base64 is a file
_MAX_KNOWN = 32_000  # chunks of a language and as many pieces: some 13 MB


UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3041-\u309f"
    "\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0001b000-\U0001b16f"
    "\U00020000-\U0003ffff"
)
"""Han, kana, bopomofo, Hangul, Thai, Lao, Khmer, Burmese, as the inside of a character class."""

_EMOJI = (
    "[\U0001f1e6-\U0001f1ff]{2}"
    "|[\u231a-\u23ff\u2600-\u27bf\u2b05-\u2b55\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
)
_URL = r"https?://[^\s<>\"'`)\]}|\\]+(?<![.,;:!?])"
_CONNECTOR = r"(?:[-.'’/\\:@]{1,3}|(?<=\d),(?=\d{3}))"
# Groups are not repeated possessively: Python 3.11.2 (Debian 12) then loses the end of a match.
_TAIL = r"(?:\+\+|\#(?!\w))?"  # C++, C#
_KOREAN_PARTICLES = "은는이가을를의에도와과로만"  # after a noun, which may be one character
_HIRAGANA_PAIR = re.compile("[\u3041-\u309f]{2}")


@dataclass(frozen=True, slots=True)
class AnalyzedWord:
    """One word of a query.

    Any of `terms` matches it, the word as typed first. An identifier also has `parts`, which match
    it together. `is_character` marks a single character of a script without spaces, which is found
    among the surface words only.
    """

    terms: tuple[str, ...]
    parts: tuple["AnalyzedWord", ...] = ()
    is_character: bool = False


class AnalyzedText(NamedTuple):
    """A text's terms and its surface words, each one string with spaces between."""

    terms: str
    surface: str


_NOTHING = AnalyzedText("", "")


def analyze(text: str, language: str) -> AnalyzedText:
    """Return terms and surface words; `language` is that of words in Latin script. Thread-safe."""
    found: list[AnalyzedText] = []
    for piece in slices(text):
        is_crowded = _is_crowded(piece)
        parts = _pattern_for(piece).findall(piece) if is_crowded else piece.split()
        known = (_chunks if is_crowded else _pieces)(language)
        found.append(_joined(list(map(known.__getitem__, parts))))
    return _joined(found)


def chunk_spans(text: str, offset: int = 0) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, chunk) for each chunk of `text` in order, the positions plus `offset`."""
    start = offset
    for piece in slices(text):
        for match in _pattern_for(piece).finditer(piece):
            yield start + match.start(), start + match.end(), match[0]
        start += len(piece)


def chunk_terms(chunk: str, language: str) -> list[str]:
    return _chunks(language)[chunk].terms.split()


def chunk_surface_words(chunk: str) -> list[str]:
    return _chunks(DEFAULT_LANGUAGE)[chunk].surface.split()


def surface_words_of(text: str) -> list[str]:
    """Return the surface words of a short text: a phrase must match them in order."""
    chunks = _pattern_for(text).findall(text)
    return [word for chunk in chunks for word in chunk_surface_words(chunk)]


def compounds_in(terms: str, language: str) -> set[str]:
    """Return the `terms` that may be compounds; none unless the language builds them."""
    if language not in COMPOUNDING:
        return set()
    return {term for term in terms.split() if len(term) >= COMPOUND_CHARS and term.isalpha()}


def is_unspaced(chunk: str) -> bool:
    """Return whether `chunk` is a run of a script without spaces."""
    return _unspaced_character().match(chunk) is not None


def is_one_character_word(character: str) -> bool:
    """Return whether one character can be a word: of an unspaced script, or an emoji."""
    return is_unspaced(character) or (not character.isalnum() and bool(surface_words_of(character)))


def query_words(text: str, languages: tuple[str, ...]) -> tuple[AnalyzedWord, ...]:
    """Return the distinct words of a query, without stop words unless there are no others.

    `languages` are the possible ones of its Latin words, the most likely first: stems are of all of
    them, stop words of the first.
    """
    chunks = _pattern_for(text).findall(text)
    significant = [
        chunk for chunk in chunks if not _is_small_word(written_form(chunk), languages[0])
    ]
    wanted = [each for chunk in significant or chunks for each in _wanted(chunk, languages)]
    content = [each for each in wanted if not _is_small_pair(each.terms[0])]
    return tuple(dict.fromkeys(content or wanted))


def query_languages(text: str, likely: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return a query's possible languages: the one of its stop words, then the `likely` ones."""
    first = language_of(text, likely[0] if likely else DEFAULT_LANGUAGE, likely)
    return tuple(dict.fromkeys((first, *likely)))


def slices(text: str) -> Iterator[str]:
    """Yield `text` in pieces of at most `SLICE_CHARS`, cut at white space where possible."""
    if len(text) <= SLICE_CHARS:
        yield text
        return
    start = 0
    while start < len(text):
        end = start + SLICE_CHARS
        if end < len(text):
            near = max(text.rfind(gap, end - 512, end) for gap in " \n\t")
            end = near + 1 if near > start else end
        yield text[start:end]
        start = end


class _Known(dict[str, AnalyzedText]):
    """Short texts and their analysis; when it is full, those not used lately are dropped."""

    def __init__(self, made: Callable[[str], AnalyzedText]) -> None:
        super().__init__()
        self._made = made
        self._older: dict[str, AnalyzedText] = {}

    def __missing__(self, text: str) -> AnalyzedText:
        found = self._older.get(text) or self._made(text)
        if len(text) <= MAX_TERM_CHARS and not is_unspaced(text):
            if len(self) >= _MAX_KNOWN // 2:
                self._older = self.copy()
                self.clear()
            self[text] = found
        return found


@cache
def _chunks(language: str) -> _Known:
    def made(chunk: str) -> AnalyzedText:
        if is_unspaced(chunk):
            run = normalize(chunk)
            return AnalyzedText(" ".join(_pairs(run)), " ".join(run))
        terms, surface = " ".join(_terms(chunk, language)), " ".join(surface_words(chunk))
        return AnalyzedText(terms, terms if surface == terms else surface)

    return _Known(made)


@cache
def _pieces(language: str) -> _Known:
    """Return the known texts without white space, such as a word and its comma."""

    def made(piece: str) -> AnalyzedText:
        chunks = _pattern(piece.isascii(), crowded=False).findall(piece)
        return _joined(list(map(_chunks(language).__getitem__, chunks)))

    return _Known(made)


def _joined(found: list[AnalyzedText]) -> AnalyzedText:
    if len(found) < 2:
        return found[0] if found else _NOTHING
    terms, surface = zip(*found, strict=True)
    return AnalyzedText(" ".join(filter(None, terms)), " ".join(filter(None, surface)))


def _is_crowded(piece: str) -> bool:
    """Return whether a text has so few spaces that it may contain an encoded file."""
    return len(piece) > _BLOB_CHARS and piece.count(" ") * 100 < len(piece)


def _pattern_for(piece: str) -> re.Pattern[str]:
    return _pattern(piece.isascii(), _is_crowded(piece))


@cache
def _pattern(ascii_only: bool, crowded: bool) -> re.Pattern[str]:
    blob = f"[A-Za-z0-9+/=]{{{_BLOB_CHARS},}}+|" if crowded else ""
    if ascii_only:
        word = "[A-Za-z0-9_]++"
        return re.compile(rf"{_URL}|{blob}{word}(?:{_CONNECTOR}{word}){{0,30}}{_TAIL}")
    word = f"(?:[^\\W{UNSPACED}]++[{_marks()}]*+)++"
    run = f"[{UNSPACED}]++"
    return re.compile(rf"{_URL}|{blob}{word}(?:{_CONNECTOR}{word}){{0,30}}{_TAIL}|{run}|{_EMOJI}")


@cache
def _marks() -> str:
    """Combining marks outside the unspaced scripts, and joiners: they belong to their word."""
    unspaced = _unspaced_character()
    ranges: list[list[int]] = [[0x200C, 0x200D]]
    for code in range(0x300, 0x1F000):
        if unicodedata.category(chr(code))[0] == "M" and not unspaced.match(chr(code)):
            if ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


@cache
def _unspaced_character() -> re.Pattern[str]:
    return re.compile(f"[{UNSPACED}]")


def _terms(chunk: str, language: str) -> list[str]:
    wholes, parts, between = split_chunk(chunk, language)
    forms = (form for part in parts for form in part)
    return list(dict.fromkeys([*wholes, *between, *forms, *written_date_terms(chunk)]))


def _wanted(chunk: str, languages: tuple[str, ...]) -> list[AnalyzedWord]:
    if is_unspaced(chunk):
        run = normalize(chunk)
        if len(run) == 1:
            return [AnalyzedWord((run,), is_character=True)]
        if len(run) == 2 and run[1] in _KOREAN_PARTICLES:
            return [AnalyzedWord((run,), (AnalyzedWord((run[0],), is_character=True),))]
        return [AnalyzedWord((pair,)) for pair in _pairs(run)]
    wholes: dict[str, None] = {}
    parts: dict[str, dict[str, None]] = {}
    for language in languages:
        own = split_chunk(chunk, language)
        wholes.update(dict.fromkeys(own.wholes))
        for forms in own.parts:
            parts.setdefault(forms[0], {}).update(dict.fromkeys(forms))
    significant = [part for part in parts if not is_stop_word(part, languages[0])]
    made = tuple(_analyzed(parts[part], languages[0]) for part in significant or parts)
    return [_analyzed(wholes, languages[0], made)]


def _analyzed(
    forms: Iterable[str], language: str, parts: tuple[AnalyzedWord, ...] = ()
) -> AnalyzedWord:
    """Return a word without the stems that are stop words: Turkish "deniz" (sea) has the stem "de" (too)."""
    written, *others = forms
    kept = (each for each in others if not is_stop_word(each, language))
    return AnalyzedWord((written, *kept), parts)


def _is_small_word(word: str, language: str) -> bool:
    """Months are never stop words, although "mai" is Romanian for "more"."""
    return is_stop_word(word, language) and month_term(word) is None


def _is_small_pair(word: str) -> bool:
    return word in UNSPACED_STOP_WORDS or _HIRAGANA_PAIR.fullmatch(word) is not None


def _pairs(run: str) -> list[str]:
    return [one + other for one, other in pairwise(run)] or [run]
