"""Projects: which one a conversation belongs to, the changes to them, and proposed ones.

Proposed are those of conversations that coding agents had in one folder, and of topics. Nothing is moved until
the user accepts a proposal; one that is dismissed does not return.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from app.domain.changes import ConversationEdited, ProjectPut, ProjectRemoved
from app.domain.conversations import Conversation
from app.domain.errors import InvalidInput, NotFound
from app.domain.ids import ConversationId, new_uid
from app.domain.records.named import find_named, names_hint, one_line_name
from app.domain.records.projects import Project, project_problem
from app.domain.text import clean
from app.domain.translation import tr_noop
from app.memory.topics.service import TopicService
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.projects import (
    conversations_in_projects,
    folders_without_project,
    stored_projects,
)
from app.storage.tables.settings import Settings


class Projects:
    """Reads and changes projects. Blocking; thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._conversations = Conversations(store)

    def listed(self) -> tuple[Project, ...]:
        """Return all projects, by name."""
        return stored_projects(self._store)

    def of(self, conversation: Conversation) -> Project | None:
        """Return the project of a conversation; None for none and for one that was removed."""
        return self.find(conversation.project)

    def find(self, uid: str | None) -> Project | None:
        """Return a project by its uid; None for None and for one that does not exist."""
        if uid is None:
            return None
        return next((each for each in self.listed() if each.uid == uid), None)

    def counts(self) -> Mapping[str, int]:
        """Return the number of conversations of each project, by uid, without the trash."""
        return conversations_in_projects(self._store)

    def counted(self) -> tuple[tuple[Project, int], ...]:
        """Return each project with the number of its conversations, by name."""
        counts = self.counts()
        return tuple((each, counts.get(each.uid, 0)) for each in self.listed())

    def named(self, name: str) -> Project:
        """Return the project with a name (any case) or uid; raise NotFound with similar names."""
        projects = self.listed()
        if (found := find_named(name, projects)) is not None:
            return found
        hint = names_hint(name, projects, tr_noop("'project add NAME' adds one."))
        raise NotFound(f"There is no project '{name}'", hint)

    def save(self, project: Project) -> Project:
        """Add or change a project and return it as stored; an empty uid adds one.

        Raises InvalidInput for an invalid value or the name of another project, StorageError.
        """
        project = replace(
            project,
            uid=project.uid or new_uid(),
            name=one_line_name(project.name),
            instructions=clean(project.instructions).strip(),
            color=project.color.strip().lower(),
            folder=(project.folder or "").strip() or None,
        )
        if problem := project_problem(project):
            raise InvalidInput(
                f"The project '{project.name}' {problem}", "Correct it and try again."
            )
        if (other := find_named(project.name, self.listed(), project.uid)) is not None:
            raise InvalidInput(f"There is already a project '{other.name}'", "Choose another name.")
        self._store.save(ProjectPut(project))
        return project

    def remove(self, uid: str) -> None:
        """Remove a project: its conversations stay and have none from then on."""
        self._store.save(ProjectRemoved(uid))

    def move(
        self, conversation_ids: Sequence[ConversationId], project: str | None
    ) -> Mapping[ConversationId, str | None]:
        """Move conversations to a project, by its uid, or (None) out of theirs, in one transaction.

        Returns the projects they had, for `put_back`. Raises NotFound for a conversation or project
        that does not exist.
        """
        if project is not None and all(each.uid != project for each in self.listed()):
            raise NotFound("This project does not exist any more", "Choose another one.")
        before = {each: self._conversations.get(each).project for each in conversation_ids}
        self.put_back(dict.fromkeys(conversation_ids, project))
        return before

    def put_back(self, projects: Mapping[ConversationId, str | None]) -> None:
        """Give conversations the projects that `move` took from them, in one transaction."""
        self._store.save(
            *(ConversationEdited(each, project=uid or "") for each, uid in projects.items())
        )


_DISMISSED = "project_proposals_dismissed"
_ANNOUNCED = "announced"  # among the keys of dismissed ones
_LEAST_OF_FOLDER, _LEAST_OF_TOPIC = 2, 5  # conversations
_MOST_TOPICS = 10
_TITLES = 3  # shown of a proposal


@dataclass(frozen=True, slots=True)
class ProjectProposal:
    """Conversations without a project that could have one.

    Attributes:
        key: Its identity, by which it is dismissed.
        name: That of the folder or the topic; a project of this name gets the conversations.
        is_topic: Whether a topic proposes it, else a folder.
        project: The project of this name, None where it would be made.
        titles: Those of some of the conversations.
    """

    key: str
    name: str
    is_topic: bool
    conversations: tuple[ConversationId, ...]
    project: Project | None
    titles: tuple[str, ...] = ()


class ProjectProposals:
    """Finds, accepts and dismisses proposals. Blocking; thread-safe."""

    def __init__(
        self, store: Store, settings: Settings, projects: Projects, topics: TopicService
    ) -> None:
        self._store = store
        self._settings = settings
        self._projects = projects
        self._topics = topics
        self._conversations = Conversations(store)

    def listed(self) -> tuple[ProjectProposal, ...]:
        """Return the proposals that were not dismissed: folders, then topics, largest first."""
        dismissed = self._dismissed()
        known = {each.name.casefold(): each for each in self._projects.listed()}
        found = [*self._of_folders(), *self._of_topics()]
        return tuple(
            ProjectProposal(
                key, name, key.startswith("topic:"), ids, known.get(name.casefold()),
                self._titles(ids),
            )
            for key, name, ids in found
            if key not in dismissed and name
        )  # fmt: skip

    def unannounced(self) -> tuple[ProjectProposal, ...]:
        """Return the proposals; none once they were announced or when there are projects."""
        if _ANNOUNCED in self._dismissed() or self._projects.listed():
            return ()
        return self.listed()

    def note_announced(self) -> None:
        self._settings.set(_DISMISSED, json.dumps([*self._dismissed(), _ANNOUNCED]))

    def accept(self, proposal: ProjectProposal, name: str) -> Project:
        """Move the conversations to a project by its name, new if needed; as `Projects.save`."""
        known = find_named(name, self._projects.listed())
        project = known or self._projects.save(Project("", name))
        self._projects.move(proposal.conversations, project.uid)
        return project

    def dismiss(self, proposal: ProjectProposal) -> None:
        """Never propose this again."""
        self._settings.set(_DISMISSED, json.dumps([*self._dismissed(), proposal.key]))

    def _of_folders(self) -> Iterator[tuple[str, str, tuple[ConversationId, ...]]]:
        found = folders_without_project(self._store)
        for name, ids in found:
            if len(ids) >= _LEAST_OF_FOLDER:
                yield f"folder:{name}", one_line_name(name), ids

    def _of_topics(self) -> Iterator[tuple[str, str, tuple[ConversationId, ...]]]:
        listed = self._topics.topics()
        wide = {each.parent_id for each in listed}
        found = []
        for topic in listed:
            own = [each.id for each in self._topics.conversations(topic.id) if not each.project]
            if topic.id not in wide and len(own) >= _LEAST_OF_TOPIC:
                found.append((f"topic:{topic.id}", one_line_name(topic.name), tuple(own)))
        yield from sorted(found, key=lambda each: -len(each[2]))[:_MOST_TOPICS]

    def _titles(self, ids: Sequence[ConversationId]) -> tuple[str, ...]:
        found = (self._conversations.get(each).title for each in ids[:_TITLES])
        return tuple(filter(None, found))

    def _dismissed(self) -> list[str]:
        return self._settings.listed(_DISMISSED, str)
