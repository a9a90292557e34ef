"""Scopes of a search: the passages to search, and those that rank apart or not at all."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.domain.changes import ChangeSet
from app.domain.passages import PassageKind
from app.index.id_set import IdSet
from app.memory.boundaries import Boundary
from app.memory.result_merging import SIDE_KINDS
from app.storage.engine.store import Store
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


class PassagePoolCache:
    """The passage pools of a library, read again after each change. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._passages = Passages(store)
        self._known: PassagePools | None = None
        self._changes = 0
        self._lock = threading.Lock()
        store.subscribe(self._on_changed)

    def read(self) -> PassagePools:
        """Return the pools.

        They are read without the lock, which the writer takes to announce a change.
        """
        with self._lock:
            known, changes = self._known, self._changes
        if known is not None:
            return known
        made = self._read()
        with self._lock:
            if changes == self._changes:
                self._known = made
        return made

    def _read(self) -> PassagePools:
        hidden = IdSet(self._passages.hidden())
        unanswered = IdSet(self._passages.unanswered())
        separate = unanswered | IdSet(self._passages.of_kind(PassageKind.EXCHANGE_SUMMARY))
        sides = {}
        for kind in SIDE_KINDS:
            side = IdSet(self._passages.of_kind(kind))
            sides[kind] = side.without(hidden)
            separate |= side
        summaries = IdSet(self._passages.of_kind(PassageKind.CONVERSATION_SUMMARY))
        return PassagePools(hidden | separate, hidden, separate, unanswered, summaries, sides)

    def _on_changed(self, changed: ChangeSet) -> None:
        if changed.conversations or changed.passages:
            with self._lock:
                self._changes += 1
                self._known = None
