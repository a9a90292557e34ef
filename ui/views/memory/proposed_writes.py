"""What models propose to write to core memory: a row for each, with buttons to decide."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QWidget

from app.domain.translation import tr
from ui.widgets.controls import button, column_in, row_of, scroll_area
from ui.widgets.plain_label import breakable, plain_label
from ui.widgets.transcript.values import WrittenLine

_MOST_PX = 170


class ProposedWrites(QWidget):
    """Shows proposals; hidden while there are none.

    Signals:
        action_requested: The uid of a proposal, and "keep" or "undo".
        source_requested: The uid of the proposal whose conversation is to be opened.
    """

    action_requested = Signal(str, str)
    source_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: list[QFrame] = []
        body = QWidget(self)
        self._body = body
        self._column = column_in(body, margins=(0, 0, 0, 0), spacing=6)
        self._area = scroll_area(self, body, framed=False)
        column_in(self, self._area, margins=(0, 0, 0, 0))
        self.hide()

    def show_lines(self, lines: Sequence[WrittenLine]) -> None:
        """Show the proposals that wait."""
        for row in self._rows:
            row.hide()
            row.deleteLater()
        self._rows = [self._row(line) for line in lines]
        for row in self._rows:
            self._column.addWidget(row)
        self.setVisible(bool(lines))
        self.setFixedHeight(min(_MOST_PX, self._body.sizeHint().height() + 4))

    def _row(self, line: WrittenLine) -> QFrame:
        row = QFrame(self._body)
        row.setProperty("panel", "card")
        row.setAccessibleName(line.text)
        text = plain_label(row, "", breakable(line.text))
        buttons = [
            button(
                row,
                label,
                partial(self.action_requested.emit, line.uid, action),
                name=f"{label}: {line.text}",
            )
            for action, label in line.actions
        ]
        source = button(
            row, tr("Open the turn"), partial(self.source_requested.emit, line.uid), kind="quiet"
        )
        column_in(row, text, row_of(*buttons, source, None), margins=(12, 8, 12, 8), spacing=6)
        return row
