"""Language detection by script and stop words, and stemming.

Stems are Snowball's (https://snowballstem.org, through PyStemmer). Words of a language without a
stemmer are found as written.
"""

import re
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

import Stemmer

# Languages whose words are found as pairs of characters, and their stop words of 1 or 2 characters.
UNSPACED_LANGUAGES = frozenset({"chinese", "japanese", "korean"})

DEFAULT_LANGUAGE = "english"
COMPOUNDING = frozenset({"danish", "dutch", "finnish", "german", "norwegian", "swedish"})

_BY_SCRIPT = (
    ("Ͱ", "Ͽ", "greek"),
    ("Ѐ", "ӿ", "russian"),
    ("\u0530", "\u058f", "armenian"),
    ("\u0590", "\u05ff", "hebrew"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
    ("\u1f00", "\u1fff", "greek"),
)
_OTHER_SCRIPTS = UNSPACED_LANGUAGES.union(language for _, _, language in _BY_SCRIPT)
_LETTERS = tuple(
    (language, re.compile(f"[{letters}]"))
    for language, letters in (
        ("turkish", "ığİ"),
        ("german", "ß"),
        ("spanish", "ñ¿¡"),
        ("polish", "łżśńąę"),
        ("hungarian", "őű"),
        ("czech", "řěů"),
        ("romanian", "țșă"),
        ("portuguese", "ãõ"),
        ("french", "œ"),
        ("vietnamese", "ơư\u1ea0-\u1ef9"),
    )
)
_LIKELY_VOTE = 0.7
_LETTER_VOTE = 0.5  # half a stop word that no other language has
_LATIN = re.compile("[\0-\u024f\u1e00-\u1eff]")
_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_ASCII_WORDS = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) in "_'-")}
_SAMPLE_CHARS = 300  # about 50 words, 20 of them stop words in prose
_stem_lock = threading.Lock()  # a Stemmer object must not be used by two threads at once


def language_of(text: str, default: str = DEFAULT_LANGUAGE, likely: tuple[str, ...] = ()) -> str:
    """Return the language of the Latin-script words in `text`, judged by its beginning.

    `default` applies if there is no stop word; `likely` languages win when the result is close, and
    the first one in the text in a tie.
    """
    votes = _votes(text[:_SAMPLE_CHARS])
    for language in likely:
        if language in votes:
            votes[language] += _LIKELY_VOTE
    return max(votes, key=votes.__getitem__) if votes else default


def is_english(text: str) -> bool | None:
    """Return whether a text is English, judged by its beginning; None if that cannot be told.

    That is so for Latin letters without two stop words, as in code, where one may be by chance.
    """
    sample = text[:_SAMPLE_CHARS]
    letters = [each for each in sample if each.isalpha()]
    if sum(_LATIN.match(each) is None for each in letters) * 2 > len(letters):
        return False
    stop_words = sum(word in _ballots() for word in set(sample.casefold().split()))
    return language_of(text) == DEFAULT_LANGUAGE if stop_words > 1 else None


def languages_in(text: str) -> list[str]:
    """Return the languages of stop words and letters at the start of `text`, likeliest first."""
    votes = _votes(text[:_SAMPLE_CHARS])
    return sorted(votes, key=lambda language: -votes[language])


def language_of_word(word: str, latin: str) -> str | None:
    """Return a word's language, `latin` in Latin script; None for scripts without a stemmer."""
    first = word[0]
    if _LATIN.match(first):
        return latin
    for start, end, language in _BY_SCRIPT:
        if start <= first <= end:
            return language
    return None


def is_stop_word(word: str, latin: str) -> bool:
    """Return whether a case-folded word is a stop word; `latin` is that of Latin words."""
    language = language_of_word(word, latin)
    return word in (UNSPACED_STOP_WORDS if language is None else STOP_WORDS.get(language, ()))


def stem(word: str, language: str | None) -> str:
    """Return the stem of `word`, case folded; the word itself without a stemmer. Thread-safe."""
    if language not in _stemmed():
        return word
    with _stem_lock:
        return _stemmer(language).stemWord(word) or word


@cache
def _stemmed() -> frozenset[str | None]:
    return frozenset(Stemmer.algorithms())


@cache
def _stemmer(language: str) -> Stemmer.Stemmer:
    return Stemmer.Stemmer(language, 0)  # 0: no cache, callers have their own


def _votes(sample: str) -> dict[str, float]:
    votes: dict[str, float] = {}
    ballots = _ballots()
    said = sample.casefold()
    if sample.isascii():  # a third of the pattern's time
        found = said.translate(_ASCII_WORDS).split()
    else:
        votes = {language: _LETTER_VOTE for language, sign in _LETTERS if sign.search(sample)}
        found = _WORD.findall(said)
    words = dict.fromkeys(found)  # not a set: the first one wins a tie
    for word in filter(ballots.__contains__, words):
        for language, weight in ballots[word]:
            votes[language] = votes.get(language, 0.0) + weight
    return votes


@cache
def _ballots() -> dict[str, tuple[tuple[str, float], ...]]:
    """The votes of each stop word; one that several languages share counts less for each."""
    voters: dict[str, list[str]] = {}
    for language, words in STOP_WORDS.items():
        if language not in _OTHER_SCRIPTS:
            for word in words:
                voters.setdefault(word, []).append(language)
    return {
        word: tuple((language, 1 / len(languages)) for language in languages)
        for word, languages in voters.items()
    }


_FOLDER = Path(__file__).resolve().parents[2] / "resources/language"


def read_words(name: str) -> Mapping[str, tuple[str, ...]]:
    """Return the words of each paragraph of a file, by its title; comments are left out."""
    return {title: tuple(words.split()) for title, words in _paragraphs(name)}


def read_phrases(name: str) -> Mapping[str, re.Pattern[str]]:
    """Return a pattern for any line of each paragraph of a file, by its title."""
    return {
        title: re.compile("|".join(lines.strip().splitlines()), re.IGNORECASE)
        for title, lines in _paragraphs(name)
    }


def read_lines(name: str) -> Mapping[str, tuple[str, ...]]:
    """Return the lines of each paragraph of a file, by its title."""
    return {title: tuple(lines.strip().splitlines()) for title, lines in _paragraphs(name)}


def _paragraphs(name: str) -> Iterator[tuple[str, str]]:
    for each in (_FOLDER / f"{name}.txt").read_text(encoding="utf-8").split("\n\n"):
        if not each.startswith("#"):
            title, _, text = each.partition(":\n")
            yield title, text


def word_sets(name: str) -> Mapping[str, frozenset[str]]:
    return MappingProxyType({title: frozenset(words) for title, words in read_words(name).items()})


# By language: omitted from queries, and used to detect a text's language.
STOP_WORDS = word_sets("stop_words")
ALL_STOP_WORDS: frozenset[str] = frozenset().union(*STOP_WORDS.values())
# Grammatical words of all languages, for finding a text's topic; matched case folded.
FUNCTION_WORDS: frozenset[str] = frozenset().union(*word_sets("function_words").values())
UNSPACED_STOP_WORDS = frozenset().union(*(STOP_WORDS[each] for each in UNSPACED_LANGUAGES))
# Chinese characters that join words; a pair with one of them has no content.
FUNCTION_CHARACTERS = frozenset(word for word in STOP_WORDS["chinese"] if len(word) == 1)
