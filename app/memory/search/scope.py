"""Recall boundaries of projects: what may be recalled in a conversation, before ranking.

A bounded project has the rule `RecallRule.ONLY`. A removed project counts as none.

The scope of a search are the passages to search, and those that rank apart or not at all.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from app.domain.change_set import ChangeSet
from app.domain.ids import ConversationId
from app.domain.passages import PassageKind
from app.domain.records.projects import Project, RecallRule
from app.index.id_set import IdSet
from app.memory.search.results import SIDE_KINDS
from app.storage.engine.store import Store
from app.storage.tables.passages.queries import Passages
from app.storage.tables.projects import conversations_within, stored_projects

K = TypeVar("K")
V = TypeVar("V")


class CachedReads(Generic[K, V]):
    """Values by key, dropped by each relevant change. Thread-safe; reading blocks."""

    def __init__(
        self, store: Store, read: Callable[[K], V], is_relevant: Callable[[ChangeSet], bool]
    ) -> None:
        self._read = read
        self._is_relevant = is_relevant
        self._known: dict[K, V] = {}
        self._changes = 0
        self._lock = threading.Lock()
        store.subscribe(self._on_changed)

    def get(self, key: K) -> V:
        """Return the value of a key.

        It is read without the lock, which the writer takes to announce a change.
        """
        with self._lock:
            if key in self._known:
                return self._known[key]
            changes = self._changes
        value = self._read(key)
        with self._lock:
            if changes == self._changes:
                self._known[key] = value
        return value

    def _on_changed(self, changed: ChangeSet) -> None:
        if self._is_relevant(changed):
            with self._lock:
                self._changes += 1
                self._known.clear()


@dataclass(frozen=True, slots=True)
class Boundary:
    """What may be recalled in a project's conversations; `project` None: everywhere else.

    `within` are the passages of a bounded project and manual pages; None: all but those `beyond`,
    which are the passages of other bounded projects. `closed` are the uids of these. `preferred`
    rank higher than others.
    """

    project: Project | None
    within: IdSet | None
    beyond: IdSet
    preferred: IdSet | None
    closed: frozenset[str]

    @property
    def is_bounded(self) -> bool:
        """Whether nothing from outside the project is recalled."""
        return self.project is not None and self.project.is_bounded

    def allows(self, project: str | None) -> bool:
        """Return whether a conversation of some project, by its uid, may be recalled or read."""
        return project == self.uid if self.is_bounded else project not in self.closed

    @property
    def uid(self) -> str | None:
        return self.project.uid if self.project is not None else None

    def holds(self, passage: int) -> bool:
        """Return whether a passage may be recalled."""
        return passage in self.within if self.within is not None else passage not in self.beyond


class Boundaries:
    """The boundaries of the stored projects, cached until a change. Thread-safe; blocking."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._passages = Passages(store)
        self._cached = CachedReads(store, self._read, _is_relevant)

    def of(self, project: str | None) -> Boundary:
        """Return the boundary of a project, by its uid; None for no project."""
        return self._cached.get(project)

    def still_within(
        self, project: str | None, conversation_ids: Iterable[ConversationId | None]
    ) -> frozenset[ConversationId | None]:
        """Return the conversations that may be recalled in a project (a uid) now, and None.

        For the end of a search: a conversation may have been moved since its boundary was taken.
        """
        wanted = {each for each in conversation_ids if each is not None}
        return conversations_within(self._store, project, wanted) | {None}

    def _read(self, uid: str | None) -> Boundary:
        projects = {each.uid: each for each in stored_projects(self._store)}
        own = projects.get(uid) if uid is not None else None
        passages = self._of_projects(projects)
        within = preferred = None
        if own is not None and own.is_bounded:
            within = passages[own.uid] | IdSet(self._passages.of_kind(PassageKind.MAN_PAGE))
        elif own is not None and own.recall is RecallRule.FIRST:
            preferred = passages[own.uid]
        closed = {each for each, one in projects.items() if one.is_bounded and one is not own}
        beyond = IdSet()
        for each in closed:
            beyond |= passages[each]
        return Boundary(own, within, beyond, preferred, frozenset(closed))

    def _of_projects(self, projects: Mapping[str, Project]) -> Mapping[str, IdSet]:
        found = self._passages.by_project() if projects else {}
        return {each: IdSet(found.get(each, ())) for each in projects}


def _is_relevant(changed: ChangeSet) -> bool:
    return bool(changed.conversations or changed.passages or changed.projects)


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
