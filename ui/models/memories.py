"""The list model of saved texts, and the texts that describe one."""

from operator import attrgetter
from typing import ClassVar

from PySide6.QtCore import Qt

from app.domain.formatting import format_day, format_turn
from app.domain.translation import tr
from app.storage.tables.memories import KnownMemory
from ui.models.conversations import GroupedListModel, ListRole

_DOT = " \N{MIDDLE DOT} "


def below_text(known: KnownMemory) -> str:
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
        Qt.ItemDataRole.AccessibleTextRole: lambda row: f"{row.memory.text}, {below_text(row)}",
        ListRole.SUBTITLE: below_text,
    }


def source_text(known: KnownMemory) -> str:
    """Return where a text comes from, as a sentence."""
    day = format_day(known.memory.saved_at)
    if known.memory.conversation_id is None:
        return tr("You saved it on {day}. Number {id}.").format(day=day, id=known.memory.id)
    turn = "" if known.turn_number is None else f", {format_turn(known.turn_number)}"
    title = known.conversation_title or tr("a deleted conversation")
    return tr("A model wrote and saved it on {day} in “{title}”{turn}. Number {id}.").format(
        day=day, title=title, turn=turn, id=known.memory.id
    )
