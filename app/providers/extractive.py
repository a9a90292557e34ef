"""Summaries without a language model: the most central sentences of a text, in its own words. Pure.

Of an exchange, the sentence of each side that is most central (`app.providers.extractive_space`). Of a
conversation, those that together say most of what it is about: each term counts once, by how many
sentences hold it (a submodular gain, Lin and Bilmes 2011), so what repeats an earlier choice adds
nothing. Where a sentence stands and in what manner it speaks weighs too. Embeddings were measured and
add nothing here (packaging/decisions/0021). Titles and tags are `app.providers.extractive_labels`.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.domain.text import one_line
from app.providers.extractive_space import Sentence, TfIdfSpace
from app.providers.extractive_text import abridged, sentences_of, terms_of

MODEL = "extractive"
SENTENCE_LIMIT = 300
EXCHANGE_LIMIT_CHARS = 340
CONVERSATION_LIMIT_CHARS = 540
_TURN_LIMIT = 60
_EXCHANGE_READS_CHARS = 8_000  # of each side; what is central is said more than once
_CONVERSATION_READS_CHARS = 2_000  # of each side of each turn

# Chosen by eye on chats and by ROUGE on long ones (`tests/bench/summaries.py`); all are flat there.
_FULL_TERMS = 8  # a sentence with fewer terms says less
_EARLY_BONUS = 0.3
_DATE = re.compile(r"\d{4}|\d{1,2}[:./-]\d{1,2}|\d+(?:st|nd|rd|th)\b|\d+\s?[%€$£°年月日]|[$€£]\d")
_CLOSING = "\"'”’»)」』* "
_DIGIT = re.compile(r"\d")
_DATE_BONUS = 1.3
_ASKING_BONUS = 1.25
_COUNTER_QUESTION = 0.5
_ANNOUNCEMENT = 0.4  # "Here is the plan:"
_LIST_ITEM = 0.7  # says little without the list
_FORMULA = 0.1
_SPEAKER = re.compile(r"\s*([^\W\d_][^\n:：]{0,30})[:：](?=\s*\S)")


@dataclass(frozen=True, slots=True)
class Turn:
    """What was asked and what was answered, as Markdown; either may be empty."""

    asked: str
    answered: str


@dataclass(frozen=True, slots=True)
class _Side:
    """One side's words; `speaker` is the name that stands before them, "" for none."""

    text: str
    asks: bool
    speaker: str = ""


_Raw = tuple[str, bool, bool, float]  # text, asks, is_item, depth


def summarise_exchange(turn: Turn) -> str:
    """Return one or two sentences: what was asked, and the heart of the answer; "" without words.

    At most `EXCHANGE_LIMIT_CHARS`, in the turn's own language and the same for the same text.
    """
    sentences = _understood(_sampled(_raw(_sides(turn), _EXCHANGE_READS_CHARS)))
    weights = _weigh(sentences)
    asked, answered = (_best(weights, sentences, asks=side) for side in (True, False))
    parts = [
        _first_line(turn.asked) if asked is None else sentences[asked].text,
        _first_line(turn.answered) if answered is None else sentences[answered].text,
    ]
    return _joined(parts, EXCHANGE_LIMIT_CHARS)


def sentences_of_conversation(turns: Sequence[Turn]) -> Sequence[Sentence]:
    """Return sentences from all over a conversation, in order, at most `SENTENCE_LIMIT`.

    Of a long conversation, turns spread evenly over it are read, so that time is bounded.
    """
    read = _spread(turns, _TURN_LIMIT)
    names = _speakers(turn.asked for turn in read) | _speakers(turn.answered for turn in read)
    raw = [
        (text, asks, is_item, (number + depth) / len(read))
        for number, turn in enumerate(read)
        for text, asks, is_item, depth in _raw(_sides(turn, names), _CONVERSATION_READS_CHARS)
    ]
    return _understood(_sampled(raw))


def summarise_conversation(
    turns: Sequence[Turn],
    sentences: Sequence[Sentence] | None = None,
    most_sentences: int = 3,
) -> str:
    """Return the most telling sentences in the order they were said; "" without words.

    At most `CONVERSATION_LIMIT_CHARS`; one of them is the user's, where there is one. `sentences`
    are those of `sentences_of_conversation`, where they are at hand.
    """
    read = sentences_of_conversation(turns) if sentences is None else sentences
    if not read:
        return _joined([_first_line(turn.asked or turn.answered) for turn in turns[:1]], 200)
    chosen = central_sentences(read, most_sentences)
    return _joined([read[each].text for each in sorted(chosen)], CONVERSATION_LIMIT_CHARS)


def central_sentences(sentences: Sequence[Sentence], most: int) -> list[int]:
    """Return the indices of the most telling sentences, the best first, one of the user's first."""
    terms = [frozenset(each.terms) for each in sentences]
    held_by = Counter(term for own in terms for term in own)
    weight = {term: math.sqrt(count) for term, count in held_by.items()}
    worth = [
        worth_of_manner(each) / math.sqrt(max(1, len(own)))
        for each, own in zip(sentences, terms, strict=True)
    ]
    told: set[str] = set()
    left = dict.fromkeys(range(len(sentences)))
    chosen: list[int] = []

    def gain(place: int) -> tuple[float, int]:
        return worth[place] * sum(weight[term] for term in terms[place] - told), -place

    pool: Iterable[int] = [each for each in left if sentences[each].asks and terms[each]] or left
    while left and len(chosen) < most:
        best = max(pool, key=gain)
        if chosen and not gain(best)[0]:
            break
        chosen.append(best)
        told |= terms[best]
        del left[best]
        pool = left
    return chosen


