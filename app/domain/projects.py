"""Projects: instructions, a folder and a recall rule that several conversations share."""

from dataclasses import dataclass
from enum import StrEnum


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
