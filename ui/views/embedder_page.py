"""Search by meaning in the settings: which embedder is in use, what it has read, choosing another."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.domain.spaces import SpaceRow, SpacesState, SpaceUse, SwitchPlan
from app.workers.wording import estimate_words, percent_words, size_words
from ui.widgets.cards import Card, TableCard
from ui.widgets.plain_label import PlainLabel

_STEPS = 1000
_USES = {
    SpaceUse.ANSWERS: "answers",
    SpaceUse.FILLS: "being filled",
    SpaceUse.KEPT: "kept",
}
_COLUMNS = ("Embedder", "Passages", "Share", "Size")
_ABOUT_SPACES = (
    "Vectors of an embedder that is no longer in use are kept: going back to it is immediate and "
    "costs nothing."
)


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
        words = PlainLabel(
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


class _StateCard(Card):
    """Which embedder is in force, how far it is, and what keeps it from answering."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__("The embedder in use", parent, title="")
        self.title.setWordWrap(True)
        self.words = self.line()
        self.bar = QProgressBar(self)
        self.bar.setRange(0, _STEPS)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName("How much is embedded")
        self.column.addWidget(self.bar)
        self.problem = self.line("warning")
        self.problem.hide()
        self.redo = QPushButton("Embed everything again\u2026", self)
        row = QHBoxLayout()
        row.addWidget(self.redo)
        row.addStretch(1)
        self.column.addLayout(row)

    def show_state(self, state: SpacesState) -> None:
        self.title.setText(_capital(state.chosen_words))
        self.words.setText(_state_words(state))
        self.bar.setVisible(state.share < 1 or bool(state.before_words))
        self.bar.setValue(round(state.share * _STEPS))
        self.problem.setText(state.problem)
        self.problem.setVisible(bool(state.problem))


class _ChooserCard(Card):
    """Embedders to choose from; nothing changes before the button is clicked.

    Signals:
        picked: A choice, by its value. switch_wanted: The same, to be in force.
    """

    picked = Signal(str)
    switch_wanted = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__("Another embedder", parent, title="Use another embedder")
        self._in_force = ""
        self.box = QComboBox(self)
        self.box.setAccessibleName("Embedder")
        self.box.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self.box.setMinimumContentsLength(12)
        self.box.activated.connect(self._on_box_activated)
        self.folder = QPushButton("ONNX folder\u2026", self)
        self.folder.setToolTip("A folder with model.onnx, tokenizer.json and config.json")
        row = QHBoxLayout()
        row.addWidget(self.box, 1)
        row.addWidget(self.folder)
        self.column.addLayout(row)
        self.words, self.error = self.line("muted"), self.line("error")
        self.words.hide()
        self.error.hide()
        self.switch = QPushButton("Use this embedder", self)
        self.switch.setProperty("kind", "primary")
        self.switch.setEnabled(False)
        self.switch.clicked.connect(self._on_switch_clicked)
        deeds = QHBoxLayout()
        deeds.addWidget(self.switch)
        deeds.addStretch(1)
        self.column.addLayout(deeds)

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


class _SpacesCard(TableCard):
    """The spaces that hold vectors, a line each.

    Signals:
        deletion_requested: (space, its embedder in words).
    """

    deletion_requested = Signal(str, str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__("What is embedded", _COLUMNS, parent, about=_ABOUT_SPACES)
        self._shown: Sequence[SpaceRow] | None = None

    def show_rows(self, rows: Sequence[SpaceRow]) -> None:
        if rows == self._shown:
            return
        self._shown = tuple(rows)
        self.begin(empty="" if rows else "Nothing yet.")
        for number, row in enumerate(rows, start=1):
            self._add_row(number, row)

    def _add_row(self, number: int, row: SpaceRow) -> None:
        name = self.cell(number, 0, f"{_capital(row.model)} \N{MIDDLE DOT} {_USES[row.use]}")
        name.setToolTip(row.name)
        values = (f"{row.passages:,}", percent_words(row.share), size_words(row.size_bytes))
        for column, words in enumerate(values, start=1):
            self.name_cell(self.cell(number, column, words), column, row.model)
        if row.use is SpaceUse.KEPT:
            delete = QPushButton("Delete\u2026", self)
            delete.setProperty("kind", "danger")
            delete.setAccessibleName(f"Delete the vectors of {row.model}")
            delete.clicked.connect(partial(self.deletion_requested.emit, row.name, row.model))
            self.grid.addWidget(delete, number, len(_COLUMNS))


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
