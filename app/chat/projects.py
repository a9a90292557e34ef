"""Projects: which one a conversation belongs to, and the changes to them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from app.domain.changes import ConversationEdited, ProjectPut, ProjectRemoved
from app.domain.conversations import Conversation
from app.domain.errors import InvalidInput, NotFound
from app.domain.ids import ConversationId, new_uid
from app.domain.presets import one_line_name
from app.domain.projects import Project, project_problem
from app.domain.text import clean
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.projects import conversations_in_projects, stored_projects


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
        wanted, projects = one_line_name(name).casefold(), self.listed()
        for project in projects:
            if project.name.casefold() == wanted or project.uid == wanted:
                return project
        names = [project.name for project in projects]
        near = get_close_matches(name, names, n=2, cutoff=0.5)
        if near:
            hint = f"Did you mean {' or '.join(near)}?"
        else:
            hint = f"There are {', '.join(names)}." if names else "'project add NAME' adds one."
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
        for other in self.listed():
            if other.uid != project.uid and other.name.casefold() == project.name.casefold():
                raise InvalidInput(
                    f"There is already a project '{other.name}'", "Choose another name."
                )
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
