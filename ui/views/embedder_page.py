"""Search by meaning in the settings: which embedder is in use, what it has read, choosing another."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.domain.spaces import SpaceRow, SpacesState, SpaceUse, SwitchPlan
from app.workers.wording import estimate_words, percent_words, size_words

_STEPS = 1000
_USES = {
    SpaceUse.ANSWERS: "answers",
    SpaceUse.FILLS: "being filled",
    SpaceUse.KEPT: "kept",
}
_COLUMNS = ("Embedder", "Passages", "Share", "Size")


class EmbedderPage(QWidget):
    """What answers, a choice of embedders with what each would take, and the spaces that are kept.

    Signals:
        choice_picked: A choice, to be planned. folder_requested: A folder is to be chosen.
        switch_requested: The choice that should be in force. redo_requested: All vectors of the
            embedder in force should be made again. deletion_requested: (space, its embedder).
    """

    choice_picked = Signal(str)
    folder_requested = Signal()
    switch_requested = Signal(str)
    redo_requested = Signal()
    deletion_requested = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        words = QLabel(
            "An embedder gives everything that was said a place among all the rest, so that a "
            "question finds what it means, whatever its words. What has no place yet is found by "
            "its words.",
            self,
            wordWrap=True,
        )
        words.setProperty("tone", "small")
        self.state = _StateCard(self)
        self.state.redo.clicked.connect(self.redo_requested)
        self.chooser = _ChooserCard(self)
        self.chooser.picked.connect(self.choice_picked)
        self.chooser.folder.clicked.connect(self.folder_requested)
        self.chooser.switch_wanted.connect(self.switch_requested)
        self.spaces = _SpacesCard(self)
        self.spaces.deletion_requested.connect(self.deletion_requested)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 8, 16, 16)
        column.setSpacing(10)
        for part in (words, self.state, self.chooser, self.spaces):
            column.addWidget(part)
        column.addStretch(1)

    def show_state(self, state: SpacesState) -> None:
        """Show how it stands."""
        self.state.show_state(state)
        self.spaces.show_rows(state.rows)
        self.chooser.show_in_force(state.chosen)

    def show_choices(self, choices: Sequence[tuple[str, str]], in_force: str) -> None:
        """Show what can be chosen, each a value and its words; what is picked stays picked."""
        self.chooser.show_choices(choices, in_force)

    def show_plan(self, plan: SwitchPlan) -> None:
        """Show what the picked choice would take."""
        self.chooser.show_plan(plan)

    def show_error(self, words: str) -> None:
        """Tell why a choice cannot be taken."""
        self.chooser.show_error(words)


class _StateCard(QFrame):
    """Which embedder is in force, how far it is, and what keeps it from answering."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("panel", "card")
        self.setAccessibleName("The embedder in use")
        self.title = QLabel(self, wordWrap=True)
        self.title.setProperty("tone", "heading")
        self.words = QLabel(self, wordWrap=True)
        self.bar = QProgressBar(self)
        self.bar.setRange(0, _STEPS)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName("How much is embedded")
        self.problem = QLabel(self, wordWrap=True)
        self.problem.setProperty("tone", "warning")
        self.problem.hide()
        self.redo = QPushButton("Embed everything again\u2026", self)
        row = QHBoxLayout()
        row.addWidget(self.redo)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 12, 14, 12)
        for part in (self.title, self.words, self.bar, self.problem):
            column.addWidget(part)
        column.addLayout(row)

    def show_state(self, state: SpacesState) -> None:
        self.title.setText(_capital(state.chosen_words))
        self.words.setText(_state_words(state))
        self.bar.setVisible(state.share < 1 or bool(state.before_words))
        self.bar.setValue(round(state.share * _STEPS))
        self.problem.setText(state.problem)
        self.problem.setVisible(bool(state.problem))


class _ChooserCard(QFrame):
    """Embedders to choose from; nothing changes before the button is clicked.

    Signals:
        picked: A choice, by its value. switch_wanted: The same, to be in force.
    """

    picked = Signal(str)
    switch_wanted = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("panel", "card")
        self.setAccessibleName("Another embedder")
        self._in_force = ""
        title = QLabel("Use another embedder", self)
        title.setProperty("tone", "heading")
        self.box = QComboBox(self)
        self.box.setAccessibleName("Embedder")
        self.box.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self.box.setMinimumContentsLength(12)
        self.box.activated.connect(self._on_box_activated)
        self.folder = QPushButton("ONNX folder\u2026", self)
        self.folder.setToolTip("A folder with model.onnx, tokenizer.json and config.json")
        self.words = QLabel(self, wordWrap=True)
        self.words.setProperty("tone", "muted")
        self.words.hide()
        self.error = QLabel(self, wordWrap=True)
        self.error.setProperty("tone", "error")
        self.error.hide()
        self.switch = QPushButton("Use this embedder", self)
        self.switch.setProperty("kind", "primary")
        self.switch.setEnabled(False)
        self.switch.clicked.connect(self._on_switch_clicked)
        row = QHBoxLayout()
        row.addWidget(self.box, 1)
        row.addWidget(self.folder)
        deeds = QHBoxLayout()
        deeds.addWidget(self.switch)
        deeds.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 12, 14, 12)
        column.addWidget(title)
        column.addLayout(row)
        column.addWidget(self.words)
        column.addWidget(self.error)
        column.addLayout(deeds)

    @property
    def value(self) -> str:
        """The choice that is picked."""
        return str(self.box.currentData() or "")

    def show_choices(self, choices: Sequence[tuple[str, str]], in_force: str) -> None:
        picked = self.value or in_force
        self.box.clear()
        for value, words in choices:
            self.box.addItem(_capital(words), value)
        self.box.setCurrentIndex(max(0, self.box.findData(picked)))
        self.show_in_force(in_force)

    def pick(self, value: str, words: str) -> None:
        """Pick a choice, added to the list where it is missing."""
        if self.box.findData(value) < 0:
            self.box.addItem(_capital(words), value)
        self.box.setCurrentIndex(self.box.findData(value))

    def show_in_force(self, in_force: str) -> None:
        if in_force != self._in_force:
            self._in_force = in_force
            self.box.setCurrentIndex(max(0, self.box.findData(in_force)))
        if self.value == in_force:
            self.switch.setEnabled(False)
            self.words.hide()

    def show_plan(self, plan: SwitchPlan) -> None:
        if plan.choice != self.value:
            return
        self.show_error("")
        self.words.setText(plan_words(plan))
        self.words.setVisible(plan.choice != self._in_force)
        self.switch.setEnabled(plan.choice != self._in_force)

    def show_error(self, words: str) -> None:
        self.error.setText(words)
        self.error.setVisible(bool(words))
        if words:
            self.words.hide()
            self.switch.setEnabled(False)

    def _on_box_activated(self) -> None:
        self.show_error("")
        self.switch.setEnabled(False)
        self.words.hide()
        self.picked.emit(self.value)

    def _on_switch_clicked(self) -> None:
        self.switch.setEnabled(False)
        self.switch_wanted.emit(self.value)


