"""The project chip of the composer: which project a message belongs to, and what that recalls."""

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from app.domain.translation import tr
from ui.icons import Ink, set_icon
from ui.widgets.controls import CompactButton

if TYPE_CHECKING:
    from app.domain.records.projects import Project


class ProjectChip(CompactButton):
    """A button with the project's color and boundary; hidden while there is no project to choose.

    `clicked` asks for its menu.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Project"), parent)
        self._text = ""
        self.show_project(None, is_offered=False)

    def show_project(self, project: "Project | None", *, is_offered: bool) -> None:
        """Show the project of the conversation, None for none; `is_offered` if there are projects."""
        self._text = ""
        about: tuple[str, ...] = (tr("No project"),)
        if project is not None:
            from ui.widgets.project_labels import RULES, chip_text

            self._text, about = chip_text(project), (project.name, *RULES[project.recall])
        self.setAccessibleDescription(". ".join(about))
        self.setToolTip("\n".join((*about, tr("Choose the project and what it recalls"))))
        color = "" if project is None else project.color
        set_icon(self, "folder", color or Ink.PlaceholderText, filled=bool(color))
        self.setVisible(is_offered or project is not None)
        self.show_text()

    def show_text(self) -> None:
        """Show the icon alone where there is little room."""
        self.setText("" if self.is_compact else self._text.replace("&", "&&"))