def _speakers(texts: Iterable[str]) -> frozenset[str]:
    """Return the names that open more than half of a side's texts, and two at least."""
    said = [text for text in texts if text.strip()]
    names = Counter(found[1] for text in said if (found := _SPEAKER.match(text)))
    return frozenset(name for name, count in names.items() if count > max(1, len(said) // 2))


def _sides(turn: Turn, speakers: frozenset[str] = frozenset()) -> tuple[_Side, ...]:
    sides = []
    for text, asks in ((turn.asked, True), (turn.answered, False)):
        found = _SPEAKER.match(text) if speakers else None
        named = found is not None and found[1] in speakers
        sides.append(_Side(text, asks, found[0].strip() if found and named else ""))
    return tuple(sides)


def _raw(sides: Sequence[_Side], limit_chars: int) -> list[_Raw]:
    """Return the sentences of both sides, not yet looked into: most may never be."""
    raw: list[_Raw] = []
    for side in sides:
        found = sentences_of(abridged(side.text, limit_chars))
        last = max(1, len(found) - 1)
        raw += [
            (_named(words, side.speaker), side.asks, is_item, place / last)
            for place, (words, is_item) in enumerate(found)
        ]
    return raw


def _named(words: str, speaker: str) -> str:
    """Return a sentence with its speaker's name before it, as the first of a message has."""
    return words if words.startswith(speaker) else f"{speaker} {words}"


def _understood(raw: Sequence[_Raw]) -> list[Sentence]:
    return [
        Sentence(text, tuple(terms_of(text)), asks, is_item, depth)
        for text, asks, is_item, depth in raw
    ]


def _best(weights: Sequence[float], sentences: Sequence[Sentence], *, asks: bool) -> int | None:
    own = [place for place, each in enumerate(sentences) if each.asks is asks]
    return max(own, key=lambda place: (weights[place], -place), default=None)


def _weigh(sentences: Sequence[Sentence]) -> list[float]:
    return [
        central * _worth(each)
        for central, each in zip(TfIdfSpace(sentences).centrality(), sentences, strict=True)
    ]


def _worth(sentence: Sentence) -> float:
    """Return what a sentence of an exchange is worth: the question is what matters of one side."""
    worth = worth_of_manner(sentence) * min(1.0, len(sentence.terms) / _FULL_TERMS)
    return worth * _ASKING_BONUS if sentence.asks and _is_question(sentence.text) else worth


def worth_of_manner(sentence: Sentence) -> float:
    """Return what a sentence is worth for its place and manner, whatever it is about."""
    worth = 1 + _EARLY_BONUS * (1 - sentence.depth)
    text = sentence.text
    if _is_question(text):
        worth *= 1.0 if sentence.asks else _COUNTER_QUESTION
    elif text.rstrip(_CLOSING)[-1:] in (":", "："):
        worth *= _ANNOUNCEMENT
    if sentence.is_item:
        worth *= _LIST_ITEM
    if text.count("\\") > 1 or text.count("=") > 1 or "{" in text:
        worth *= _FORMULA
    elif _DIGIT.search(text) and _DATE.search(text):
        worth *= _DATE_BONUS
    return worth


def _is_question(text: str) -> bool:
    return text.rstrip(_CLOSING)[-1:] in ("?", "？", "؟")


def _spread(turns: Sequence[Turn], most: int) -> Sequence[Turn]:
    """Return at most `most` turns, evenly spread, the first and the last among them."""
    if len(turns) <= most:
        return turns
    return [turns[place * (len(turns) - 1) // (most - 1)] for place in range(most)]


def _sampled(raw: Sequence[_Raw]) -> Sequence[_Raw]:
    """Return at most `SENTENCE_LIMIT` sentences, evenly spread, in order."""
    if len(raw) <= SENTENCE_LIMIT:
        return raw
    return [raw[place * len(raw) // SENTENCE_LIMIT] for place in range(SENTENCE_LIMIT)]


def _first_line(text: str) -> str:
    """Return the first words of what is no prose, such as code alone."""
    lines = (line.strip("`#>|*-=~ \t") for line in text[:2_000].splitlines())
    return next((one_line(line, 120) for line in lines if line), "")


def _joined(parts: Sequence[str], limit_chars: int) -> str:
    """Return sentences as one paragraph, each ended, each cut to its share of the limit."""
    kept = [part for part in parts if part]
    spare = limit_chars - (len(kept) - 1)
    cut: list[str] = []
    for number, part in enumerate(kept):
        share = spare // (len(kept) - number)
        shown = _ended(one_line(part, share - 1))
        cut.append(shown)
        spare -= len(shown)
    return " ".join(cut)


def _ended(sentence: str) -> str:
    bare = sentence.rstrip("\"'”’»)」』")
    if bare[-1:] in tuple(".!?…。！？؟।"):
        return sentence
    stop = "。" if "\u3040" <= bare[-1:] <= "\u9fff" else "."
    return sentence.rstrip(",;:-–、：； ") + stop
