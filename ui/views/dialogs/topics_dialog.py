"""The dialog of topics: how much each has, since when, what was last decided, and what can be done with it."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Signal, SignalInstance
from PySide6.QtWidgets import QCheckBox, QWidget

from app.domain.records.topics import Topic
from app.domain.translation import format_day, format_number, tr, trn
from ui.widgets.controls import button, closing_buttons, column_in, line_edit, row_of
from ui.widgets.dialog import Dialog
from ui.widgets.record_table import RecordTable

_COLUMNS = (tr("Topic"), tr("Last decided"), tr("Conversations"), tr("Since"), tr("Last visit"))
_DECIDED = 1


class TopicsDialog(Dialog):
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
        super().__init__(tr("Topics"), (860, 520), parent)
        self.box = line_edit(self, tr("Search topics"), clearable=True)
        self.hidden = QCheckBox(tr("Hidden ones too"), self)
        self.table = RecordTable(
            self, tr("Topics"), _COLUMNS, narrow=(2, 3, 4), numbers=(2,), several=True
        )
        self.table.setRootIsDecorated(True)
        self.merge = button(
            self,
            tr("Merge"),
            lambda: self.merge_requested.emit(self.table.selected),
            tip=tr("Select several topics to merge them into the one that was selected last."),
        )
        self.split, self.rename, self.hide_topic, self.make_project = (
            button(self, text, partial(self._emit, signal))
            for text, signal in (
                (tr("Undo merges"), self.split_requested),
                (tr("Rename…"), self.rename_requested),
                (tr("Hide"), self.hide_requested),
                (tr("Make a project…"), self.project_requested),
            )
        )
        buttons, (self.open_topic,) = closing_buttons(self, tr("Show the conversations"))
        changes = row_of(
            self.rename, self.merge, self.split, self.hide_topic, self.make_project, None
        )
        head = row_of((self.box, 1), self.hidden)
        column_in(self, head, self.status, (self.table, 1), changes, buttons)
        self.box.textChanged.connect(self.table.filter)
        self.hidden.toggled.connect(self.list_requested)
        self.table.changed.connect(self._on_selected)
        self.table.opened.connect(self.open_requested)
        self.open_topic.clicked.connect(partial(self._emit, self.open_requested))
        self.show_topics(())

    def show_topics(self, topics: Sequence[Topic]) -> None:
        """Show the topics; keep the selection."""
        self.table.show_records(
            topics, _texts, lambda each: each.id, above=lambda each: each.parent_id
        )
        self.table.expandAll()
        self.table.setColumnHidden(_DECIDED, not any(each.decision for each in topics))
        self.table.filter(self.box.text())
        self.status.setText(_summary(len(topics)))

    def _emit(self, signal: SignalInstance, *_: object) -> None:
        if self.table.current is not None:
            signal.emit(self.table.current)

    def _on_selected(self) -> None:
        topic: Topic | None = self.table.current
        for each in (self.rename, self.open_topic, self.hide_topic, self.split, self.make_project):
            each.setEnabled(topic is not None)
        self.merge.setEnabled(len(self.table.selected) > 1)
        self.split.setVisible(topic is not None and topic.has_merged)
        is_hidden = topic is not None and topic.is_hidden
        self.hide_topic.setText(tr("Show again") if is_hidden else tr("Hide"))


def _texts(topic: Topic) -> Sequence[str]:
    name = tr("{name} (hidden)").format(name=topic.name) if topic.is_hidden else topic.name
    days = format_day(topic.first_at), format_day(topic.last_at)
    return name, topic.decision, format_number(topic.conversations), *days


def _summary(count: int) -> str:
    if count:
        return trn("{count} topic", "{count} topics", count)
    return tr(
        "There are no topics yet. They are found on this computer, from eight conversations on, where "
        "several are about one subject."
    )
