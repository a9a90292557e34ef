"""Saved texts as rows, newest first, and what is said of one in words."""

from collections.abc import Sequence

from PySide6.QtCore import Qt

from app.storage.memories import KnownMemory
from ui.models.conversations import GroupedListModel, ListRole, day_words

_DOT = " \N{MIDDLE DOT} "


class MemoryListModel(GroupedListModel):
    """Saved texts in the order given."""

    def show_memories(self, memories: Sequence[KnownMemory]) -> None:
        """Show other ones."""
        self.show_rows(memories)

    def identity_of(self, row: object) -> object:
        """Return the memory's id."""
        assert isinstance(row, KnownMemory)
        return row.memory.id

    def text_of(self, row: object, role: int) -> object:
        """Return the text, and below it day and source."""
        assert isinstance(row, KnownMemory)
        if role == Qt.ItemDataRole.DisplayRole:
            return row.memory.text.replace("\n", " ")
        if role == ListRole.SUBTITLE:
            return below_words(row)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{row.memory.text}, {below_words(row)}"
        return None


def below_words(known: KnownMemory) -> str:
    """Return when a text was saved and by whom, and where."""
    parts = [day_words(known.memory.saved_at), "yours"]
    if known.memory.is_worded_by_model:
        parts[1:] = ["a model's words", known.conversation_title or "Untitled"]
    return _DOT.join(parts)


def source_words(known: KnownMemory) -> str:
    """Return where a text comes from, in a sentence."""
    day = day_words(known.memory.saved_at)
    if known.memory.conversation_id is None:
        return f"You saved it on {day}. Passage {known.memory.id}."
    turn = "" if known.turn_number is None else f", turn {known.turn_number}"
    title = known.conversation_title or "a conversation that is gone"
    return (
        f"A model saved it, in its own words, on {day} in \N{LEFT DOUBLE QUOTATION MARK}{title}\N{RIGHT DOUBLE QUOTATION MARK}"
        f"{turn}. Passage {known.memory.id}."
    )
