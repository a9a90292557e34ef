"""Turns that come up because they ask what is asked now: those that tell nothing, and repeats.

Such a turn holds every word of the question and is nearest to it in meaning; a few of them would take
all the places from the turn that states the answer, and make an answer seem likely where none is.
"""

from collections.abc import Iterable, Sequence

from app.domain.conversations import Role
from app.domain.ids import PassageId, passage_of
from app.domain.passages import PassageKind, PassageText
from app.index.analyser import surface_of
from app.index.id_set import IdSet
from app.index.not_knowing import tells_nothing
from app.index.ranking import Ranked
from app.storage.passages import Passages

_NEAR = 0.6  # cosine: what asks the same is nearer
_ALL_WORDS = 0.99
_MOST_WORDS = 0.6  # where words alone can tell
_MOST = 30  # passages that are looked at
_ALIKE = 0.85  # of all words of two turns stand in both
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
    """Return the passages that may ask the same, best first."""
    found: dict[PassageId, None] = {}
    for each in ranked:
        if (
            each.coverage >= (_MOST_WORDS if each.cosine is None else _ALL_WORDS)
            or (each.cosine or 0.0) >= _NEAR
        ):
            found[passage_of(each.part_id)] = None
            if len(found) == _MOST:
                break
    return list(found)


def _superfluous(texts: Iterable[PassageText], question: str) -> Iterable[PassageId]:
    kept: list[Words] = []
    for text in texts:
        if text.kind is not PassageKind.TURN:
            continue
        asked, answered = _side(text, is_user=True), _side(text, is_user=False)
        words = frozenset(surface_of(f"{asked}\n{answered}"[:_COMPARED_CHARS].casefold()))
        if tells_nothing(asked, answered, question) or any(_alike(words, each) for each in kept):
            yield text.id
        else:
            kept.append(words)


def _side(text: PassageText, *, is_user: bool) -> str:
    """Return what a side of a turn said, with what tools answered."""
    parts = (each for each in text.parts if (each.role is Role.USER) is is_user)
    return "\n".join(each.shown for each in parts)


def _alike(one: Words, other: Words) -> bool:
    return len(one & other) >= _ALIKE * len(one | other)
