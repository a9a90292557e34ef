"""Related past work: the other conversations about the topic of the open one."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QWidget

from app.domain.formatting import format_day
from app.domain.topics import Trail
from app.domain.translation import tr
from ui.widgets.controls import button, column_in, row_of
from ui.widgets.plain_label import plain_label

_MOST_ROWS = 5
OUTDENT_PX = 10  # of rows, so that their text is below that of the heading
_BUTTON_OUTDENT_PX = 6


class RelatedList(QWidget):
    """The newest related conversations below the sources; hidden while there are none.

    Its text is `OUTDENT_PX` from its left edge.

    Signals:
        chosen: The id of the conversation to open. topic_requested: Show all of the topic.
    """

    chosen = Signal(object)
    topic_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._heading = plain_label(self, "muted", selectable=False)
        self.list = QListWidget(self)
        self.list.setAccessibleName(tr("Related past work"))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.itemActivated.connect(self._on_activated)
        self.list.itemClicked.connect(self._on_activated)
        self.all = button(self, tr("All of this topic"), self.topic_requested, kind="quiet")
        self._heading.setContentsMargins(OUTDENT_PX, 0, OUTDENT_PX, 0)
        foot = row_of(self.all, None)
        foot.setContentsMargins(OUTDENT_PX - _BUTTON_OUTDENT_PX, 0, 0, 0)
        column_in(self, self._heading, self.list, foot, margins=(0, 8, 0, 0), spacing=4)
        self.hide()

    def show_trail(self, trail: Trail | None) -> None:
        """Show the conversations of a trail, newest first; None for none."""
        self.setVisible(trail is not None)
        self.list.clear()
        if trail is None:
            return
        heading = tr("Related past work about “{topic}”").format(topic=trail.name)
        self._heading.setText(heading)
        for each in trail.related[:_MOST_ROWS]:
            title, day = each.title or tr("Untitled"), format_day(each.created_at)
            row = QListWidgetItem(f"{day} \u00b7 {title}", self.list)
            row.setData(Qt.ItemDataRole.UserRole, each.id)
            row.setToolTip(title)
        row_px = max(1, self.list.sizeHintForRow(0))
        self.list.setFixedHeight(row_px * self.list.count() + 2 * self.list.frameWidth())
        self.all.setVisible(len(trail.related) > _MOST_ROWS)

    def _on_activated(self, row: QListWidgetItem) -> None:
        self.chosen.emit(row.data(Qt.ItemDataRole.UserRole))
