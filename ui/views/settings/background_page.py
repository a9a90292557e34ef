"""Background work in the settings: the model, the workers, spend limits, what was spent, own prices."""

from collections.abc import Mapping, Sequence
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QWidget

from app.domain.records.sources import SOURCES
from app.domain.settings_schema import SETTINGS, SettingPage
from app.domain.translation import money, tr
from app.providers.pricing.prices import OwnPrice
from app.workers.model_choice import BackgroundPlan, plan_text, sending_text
from app.workers.spend_limits import SPEND_LIMIT_KEYS
from ui.widgets.cards import ChooserCard, TableCard
from ui.widgets.controls import button, column_in, line_edit, row_of
from ui.widgets.on_screen import ReportsShown
from ui.widgets.plain_label import PlainLabel
from ui.widgets.setting_editor import SettingEditor

_EXTRACTIVE = tr("Key sentences only, chosen on this computer, free")
_USE = tr("Use for background work")
_SPENT_COLUMNS = (tr("Task"), tr("Model"), tr("Today"), tr("This month"))
_PRICE_COLUMNS = (tr("Model"), tr("Input"), tr("Output"), tr("Cached input"))
_ELSEWHERE = frozenset((*SPEND_LIMIT_KEYS, *(each.setting for each in SOURCES.values())))
_ABOUT_PRICES = tr(
    "In US dollars per million tokens. Your prices replace those of the bundled list. A server of "
    "your own can cost 0."
)
_ABOUT = tr(
    "Summaries and facts are made in the background. A language model makes better ones. "
    "A model on a remote server reads your history for this and costs money, so nothing "
    "is sent to it before you agree."
)


