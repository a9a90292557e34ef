"""What was retrieved for an answer: a table, the chosen source in full, and what can be done with it."""

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QToolButton,
    QTreeView,
    QVBoxLayout,
    QWidget,
)

from app.chat.inspecting import Source
from app.domain.recalls import Verdict
from app.domain.text import one_line
from ui.models.recalled import (
    COLUMNS,
    SOURCE_COLUMN,
    RecalledModel,
    figures,
    kind_words,
    source_words,
)
from ui.widgets.plain_label import plain_label

_TEXT_CHARS = 400
_WANTED_EMS = {3: 66, 4: 60, 5: 52}  # by column, in widths of a letter


class RecalledPane(QWidget):
    """The sources of one answer.

    Signals:
        open_requested: The `Source` to show where it was said.
        judged: (Source, Verdict or None): what the user thinks of it; None takes it back.
    """

    open_requested = Signal(object)
    judged = Signal(object, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = RecalledModel(self)
        self._note = plain_label(self, "muted")
        self.table = _table(self, self.model)
        self.table.selectionModel().currentRowChanged.connect(self._on_current_row_changed)
        self.table.doubleClicked.connect(self._on_double_clicked)
        self.model.modelReset.connect(self._on_model_reset)
        self.model.dataChanged.connect(lambda *_: self._show_chosen())
        self._name, self._text, self._figures = (
            plain_label(self, tone) for tone in ("", "muted", "small")
        )
        self._actions = self._make_actions()
        self._details = self._make_details()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 8, 0, 0)
        column.addWidget(self._note)
        column.addWidget(self.table, 1)
        column.addWidget(self._details)
        column.addStretch(0)

    def show_sources(self, sources: tuple[Source, ...], note: str) -> None:
        """Show sources, and a note above them; without any the note alone."""
        self._note.setText(note)
        self._note.setVisible(bool(note))
        self.table.setVisible(bool(sources))
        self._details.setVisible(bool(sources))
        self.model.show_sources(sources)

    def _chosen(self) -> Source | None:
        return self.model.source_at(self.table.currentIndex())

    def _make_actions(self) -> dict[str, QAction]:
        up, down = "\N{BLACK UP-POINTING TRIANGLE}", "\N{BLACK DOWN-POINTING TRIANGLE}"
        rows = (
            ("open", "Open", "Show the turn where this was said", self._on_open_triggered),
            ("up", f"{up} Useful", "Have it rank higher", Verdict.UP),
            ("down", f"{down} Not useful", "Have it rank lower", Verdict.DOWN),
            ("never", "Don't use this again", "Never send this to a model again", Verdict.NEVER),
            ("back", "Take back", "Forget what you thought of it", None),
        )
        actions = {}
        for name, words, tip, act in rows:
            action = QAction(words, self)
            action.setToolTip(tip)
            if act is None or isinstance(act, Verdict):
                action.triggered.connect(lambda _checked=False, act=act: self._judge(act))
            else:
                action.triggered.connect(act)
            self.table.addAction(action)
            actions[name] = action
        return actions

    def _make_details(self) -> QFrame:
        frame = QFrame(self)
        frame.setProperty("panel", "card")
        column = QVBoxLayout(frame)
        column.setContentsMargins(12, 10, 12, 8)
        for label in (self._name, self._text, self._figures):
            column.addWidget(label)
        for names in (("open", "up", "down"), ("never", "back")):
            row = QHBoxLayout()
            row.setSpacing(2)
            for name in names:
                button = QToolButton(frame)
                button.setDefaultAction(self._actions[name])
                button.setAccessibleDescription(self._actions[name].toolTip())
                row.addWidget(button)
            row.addStretch(1)
            column.addLayout(row)
        return frame

    def _show_chosen(self) -> None:
        source = self._chosen()
        for action in self._actions.values():
            action.setEnabled(source is not None)
        if source is None:
            for label in (self._name, self._text, self._figures):
                label.setText("")
            self._name.setText("Choose a row to see more of it.")
            return
        place = source.place
        self._name.setText(f"{kind_words(place)}: {source_words(place)}")
        text = one_line(place.text, _TEXT_CHARS)
        self._text.setText(text)
        self._text.setVisible(bool(text) and text not in self._name.text())
        self._figures.setText(figures(source))
        self._actions["open"].setEnabled(place.item.conversation_id is not None)
        self._actions["back"].setEnabled(source.verdict is not None)
        for name, verdict in (("up", Verdict.UP), ("down", Verdict.DOWN), ("never", Verdict.NEVER)):
            self._actions[name].setEnabled(source.verdict is not verdict)

    def _on_model_reset(self) -> None:
        if self.model.rowCount():
            self.table.setCurrentIndex(self.model.index(0, SOURCE_COLUMN))
        self._show_chosen()

    def _on_current_row_changed(self, _now: QModelIndex, _before: QModelIndex) -> None:
        self._show_chosen()

    def _on_double_clicked(self, _index: QModelIndex) -> None:
        self._on_open_triggered()

    def _on_open_triggered(self) -> None:
        source = self._chosen()
        if source is not None and source.place.item.conversation_id is not None:
            self.open_requested.emit(source)

    def _judge(self, verdict: Verdict | None) -> None:
        if (source := self._chosen()) is not None:
            self.judged.emit(source, verdict)

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave out of the table, when it is narrow, what the chosen row's details say anyway."""
        super().resizeEvent(event)
        ems = event.size().width() / self.fontMetrics().averageCharWidth()
        for column, least_ems in _WANTED_EMS.items():
            self.table.setColumnHidden(column, ems < least_ems)


def _table(parent: QWidget, model: RecalledModel) -> QTreeView:
    table = QTreeView(parent)
    table.setAccessibleName("What was recalled")
    table.setModel(model)
    table.setRootIsDecorated(False)
    table.setUniformRowHeights(True)
    table.setAllColumnsShowFocus(True)
    table.setProperty("dense", True)
    table.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
    table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    header = table.header()
    header.setStretchLastSection(False)
    header.setMinimumSectionSize(24)
    for column in range(len(COLUMNS)):
        mode = QHeaderView.ResizeMode.ResizeToContents
        if column == SOURCE_COLUMN:
            mode = QHeaderView.ResizeMode.Stretch
        header.setSectionResizeMode(column, mode)
    return table
