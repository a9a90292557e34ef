"""Rows of the recall preview, grouped as in the prompt, with the outcome of each as text."""

from dataclasses import dataclass
from operator import attrgetter
from typing import ClassVar

from PySide6.QtCore import Qt

from app.chat.recall_preview import Preview, is_changed
from app.chat.recall_text import name_text, outcome_text
from app.domain.recall import RecalledItemDetails, RecallLayer
from app.domain.translation import format_percent, tr
from ui.models.conversations import GroupedListModel, Heading, ListRole
from ui.models.labels import cosine_text, with_setting_labels

GROUPS = (
    (tr("Asked for in the message"), (RecallLayer.MENTION,)),
    (tr("Facts and saved memories"), (RecallLayer.FACT,)),
    (tr("Related conversations"), (RecallLayer.CONVERSATION, RecallLayer.EXCHANGE)),
    (tr("Single turns of all history"), (RecallLayer.HISTORY,)),
    (tr("Possibly related"), (RecallLayer.HINT,)),
    (tr("Documents"), (RecallLayer.DOCUMENT,)),
    (tr("Earlier in this conversation"), (RecallLayer.EARLIER,)),
)


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """Something found; `changed` when the settings compared with did otherwise with it."""

    place: RecalledItemDetails
    changed: bool = False

    @property
    def is_inner(self) -> bool:
        """Whether it is below the conversation it belongs to."""
        return self.place.item.layer is RecallLayer.EXCHANGE


def _rows(preview: Preview) -> list[object]:
    rows: list[object] = []
    for name, layers in GROUPS:
        group = [each for each in preview.places if each.item.layer in layers]
        if group:
            count = sum(each.item.injected for each in group)
            rows.append(
                Heading(
                    tr("{name} · {count} of {group}").format(
                        name=name, count=count, group=len(group)
                    )
                )
            )
            rows += [PreviewRow(each, is_changed(preview, each)) for each in group]
    return rows


def status_text(row: PreviewRow) -> str:
    """Return what becomes of something, and whether that is new."""
    if row.place.item.injected:
        text = outcome_text(row.place)
        return (
            tr("Newly in: {text}").format(text=text)
            if row.changed
            else tr("Brought in: {text}").format(text=text)
        )
    left_out = tr("Newly left out") if row.changed else tr("Left out")
    return f"{left_out}: {with_setting_labels(row.place.item.dropped_by)}"


def _name(row: PreviewRow) -> str:
    return row.place.text if row.is_inner and row.place.text else name_text(row.place)


def _spoken(row: PreviewRow) -> str:
    relevance = tr("{relevance} relevant").format(
        relevance=format_percent(row.place.item.relevance)
    )
    return f"{name_text(row.place)}, {relevance}, {status_text(row)}"


def _tooltip(row: PreviewRow) -> str:
    item = row.place.item
    return tr("Passage {passage_id}, {measured}. Click to open it.").format(
        passage_id=item.passage_id, measured=cosine_text(item.cosine)
    )


class PreviewListModel(GroupedListModel):
    """What was found for a question, in the order of the prompt."""

    identity: ClassVar = attrgetter(
        "place.item.layer", "place.item.passage_id", "place.item.message_id"
    )
    texts: ClassVar = {
        Qt.ItemDataRole.DisplayRole: _name,
        Qt.ItemDataRole.ToolTipRole: _tooltip,
        Qt.ItemDataRole.AccessibleTextRole: _spoken,
        ListRole.SUBTITLE: status_text,
        ListRole.TRAILING: lambda row: format_percent(row.place.item.relevance),
    }

    def show_preview(self, preview: Preview | None) -> None:
        self.show_rows([] if preview is None else _rows(preview))
