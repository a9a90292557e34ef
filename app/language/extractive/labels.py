"""Titles and tags of conversations without a language model: phrases of the conversation itself."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from app.language.extractive.centrality import Sentence, TfIdfSpace
from app.language.sentences import content_terms, split_words, unspaced_runs
from app.language.word_lists import COMMON_WORDS, FUNCTION_CHARACTERS, FUNCTION_WORDS

TITLE_LIMIT_CHARS = 60
TAG_LIMIT = 3
_TITLE_SENTENCES = 8
_TITLE_STARTS = 12
_TAG_LIMIT_CHARS = 30
_CLAUSE = re.compile(r"[,;:–—(（，、：；]|\s-\s|\.\s")
_TOKEN = re.compile(r"\S+")
_EDGE = " \t.,;:!?…-–—'\"“”„‘’«»()[]{}*_`~#>|/\\。！？、，；：「」『』（）"
_NAMED_BONUS = 1.5
_TAG_CANDIDATES = 20
_LATE_PENALTY = 0.12
_NO_TAGS = FUNCTION_WORDS | COMMON_WORDS


def extract_title(sentences: Sequence[Sentence]) -> str:
    """Return what the user first asked about: at most 60 characters without a final mark, or "".

    It is the phrase of the user's first sentences with the most central terms. Opening function words
    ("How do I ...") are left out; case is kept, except for a capital at the start.
    """
    asked = [each for each in sentences if each.asks and not each.is_item]
    center = TfIdfSpace(sentences).center()
    best, best_worth = "", 0.0
    for number, sentence in enumerate(asked[:_TITLE_SENTENCES]):
        for place, phrase in enumerate(_phrases(sentence.text)):
            weight = sum(center.get(term, 0.0) for term in dict.fromkeys(content_terms(phrase)))
            worth = weight / (1 + _LATE_PENALTY * (2 * number + place))
            if worth > best_worth:
                best, best_worth = phrase, worth
    return best[:1].upper() + best[1:] if best.split(" ")[0].islower() else best


def extract_tags(sentences: Sequence[Sentence]) -> tuple[str, ...]:
    """Return the most frequent content words in lower case, the most significant first.

    A word needs three occurrences; those in the user's sentences count twice.
    """
    count: Counter[str] = Counter()
    for sentence in sentences:
        words = dict.fromkeys(_candidates(sentence.text)).keys()  # in the same order in every run
        count.update(words)
        if sentence.asks:
            count.update(words)
    for word in [each for each in count if each.endswith("s") and each[:-1] in count]:
        count[word[:-1]] += count.pop(word)  # plurals
    frequent = [word for word, number in count.most_common(_TAG_CANDIDATES) if number >= 3]
    whole = "\n".join(sentence.text for sentence in sentences)
    worth = {
        word: count[word] * (_NAMED_BONUS if _is_name(word, whole) else 1.0) for word in frequent
    }
    ranked = sorted(worth, key=lambda word: (-worth[word], -len(word), word))
    return tuple(_without_parts(ranked)[:TAG_LIMIT])


def _is_name(word: str, whole: str) -> bool:
    """Return whether a word is mostly capitalized inside sentences."""
    named = whole.count(f" {word.capitalize()}") + whole.count(word.upper())
    return named > whole.count(f" {word}")


def _phrases(sentence: str) -> Iterator[str]:
    """Yield phrases of at least two words that start with a content word after grammar or a comma."""
    after_grammar, starts = True, 0
    for token in _TOKEN.finditer(sentence):
        grammar = _is_grammar(token[0])
        if after_grammar and not grammar and starts < _TITLE_STARTS:
            phrase = _cut(sentence[token.start() :])
            if unspaced_runs(phrase) or " " in phrase or phrase == sentence.strip(_EDGE):
                starts += 1
                yield phrase
        after_grammar = grammar or token[0][-1] in ",;:–—，、：；"


def _cut(phrase: str) -> str:
    """Return a phrase cut at a clause or a word, without punctuation or function words at its end."""
    phrase = phrase.strip(_EDGE)
    if len(phrase) <= TITLE_LIMIT_CHARS:
        return phrase
    clauses = [each.start() for each in _CLAUSE.finditer(phrase[: TITLE_LIMIT_CHARS + 1])]
    long_enough = [at for at in clauses if at >= TITLE_LIMIT_CHARS // 3]
    space = phrase.rfind(" ", 0, TITLE_LIMIT_CHARS + 1)
    end = long_enough[-1] if long_enough else space if space > 0 else TITLE_LIMIT_CHARS
    phrase = phrase[:end].strip(_EDGE)
    while " " in phrase and _is_grammar(phrase.rsplit(" ", 1)[1]):
        phrase = phrase.rsplit(" ", 1)[0].strip(_EDGE)
    return phrase


def _is_grammar(word: str) -> bool:
    bare = word.strip(_EDGE).casefold().replace("’", "'")
    return not bare or bare in FUNCTION_WORDS


def _candidates(sentence: str) -> list[str]:
    """Return the words of a sentence that could be tags."""
    words = split_words(sentence)
    if not sentence.isascii() and any(runs := [unspaced_runs(word) for word in words]):
        pieces = [piece for found in runs for run in found for piece in _pieces(run)]
        words = [word for word, found in zip(words, runs, strict=True) if not found]
    else:
        pieces = []
    bare = [word.removesuffix("'s") for word in words]
    return pieces + [
        word
        for word in bare
        if word not in _NO_TAGS
        and 3 <= len(word) <= _TAG_LIMIT_CHARS
        and not word[0].isdigit()
        and "'" not in word
    ]


def _pieces(run: str) -> Iterator[str]:
    """Yield the pieces of 2 to 4 characters that may be words of a language without spaces."""
    for length in (2, 3, 4):
        for start in range(min(len(run), 100) - length + 1):
            piece = run[start : start + length]
            if not FUNCTION_CHARACTERS.intersection(piece) and not any(
                "\u3040" <= sign <= "\u309f" for sign in piece
            ):
                yield piece


def _without_parts(ranked: Sequence[str]) -> list[str]:
    """Return the words without unspaced ones that share a character with a better one.

    Most of those are the same word cut elsewhere.
    """
    kept: list[str] = []
    taken: set[str] = set()
    for word in ranked:
        if unspaced_runs(word):
            if taken.intersection(word):
                continue
            taken.update(word)
        kept.append(word)
    return kept
