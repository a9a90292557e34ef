"""Background work in the settings: who does it, what it may cost, what it has cost, own prices."""

from collections.abc import Mapping, Sequence
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.domain.settings_schema import SETTINGS
from app.providers.prices import OwnPrice
from app.workers.background_choice import BackgroundPlan
from app.workers.background_words import plan_words, sending_words
from ui.widgets.cards import Card, TableCard
from ui.widgets.plain_label import PlainLabel
from ui.widgets.setting_editor import SettingEditor

CAPS = ("spend_cap_daily_usd", "spend_cap_monthly_usd")
_EXTRACTIVE = "Extractive: the most telling sentences, on this computer, free"
_SPENT_COLUMNS = ("Worker", "Model", "Today", "This month")
_PRICE_COLUMNS = ("Model", "Input", "Output", "Cached input")
_ABOUT_PRICES = (
    "In US dollars for a million tokens; they win over the bundled list. A server of your own may "
    "cost 0."
)


class BackgroundPage(QWidget):
    """A choice of models with what each would take, the caps, what was spent, and own prices.

    Signals:
        model_picked: A model ("" extractive), to be planned. model_wanted: The one that should be in
            force. price_entered: (model, input, output, cached input) as typed.
            price_removed: A model. redo_wanted: What others summarised should be made again.
            shown: The page came into sight, where what it says may be old.
    """

    model_picked = Signal(str)
    model_wanted = Signal(str)
    price_entered = Signal(str, str, str, str)
    price_removed = Signal(str)
    redo_wanted = Signal()
    shown = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        words = PlainLabel(
            "Summaries, facts and lines on tool calls are made in the background. A language model "
            "makes better ones; a model of a server elsewhere reads your history for that and costs "
            "money, so it is asked nothing before you agree.",
            self,
            wordWrap=True,
        )
        words.setProperty("tone", "small")
        self.chooser = _ChooserCard(self)
        self.chooser.picked.connect(self.model_picked)
        self.chooser.wanted.connect(self.model_wanted)
        self.chooser.redo.clicked.connect(self.redo_wanted)
        self.caps = [SettingEditor(SETTINGS[key], self) for key in CAPS]
        self.spent = _WordsTable("What was spent this month", _SPENT_COLUMNS, self, wordy=2)
        self.prices = _PricesCard(self)
        self.prices.entered.connect(self.price_entered)
        self.prices.removed.connect(self.price_removed)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 8, 16, 16)
        column.setSpacing(10)
        for part in (words, self.chooser, *self.caps, self.spent, self.prices):
            column.addWidget(part)
        column.addStretch(1)

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        """Say so: what is told may have become old meanwhile."""
        super().showEvent(event)
        self.shown.emit()


