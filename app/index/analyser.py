"""Words of any language as index terms: the one analysis behind index, query and marks.

A text falls into **chunks**: words with what glues them (`don't`, `getUserName`, `3.11.7`, an
address), runs of a script that puts no spaces between words, and single emoji. A chunk becomes
**terms**: the word as it stands (NFKC, case folded), its stem, both without diacritics, an
identifier's parts; runs become overlapping pairs of characters. Besides there are **surface**
words, as they stand and one after the other, for exact phrases.

Every chunk is matched possessively and looked up in a table of those seen before, so the time is
linear whatever the text; long texts go in slices so that other threads get their turn.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise

from app.index.dates import month_term
from app.index.languages import COMPOUNDING, DEFAULT_LANGUAGE, is_stop_word, language_of
from app.index.word_forms import (
    MAX_TERM_CHARS,
    anatomy,
    as_written,
    compatible,
    surface_words,
)

SLICE_CHARS = 32_768  # at most 64 KB of Latin, Greek or Cyrillic; some 3 ms
COMPOUND_CHARS = 9  # words at least this long may be compounds ("Haustüren" is 9)
_BLOB_CHARS = 300  # so long a run of base64 is a file, not a word
_MAX_KNOWN = 80_000  # about 20 MB with its surface words


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
_GLUE = r"(?:[-.'’/\\:@]{1,3}|(?<=\d),(?=\d{3}))"
_TAIL = r"(?:\+\+|\#(?!\w))?+"  # C++, C#
_HIRAGANA_PAIR = re.compile("[\u3041-\u309f]{2}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One word of a query.

    Any of `terms` stands for it, the word as typed first. An identifier has `parts` besides, all
    of which together also stand for it. `is_character` marks a lone character of a script without
    spaces, which is found among the surface words only.
    """

    terms: tuple[str, ...]
    parts: tuple["Wanted", ...] = ()
    is_character: bool = False


@dataclass(frozen=True, slots=True)
class Analysed:
    """A text's terms and its surface words, each one string with spaces between."""

    terms: str
    surface: str


_NOTHING = Analysed("", "")


def analyse(text: str, language: str) -> Analysed:
    """Return the terms of `text`; `language` is that of its words in Latin script. Thread-safe."""
    if not text:
        return _NOTHING
    term_table, surface_table = _terms_in(language), _surfaces()
    terms, surface = [], []
    for piece in slices(text):
        chunks = _pattern_for(piece).findall(piece)
        terms.append(" ".join(map(term_table.__getitem__, chunks)))
        surface.append(" ".join(map(surface_table.__getitem__, chunks)))
    return Analysed(" ".join(terms), " ".join(surface))


def chunk_spans(text: str, offset: int = 0) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, chunk) for each chunk of `text`, which stands at `offset`; in order."""
    start = offset
    for piece in slices(text):
        for match in _pattern_for(piece).finditer(piece):
            yield start + match.start(), start + match.end(), match[0]
        start += len(piece)


def terms_of(chunk: str, language: str) -> list[str]:
    """Return the terms of one chunk."""
    return _terms_in(language)[chunk].split()


def surface_of_chunk(chunk: str) -> list[str]:
    """Return the surface words of one chunk."""
    return _surfaces()[chunk].split()


def surface_of(text: str) -> list[str]:
    """Return the surface words of a short text: what a phrase must find one after the other."""
    chunks = _pattern_for(text).findall(text)
    return " ".join(map(_surfaces().__getitem__, chunks)).split()


def compounds_in(terms: str, language: str) -> set[str]:
    """Return those of a text's `terms` that may be compounds; none unless the language builds them."""
    if language not in COMPOUNDING:
        return set()
    return {term for term in terms.split() if len(term) >= COMPOUND_CHARS and term.isalpha()}


def is_unspaced(chunk: str) -> bool:
    """Return whether `chunk` is a run of a script without spaces."""
    return _unspaced_character().match(chunk) is not None


def is_word_alone(character: str) -> bool:
    """Return whether one character can be a word: of an unspaced script, or an emoji."""
    return is_unspaced(character) or (not character.isalnum() and bool(surface_of(character)))


