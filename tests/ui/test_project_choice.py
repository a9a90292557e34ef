"""The choice of a project: conversations are moved to a known, a new or no project, and listed by it."""

from pathlib import Path

from PySide6.QtWidgets import QInputDialog

from app.chat.projects import Projects
from app.domain.projects import Project
from app.storage.tables.conversations import Conversations, ListFilter
from tests.fakes.screens import Parts
from tests.fakes.stored import add_conversation, opened
from ui.presenters.project_choice import ProjectChoice


def test_conversations_are_moved_to_a_known_a_new_and_no_project(
    parts: Parts, tmp_path: Path
) -> None:
    with opened(tmp_path / "data") as store:
        projects, stored = Projects(store), Conversations(store)
        garden = projects.save(Project("", "Garden"))
        ids = [add_conversation(store, text).conversation.id for text in ("Roses", "Paint")]
        choice = parts.make(ProjectChoice, projects=projects)

        def choose(name: str) -> None:
            choice.ask(ids)
            dialog = parts.dialog(QInputDialog)
            dialog.setTextValue(name)
            dialog.accept()

        choose("garden")
        assert {each.id for each in stored.listed(ListFilter(project=garden.uid))} == {*ids}
        choose("House")
        assert [row[1:] for row in projects.lists()] == [("Garden", 0), ("House", 2)]
        choose("No project")
        assert [stored.get(each).project for each in ids] == [None, None]