class _ChooserCard(Card):
    """Models to choose from; nothing changes before the button is clicked.

    Signals:
        picked: A model, "" for none. wanted: The same, to be in force.
    """

    picked = Signal(str)
    wanted = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__("Who does background work", parent)
        self._in_force = ""
        self._waits = False
        self.state = self.line()
        self.box = QComboBox(self)
        self.box.setEditable(True)
        self.box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.box.setAccessibleName("Model for background work, PROVIDER:MODEL")
        self.box.setMinimumContentsLength(12)
        self.box.activated.connect(self._on_box_activated)
        line = self.box.lineEdit()
        assert line is not None
        line.editingFinished.connect(self._on_box_activated)
        self.column.addWidget(self.box)
        self.words, self.error = self.line("muted"), self.line("error")
        self.words.hide()
        self.error.hide()
        self.use = QPushButton("Use for background work", self)
        self.use.setProperty("kind", "primary")
        self.use.setAutoDefault(False)
        self.use.clicked.connect(self._on_use_clicked)
        deeds = QHBoxLayout()
        deeds.addWidget(self.use)
        self.redo = QPushButton("Make earlier summaries again\u2026", self)
        self.redo.setProperty("kind", "quiet")
        self.redo.setToolTip("Those that were made otherwise than now; asks first, with the price")
        self.redo.setAutoDefault(False)
        deeds.addWidget(self.redo)
        deeds.addStretch(1)
        self.column.addLayout(deeds)
        self.show_state("", waits=False)

    @property
    def value(self) -> str:
        """The model that is picked or typed; "" is extractive."""
        typed = self.box.currentText().strip()
        found = self.box.findText(typed)
        return str(self.box.itemData(found)) if found >= 0 else typed

    def show_models(self, models: Sequence[str]) -> None:
        """Offer models beside the extractive way; what is picked stays picked."""
        picked = self.value if self.box.count() else self._in_force
        self.box.clear()
        self.box.addItem(_EXTRACTIVE, "")
        for model in dict.fromkeys((*models, *filter(None, (self._in_force, picked)))):
            self.box.addItem(model, model)
        self.box.setCurrentIndex(max(0, self.box.findData(picked)))

    def show_state(self, in_force: str, *, waits: bool) -> None:
        """Show who does it now; `waits` when it has not been agreed to."""
        self._in_force, self._waits = in_force, waits
        if not in_force:
            words = "Now: extractive, on this computer. Nothing leaves it, nothing is spent."
        elif waits:
            words = f"Now: {in_force} is chosen and waits until you allow it to read your history."
        else:
            words = f"Now: {in_force}."
        self.state.setText(words)
        if self.value == in_force:
            self.words.hide()  # what it would take is past
        self._follow()

    def show_plan(self, plan: BackgroundPlan) -> None:
        """Show what the picked model would take."""
        if plan.model != self.value:
            return
        sent = f" {sending_words(plan)}" if plan.sent_to else " Nothing leaves this computer."
        self.words.setText(plan_words(plan) + sent)
        self.error.hide()
        self.words.show()

    def show_words(self, words: str) -> None:
        """Tell something about the model in force."""
        self.error.hide()
        self.words.setText(words)
        self.words.show()

    def show_error(self, words: str) -> None:
        """Tell why a model cannot be taken."""
        self.error.setText(words)
        self.error.setVisible(bool(words))
        self.words.setVisible(False)

    def _follow(self) -> None:
        is_in_force = self.value == self._in_force
        self.use.setEnabled(not is_in_force or self._waits)
        self.use.setText(
            "Allow\u2026" if is_in_force and self._waits else "Use for background work"
        )

    def _on_box_activated(self) -> None:
        self.error.hide()
        self.words.hide()
        self._follow()
        self.picked.emit(self.value)

    def _on_use_clicked(self) -> None:
        self.wanted.emit(self.value)


class _WordsTable(TableCard):
    """A table whose rows are words, one for each column."""

    def show_rows(self, rows: Sequence[Sequence[str]]) -> None:
        """Show rows, each as many words as there are columns."""
        self.begin(empty="" if rows else "Nothing.")
        for number, row in enumerate(rows, start=1):
            for column, words in enumerate(row):
                self.name_cell(self.cell(number, column, words), column, row[0])


class _PricesCard(_WordsTable):
    """The user's own prices, and a form for one.

    Signals:
        entered: (model, input, output, cached input) as typed. removed: A model.
    """

    entered = Signal(str, str, str, str)
    removed = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__("Your own prices", _PRICE_COLUMNS, parent, about=_ABOUT_PRICES)
        self.fields = [QLineEdit(self) for _ in _PRICE_COLUMNS]
        form = QHBoxLayout()
        for field, name in zip(self.fields, _PRICE_COLUMNS, strict=True):
            field.setPlaceholderText("PROVIDER:MODEL" if name == "Model" else name)
            field.setAccessibleName(f"Own price: {name}")
            form.addWidget(field, 3 if name == "Model" else 1)
        self.save = QPushButton("Save price", self)
        self.save.setAutoDefault(False)
        self.save.clicked.connect(self._on_save_clicked)
        form.addWidget(self.save)
        self.column.addLayout(form)
        self.error = self.line("error")
        self.error.hide()

    def show_prices(self, prices: Mapping[str, OwnPrice]) -> None:
        """Show the table; each row has a button that removes it."""
        rows = []
        for model, price in prices.items():
            cached = "as input" if price.cached_usd is None else f"${price.cached_usd:g}"
            rows.append((model, f"${price.input_usd:g}", f"${price.output_usd:g}", cached))
        self.show_rows(rows)
        for number, model in enumerate(prices, start=1):
            remove = QPushButton("Remove", self)
            remove.setAccessibleName(f"Remove the price of {model}")
            remove.clicked.connect(partial(self.removed.emit, model))
            self.grid.addWidget(remove, number, len(_PRICE_COLUMNS))

    def show_error(self, words: str) -> None:
        """Tell why a price was not taken; "" when it was, which empties the form."""
        self.error.setText(words)
        self.error.setVisible(bool(words))
        if not words:
            for field in self.fields:
                field.clear()

    def _on_save_clicked(self) -> None:
        self.entered.emit(*(field.text().strip() for field in self.fields))
