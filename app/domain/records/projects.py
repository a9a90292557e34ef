"""Projects: instructions, a folder and a recall rule that several conversations share."""

import re
from dataclasses import dataclass
from enum import StrEnum

from app.domain.records.named import MAX_INSTRUCTIONS_CHARS, named_problem

NO_PROJECT = "none"
"""What stands for no project where a name is typed."""


class RecallRule(StrEnum):
    """What memory may bring to the conversations of a project.

    `ONLY` bounds it: its conversations recall nothing from outside, and nothing outside recalls them.
    `FIRST` prefers its own conversations, `ALL` is recall as without a project.
    """

    ONLY = "only"
    FIRST = "first"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Project:
    """A project.

    Attributes:
        uid: Its identity in every library.
        instructions: What its conversations add to the system prompt; "" for nothing.
        color: As `#rrggbb`; "" for none.
        folder: The path of the folder it belongs to; None for none.
    """

    uid: str
    name: str
    instructions: str = ""
    color: str = ""
    folder: str | None = None
    recall: RecallRule = RecallRule.ALL

    @property
    def is_bounded(self) -> bool:
        """Whether its conversations recall, and are recalled by, nothing outside it."""
        return self.recall is RecallRule.ONLY


def project_problem(project: Project) -> str:
    """Return why a project cannot be stored as a phrase that follows "it", "" if it can."""
    if problem := named_problem(project):
        return problem
    if project.name.casefold() == NO_PROJECT:
        return f"cannot be named {NO_PROJECT}, which stands for no project"
    if len(project.instructions) > MAX_INSTRUCTIONS_CHARS:
        return f"has instructions of more than {MAX_INSTRUCTIONS_CHARS:,} characters"
    if project.color and not re.fullmatch("#[0-9a-f]{6}", project.color):
        return "needs a color such as #2e7d32"
    return ""