class _SpacesCard(QFrame):
    """The spaces that hold vectors, a line each.

    Signals:
        deletion_requested: (space, its embedder in words).
    """

    deletion_requested = Signal(str, str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("panel", "card")
        self.setAccessibleName("What is embedded")
        self._shown: Sequence[SpaceRow] | None = None
        title = QLabel("What is embedded", self)
        title.setProperty("tone", "heading")
        words = QLabel(
            "Vectors of an embedder that is no longer in use are kept: going back to it is "
            "immediate and costs nothing.",
            self,
            wordWrap=True,
        )
        words.setProperty("tone", "small")
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(12)
        self._grid.setColumnStretch(0, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 12, 14, 12)
        column.addWidget(title)
        column.addWidget(words)
        column.addLayout(self._grid)

    def show_rows(self, rows: Sequence[SpaceRow]) -> None:
        if rows == self._shown:
            return
        self._shown = tuple(rows)
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        if not rows:
            self._grid.addWidget(QLabel("Nothing yet.", self), 0, 0)
            return
        for column, name in enumerate(_COLUMNS):
            head = QLabel(name, self)
            head.setProperty("tone", "small")
            head.setAlignment(_side(column))
            self._grid.addWidget(head, 0, column)
        for number, row in enumerate(rows, start=1):
            self._add_row(number, row)

    def _add_row(self, number: int, row: SpaceRow) -> None:
        name = QLabel(f"{_capital(row.model)} \N{MIDDLE DOT} {_USES[row.use]}", self, wordWrap=True)
        name.setToolTip(row.name)
        self._grid.addWidget(name, number, 0)
        values = (f"{row.passages:,}", percent_words(row.share), size_words(row.size_bytes))
        for column, words in enumerate(values, start=1):
            label = QLabel(words, self)
            label.setAlignment(_side(column))
            label.setAccessibleName(f"{_COLUMNS[column]} of {row.model}: {words}")
            self._grid.addWidget(label, number, column)
        if row.use is SpaceUse.KEPT:
            delete = QPushButton("Delete\u2026", self)
            delete.setProperty("kind", "danger")
            delete.setAccessibleName(f"Delete the vectors of {row.model}")
            delete.clicked.connect(partial(self.deletion_requested.emit, row.name, row.model))
            self._grid.addWidget(delete, number, len(_COLUMNS))


def plan_words(plan: SwitchPlan) -> str:
    """Return what a switch takes, in a sentence or two."""
    if plan.needs_consent:
        return f"{_amount_words(plan)}. Your history would be sent to {plan.sent_to}."
    if not plan.passages:
        return "Everything is embedded with it already: it answers at once, at no cost."
    place = plan.sent_to
    sent = f"It is sent to {place}, as you agreed." if place else "Nothing leaves this computer."
    return f"{_amount_words(plan)}. {sent} Until then the embedder before goes on answering."


def consent_words(plan: SwitchPlan) -> str:
    """Return what is agreed to by switching."""
    return (
        f"The text of your whole history, and of every later search, goes to "
        f"{plan.sent_to}.\n\n{_amount_words(plan)}. Private conversations are never sent."
    )


def _amount_words(plan: SwitchPlan) -> str:
    noun = "passage" if plan.passages == 1 else "passages"
    takes = estimate_words(plan.minutes, plan.cost_usd)
    return f"{plan.passages:,} {noun}, about {plan.tokens:,} tokens: {takes}"


def _state_words(state: SpacesState) -> str:
    if state.before_words:
        return (
            f"Reading your history: {percent_words(state.share)} of {state.total:,} passages. "
            f"Until it has read as much, {state.before_words}, goes on answering."
        )
    if not state.total:
        return "There is nothing to embed yet."
    return (
        f"{percent_words(state.share)} of {state.total:,} passages can be found by their meaning."
    )


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:] if words.startswith("the ") else words


def _side(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter
