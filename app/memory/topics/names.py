"""Names of topics: the terms that distinguish a group of conversations from all others.

Class-based TF-IDF (Grootendorst, "BERTopic", 2022, eq. 2) over words and pairs of words, and runs
of two to four characters in scripts without spaces. A term counts once a conversation, in its title
more; those in no title of the group only support others. A factor for all conversations is added,
since few groups tell little of rarity.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from app.domain.records.topics import NAME_LIMIT_CHARS
from app.domain.text import one_line
from app.language.analyzer import chunk_spans, is_unspaced
from app.language.languages import is_stop_word, language_of, stem

_TITLE_WEIGHT = 3
_TERMS = 3  # of a name
_CANDIDATES = 40
_KEPT_AMONG = 12  # a name stays while its terms are among so many
_LONGER = 0.5  # the share of a term's weight that one containing it needs to replace it
_RUN_CHARS = 4
_SEPARATOR = ", "


@dataclass(frozen=True, slots=True)
class TitledText:
    """A conversation's title and words."""

    title: str
    words: str


@dataclass(frozen=True, slots=True)
class _Term:
    """A term, its score and its part of the class."""

    key: tuple[str, ...]
    written: str
    weight: float
    score: float


class TermCounts:
    """The terms of conversations; counting is linear in their length. Thread-safe once made."""

    def __init__(self, texts: Iterable[TitledText]) -> None:
        self._of: list[Mapping[tuple[str, ...], int]] = []
        self._written: dict[tuple[str, ...], str] = {}
        first: dict[tuple[str, ...], str] = {}  # of a text, where many languages have a capital
        for text in texts:
            own: dict[tuple[str, ...], int] = {}
            for part, weight in ((text.title, _TITLE_WEIGHT), (text.words, 1)):
                for key, written in _terms(part):
                    own[key] = max(own.get(key, 0), weight)
                    begins = part.startswith(written)
                    (first if begins else self._written).setdefault(key, written)
            self._of.append(own)
        self._written = first | self._written
        self._seen_in = Counter(key for own in self._of for key in own)

    def names(
        self, groups: Sequence[Sequence[int]], earlier: Sequence[str] | None = None
    ) -> list[str]:
        """Return a name for each group of numbers of conversations; "" where there is no term.

        An earlier name (of the same group, "" for none) stays while its terms still distinguish the
        group.
        """
        counts = [self._counted(group) for group in groups]
        sizes = [sum(each.values()) for each in counts]
        average = sum(sizes) / max(1, sum(map(bool, sizes)))
        total: Counter[tuple[str, ...]] = Counter()
        for each in counts:
            total.update(each)
        names = []
        for number, group in enumerate(groups):
            ranked = self._ranked(counts[number], sizes[number], total, average, group)
            before = earlier[number] if earlier else ""
            kept = {each.written.casefold() for each in ranked[:_KEPT_AMONG]}
            if before and all(each.casefold() in kept for each in before.split(_SEPARATOR)):
                names.append(before)
            else:
                names.append(_joined(each.written for each in _chosen(ranked)))
        return names

    def _counted(self, group: Sequence[int]) -> Counter[tuple[str, ...]]:
        counted: Counter[tuple[str, ...]] = Counter()
        for number in group:
            counted.update(self._of[number])
        return counted

    def _ranked(
        self,
        counts: Counter[tuple[str, ...]],
        size: int,
        total: Mapping[tuple[str, ...], int],
        average: float,
        group: Sequence[int],
    ) -> list[_Term]:
        titled = {key for number in group for key, one in self._of[number].items() if one > 1}
        rarity = len(self._of)
        terms = [
            _Term(
                key,
                self._written[key],
                weight,
                weight
                / size
                * math.log(1 + average / total[key])
                * math.log(1 + rarity / self._seen_in[key]),
            )
            for key, weight in counts.most_common()
            if not titled or key in titled
        ]
        terms.sort(key=lambda each: (-each.score, each.key))
        return terms[:_CANDIDATES]


def distinct_name(name: str, below: Sequence[str]) -> str:
    """Return the name of a wider topic: of those below it none has the same, else their first terms."""
    if name not in below:
        return name
    return _joined(dict.fromkeys(each.split(_SEPARATOR)[0] for each in below))


def _chosen(ranked: Sequence[_Term]) -> list[_Term]:
    """Return the best terms, each in its longest form; none repeats a part of another.

    Terms of one conversation are taken only where no term has several.
    """
    chosen: list[_Term] = []
    for term in [each for each in ranked if each.weight > _TITLE_WEIGHT] or ranked:
        containing = (each for each in ranked if _contains(each, term))
        longer = [each for each in containing if each.weight >= _LONGER * term.weight]
        best = max(longer, key=lambda each: (len(each.written), each.score), default=term)
        if any(_overlaps(best, each) for each in chosen):
            continue
        chosen.append(best)
        if len(chosen) == _TERMS:
            break
    return chosen


def _contains(longer: _Term, term: _Term) -> bool:
    if len(longer.key) > len(term.key):
        return set(term.key) <= set(longer.key)
    return len(longer.key) == 1 == len(term.key) and (
        longer.key != term.key and is_unspaced(term.key[0]) and term.key[0] in longer.key[0]
    )


def _overlaps(term: _Term, other: _Term) -> bool:
    if set(term.key) & set(other.key):
        return True
    first, second = term.key[0], other.key[0]
    return is_unspaced(first) and is_unspaced(second) and bool(set(first) & set(second))


def _joined(words: Iterable[str]) -> str:
    name = one_line(_SEPARATOR.join(words), NAME_LIMIT_CHARS)
    return name[:1].upper() + name[1:]


def _terms(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield terms as (key, as written): stems of words and pairs, runs of characters."""
    language = language_of(text)
    words: list[tuple[str, str, int, int]] = []
    for start, end, chunk in chunk_spans(text):
        if is_unspaced(chunk):
            for size in range(2, _RUN_CHARS + 1):
                for at in range(len(chunk) - size + 1):
                    yield (chunk[at : at + size],), chunk[at : at + size]
            continue
        plain = chunk.casefold()
        if len(plain) < 3 or not plain[0].isalpha() or is_stop_word(plain, language):
            continue
        words.append((_stemmed(plain, language), chunk, start, end))
    for key, written, _, _ in words:
        yield (key,), written
    for (first, _, start, end), (second, _, after, until) in pairwise(words):
        if text[end:after] == " ":
            yield (first, second), text[start:until]


_stemmed = lru_cache(maxsize=50_000)(stem)
