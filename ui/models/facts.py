"""Facts as rows: the pinned ones first, then by day; and what is said of one in words."""

from collections.abc import Sequence
from datetime import datetime

from PySide6.QtCore import Qt

from app.domain.facts import BY_PATTERNS, BY_USER, FactCategory
from app.storage.facts import KnownFact
from ui.models.conversations import GroupedListModel, Heading, ListRole, day_words

CATEGORY_WORDS = {
    FactCategory.PREFERENCE: "Preference",
    FactCategory.INSTRUCTION: "Instruction",
    FactCategory.IDENTITY: "Identity",
    FactCategory.RELATIONSHIP: "Relationship",
    FactCategory.POSSESSION: "Possession",
    FactCategory.EVENT: "Event",
    FactCategory.PLAN: "Plan",
    FactCategory.DECISION: "Decision",
    FactCategory.OTHER: "Other",
}
_DOT = " \N{MIDDLE DOT} "


class FactListModel(GroupedListModel):
    """Facts in the order given, those that are pinned under a heading of their own."""

    def show_facts(self, facts: Sequence[KnownFact]) -> None:
        """Show facts; pinned ones stand first where they are not ranked by a search."""
        pinned = [each for each in facts if each.fact.pinned]
        if not pinned or list(facts[: len(pinned)]) != pinned:
            self.show_rows(facts)
            return
        rest: list[object] = list(facts[len(pinned) :])
        self.show_rows(
            [Heading("Pinned"), *pinned, *([Heading("All others"), *rest] if rest else [])]
        )

    def identity_of(self, row: object) -> object:
        """Return the fact's id."""
        assert isinstance(row, KnownFact)
        return row.fact.id

    def text_of(self, row: object, role: int) -> object:
        """Return the wording, and below it category, source and validity."""
        assert isinstance(row, KnownFact)
        if role == Qt.ItemDataRole.DisplayRole:
            return row.fact.text
        if role == ListRole.SUBTITLE:
            return subtitle_words(row)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            pinned = "pinned, " if row.fact.pinned else ""
            return f"{row.fact.text} {pinned}{subtitle_words(row)}"
        return None


def subtitle_words(known: KnownFact) -> str:
    """Return category, when it was said or until when it held, and where it comes from."""
    fact = known.fact
    when = day_words(fact.said_at)
    if fact.valid_until is not None:
        when = f"until {day_words(fact.valid_until)}"
    source = known.conversation_title if fact.conversation_id is not None else "yours"
    return _DOT.join(filter(None, (CATEGORY_WORDS[fact.category], when, source)))


def validity_words(known: KnownFact) -> str:
    """Return since when a fact holds, or that it ended and what took its place."""
    fact = known.fact
    said = f"Said on {day_words(fact.said_at)}"
    if fact.valid_until is None:
        return f"{said}; it holds."
    ended = f"Was so until {day_words(fact.valid_until)}"
    if known.successor:
        return f"{ended}, superseded by: {known.successor}"
    return f"{ended}."


def source_words(known: KnownFact) -> str:
    """Return where a fact comes from and who worded it."""
    fact = known.fact
    who = maker_words(fact.model)
    if fact.conversation_id is None:
        return f"You wrote it on {day_words(fact.made_at)}."
    turn = "" if known.turn_number is None else f", turn {known.turn_number}"
    archived = " (archived)" if known.archived else ""
    return f"From \u201c{known.conversation_title}\u201d{turn}{archived}; worded by {who}."


def maker_words(model: str) -> str:
    """Return who made a wording."""
    if model == BY_USER:
        return "you"
    if model == BY_PATTERNS:
        return "a pattern"
    return "extracted" if model == "extractive" else model


def version_words(made_at: datetime, model: str) -> str:
    """Return what a version is called: its time and its maker."""
    local = made_at.astimezone()
    return f"{day_words(made_at)}, {local:%H:%M}{_DOT}{maker_words(model)}"
