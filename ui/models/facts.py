"""List models of facts and of saved texts, and the texts that describe one."""

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import ClassVar

from PySide6.QtCore import Qt

from app.domain.records.facts import BY_PATTERNS, BY_USER, FactCategory
from app.domain.translation import format_day, format_moment, format_turn, tr
from app.storage.tables.facts import KnownFact
from app.storage.tables.memories import KnownMemory
from ui.models.conversations import GroupedListModel, Heading, ListRole

CATEGORY_NAMES = {
    FactCategory.PREFERENCE: tr("Preference"),
    FactCategory.INSTRUCTION: tr("Instruction"),
    FactCategory.IDENTITY: tr("Identity"),
    FactCategory.RELATIONSHIP: tr("Relationship"),
    FactCategory.POSSESSION: tr("Possession"),
    FactCategory.EVENT: tr("Event"),
    FactCategory.PLAN: tr("Plan"),
    FactCategory.DECISION: tr("Decision"),
    FactCategory.OTHER: tr("Other"),
}
_DOT = " \N{MIDDLE DOT} "


def subtitle_text(known: KnownFact) -> str:
    """Return category, day or end, and source."""
    fact = known.fact
    when = format_day(fact.said_at)
    if fact.valid_until is not None:
        when = tr("until {valid_until}").format(valid_until=format_day(fact.valid_until))
    source = known.conversation_title if fact.conversation_id is not None else "yours"
    return _DOT.join(filter(None, (CATEGORY_NAMES[fact.category], when, source)))


def _spoken(known: KnownFact) -> str:
    pinned = "pinned, " if known.fact.pinned else ""
    return f"{known.fact.text} {pinned}{subtitle_text(known)}"


class FactListModel(GroupedListModel):
    """Facts in the order given, pinned ones under a heading of their own."""

    identity: ClassVar = attrgetter("fact.id")
    texts: ClassVar = {
        Qt.ItemDataRole.DisplayRole: attrgetter("fact.text"),
        Qt.ItemDataRole.AccessibleTextRole: _spoken,
        ListRole.SUBTITLE: subtitle_text,
    }

    def show_facts(self, facts: Sequence[KnownFact]) -> None:
        """Show facts; pinned ones have a heading unless a search ranked the facts."""
        pinned = [each for each in facts if each.fact.pinned]
        if not pinned or list(facts[: len(pinned)]) != pinned:
            self.show_rows(facts)
            return
        rest: list[object] = list(facts[len(pinned) :])
        self.show_rows(
            [Heading(tr("Pinned")), *pinned, *([Heading(tr("All others")), *rest] if rest else [])]
        )


def validity_text(known: KnownFact) -> str:
    """Return whether a fact is current, or when it ended and what superseded it."""
    fact = known.fact
    said = tr("Said on {said_at}").format(said_at=format_day(fact.said_at))
    if fact.valid_until is None:
        return tr("{said}; current.").format(said=said)
    ended = tr("Ended on {valid_until}").format(valid_until=format_day(fact.valid_until))
    if known.successor:
        return tr("{ended}, superseded by: {successor}").format(
            ended=ended, successor=known.successor
        )
    return f"{ended}."


def source_text(known: KnownFact) -> str:
    """Return where a fact comes from and who wrote it."""
    fact = known.fact
    who = maker_text(fact.model)
    if fact.conversation_id is None:
        return tr("You wrote it on {made_at}.").format(made_at=format_day(fact.made_at))
    turn = "" if known.turn_number is None else f", {format_turn(known.turn_number)}"
    archived = " (archived)" if known.archived else ""
    return tr("From “{conversation_title}”{turn}{archived}; written by {who}.").format(
        conversation_title=known.conversation_title, turn=turn, archived=archived, who=who
    )


def maker_text(model: str) -> str:
    """Return who wrote a version."""
    if model == BY_USER:
        return tr("you")
    if model == BY_PATTERNS:
        return tr("rules without a model")
    return tr("key sentences") if model == "extractive" else model


def version_label(made_at: datetime, model: str) -> str:
    """Return the label of a version: its time and its author."""
    return f"{format_moment(made_at)}{_DOT}{maker_text(model)}"


def saved_subtitle_text(known: KnownMemory) -> str:
    """Return when, by whom and where a text was saved."""
    parts = [format_day(known.memory.saved_at), "yours"]
    if known.memory.is_written_by_model:
        parts[1:] = [tr("written by a model"), known.conversation_title or tr("Untitled")]
    return _DOT.join(parts)


class MemoryListModel(GroupedListModel):
    """Saved texts in the order given."""

    identity: ClassVar = attrgetter("memory.id")
    texts: ClassVar = {
        Qt.ItemDataRole.DisplayRole: lambda row: row.memory.text.replace("\n", " "),
        Qt.ItemDataRole.AccessibleTextRole: lambda row: (
            f"{row.memory.text}, {saved_subtitle_text(row)}"
        ),
        ListRole.SUBTITLE: saved_subtitle_text,
    }


def saved_source_text(known: KnownMemory) -> str:
    """Return where a text comes from, as a sentence."""
    day = format_day(known.memory.saved_at)
    if known.memory.conversation_id is None:
        return tr("You saved it on {day}. Number {id}.").format(day=day, id=known.memory.id)
    turn = "" if known.turn_number is None else f", {format_turn(known.turn_number)}"
    title = known.conversation_title or tr("a deleted conversation")
    return tr("A model wrote and saved it on {day} in “{title}”{turn}. Number {id}.").format(
        day=day, title=title, turn=turn, id=known.memory.id
    )
