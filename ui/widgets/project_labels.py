"""Labels of projects: what their recall rules are called, and their colors."""

from PySide6.QtGui import QIcon

from app.domain.records.projects import Project, RecallRule
from app.domain.text import one_line
from app.domain.translation import tr
from ui.icons import Ink, icon

_CHIP_CHARS = 18
RULES = {
    RecallRule.ALL: (
        tr("Everything"),
        tr("Its conversations recall all of your past, as without a project."),
    ),
    RecallRule.FIRST: (
        tr("This project first"),
        tr("Its own conversations rank higher than others."),
    ),
    RecallRule.ONLY: (
        tr("Only this project"),
        tr("Its conversations recall nothing from outside, and nothing outside recalls them."),
    ),
}
"""The name and the meaning of each rule, widest first."""
COLORS = {
    "": tr("No color"),
    "#d64545": tr("Red"),
    "#d9822b": tr("Orange"),
    "#b7950b": tr("Yellow"),
    "#3f9142": tr("Green"),
    "#1a8a8a": tr("Teal"),
    "#3a7bd5": tr("Blue"),
    "#8250df": tr("Purple"),
    "#c2408f": tr("Pink"),
}
"""Colors to choose from, each legible on light and dark, with their names."""


def project_icon(color: str) -> QIcon:
    return icon("folder", color or Ink.PlaceholderText, filled=bool(color))


def chip_text(project: Project) -> str:
    """Return what the chip at the composer says: the name, and its boundary if it has one."""
    name = one_line(project.name, _CHIP_CHARS)
    if project.recall is RecallRule.ALL:
        return name
    text = tr("Only {name}") if project.is_bounded else tr("{name} first")
    return text.format(name=name)
