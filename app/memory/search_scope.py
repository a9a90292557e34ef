"""Scopes of a search: the passages to search, and those that rank apart or not at all."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.domain.passages import PassageKind
from app.index.id_set import IdSet
from app.memory.boundaries import Boundary
from app.memory.result_merging import SIDE_KINDS
from app.storage.tables.passages import Passages

CANDIDATES = 120  # of each list: by words, by words of the context, by meaning


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The passages to search: `allowed` (None: all) without `left_out`; `candidates` of each list.

    `kind` may be given if all of `allowed` are of it: that is faster. `preferred` passages rank by
    themselves, with more relevance, so that others cannot crowd them out.
    """

    allowed: IdSet | None
    left_out: IdSet
    candidates: int = CANDIDATES
    kind: PassageKind | None = None
    preferred: IdSet | None = None

    def inside(self, boundary: Boundary | None) -> "SearchScope":
        """Return what of it lies inside a boundary; None: all of it."""
        if boundary is None:
            return self
        allowed, within = self.allowed, boundary.within
        if within is not None:
            within = within.without(self.left_out)
            allowed = within if allowed is None else allowed & within
        left_out = self.left_out | boundary.beyond
        return replace(self, allowed=allowed, left_out=left_out, preferred=boundary.preferred)


@dataclass(frozen=True, slots=True)
class PassagePools:
    """Passages that do not rank among turns.

    `excluded` are all that a search without filters leaves out; `separate` those that never rank
    among turns: summaries of exchanges, `unanswered` turns, and `sides`, which rank by kind and
    contain no hidden ones. `summaries` are those of conversations; search ranks them among turns,
    recall apart.
    """

    excluded: IdSet
    hidden: IdSet
    separate: IdSet
    unanswered: IdSet
    summaries: IdSet
    sides: Mapping[PassageKind, IdSet]


def read_pools(passages: Passages) -> PassagePools:
    """Return the pools of a library. Blocking."""
    hidden = IdSet(passages.hidden())
    unanswered = IdSet(passages.unanswered())
    separate = unanswered | IdSet(passages.of_kind(PassageKind.EXCHANGE_SUMMARY))
    sides = {}
    for kind in SIDE_KINDS:
        side = IdSet(passages.of_kind(kind))
        sides[kind] = side.without(hidden)
        separate |= side
    summaries = IdSet(passages.of_kind(PassageKind.CONVERSATION_SUMMARY))
    return PassagePools(hidden | separate, hidden, separate, unanswered, summaries, sides)
