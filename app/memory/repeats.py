"""Turns that come up because they ask what is asked now: those that tell nothing, and repeats.

Such a turn holds every word of the question and is nearest to it in meaning; a few of them would take
all the places from the turn that states the answer, and make an answer seem likely where none is.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property

from app.domain.conversations import Role
from app.domain.ids import PassageId, number_of, passage_of
from app.domain.passages import PassageKind, PassageText
from app.index.analyser import surface_of
from app.index.id_set import IdSet
from app.index.not_knowing import tells_nothing
from app.index.ranking import Ranked
from app.storage.passages import Passages

_NEAR = 0.65  # cosine: what asks the same is nearer
_ALL_WORDS = 0.99
_MOST_WORDS = 0.6  # where words alone can tell
_MOST = 30  # passages that are looked at
_ALIKE = 0.8  # of all words of two texts stand in both
_COMPARED_CHARS = 4_000

Words = frozenset[str]


class Repeats:
    """Finds them. Thread-safe; blocking."""

    def __init__(self, passages: Passages) -> None:
        self._passages = passages

    def among(self, ranked: Sequence[Ranked], question: str) -> IdSet:
        """Return the turns of a ranking that are to make room for others.

        Those that only ask; and of turns that say nearly the same all but the best.
        """
        near = _near(ranked)
        shown = self._passages.shown(near) if near else {}
        texts = [shown[each][1] for each in near if each in shown]
        return IdSet(frozenset(_superfluous(texts, question)))


def _near(ranked: Iterable[Ranked]) -> list[PassageId]:
    """Return the turns whose beginning is so near to the question that it may be the same, best first."""
    found: dict[PassageId, None] = {}
    for each in ranked:
        if number_of(each.part_id) == 0 and _is_near(each):
            found[passage_of(each.part_id)] = None
            if len(found) == _MOST:
                break
    return list(found)


def _is_near(each: Ranked) -> bool:
    if each.cosine is None:
        return each.coverage >= _MOST_WORDS
    return each.cosine >= _NEAR or each.coverage >= _ALL_WORDS


def _superfluous(texts: Iterable[PassageText], question: str) -> Iterable[PassageId]:
    kept: list[_Sides] = []
    for text in texts:
        if text.kind is not PassageKind.TURN:
            continue
        sides = _Sides(_said(text, is_user=True), _said(text, is_user=False))
        if tells_nothing(sides.asked, sides.answered, question) or any(map(sides.is_like, kept)):
            yield text.id
        else:
            kept.append(sides)


class _Sides:
    """What both sides of a turn said. What was answered is compared only where the same was asked."""

    def __init__(self, asked: str, answered: str) -> None:
        self.asked = asked
        self.answered = answered

    def is_like(self, other: "_Sides") -> bool:
        """Return whether both say nearly the same."""
        return _alike(self.asked_words, other.asked_words) and _alike(
            self.answered_words, other.answered_words
        )

    @cached_property
    def asked_words(self) -> Words:
        """The words of the question."""
        return _words(self.asked)

    @cached_property
    def answered_words(self) -> Words:
        """The words of the answer."""
        return _words(self.answered)


def _said(text: PassageText, *, is_user: bool) -> str:
    """Return what a side of a turn said, with what tools answered."""
    parts = (each for each in text.parts if (each.role is Role.USER) is is_user)
    return "\n".join(each.shown for each in parts)


def _words(text: str) -> Words:
    return frozenset(surface_of(text[:_COMPARED_CHARS].casefold()))


def _alike(one: Words, other: Words) -> bool:
    return len(one & other) >= _ALIKE * len(one | other)