def wanted_words(text: str, languages: tuple[str, ...]) -> tuple[Wanted, ...]:
    """Return the words of a query, without repetition, small words left out unless all are.

    `languages` are those its Latin words may be in, the likeliest first: stems are of all of them,
    small words of the first alone.
    """
    chunks = _pattern_for(text).findall(text)
    weighty = [chunk for chunk in chunks if not _is_small(as_written(chunk), languages[0])]
    wanted = [each for chunk in weighty or chunks for each in _wanted(chunk, languages)]
    spoken = [each for each in wanted if not _HIRAGANA_PAIR.fullmatch(each.terms[0])]
    return tuple(dict.fromkeys(spoken or wanted))


def query_languages(text: str, likely: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the languages a query may be in: as its small words say, then the `likely` ones."""
    first = language_of(text, likely[0] if likely else DEFAULT_LANGUAGE, likely)
    return tuple(dict.fromkeys((first, *likely)))


def slices(text: str) -> Iterator[str]:
    """Yield `text` in pieces of at most `SLICE_CHARS`, cut at white space where there is some."""
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


class _Table(dict[str, str]):
    """Chunks seen before, each with its terms as one string; keeps the newer half when it grows large."""

    def __init__(self, language: str | None) -> None:
        super().__init__()
        self._language = language

    def __missing__(self, chunk: str) -> str:
        if self._language is None:
            made = " ".join(_surface(chunk))
        else:
            made = " ".join(_terms(chunk, self._language))
        if len(chunk) <= MAX_TERM_CHARS and not is_unspaced(chunk):
            if len(self) >= _MAX_KNOWN:
                self._forget_oldest()
            self[chunk] = chunk if made == chunk else made
        return made

    def _forget_oldest(self) -> None:
        for chunk in list(islice(self, _MAX_KNOWN // 2)):
            self.pop(chunk, None)


@cache
def _terms_in(language: str) -> _Table:
    return _Table(language)


@cache
def _surfaces() -> _Table:
    return _Table(None)


def _pattern_for(piece: str) -> re.Pattern[str]:
    """Return what finds chunks; where spaces are rare, looking out for encoded files costs little."""
    crowded = len(piece) > _BLOB_CHARS and piece.count(" ") * 100 < len(piece)
    return _pattern(piece.isascii(), crowded)


@cache
def _pattern(ascii_only: bool, crowded: bool) -> re.Pattern[str]:
    blob = f"[A-Za-z0-9+/=]{{{_BLOB_CHARS},}}+|" if crowded else ""
    if ascii_only:
        word = "[A-Za-z0-9_]++"
        return re.compile(rf"{_URL}|{blob}{word}(?:{_GLUE}{word}){{0,30}}+{_TAIL}")
    word = f"(?:[^\\W{UNSPACED}]++[{_marks()}]*+)++"
    run = f"[{UNSPACED}]++"
    return re.compile(rf"{_URL}|{blob}{word}(?:{_GLUE}{word}){{0,30}}+{_TAIL}|{run}|{_EMOJI}")


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
    if is_unspaced(chunk):
        return _pairs(compatible(chunk))
    wholes, parts, between = anatomy(chunk, language)
    return list(dict.fromkeys([*wholes, *between, *(form for part in parts for form in part)]))


def _surface(chunk: str) -> list[str]:
    return list(compatible(chunk)) if is_unspaced(chunk) else surface_words(chunk)


def _wanted(chunk: str, languages: tuple[str, ...]) -> list[Wanted]:
    if is_unspaced(chunk):
        run = compatible(chunk)
        if len(run) == 1:
            return [Wanted((run,), is_character=True)]
        return [Wanted((pair,)) for pair in _pairs(run)]
    wholes: dict[str, None] = {}
    parts: dict[str, dict[str, None]] = {}
    for language in languages:
        own = anatomy(chunk, language)
        wholes.update(dict.fromkeys(own.wholes))
        for forms in own.parts:
            parts.setdefault(forms[0], {}).update(dict.fromkeys(forms))
    weighty = [part for part in parts if not is_stop_word(part, languages[0])]
    made = tuple(Wanted(tuple(parts[part])) for part in weighty or parts)
    return [Wanted(tuple(wholes), made)]


def _is_small(word: str, language: str) -> bool:
    """Months are never small, although "mai" is Romanian for "more"."""
    return is_stop_word(word, language) and month_term(word) is None


def _pairs(run: str) -> list[str]:
    return [one + other for one, other in pairwise(run)] or [run]
