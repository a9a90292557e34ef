"""Recall boundaries of projects: what may be recalled in a conversation, before ranking.

A bounded project has the rule `RecallRule.ONLY`. A removed project counts as none.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.domain.changes import ChangeSet
from app.domain.ids import ConversationId
from app.domain.passages import PassageKind
from app.domain.projects import Project, RecallRule
from app.index.id_set import IdSet
from app.memory.cached_reads import CachedReads
from app.storage.engine.store import Store
from app.storage.tables.passages import Passages
from app.storage.tables.projects import conversations_within, stored_projects


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
        """The uid of the project."""
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
