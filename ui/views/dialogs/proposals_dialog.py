"""The dialog of proposed projects: where each comes from, how many conversations it has, what can be done with it."""

from collections.abc import Sequence

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.chat.project_proposals import ProjectProposal
from app.domain.translation import tr, trn
from ui.widgets.controls import (
    button,
    closing_buttons,
    column_in,
    filled,
    refill,
    row_of,
    scroll_area,
)
from ui.widgets.dialog import Dialog
from ui.widgets.plain_label import plain_label
from ui.widgets.tab_order import stops_in, tab_through


class ProposalsDialog(Dialog):
    """Lists proposals; nothing is moved until one is accepted.

    Signals:
        accept_requested, dismiss_requested: A `ProjectProposal`.
    """

    accept_requested = Signal(object)
    dismiss_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Proposed projects"), (620, 440), parent, tone="error")
        about = tr(
            "Conversations without a project that belong together. Nothing is moved until you accept "
            "a proposal; one that you dismiss does not return."
        )
        self.status.hide()
        self._body = QWidget(self)
        self._rows = QVBoxLayout(self._body)
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setSpacing(14)
        area = scroll_area(self, self._body)
        self._place = area.verticalScrollBar()
        self._buttons = closing_buttons(self)[0]
        column_in(self, plain_label(self, "small", about), self.status, (area, 1), self._buttons)

    def show_proposals(self, proposals: Sequence[ProjectProposal]) -> None:
        """Show the proposals."""
        none = tr(
            "There are no proposals. Folders that coding agents worked in, and topics with several "
            "conversations, are proposed here."
        )
        place = self._place.value()
        self._body.setFocus()  # else the focus, and the list with it, goes to the last row
        refill(self._rows, map(self._row, proposals), none)
        self._rows.addStretch(1)
        tab_through([*stops_in(self._body), *stops_in(self._buttons)])
        QTimer.singleShot(0, self._place, lambda: self._place.setValue(place))

    def _row(self, proposal: ProjectProposal) -> QWidget:
        row = QWidget(self._body)
        count = trn("{count} conversation", "{count} conversations", len(proposal.conversations))
        origin = tr("from a topic") if proposal.is_topic else tr("from a folder of coding agents")
        text = QVBoxLayout()
        filled(
            text,
            plain_label(row, "strong", proposal.name),
            plain_label(row, "", f"{count}, {origin}"),
            plain_label(row, "small", " \u00b7 ".join(proposal.titles)),
            spacing=2,
        )
        accept = button(
            row,
            tr("Make a project") if proposal.project is None else tr("Move there"),
            lambda: self.accept_requested.emit(proposal),
            name=tr("Make a project of {name}").format(name=proposal.name)
            if proposal.project is None
            else tr("Move to the project {name}").format(name=proposal.name),
        )
        dismiss = button(
            row,
            tr("Discard"),
            lambda: self.dismiss_requested.emit(proposal),
            kind="quiet",
            name=tr("Discard {name}").format(name=proposal.name),
        )
        line = row_of(text, accept, 8, dismiss)
        line.setStretch(0, 1)
        line.setContentsMargins(0, 0, 0, 0)
        row.setLayout(line)
        return row
