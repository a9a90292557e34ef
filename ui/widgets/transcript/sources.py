"""What memory contributed to an answer: a chip for each source, the ones that are cited first."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QToolButton

from ui.rendering.inline import tip_of
from ui.widgets.transcript.look import Look
from ui.widgets.transcript.panels import chip_of
from ui.widgets.transcript.parts import FlowRow, small_label
from ui.widgets.transcript.values import SourceChip

_SHOWN = 4
_CITED = "\N{CHECK MARK}"


class SourceRow(FlowRow):
    """Chips that lead to where something was said; those that do not fit in fold into a number.

    Signals:
        clicked: The number of a source.
    """

    clicked = Signal(int)

    def __init__(self, look: Look, chips: Sequence[SourceChip]) -> None:
        super().__init__(gap=look.px(0.35))
        self.setAccessibleName(f"From memory: {len(chips)}")
        self.add(small_label("From memory", "small"))
        ordered = sorted(chips, key=lambda each: not each.cited)
        # One chip is no shorter than the number that would stand for it.
        shown = len(ordered) if len(ordered) <= _SHOWN + 1 else _SHOWN
        for chip in ordered[:shown]:
            self.add(self._chip(chip))
        self._rest = ordered[shown:]
        self._more: QToolButton | None = None
        if self._rest:
            self._more = chip_of(f"+{len(self._rest)}")
            self._more.setAccessibleName(f"Show {len(self._rest)} more from memory")
            self._more.setToolTip("Show the others too")
            self._more.clicked.connect(self._on_more_clicked)
            self.add(self._more)

    def _chip(self, source: SourceChip) -> QToolButton:
        mark = f" {_CITED}" if source.cited else ""
        chip = chip_of(f"{source.sign} {source.words}{mark}")
        cited = ", cited in the answer" if source.cited else ""
        chip.setAccessibleName(f"{source.kind}: {source.words}{cited}")
        chip.setAccessibleDescription(source.tip)
        chip.setProperty("cited", source.cited)
        chip.setToolTip(tip_of(source.tip))
        chip.clicked.connect(partial(self.clicked.emit, source.number))
        return chip

    def _on_more_clicked(self) -> None:
        assert self._more is not None
        self._more.hide()
        made = [self._chip(each) for each in self._rest]
        for chip in made:
            self.add(chip)
        self._rest = []
        made[0].setFocus(Qt.FocusReason.OtherFocusReason)
