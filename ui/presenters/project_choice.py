"""The choice of a project for conversations of the list: an existing one, a new one, or none."""

from collections.abc import Sequence

from PySide6.QtWidgets import QInputDialog

from app.chat.projects import Projects
from app.domain.ids import ConversationId
from app.domain.projects import Project
from app.domain.translation import tr
from ui.presenters.presenter import Presenter
from ui.widgets.banner import Banner


class ProjectChoice(Presenter):
    """Asks for a project and moves conversations to it."""

    _projects: Projects
    _messages: Banner

    def ask(self, ids: Sequence[ConversationId]) -> None:
        """Ask for the project of conversations; a name that is new adds one."""
        self._bridge.load("projects", self._projects.listed, lambda found: self._ask(ids, found))

    def _ask(self, ids: Sequence[ConversationId], projects: Sequence[Project]) -> None:
        none = tr("No project")
        dialog = QInputDialog(self._messages.window())
        dialog.setWindowTitle(tr("Move to project"))
        dialog.setLabelText(tr("Choose a project, or type the name of a new one:"))
        dialog.setComboBoxItems([*(each.name for each in projects), none])
        dialog.setComboBoxEditable(True)
        dialog.textValueSelected.connect(
            lambda name: self._bridge.save(
                lambda: self._move(ids, "" if name == none else name.strip()), self._report
            )
        )
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _move(self, ids: Sequence[ConversationId], name: str) -> Project | None:
        """Move conversations, to none for ""; blocking."""
        known = {each.name.casefold(): each for each in self._projects.listed()}
        chosen = known.get(name.casefold()) if name else None
        if name and chosen is None:
            chosen = self._projects.save(Project("", name))
        self._projects.move(ids, chosen.uid if chosen else None)
        return chosen

    def _report(self, chosen: Project | None) -> None:
        text = tr("Moved to the project {name}. /project recall sets what it recalls.")
        done = text.format(name=chosen.name) if chosen else tr("Moved out of the project.")
        self._messages.show_message(done, brief=True)
