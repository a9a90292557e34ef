"""The test questions: the current and the previous rank of the turn each should find."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.domain.diagnostics import ProbeDetails
from app.domain.errors import KnownError
from app.domain.translation import format_number, format_turn, tr
from ui.widgets.controls import button, column_in, progress_bar, row_of
from ui.widgets.on_screen import ReportsShown
from ui.widgets.plain_label import plain_label
from ui.widgets.record_table import RecordTable

_COLUMNS = (tr("Question"), tr("Should find"), tr("Now"), tr("Before"))


class QuestionsView(ReportsShown, QWidget):
    """Lists the test questions.

    Signals:
        run_requested: Ask all again. remove_requested: A `Probe` to remove.
        turn_requested: A `ProbeDetails` whose turn is to be shown.
    """

    run_requested = Signal()
    remove_requested = Signal(object)
    turn_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = plain_label(self, "muted", selectable=False)
        self._table = RecordTable(self, tr("Test questions"), _COLUMNS, narrow=(2, 3))
        self._table.changed.connect(self._on_selected)
        self._table.opened.connect(self._on_open_clicked)
        self._bar = progress_bar(self, tr("Questions asked so far"))
        self._bar.hide()
        self._run = button(self, tr("Ask all again"), self.run_requested)
        self._open = button(self, tr("Open the turn"), self._on_open_clicked)
        self._remove = button(
            self, tr("Remove"), lambda: self.remove_requested.emit(self._table.current.probe)
        )
        buttons = row_of(self._run, self._open, None, self._remove)
        margins = (12, 12, 12, 12)
        column_in(
            self, self._words, (self._table, 1), self._bar, buttons, margins=margins, spacing=8
        )
        self.setFocusProxy(self._table)
        self._places: tuple[ProbeDetails, ...] = ()
        self.show_places(())

    def show_places(self, places: Sequence[ProbeDetails]) -> None:
        """Show the probes, oldest first; keep the selection."""
        self._places = tuple(places)
        self._bar.hide()
        rows = self._table.show_records(places, _texts, lambda each: each.probe.question)
        for row, place in zip(rows, places, strict=True):
            row.setToolTip(2, place.probe.problem)
        self._words.setText(summary(places))
        self._run.setEnabled(bool(places))

    def show_progress(self, done: int, total: int) -> None:
        self._run.setEnabled(False)
        self._bar.setRange(0, total)
        self._bar.setValue(done)
        self._bar.show()

    def show_error(self, error: KnownError) -> None:
        """Show why they cannot be asked."""
        self.show_places(self._places)
        self._words.setText(error.display_text)

    def _on_selected(self) -> None:
        selected: ProbeDetails | None = self._table.current
        self._remove.setEnabled(selected is not None)
        self._open.setEnabled(selected is not None and selected.conversation_id is not None)

    def _on_open_clicked(self) -> None:
        if self._open.isEnabled():
            self.turn_requested.emit(self._table.current)


def turn_text(place: ProbeDetails) -> str:
    """Return the label of the turn that should be found."""
    if place.conversation_id is None or place.turn_number is None:
        return tr("A deleted turn")
    return f"{place.conversation_title}, {format_turn(place.turn_number)}"


def summary(places: Sequence[ProbeDetails]) -> str:
    """Return a summary of the ranks, as text."""
    if not places:
        return tr(
            "There are no test questions yet. Choose a turn, ask \u201cWhy wasn't this "
            "recalled?\u201d, and keep the question: here you see whether it still finds the turn "
            "after a change."
        )
    probes = [each.probe for each in places]
    first = sum(each.rank == 1 for each in probes)
    ten = sum(each.rank is not None and each.rank <= _TEN for each in probes)
    worse = sum(each.rank_drop > 0 for each in probes)
    better = sum(each.rank_drop < 0 for each in probes)
    words = tr("{first} of {places} found first, {ten} among the first ten.").format(
        first=first, places=len(places), ten=ten
    )
    if not any(each.before_at for each in probes):
        return words
    moved = (
        tr("{better} rose and {worse} fell").format(better=better, worse=worse)
        if better or worse
        else tr("nothing has moved")
    )
    return tr("{words} Since the previous run {moved}.").format(words=words, moved=moved)


_TEN = 10
_FELL, _ROSE = "\N{DOWNWARDS ARROW}", "\N{UPWARDS ARROW}"


def _texts(place: ProbeDetails) -> Sequence[str]:
    probe = place.probe
    now = _rank(probe.rank, known=probe.ran_at is not None)
    if probe.problem:
        now = tr("cannot be asked")
    elif probe.rank_drop:
        now = f"{now} {_FELL if probe.rank_drop > 0 else _ROSE}"
    before = _rank(probe.before, known=probe.before_at is not None)
    return probe.question, turn_text(place), now, before


def _rank(rank: int | None, *, known: bool) -> str:
    if not known:
        return "\N{EN DASH}"
    return format_number(rank) if rank else tr("not found")
