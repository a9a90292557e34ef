"""Search by meaning in the settings: the embedder in use, its progress, choosing another one."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.domain.passages import EmbeddingEstimate, EmbeddingStatus, SpaceStatus, SpaceUse
from app.domain.translation import (
    format_estimate,
    format_number,
    format_percent,
    format_size,
    tr,
    trn,
)
from ui.widgets.cards import Card, ChooserCard, TableCard
from ui.widgets.controls import button, column_in, progress_bar, row_of
from ui.widgets.plain_label import PlainLabel

_STEPS = 1000
_USES = {
    SpaceUse.ANSWERS: tr("in use"),
    SpaceUse.FILLS: tr("being filled"),
    SpaceUse.KEPT: tr("kept"),
}
_COLUMNS = (tr("Search model"), tr("Texts"), tr("Share"), tr("Size"))
_ABOUT_SPACES = tr(
    "What a search model has read is kept when you use another one: you can "
    "go back to it at once and at no cost."
)
_ABOUT = tr(
    "A search model compares texts by their meaning, so that search finds "
    "what you mean even if the words differ. What it has not read yet is "
    "found by its words only."
)


class EmbedderPage(QWidget):
    """The embedder in use, a choice of others with the price of each, and the kept spaces.

    Attributes:
        state, chooser, spaces: Its cards, with signals of their own.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        about = PlainLabel(_ABOUT, self, wordWrap=True, tone="small")
        self.state = _StateCard(self)
        self.chooser = _EmbedderChooser(self)
        self.spaces = _SpacesCard(self)
        parts = (about, self.state, self.chooser, self.spaces, None)
        column_in(self, *parts, margins=(16, 8, 16, 16))

    def show_state(self, state: EmbeddingStatus) -> None:
        self.state.show_state(state)
        self.spaces.show_rows(state.rows)
        self.chooser.show_in_force(state.chosen)


