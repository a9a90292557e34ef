"""Extractive summaries: the most central sentences of a text.

An exchange is represented by the most central sentence of each side. A conversation is represented
by the sentences that together cover its topics best: each term counts once, weighted by the number
of sentences that contain it (a submodular gain, Lin and Bilmes 2011), so repetition adds nothing.
Position and style count as well. One of its sentences says how it ended: what the user last stated,
or what the last answer concludes. Embeddings were measured and do not improve the result
(packaging/decisions/0021).
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.domain.text import one_line
from app.domain.turns import TurnMarkdown
from app.language.languages import read_phrases
from app.language.sentences import content_terms, shorten_middle, split_sentences

MODEL = "extractive"
SENTENCE_LIMIT = 300
EXCHANGE_LIMIT_CHARS = 340
CONVERSATION_LIMIT_CHARS = 540
_CONVERSATION_SENTENCES = 3
_TURN_LIMIT = 60
_EXCHANGE_READS_CHARS = 8_000  # of each side; central statements are repeated
_CONVERSATION_READS_CHARS = 2_000  # of each side of each turn

# Tuned by reading on chats and by ROUGE on long ones (`tests/bench/summaries.py`); small changes
# make no difference.
_FULL_TERMS = 8  # a sentence with fewer terms has less content
_EARLY_BONUS = 0.3
_DATE = re.compile(r"\d{4}|\d{1,2}[:./-]\d{1,2}|\d+(?:st|nd|rd|th)\b|\d+\s?[%€$£°年月日]|[$€£]\d")
_CLOSING = "\"'”’»)」』* "
_DIGIT = re.compile(r"\d")
_DATE_BONUS = 1.3
_ASKING_BONUS = 1.25
_COUNTER_QUESTION = 0.5
_ANNOUNCEMENT = 0.4  # "Here is the plan:"
_LIST_ITEM = 0.7  # incomplete without the list
_FORMULA = 0.1
_PLEASANTRY = 0.05  # of a reply: offers of help and good wishes
_PLEASANTRIES = read_phrases("phrases")["pleasantries"]
_STATED_BONUS = 2.0  # of the user's own words at the end: what was done or decided
_EARLIER_TURN = 0.5  # of the turn before the last
_ENDING_TERMS = 3  # fewer are a thank-you, in any language
_SPEAKER = re.compile(r"\s*([^\W\d_][^\n:：]{0,30})[:：](?=\s*\S)")


_Raw = tuple[str, bool, bool, float, int]  # text, asks, is_item, depth, turn


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and its terms.

    Attributes:
        asks: Whether the user wrote it.
        is_item: Whether it is an item of a list.
        depth: Its position in the text, from 0 at the start to 1 at the end.
        turn: The number of its turn among those read, from 0.
    """

    text: str
    terms: tuple[str, ...]
    asks: bool
    is_item: bool
    depth: float
    turn: int = 0


class TfIdfSpace:
    """Sentences as TF-IDF vectors; linear in the length of the text."""

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        seen_in = Counter(term for each in sentences for term in set(each.terms))
        rarity = {term: math.log(1 + len(sentences) / count) for term, count in seen_in.items()}
        self._vectors = [_unit(_weights(each.terms, rarity)) for each in sentences]

    def centrality(self) -> Sequence[float]:
        """Return the cosine of each sentence to the sum of all."""
        total: dict[str, float] = {}
        for vector in self._vectors:
            for term, weight in vector.items():
                total[term] = total.get(term, 0.0) + weight
        center = _unit(total)
        return [
            sum([weight * center[term] for term, weight in vector.items()])
            for vector in self._vectors
        ]


def summarize_exchange(turn: TurnMarkdown) -> str:
    """Return question and core of the answer in one or two sentences; "" without words.

    At most `EXCHANGE_LIMIT_CHARS`, in the turn's own language; deterministic.
    """
    sentences = _understood(_sampled(_raw(turn, _EXCHANGE_READS_CHARS)))
    central = TfIdfSpace(sentences).centrality()
    weights = [weight * _worth(each) for weight, each in zip(central, sentences, strict=True)]

    def best(*, asks: bool) -> int | None:
        own = [place for place, each in enumerate(sentences) if each.asks is asks]
        return max(own, key=lambda place: (weights[place], -place), default=None)

    asked, answered = best(asks=True), best(asks=False)
    parts = [
        _first_line(turn.asked) if asked is None else sentences[asked].text,
        _first_line(turn.answered) if answered is None else sentences[answered].text,
    ]
    if parts[0] and answered is not None and _is_pleasantry(sentences[answered]):
        del parts[1]
    text = _joined(parts, EXCHANGE_LIMIT_CHARS)
    return f"{text} …" if turn.is_cut_off and not text.endswith("…") else text


