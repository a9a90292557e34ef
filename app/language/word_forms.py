"""Forms of a word, and the parts of a composed one.

`getUserName`, `snake_case`, `E1234`, `3.11.7`, paths, addresses and hyphenated words are found as a
whole and by their parts, split at punctuation, underscores, and where case or digits change.
"""

import re
import unicodedata
from itertools import pairwise
from typing import NamedTuple

from app.language.languages import language_of_word, stem

MAX_TERM_CHARS = 64

_MAX_CHUNK_CHARS = 256
_MAX_PARTS = 8  # a chunk with more parts is a random string, not an identifier
_SIGNIFICANT_DIGITS = 3  # shorter parts of a number or version are not significant
_CASE_BREAK = re.compile(
    r"(?<=[a-zß-öø-ÿа-яё])(?=[A-ZÀ-ÖØ-ÞА-ЯЁ])"  # get|User
    r"|(?<=[A-ZÀ-ÖØ-ÞА-ЯЁ])(?=[A-ZÀ-ÖØ-ÞА-ЯЁ][a-zß-öø-ÿа-яё])"  # HTTP|Server
    r"|(?<=\d)(?=[^\W\d])|(?<=[^\W\d])(?=\d)|_+"  # E|1234
)
_ADDRESS_BREAK = re.compile(r"[!-&(-,/:-@\[-^`{-~\u2044]+")  # punctuation but for . ' - and _
_PUNCTUATION = re.compile(r"[.'\-]+")
_COMPOSED = re.compile(r"[!-/:-@\[-`{-~\u2044\d]")  # punctuation or a digit: not just a word
_DIGITS = re.compile(r"\d+")
_FOLDED_LETTERS = str.maketrans(
    {
        "ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th",
        "ħ": "h", "ŋ": "n", "أ": "ا", "إ": "ا", "آ": "ا", "ى": "ي", "ة": "ه", "\u0640": None,
    }
)  # fmt: skip
_SCRIPTS_WITH_MARKS = re.compile("[\u0900-\u0dff]")  # vowels of Indic scripts are marks


class WordForms(NamedTuple):
    """The forms of a chunk.

    Attributes:
        wholes: Forms of the whole chunk, as written first. A plain word has these only.
        parts: Forms of each of its smallest significant parts.
        between: Terms that a text has but no query uses: intermediate parts, and adjacent parts
            together ("username" of getUserName).
    """

    wholes: list[str]
    parts: list[list[str]]
    between: list[str]


def split_chunk(chunk: str, language: str) -> WordForms:
    """Return the forms of `chunk`; `language` is that of its words in Latin script."""
    if chunk.isalpha() and chunk.isascii() and (chunk.islower() or chunk[1:].islower()):
        return WordForms(_forms(chunk.lower()[:MAX_TERM_CHARS], language), [], [])  # most words
    plain = normalize(chunk[:_MAX_CHUNK_CHARS])
    whole = _shortened(plain)
    if len(chunk) > _MAX_CHUNK_CHARS and not chunk.startswith("http"):
        return WordForms([whole], [], [])
    if not _CASE_BREAK.search(plain) and not _COMPOSED.search(plain):
        return WordForms(_forms(whole, language), [], [])
    components = [each.strip(".'-") for each in _ADDRESS_BREAK.split(plain)]
    words = [word for each in components for word in _PUNCTUATION.split(each) if word.strip("_")]
    wholes = [whole, *_without_punctuation(plain, words)]
    if all(word.isdigit() for word in words):
        return _number(plain, wholes)
    smallest = {word: _identifier_parts(word) for word in words}
    parts = [
        _forms(_shortened(part), language)
        for part in dict.fromkeys(part for each in smallest.values() for part in each)
        if len(part) > 1 or not part.isascii()
    ]
    between = [_shortened(each) for each in (*components, *words) if len(each) > 1]
    between += [_shortened(a + b) for each in smallest.values() for a, b in pairwise(each)]
    if len(parts) != 1:
        return WordForms(wholes, parts, between)
    if "'" in plain:  # one word: Caroline's, l'amour
        return WordForms([*_forms(whole, language), *wholes, *parts[0]], [], between)
    return WordForms(wholes, [], [*between, *parts[0]])


def surface_words(chunk: str) -> list[str]:
    """Return the words of a chunk as written, for exact phrases."""
    if chunk.isalpha() and chunk.isascii():
        return [chunk.lower()[:MAX_TERM_CHARS]]
    plain = normalize(chunk[:_MAX_CHUNK_CHARS])
    words = _ADDRESS_BREAK.sub(" ", _PUNCTUATION.sub(" ", plain)).split()
    return [_shortened(word) for word in words]


def written_form(chunk: str) -> str:
    """Return the chunk as a term: normalized, case folded, without punctuation at its ends."""
    return _shortened(normalize(chunk[:_MAX_CHUNK_CHARS]))


def normalize(chunk: str) -> str:
    """Return `chunk` in NFKC, with plain apostrophes and without white space that NFKC adds."""
    if chunk.isascii():
        return chunk
    return "".join(unicodedata.normalize("NFKC", chunk).replace("’", "'").split())


def _number(plain: str, wholes: list[str]) -> WordForms:
    """3.11.7 is found by 3.11 and by 7; queries use long groups only, such as 2024 in a date."""
    groups = [match[0] for match in _DIGITS.finditer(plain)]
    if "," in plain:
        return WordForms(wholes, [], [])
    leading = [plain[: match.end()] for match in _DIGITS.finditer(plain)]
    significant = [[group] for group in dict.fromkeys(groups) if len(group) >= _SIGNIFICANT_DIGITS]
    return WordForms(wholes, significant if len(significant) > 1 else [], leading + groups)


def _identifier_parts(word: str) -> list[str]:
    if len(word) > MAX_TERM_CHARS:
        return []
    parts = [part for part in _CASE_BREAK.split(word) if part]
    return parts if len(parts) <= _MAX_PARTS else []


def _without_punctuation(plain: str, words: list[str]) -> list[str]:
    """Return `plain` unpunctuated where both spellings are common: e-mail, U.S.A., 10,000."""
    number = "," in plain and all(word.isdigit() for word in words)
    initials = len(words) > 1 and all(len(word) == 1 and word.isalpha() for word in words)
    hyphened = "-" in plain and len(words) in (2, 3) and all(word.isalnum() for word in words)
    return [_shortened("".join(words))] if number or initials or hyphened else []


def _forms(word: str, language: str) -> list[str]:
    """Return a case-folded word, its stem, and both without diacritics."""
    forms = [word]
    if len(word) > 2:
        forms.append(stem(word, language_of_word(word, language)))
    if not word.isascii():
        forms += [_without_diacritics(form) for form in forms]
    return list(dict.fromkeys(form for form in forms if form))


def _shortened(plain: str) -> str:
    """Return `plain` case folded and cut; a Turkish capital İ becomes a plain i."""
    return (plain.strip("_.'-") or plain).casefold().replace("i\u0307", "i")[:MAX_TERM_CHARS]


def _without_diacritics(word: str) -> str:
    if _SCRIPTS_WITH_MARKS.search(word):
        return word
    bare = unicodedata.normalize("NFD", word.translate(_FOLDED_LETTERS))
    return "".join(each for each in bare if not unicodedata.combining(each))
