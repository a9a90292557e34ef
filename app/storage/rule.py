"""A rule of the database: a query for what breaks it, and how that is mended."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that must hold.

    `says` is the problem as a sentence with a place for the id; `finds` a query for the ids that
    break it; `mends` a statement that takes them as a list and ends the problem. `drops_passages`
    when the ids are passages that have to go. Without either, what is wrong is not derived from
    anything that could tell the truth.
    """

    says: str
    finds: str
    mends: str = ""
    drops_passages: bool = False


def orphans(table: str, key: str, target: str, says: str, mends: str = "", more: str = "") -> Rule:
    """Return the rule that what `key` of a table names exists."""
    finds = (
        f"SELECT t.{key} FROM {table} t ANTI JOIN {target} o ON o.id = t.{key} "
        f"WHERE t.{key} IS NOT NULL {more}"
    )
    return Rule(says, finds, mends)


def belongs(table: str, *, drops_passages: bool = False) -> Rule:
    """Return the rule that the conversation of each row exists."""
    return Rule(
        f"The {table} {{}} belongs to a conversation that does not exist.",
        f"SELECT t.id FROM {table} t ANTI JOIN conversation c ON c.id = t.conversation_id "
        "WHERE t.conversation_id IS NOT NULL",
        drops_passages=drops_passages,
    )
