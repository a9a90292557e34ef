"""The sources of an answer: a tree, the details of the selected source, and its actions."""

from dataclasses import replace
from functools import partial

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QToolButton,
    QTreeView,
    QVBoxLayout,
    QWidget,
)

from app.chat.inspector import Source
from app.domain.recall import Verdict
from app.domain.text import one_line
from app.domain.translation import tr
from ui.icons import fit_icon, icon
from ui.models.labels import VERDICT_TEXTS, figures, kind_text, opens_text, source_text
from ui.models.recalled import COLUMNS, Group, RecalledModel, Rest
from ui.widgets.controls import ToolButton, filled, row_of, stack_if_narrow
from ui.widgets.plain_label import plain_label

_TEXT_CHARS = 1_500
_INDENT_PX = 14
_FOLDED = tr("Press Enter or click to see the other sources, and why they were not sent.")
_VERDICTS = {"up": Verdict.UP, "down": Verdict.DOWN, "never": Verdict.NEVER}
_EDGE_PX = 12
_WANTED_EMS = {3: 78, 4: 70, 5: 52}  # by column, in widths of a letter


class RecalledPane(QWidget):
    """The sources of one answer.

    Signals:
        open_requested: The `Source` to show.
        judged: (Source, Verdict): the user's rating; None removes it.
    """

    open_requested = Signal(object)
    judged = Signal(object, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = RecalledModel(self)
        self._note = plain_label(self, "muted")
        self.table = SourceTree(self.model, self)
        self.table.selectionModel().currentRowChanged.connect(lambda *_: self._show_selected())
        self.table.activated.connect(lambda _index: self._on_open_triggered())
        self.model.modelReset.connect(self._on_model_reset)
        self.model.dataChanged.connect(lambda *_: self._show_selected())
        self._name, self._text, self._figures = (
            plain_label(self, tone) for tone in ("", "muted", "small")
        )
        self._verdict = plain_label(self, "small")
        self._actions = self._make_actions()
        self._details = self._make_details()
        parts = (self._note, (self.table, 1), self._details)
        filled(QVBoxLayout(self), *parts, margins=(0, 8, 0, 0)).addStretch(0)

    def show_sources(self, sources: tuple[Source, ...], note: str) -> None:
        """Show sources and a note above them; without sources the note alone."""
        self._note.show_text(note)
        self.table.setVisible(bool(sources))
        self._details.setVisible(bool(sources))
        self.model.show_sources(sources)

    def _selected(self) -> Source | None:
        return self.model.source_at(self.table.currentIndex())

    def _make_actions(self) -> dict[str, QAction]:
        rows = (
            ("open", tr("Open"), tr("Show the turn it comes from"), self._on_open_triggered),
            ("up", tr("Useful"), tr("Rank it higher"), Verdict.UP),
            ("down", tr("Not useful"), tr("Rank it lower"), Verdict.DOWN),
            ("never", tr("Don't use this again"), tr("Do not recall this again"), Verdict.NEVER),
            (
                "back",
                tr("Remove rating"),
                tr("Remove your rating of it"),
                partial(self._judge, None),
            ),
        )
        actions = {}
        for name, words, tip, act in rows:
            action = QAction(words, self)
            if isinstance(act, Verdict):
                action.setIcon(icon(VERDICT_TEXTS[act][0]))
            action.setToolTip(tip)
            if isinstance(act, Verdict):
                action.setCheckable(True)
                action.triggered.connect(
                    lambda checked, act=act: self._on_verdict_triggered(act, wanted=checked)
                )
            else:
                action.triggered.connect(act)
            self.table.addAction(action)
            actions[name] = action
        return actions

    def _make_details(self) -> QFrame:
        frame = QFrame(self)
        frame.setProperty("panel", "card")
        self._back = self._button("back", frame)
        self._buttons = [self._button(name, frame) for name in ("open", "up", "down", "never")]
        self._verdicts = filled(QHBoxLayout(), *self._buttons[:3], spacing=2)
        rows = (
            row_of((self._verdict, 1), self._back), row_of(self._verdicts, None),
            filled(QHBoxLayout(), *self._buttons[3:], None, spacing=2),
        )  # fmt: skip
        labels = (self._name, self._text, self._figures)
        filled(QVBoxLayout(frame), *labels, *rows, margins=(_EDGE_PX, 10, _EDGE_PX, 8))
        return frame

    def _button(self, name: str, parent: QWidget) -> QToolButton:
        button = ToolButton(parent)
        button.setDefaultAction(self._actions[name])
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        fit_icon(button)
        button.setAccessibleDescription(self._actions[name].toolTip())
        return button

    def _show_selected(self) -> None:
        source = self._selected()
        self._show_verdict(None if source is None else source.verdict)
        for action in self._actions.values():
            action.setEnabled(source is not None)
        for button in self._buttons:
            button.setVisible(source is not None)
        self._figures.setVisible(source is not None)
        if source is None:
            is_fold = isinstance(self.model.value_at(self.table.currentIndex()), Rest)
            self._name.setText(_FOLDED if is_fold else tr("Select a row to see its details."))
            self._text.hide()
            return
        place = source.place
        self._name.setText(f"{kind_text(place)}: {source_text(place, _TEXT_CHARS)}")
        text = one_line(place.text, _TEXT_CHARS)
        self._text.setText(text)
        self._text.setVisible(bool(text) and text not in self._name.text())
        self._figures.setText(figures(replace(source, verdict=None)))
        self._actions["open"].setEnabled(_can_open(source))
        self._actions["open"].setToolTip(opens_text(place))

    def _show_verdict(self, verdict: Verdict | None) -> None:
        for name, each in _VERDICTS.items():
            self._actions[name].setChecked(each is verdict)
        self._actions["back"].setVisible(verdict is not None)
        self._back.setVisible(verdict is not None)
        self._verdict.setVisible(verdict is not None)
        if verdict is not None:
            words = VERDICT_TEXTS[verdict][1]
            self._verdict.setText(f"{words[0].upper()}{words[1:]}.")

    def _on_model_reset(self) -> None:
        self.table.unfold_groups()
        self._show_selected()

    def _on_open_triggered(self) -> None:
        source = self._selected()
        if source is not None and _can_open(source):
            self.open_requested.emit(source)

    def _on_verdict_triggered(self, verdict: Verdict, *, wanted: bool) -> None:
        self._judge(verdict if wanted else None)
        self._show_selected()  # checked once it is stored

    def _judge(self, verdict: Verdict | None) -> None:
        if (source := self._selected()) is not None:
            self.judged.emit(source, verdict)

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Hide columns of a narrow table that the details show anyway."""
        super().resizeEvent(event)
        ems = event.size().width() / self.fontMetrics().averageCharWidth()
        for column, least_ems in _WANTED_EMS.items():
            self.table.setColumnHidden(column, ems < least_ems)
        stack_if_narrow(self._verdicts, event.size().width() - 2 * _EDGE_PX)


class SourceTree(QTreeView):
    """The groups of a `RecalledModel`, open; what was not sent opens with a click, Enter or Right.

    `activated` is for sources.
    """

    def __init__(self, model: RecalledModel, parent: QWidget) -> None:
        super().__init__(parent)
        self._model = model
        self.setAccessibleName(tr("What was recalled"))
        self.setModel(model)
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setAllColumnsShowFocus(True)
        self.setIndentation(_INDENT_PX)
        self.setExpandsOnDoubleClick(False)  # the first click does it
        self.setProperty("dense", True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.clicked.connect(self._on_clicked)
        header = self.header()
        header.setStretchLastSection(False)
        header.setMinimumSectionSize(24)
        for column in range(len(COLUMNS)):
            mode = QHeaderView.ResizeMode.ResizeToContents
            if column == 0:
                mode = QHeaderView.ResizeMode.Stretch
            header.setSectionResizeMode(column, mode)

    def unfold_groups(self) -> None:
        """Expand the groups, but not the folds, and select the first visible source."""
        folds = self._model.rows(Rest)
        for index in (*self._model.rows(Group), *folds):
            self.setFirstColumnSpanned(index.row(), index.parent(), True)
            self.setExpanded(index, index not in folds)
        sent = [each for each in self._model.rows(Source) if each.parent() not in folds]
        if sent or folds:
            self.setCurrentIndex((sent or folds)[0])

    def _on_clicked(self, index: QModelIndex) -> None:
        if isinstance(self._model.value_at(index), Rest):
            self._toggle(index)

    def _toggle(self, index: QModelIndex) -> None:
        fold = index.siblingAtColumn(0)
        self.setExpanded(fold, not self.isExpanded(fold))

    # Qt overrides

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Expand and collapse a fold with Enter and Space, too."""
        keys = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
        index = self.currentIndex()
        if event.key() in keys and isinstance(self._model.value_at(index), Rest):
            self._toggle(index)
            return
        super().keyPressEvent(event)


def _can_open(source: Source) -> bool:
    """Return whether its turn or its text still exists."""
    return source.place.item.conversation_id is not None or bool(source.place.text)