def conversation_sentences(turns: Sequence[TurnMarkdown]) -> Sequence[Sentence]:
    """Return sentences from all parts of a conversation, in order, at most `SENTENCE_LIMIT`.

    Of a long conversation only evenly spread turns are read, which bounds the time.
    """
    read = _spread(turns, _TURN_LIMIT)
    names = _speakers(turn.asked for turn in read) | _speakers(turn.answered for turn in read)
    raw = [
        (text, asks, is_item, (number + depth) / len(read), number)
        for number, turn in enumerate(read)
        for text, asks, is_item, depth, _ in _raw(turn, _CONVERSATION_READS_CHARS, names)
    ]
    return _understood(_sampled(raw))


def summarize_conversation(turns: Sequence[TurnMarkdown]) -> str:
    """Return the three most representative sentences in their order; "" for a text without words."""
    return " ".join(text for _, _, text in representative(turns))


def representative(turns: Sequence[TurnMarkdown]) -> Sequence[tuple[TurnMarkdown, bool, str]]:
    """Return the three most representative sentences in their order, each with its turn and whether the user wrote it.

    At most `CONVERSATION_LIMIT_CHARS`; one is the user's if there is one, and one the outcome.
    """
    read = conversation_sentences(turns)
    if not read:
        first = [(turn, bool(turn.asked), turn.asked or turn.answered) for turn in turns[:1]]
        return [
            (turn, asks, cut)
            for turn, asks, text in first
            for cut in _shares([_first_line(text)], 200)
        ]
    chosen = central_sentences(read, _CONVERSATION_SENTENCES)
    ending = outcome(read)
    if ending is not None and ending not in chosen:
        chosen = [*chosen[: _CONVERSATION_SENTENCES - 1], ending]
    kept = [read[each] for each in sorted(chosen) if read[each].text]
    texts = _shares([each.text for each in kept], CONVERSATION_LIMIT_CHARS)
    of = _spread(turns, _TURN_LIMIT)
    return [(of[each.turn], each.asks, text) for each, text in zip(kept, texts, strict=True)]


def outcome(sentences: Sequence[Sentence]) -> int | None:
    """Return the index of the sentence that says how a conversation ended; None for one turn."""
    last = max((each.turn for each in sentences), default=0)
    held_by = Counter(term for each in sentences for term in set(each.terms))

    def worth(place: int) -> float:
        each, own = sentences[place], frozenset(sentences[place].terms)
        if _is_question(each.text) or not own:
            return 0.0
        content = math.fsum(math.sqrt(held_by[term]) for term in own) / math.sqrt(len(own))
        style = style_weight(each) * (_STATED_BONUS if each.asks else 1.0)
        full = min(1.0, len(own) / _ENDING_TERMS)
        return content * full * style * (1.0 if each.turn == last else _EARLIER_TURN)

    late = [place for place, each in enumerate(sentences) if each.turn >= max(1, last - 1)]
    best = max(late, key=lambda place: (worth(place), place), default=None)
    return best if best is not None and worth(best) else None


def central_sentences(sentences: Sequence[Sentence], most: int) -> list[int]:
    """Return the indexes of the most representative sentences, best first, a user's one first."""
    terms = [frozenset(each.terms) for each in sentences]
    held_by = Counter(term for own in terms for term in own)
    weight = {term: math.sqrt(count) for term, count in held_by.items()}
    worth = [
        style_weight(each) / math.sqrt(max(1, len(own)))
        for each, own in zip(sentences, terms, strict=True)
    ]
    covered: set[str] = set()
    left = dict.fromkeys(range(len(sentences)))
    chosen: list[int] = []

    def gain(place: int) -> tuple[float, int]:
        fresh = (weight[term] for term in terms[place] - covered)
        return worth[place] * math.fsum(fresh), -place  # exact: the order of a set varies

    pool: Iterable[int] = [each for each in left if sentences[each].asks and terms[each]] or left
    while left and len(chosen) < most:
        best = max(pool, key=gain)
        if chosen and not gain(best)[0]:
            break
        chosen.append(best)
        covered |= terms[best]
        del left[best]
        pool = left
    return chosen


