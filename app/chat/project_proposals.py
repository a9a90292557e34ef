"""Proposed projects: of conversations that coding agents had in one folder, and of topics.

Nothing is moved until the user accepts a proposal; one that is dismissed does not return.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.chat.projects import Projects
from app.domain.ids import ConversationId
from app.domain.presets import one_line_name
from app.domain.projects import Project
from app.memory.topics.service import TopicService
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.projects import folders_without_project
from app.storage.tables.settings import Settings
from app.transfer.importers.agent_logs import FOLDER_SOURCES, SUBAGENT_TAG

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
        """Store that proposals were announced."""
        self._settings.set(_DISMISSED, json.dumps([*self._dismissed(), _ANNOUNCED]))

    def accept(self, proposal: ProjectProposal, name: str) -> Project:
        """Move the conversations to a project by its name, new if needed; as `Projects.save`."""
        wanted = one_line_name(name).casefold()
        known = (each for each in self._projects.listed() if each.name.casefold() == wanted)
        project = next(known, None) or self._projects.save(Project("", name))
        self._projects.move(proposal.conversations, project.uid)
        return project

    def dismiss(self, proposal: ProjectProposal) -> None:
        """Never propose this again."""
        self._settings.set(_DISMISSED, json.dumps([*self._dismissed(), proposal.key]))

    def _of_folders(self) -> Iterator[tuple[str, str, tuple[ConversationId, ...]]]:
        found = folders_without_project(self._store, FOLDER_SOURCES, SUBAGENT_TAG)
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
        """Return the keys of dismissed proposals; none when the setting is damaged."""
        try:
            stored = json.loads(self._settings.text(_DISMISSED))
        except ValueError:
            stored = None
        listed = stored if isinstance(stored, list) else []
        return [each for each in listed if isinstance(each, str)]
