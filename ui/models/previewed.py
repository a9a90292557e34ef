"""What would be recalled as rows, grouped as the prompt holds it; what became of each in words."""

from dataclasses import dataclass

from PySide6.QtCore import Qt

from app.chat.commands.recalled_words import fate_words, name_words
from app.chat.previewing import Preview, is_changed
from app.domain.recalls import RecalledPlace, RecallLayer
from ui.models.conversations import GroupedListModel, Heading, ListRole
from ui.models.setting_words import labelled

GROUPS = (
    ("Facts and saved memories", (RecallLayer.FACT,)),
    ("Related conversations", (RecallLayer.CONVERSATION, RecallLayer.EXCHANGE)),
    ("Single turns of all history", (RecallLayer.HISTORY,)),
    ("Earlier in this conversation", (RecallLayer.EARLIER,)),
)


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """Something found; `changed` when the settings compared with did otherwise with it."""

    place: RecalledPlace
    changed: bool = False

    @property
    def is_inner(self) -> bool:
        """Whether it stands below the conversation it belongs to."""
        return self.place.item.layer is RecallLayer.EXCHANGE


class PreviewListModel(GroupedListModel):
    """What was found for a question, in the order of the prompt."""

    def show_preview(self, preview: Preview | None) -> None:
        """Show a preview; None empties the list."""
        self.show_rows([] if preview is None else _rows(preview))

    def identity_of(self, row: object) -> object:
        """Return what names the thing found, whatever becomes of it."""
        assert isinstance(row, PreviewRow)
        item = row.place.item
        return item.layer, item.passage_id, item.message_id

    def text_of(self, row: object, role: int) -> object:
        """Return what it is called, what becomes of it, and its relevance."""
        assert isinstance(row, PreviewRow)
        place = row.place
        if role == Qt.ItemDataRole.DisplayRole:
            return row.place.text if row.is_inner and place.text else name_words(place)
        if role == ListRole.SUBTITLE:
            return fate_of(row)
        if role == ListRole.ASIDE:
            return f"{place.item.relevance:.0%}"
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{name_words(place)}, {place.item.relevance:.0%} relevant, {fate_of(row)}"
        if role == Qt.ItemDataRole.ToolTipRole:
            cosine = place.item.cosine
            measured = "no vector" if cosine is None else f"cosine {cosine:.3f}"
            return f"Passage {place.item.passage_id}, {measured}. Click to open it."
        return None


def _rows(preview: Preview) -> list[object]:
    rows: list[object] = []
    for name, layers in GROUPS:
        group = [each for each in preview.places if each.item.layer in layers]
        if group:
            count = sum(each.item.injected for each in group)
            rows.append(Heading(f"{name} \N{MIDDLE DOT} {count} of {len(group)}"))
            rows += [PreviewRow(each, is_changed(preview, each)) for each in group]
    return rows


def fate_of(row: PreviewRow) -> str:
    """Return what becomes of something, and whether that is new."""
    if row.place.item.injected:
        words = fate_words(row.place)
        return f"Newly in: {words}" if row.changed else f"Brought in: {words}"
    left_out = "Newly left out" if row.changed else "Left out"
    return f"{left_out}: {labelled(row.place.item.dropped_by)}"