def _speakers(texts: Iterable[str]) -> frozenset[str]:
    """Return the names at the start of more than half of a side's texts, and of at least two."""
    said = [text for text in texts if text.strip()]
    names = Counter(found[1] for text in said if (found := _SPEAKER.match(text)))
    return frozenset(name for name, count in names.items() if count > max(1, len(said) // 2))


def _raw(turn: TurnMarkdown, limit_chars: int, speakers: Collection[str] = ()) -> list[_Raw]:
    """Return the sentences of both sides without their terms, which many of them never need.

    Each has the name of its speaker before it, if the text begins with one of `speakers`.
    """
    raw: list[_Raw] = []
    for text, asks in ((turn.asked, True), (turn.answered, False)):
        found = _SPEAKER.match(text) if speakers else None
        name = found[0].strip() if found and found[1] in speakers else ""
        sentences = split_sentences(shorten_middle(text, limit_chars))
        last = max(1, len(sentences) - 1)
        raw += [
            (words if words.startswith(name) else f"{name} {words}", asks, is_item, place / last, 0)
            for place, (words, is_item) in enumerate(sentences)
        ]
    return raw


def _understood(raw: Sequence[_Raw]) -> list[Sentence]:
    return [
        Sentence(text, tuple(content_terms(text)), asks, is_item, depth, turn)
        for text, asks, is_item, depth, turn in raw
    ]


def _worth(sentence: Sentence) -> float:
    """Return the weight of a sentence of an exchange; for the user, questions weigh more."""
    worth = style_weight(sentence) * min(1.0, len(sentence.terms) / _FULL_TERMS)
    return worth * _ASKING_BONUS if sentence.asks and _is_question(sentence.text) else worth


def style_weight(sentence: Sentence) -> float:
    """Return the weight of a sentence by its position and style, independent of its topic."""
    worth = 1 + _EARLY_BONUS * (1 - sentence.depth)
    text = sentence.text
    if _is_question(text):
        worth *= 1.0 if sentence.asks else _COUNTER_QUESTION
    elif text.rstrip(_CLOSING)[-1:] in (":", "："):
        worth *= _ANNOUNCEMENT
    if sentence.is_item:
        worth *= _LIST_ITEM
    if _is_pleasantry(sentence):
        worth *= _PLEASANTRY
    if text.count("\\") > 1 or text.count("=") > 1 or "{" in text:
        worth *= _FORMULA
    elif _DIGIT.search(text) and _DATE.search(text):
        worth *= _DATE_BONUS
    return worth


def _is_pleasantry(sentence: Sentence) -> bool:
    return not sentence.asks and _PLEASANTRIES.search(sentence.text) is not None


def _is_question(text: str) -> bool:
    return text.rstrip(_CLOSING)[-1:] in ("?", "？", "؟")


def _spread(turns: Sequence[TurnMarkdown], most: int) -> Sequence[TurnMarkdown]:
    """Return at most `most` turns, evenly spread, including the first and the last."""
    if len(turns) <= most:
        return turns
    return [turns[place * (len(turns) - 1) // (most - 1)] for place in range(most)]


def _sampled(raw: Sequence[_Raw]) -> Sequence[_Raw]:
    """Return at most `SENTENCE_LIMIT` sentences, evenly spread, in order."""
    if len(raw) <= SENTENCE_LIMIT:
        return raw
    return [raw[place * len(raw) // SENTENCE_LIMIT] for place in range(SENTENCE_LIMIT)]


def _first_line(text: str) -> str:
    """Return the beginning of a text that is not prose, such as code alone."""
    lines = (line.strip("`#>|*-=~ \t") for line in text[:2_000].splitlines())
    return next((one_line(line, 120) for line in lines if line), "")


def _joined(parts: Sequence[str], limit_chars: int) -> str:
    """Return sentences as one paragraph."""
    return " ".join(_shares(parts, limit_chars))


def _shares(parts: Sequence[str], limit_chars: int) -> list[str]:
    """Return sentences, each with a final mark, cut to its share of the limit."""
    kept = [part for part in parts if part]
    spare = limit_chars - (len(kept) - 1)
    cut: list[str] = []
    for number, part in enumerate(kept):
        share = spare // (len(kept) - number)
        shown = _ended(one_line(part, share - 1))
        cut.append(shown)
        spare -= len(shown)
    return cut


def _ended(sentence: str) -> str:
    bare = sentence.rstrip("\"'”’»)」』")
    if bare[-1:] in tuple(".!?…。！？؟।"):
        return sentence
    stop = "。" if "\u3040" <= bare[-1:] <= "\u9fff" else "."
    return sentence.rstrip(",;:-–、：； ") + stop


def _weights(terms: Sequence[str], rarity: Mapping[str, float]) -> dict[str, float]:
    counts = Counter(terms)
    if len(counts) == len(terms):
        return {term: rarity[term] for term in counts}
    return {term: (1 + math.log(count)) * rarity[term] for term, count in counts.items()}


def _unit(vector: dict[str, float]) -> dict[str, float]:
    length = math.sqrt(sum([weight * weight for weight in vector.values()]))
    return {term: weight / length for term, weight in vector.items()} if length else vector