class _StateCard(Card):
    """The embedder in use, its progress, and what keeps it from being used."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(tr("The search model in use"), parent, title="")
        self.title.setWordWrap(True)
        self.text = self.line()
        self.bar = progress_bar(self, tr("Share that was read"))
        self.bar.setRange(0, _STEPS)
        self.column.addWidget(self.bar)
        self.problem = self.line("warning")
        self.problem.hide()
        self.regenerate = button(self, tr("Read everything again\u2026"))
        self.column.addLayout(row_of(self.regenerate, None))

    def show_state(self, state: EmbeddingStatus) -> None:
        self.title.setText(_capital(state.chosen_title))
        self.text.setText(_state_text(state))
        self.bar.setVisible(state.share < 1 or bool(state.previous_title))
        self.bar.setValue(round(state.share * _STEPS))
        self.problem.show_text(state.problem)


class _EmbedderChooser(ChooserCard):
    """Embedders to choose from, and a button for a folder; `use` waits for the plan of a choice."""

    def __init__(self, parent: QWidget) -> None:
        title = tr("Use another search model")
        super().__init__(
            tr("Another search model"),
            parent,
            tr("Search model"),
            tr("Use this search model"),
            title,
        )
        self.folder = button(self, tr("ONNX folder\u2026"))
        self.folder.setToolTip(tr("A folder with model.onnx, tokenizer.json and config.json"))
        self.column.addLayout(row_of((self.box, 1), self.folder))
        self.add_lines()
        self.column.addLayout(row_of(self.use, None))
        self.update_button()

    def update_button(self) -> None:
        self.use.setEnabled(False)

    def show_choices(self, choices: Sequence[tuple[str, str]], in_force: str) -> None:
        picked = self.value or in_force
        self.box.clear()
        for value, title in choices:
            self.box.addItem(_capital(title), value)
        self.box.setCurrentIndex(max(0, self.box.findData(picked)))
        self.show_in_force(in_force)

    def pick(self, value: str, title: str) -> None:
        """Pick a choice; add it to the list if it is missing."""
        if self.box.findData(value) < 0:
            self.box.addItem(_capital(title), value)
        self.box.setCurrentIndex(self.box.findData(value))

    def show_in_force(self, in_force: str) -> None:
        if in_force != self.in_force:
            self.in_force = in_force
            self.box.setCurrentIndex(max(0, self.box.findData(in_force)))
        if self.value == in_force:
            self.update_button()
            self.text.hide()

    def show_plan(self, plan: EmbeddingEstimate) -> None:
        if plan.choice != self.value:
            return
        self.show_text("" if plan.choice == self.in_force else plan_text(plan))
        self.use.setEnabled(plan.choice != self.in_force)

    def show_error(self, text: str) -> None:
        super().show_error(text)
        self.update_button()


class _SpacesCard(TableCard):
    """The spaces that hold vectors, one line each.

    Signals:
        deletion_requested: (space, the title of its embedder).
    """

    deletion_requested = Signal(str, str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(tr("Read for search by meaning"), _COLUMNS, parent, about=_ABOUT_SPACES)
        self._shown: Sequence[SpaceStatus] | None = None

    def show_rows(self, rows: Sequence[SpaceStatus]) -> None:
        if rows == self._shown:
            return
        self._shown = tuple(rows)
        self.begin(empty="" if rows else tr("None yet."))
        for number, row in enumerate(rows, start=1):
            self._add_row(number, row)

    def _add_row(self, number: int, row: SpaceStatus) -> None:
        name = self.cell(number, 0, f"{_capital(row.model)} \N{MIDDLE DOT} {_USES[row.use]}")
        name.setToolTip(row.name)
        values = (
            format_number(row.passages),
            format_percent(row.share),
            format_size(row.size_bytes),
        )
        for column, text in enumerate(values, start=1):
            self.name_cell(self.cell(number, column, text), column, row.model)
        if row.use is SpaceUse.KEPT:
            delete = button(
                self, tr("Delete\u2026"), partial(self.deletion_requested.emit, row.name, row.model),
                kind="danger", name=tr("Delete what {model} has read").format(model=row.model),
            )  # fmt: skip
            self.grid.addWidget(delete, number, len(_COLUMNS))


def plan_text(plan: EmbeddingEstimate) -> str:
    """Return the work and the price of a switch."""
    if plan.needs_consent:
        return tr("{amount_text}. Your history would be sent to {sent_to}.").format(
            amount_text=_amount_text(plan), sent_to=plan.sent_to
        )
    if not plan.passages:
        return tr("It has read everything already: you can use it at once, at no cost.")
    place = plan.sent_to
    sent = (
        tr("It is sent to {place}, as you agreed.").format(place=place)
        if place
        else tr("Nothing leaves this computer.")
    )
    return tr("{amount_text}. {sent} Until then the previous search model stays in use.").format(
        amount_text=_amount_text(plan), sent=sent
    )


def consent_text(plan: EmbeddingEstimate) -> str:
    """Return what the user agrees to by switching."""
    return tr(
        "The text of your whole history, and of every later search, is sent to {sent_to}.\n\n{amount_text}. Private conversations are never sent."
    ).format(sent_to=plan.sent_to, amount_text=_amount_text(plan))


def _amount_text(plan: EmbeddingEstimate) -> str:
    estimate = format_estimate(plan.minutes, plan.cost_usd)
    return tr("{passages}, about {tokens} tokens: {estimate}").format(
        passages=trn("{count} text", "{count} texts", plan.passages),
        tokens=format_number(plan.tokens),
        estimate=estimate,
    )


def _state_text(state: EmbeddingStatus) -> str:
    if state.previous_title:
        return tr(
            "Reading your history: {share} of {total} texts. Until this is done, "
            "{previous_title} stays in use."
        ).format(
            share=format_percent(state.share),
            total=format_number(state.total),
            previous_title=state.previous_title,
        )
    if not state.total:
        return tr("There is nothing to read yet.")
    return tr("{share} of {total} texts can be found by meaning.").format(
        share=format_percent(state.share), total=format_number(state.total)
    )


def _capital(title: str) -> str:
    return title[:1].upper() + title[1:] if title.startswith("the ") else title
