"""Lists beside the sources: related past work, and what an answer quotes."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QWidget

from app.domain.formatting import format_day
from app.domain.topics import Trail
from app.domain.translation import tr
from ui.rendering.inline import tooltip_html
from ui.widgets.controls import button, column_in, row_of
from ui.widgets.plain_label import plain_label

_MOST_ROWS = 5
OUTDENT_PX = 10  # of rows, so that their text is below that of the heading


class RelatedList(QWidget):
    """A heading over rows to open, such as the newest related conversations; hidden without any.

    Its text is `OUTDENT_PX` from its left edge.

    Signals:
        chosen: What belongs to a row: the id of a conversation, or the target of a link.
        topic_requested: Show all of the topic.
    """

    chosen = Signal(object)
    topic_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._heading = plain_label(self, "muted", selectable=False)
        self.list = QListWidget(self)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.itemActivated.connect(self._on_activated)
        self.list.itemClicked.connect(self._on_activated)
        self.all = button(self, tr("All of this topic"), self.topic_requested, kind="quiet")
        self._heading.setContentsMargins(OUTDENT_PX, 0, OUTDENT_PX, 0)
        foot = row_of(self.all, None)
        foot.setContentsMargins(OUTDENT_PX, 0, 0, 0)
        column_in(self, self._heading, self.list, foot, margins=(0, 8, 0, 0), spacing=4)
        self.hide()

    def show_trail(self, trail: Trail | None) -> None:
        """Show the conversations of a trail, newest first; None for none."""
        related = () if trail is None else trail.related
        heading = tr("Related past work about “{topic}”").format(topic=trail.name if trail else "")
        self.show_rows(
            heading,
            [
                (f"{format_day(each.created_at)} \u00b7 {each.title or tr('Untitled')}", each.id)
                for each in related[:_MOST_ROWS]
            ],
        )
        self.all.setVisible(len(related) > _MOST_ROWS)

    def show_rows(self, heading: str, rows: Sequence[tuple[str, object]]) -> None:
        """Show rows: the text of each, and what belongs to it."""
        self.setVisible(bool(rows))
        self._heading.setText(heading)
        self.list.setAccessibleName(heading)
        self.list.clear()
        for text, value in rows:
            row = QListWidgetItem(text, self.list)
            row.setData(Qt.ItemDataRole.UserRole, value)
            row.setToolTip(tooltip_html(text))
        row_px = max(1, self.list.sizeHintForRow(0))
        self.list.setFixedHeight(row_px * self.list.count() + 2 * self.list.frameWidth())
        self.all.hide()

    def _on_activated(self, row: QListWidgetItem) -> None:
        self.chosen.emit(row.data(Qt.ItemDataRole.UserRole))
