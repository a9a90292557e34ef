"""The dialog of topics: how much each has, since when, what was last decided, and what can be done with it."""

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QDialog, QTreeWidget, QTreeWidgetItem, QWidget

from app.domain.errors import KnownError
from app.domain.formatting import format_day
from app.domain.topics import Topic, TopicId
from app.domain.translation import format_number, tr, trn
from ui.widgets.controls import button, closing_buttons, column_in, line_edit, row_of, table_view
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import plain_label

_COLUMNS = (tr("Topic"), tr("Last decided"), tr("Conversations"), tr("Since"), tr("Last visit"))
_TOPIC = Qt.ItemDataRole.UserRole + 1


class TopicsDialog(QDialog):
    """Lists topics, those with the last visit first; wider ones contain others.

    Signals:
        list_requested: Whether hidden ones too.
        open_requested: The `Topic` whose conversations are to be shown.
        rename_requested: A `Topic` and its new name, "" for the automatic one.
        merge_requested: The `Topic`s to merge, the one that stays first.
        split_requested: The `Topic` whose merges are to be undone.
        hide_requested: A `Topic` to hide, or to show again.
        project_requested: The `Topic` whose conversations are to become a project.
    """

    list_requested = Signal(bool)
    open_requested = Signal(object)
    rename_requested = Signal(object)
    merge_requested = Signal(object)
    split_requested = Signal(object)
    hide_requested = Signal(object)
    project_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Topics"))
        resize_on_screen(self, 860, 520)
        self.box = line_edit(self, tr("Search topics"), clearable=True)
        self.hidden = QCheckBox(tr("Hidden ones too"), self)
        self.status = plain_label(self, "muted", selectable=False)
        self.table = table_view(self, tr("Topics"), _COLUMNS, narrow=(2, 3, 4))
        self.table.setRootIsDecorated(True)
        self.table.setSelectionMode(QTreeWidget.SelectionMode.ExtendedSelection)
        self.merge = button(self, tr("Merge"))
        self.split = button(self, tr("Undo merges"))
        self.rename = button(self, tr("Rename…"))
        self.hide_topic = button(self, tr("Hide"))
        self.make_project = button(self, tr("Make a project…"))
        buttons, (self.open_topic,) = closing_buttons(self, tr("Show the conversations"))
        changes = row_of(
            self.rename, self.merge, self.split, self.hide_topic, self.make_project, None
        )
        column_in(
            self,
            row_of((self.box, 1), self.hidden),
            self.status,
            (self.table, 1),
            changes,
            buttons,
        )
        self._tops: list[QTreeWidgetItem] = []
        self._connect()
        self.show_topics(())

    @property
    def selected(self) -> list[Topic]:
        """The selected topics, the current one first."""
        rows = sorted(
            self.table.selectedItems(), key=lambda each: each is not self.table.currentItem()
        )
        return [each.data(0, _TOPIC) for each in rows]

    def show_topics(self, topics: Sequence[Topic]) -> None:
        """Show the topics; keep the selection and what is unfolded."""
        selected = {each.id for each in self.selected}
        rows: dict[TopicId, QTreeWidgetItem] = {}
        self._tops = []
        self.table.clear()
        for topic in topics:
            row = rows[topic.id] = _row(topic)
            above = rows.get(topic.parent_id) if topic.parent_id is not None else None
            if above is None:
                self.table.addTopLevelItem(row)
                self._tops.append(row)
            else:
                above.addChild(row)
        self.table.expandAll()
        for each in (row for topic_id, row in rows.items() if topic_id in selected):
            self.table.setCurrentItem(each)
        self._filter()
        self.status.setText(_summary(len(topics)))
        self._on_selected()

    def show_error(self, error: KnownError) -> None:
        """Show why a request failed."""
        self.status.setText(error.display_text)

    def _connect(self) -> None:
        self.box.textChanged.connect(self._filter)
        self.hidden.toggled.connect(self.list_requested)
        self.table.itemSelectionChanged.connect(self._on_selected)
        self.table.itemActivated.connect(lambda *_: self._emit(self.open_requested))
        self.open_topic.clicked.connect(lambda: self._emit(self.open_requested))
        self.rename.clicked.connect(lambda: self._emit(self.rename_requested))
        self.split.clicked.connect(lambda: self._emit(self.split_requested))
        self.hide_topic.clicked.connect(lambda: self._emit(self.hide_requested))
        self.make_project.clicked.connect(lambda: self._emit(self.project_requested))
        self.merge.clicked.connect(lambda: self.merge_requested.emit(self.selected))

    def _emit(self, signal: object) -> None:
        if len(selected := self.selected) == 1:
            signal.emit(selected[0])  # type: ignore[attr-defined]

    def _filter(self, *_: object) -> None:
        """Leave the topics whose name or decision contains what is typed, and those above them."""
        typed = self.box.text().strip().casefold()
        for top in self._tops:
            below = [row for place in range(top.childCount()) if (row := top.child(place))]
            for each in below:
                each.setHidden(not _matches(each, typed) and not _matches(top, typed))
            top.setHidden(not _matches(top, typed) and all(each.isHidden() for each in below))

    def _on_selected(self) -> None:
        selected = self.selected
        is_one = len(selected) == 1
        for each in (self.rename, self.open_topic, self.hide_topic, self.split, self.make_project):
            each.setEnabled(is_one)
        self.merge.setEnabled(len(selected) > 1)
        self.split.setVisible(is_one and selected[0].has_merged)
        hides = not (is_one and selected[0].is_hidden)
        self.hide_topic.setText(tr("Hide") if hides else tr("Show again"))
        tip = tr("Select several topics to merge them into the one that was selected last.")
        self.merge.setToolTip(tip)


def _row(topic: Topic) -> QTreeWidgetItem:
    name = tr("{name} (hidden)").format(name=topic.name) if topic.is_hidden else topic.name
    texts = [
        name,
        topic.decision,
        format_number(topic.conversations),
        format_day(topic.first_at),
        format_day(topic.last_at),
    ]
    row = QTreeWidgetItem(texts)
    row.setData(0, _TOPIC, topic)
    for column in (0, 1):
        row.setToolTip(column, escape(texts[column]))
    row.setTextAlignment(2, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    return row


def _matches(row: QTreeWidgetItem, typed: str) -> bool:
    return typed in row.text(0).casefold() or typed in row.text(1).casefold()


def _summary(count: int) -> str:
    if count:
        return trn("{count} topic", "{count} topics", count)
    return tr(
        "There are no topics yet. They are found on this computer, from eight conversations on, where "
        "several are about one subject."
    )