class BackgroundPage(ReportsShown, QWidget):
    """A choice of models with the price of each, spend limits, what was spent, and own prices.

    Attributes:
        chooser, spent, prices: Its cards, with signals of their own. limits, tasks: Editors.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        about = PlainLabel(_ABOUT, self, wordWrap=True, tone="small")
        self.chooser = _BackgroundModelChooser(self)
        self.limits = [SettingEditor(SETTINGS[key], self) for key in SPEND_LIMIT_KEYS]
        self.spent = _TextTable(tr("Spending this month"), _SPENT_COLUMNS, self, text_columns=2)
        self.prices = _PricesCard(self)
        self.tasks = [
            SettingEditor(each, self)
            for each in SETTINGS.values()
            if each.page is SettingPage.WORKERS and each.key not in _ELSEWHERE
        ]
        parts = (about, self.chooser, *self.tasks, *self.limits, self.spent, self.prices, None)
        column_in(self, *parts, margins=(16, 8, 16, 16))


class _BackgroundModelChooser(ChooserCard):
    """Models to choose from, also by typing one; "" stands for none."""

    def __init__(self, parent: QWidget) -> None:
        name = tr("Model for background work")
        super().__init__(name, parent, f"{name}, PROVIDER:MODEL", _USE)
        self._waits = False
        self.state = self.line()
        self.box.setEditable(True)
        self.box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        line = self.box.lineEdit()
        assert line is not None
        line.editingFinished.connect(self._on_box_activated)
        self.column.addWidget(self.box)
        self.add_lines()
        tip = tr("Replace summaries made by other models; shows the price and asks first")
        self.regenerate = button(
            self, tr("Regenerate earlier summaries\u2026"), kind="quiet", tip=tip
        )
        for each in (self.use, self.regenerate):  # side by side they are wider than a small window
            self.column.addLayout(row_of(each, None))
        self.show_state("", waits=False)

    @property
    def value(self) -> str:
        """The model that is picked or typed; "" is extractive."""
        typed = self.box.currentText().strip()
        found = self.box.findText(typed)
        return str(self.box.itemData(found)) if found >= 0 else typed

    def show_models(self, models: Sequence[str]) -> None:
        """Show models to choose from; what is picked stays picked."""
        picked = self.value if self.box.count() else self.in_force
        self.box.clear()
        self.box.addItem(_EXTRACTIVE, "")
        for model in dict.fromkeys((*models, *filter(None, (self.in_force, picked)))):
            self.box.addItem(model, model)
        self.box.setCurrentIndex(max(0, self.box.findData(picked)))

    def show_state(self, in_force: str, *, waits: bool) -> None:
        """Show the model in use; `waits` if nobody has agreed to it yet."""
        self.in_force, self._waits = in_force, waits
        if not in_force:
            text = tr(
                "Now: key sentences only, chosen on this computer. Nothing leaves it, nothing is spent."
            )
        elif waits:
            text = tr(
                "Now: {in_force} is chosen and waits until you allow it to read your history."
            ).format(in_force=in_force)
        else:
            text = tr("Now: {in_force}.").format(in_force=in_force)
        self.state.setText(text)
        if self.value == in_force:
            self.text.hide()
        self.update_button()

    def show_plan(self, plan: BackgroundPlan) -> None:
        """Show the work and the price of the picked model."""
        if plan.model != self.value:
            return
        sent = f" {sending_text(plan)}" if plan.sent_to else tr(" Nothing leaves this computer.")
        self.show_text(plan_text(plan) + sent)

    def update_button(self) -> None:
        is_in_force = self.value == self.in_force
        self.use.setEnabled(not is_in_force or self._waits)
        self.use.setText(tr("Allow\u2026") if is_in_force and self._waits else _USE)


class _TextTable(TableCard):
    """A table of text, one string per column."""

    def show_rows(self, rows: Sequence[Sequence[str]]) -> None:
        """Show rows, each with one string per column."""
        self.begin(empty="" if rows else tr("None yet."))
        for number, row in enumerate(rows, start=1):
            for column, text in enumerate(row):
                self.name_cell(self.cell(number, column, text), column, row[0])


class _PricesCard(_TextTable):
    """The user's own prices, and a form to add one.

    Signals:
        entered: (model, input, output, cached input) as typed. removed: A model.
    """

    entered = Signal(str, str, str, str)
    removed = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(tr("Your own prices"), _PRICE_COLUMNS, parent, about=_ABOUT_PRICES)
        self.fields = [
            line_edit(self, label, name=tr("Own price: {name}").format(name=name))
            for label, name in zip(
                ("PROVIDER:MODEL", *_PRICE_COLUMNS[1:]), _PRICE_COLUMNS, strict=True
            )
        ]
        self.save = button(self, tr("Save price"), self._on_save_clicked)
        model, *figures = self.fields
        self.column.addLayout(row_of((model, 3), *((each, 1) for each in figures), self.save))
        self.error = self.line("error")
        self.error.hide()

    def show_prices(self, prices: Mapping[str, OwnPrice]) -> None:
        """Show the table; each row has a button that removes it."""
        rows = []
        for model, price in prices.items():
            cached = tr("as input") if price.cached_usd is None else _amount(price.cached_usd)
            rows.append((model, _amount(price.input_usd), _amount(price.output_usd), cached))
        self.show_rows(rows)
        for number, model in enumerate(prices, start=1):
            remove = button(
                self, tr("Remove"), partial(self.removed.emit, model),
                name=tr("Remove the price of {model}").format(model=model),
            )  # fmt: skip
            self.grid.addWidget(remove, number, len(_PRICE_COLUMNS))

    def show_error(self, text: str) -> None:
        """Show why a price was not saved; "" means that it was, and empties the form."""
        self.error.show_text(text)
        if not text:
            for field in self.fields:
                field.clear()

    def _on_save_clicked(self) -> None:
        self.entered.emit(*(field.text().strip() for field in self.fields))


def _amount(usd: float) -> str:
    """Return a price without superfluous zeros."""
    return money(
        usd, next(digits for digits in (0, 2, 4, 6) if digits == 6 or usd == round(usd, digits))
    )
