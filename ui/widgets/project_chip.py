"""The project chip of the composer: which project a message belongs to, and what that recalls."""

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QPushButton, QWidget

from app.domain.projects import Project
from app.domain.translation import tr
from ui.icons import Ink, set_icon
from ui.widgets.project_labels import RULES, chip_text

_ARROW_PX = 22


class ProjectChip(QPushButton):
    """A button with the project's color and boundary; hidden while there is no project to choose.

    `clicked` asks for its menu.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = ""
        self._is_compact = False
        self.setAutoDefault(False)
        self.setProperty("kind", "choice")
        self.setAccessibleName(tr("Project"))
        self.show_project(None, is_offered=False)

    def show_project(self, project: Project | None, *, is_offered: bool) -> None:
        """Show the project of the conversation, None for none; `is_offered` if there are projects."""
        self._text = "" if project is None else chip_text(project)
        about = (tr("No project"),) if project is None else (project.name, *RULES[project.recall])
        self.setAccessibleDescription(". ".join(about))
        self.setToolTip("\n".join((*about, tr("Choose the project and what it recalls"))))
        color = "" if project is None else project.color
        set_icon(self, "folder", color or Ink.PlaceholderText, filled=bool(color))
        self.setVisible(is_offered or project is not None)
        self._show_text()

    def set_compact(self, is_compact: bool) -> None:
        """Show the icon alone, where there is little room."""
        self._is_compact = is_compact
        self._show_text()

    def _show_text(self) -> None:
        self.setText("" if self._is_compact else self._text.replace("&", "&&"))

    # Qt overrides

    def sizeHint(self) -> QSize:
        """Leave room for the arrow."""
        return super().sizeHint() + QSize(_ARROW_PX, 0)

    def minimumSizeHint(self) -> QSize:
        """Never cut the text: where there is little room the icon stands alone."""
        return self.sizeHint()
