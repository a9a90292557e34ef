"""The found words of a view: marked in turns as they are drawn, and gone to."""

from collections.abc import Sequence

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from ui.widgets.transcript.anchor import AtPlace, Centred
from ui.widgets.transcript.find import FindMarks
from ui.widgets.transcript.focus import enclosing
from ui.widgets.transcript.turn import TurnWidget
from ui.widgets.transcript.values import FindMark
from ui.widgets.transcript.virtual import VirtualColumn


class FoundWords(QObject):
    """Shows the marks of one search in the turns that exist. Where they stand: `FindMarks`."""

    def __init__(self, view: VirtualColumn) -> None:
        super().__init__(view)
        self._view = view
        self._marks = FindMarks(())

    def forget(self) -> None:
        """Have no marks: the turns that held them are gone."""
        self._marks = FindMarks(())

    def show(self, marks: Sequence[FindMark]) -> None:
        """Mark these words in place of those before."""
        touched = self._marks.turns | {mark.turn_index for mark in marks}
        self._marks = FindMarks(marks)
        self._show_in_all(touched)

    def go_to(self, number: int) -> None:
        """Make a mark stand out and go to its turn; `arrive` ends at the very line."""
        if (index := self._marks.choose(number)) is None:
            return
        self._show_in_all(self._marks.turns)
        self._view.rest_on(Centred(index))

    def arrive(self) -> None:
        """Once the turn that is gone to is drawn, rest on the very line."""
        index = self._marks.turn_to_show
        widget = self._view.item(index) if index is not None else None
        if not isinstance(widget, TurnWidget) or widget.content is None:
            return
        y = self._marks.y_of_current(widget, self._view.item_width())
        if y is not None:
            self._view.rest_on(AtPlace(widget.index, y))

    def show_in(self, widget: TurnWidget) -> None:
        """Mark what was found in a turn."""
        self._marks.show_in(widget)

    def mark_drawn(self, text: object) -> None:
        """Mark what was found in words that are drawn only now."""
        turn = enclosing(text, TurnWidget) if isinstance(text, QWidget) else None
        if isinstance(turn, TurnWidget) and turn.index in self._marks.turns:
            self._marks.show_in(turn)

    def _show_in_all(self, turns: set[int]) -> None:
        for index in turns:
            if isinstance(widget := self._view.item(index), TurnWidget):
                self._marks.show_in(widget)
