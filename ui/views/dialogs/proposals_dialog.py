"""The dialog of proposed projects: where each comes from, how many conversations it has, Accept and Dismiss."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from app.chat.project_proposals import ProjectProposal
from app.domain.errors import KnownError
from app.domain.translation import tr, trn
from ui.widgets.controls import button, closing_buttons, column_in, row_of, scroll_area
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import plain_label


class ProposalsDialog(QDialog):
    """Lists proposals; nothing is moved until one is accepted.

    Signals:
        accept_requested, dismiss_requested: A `ProjectProposal`.
    """

    accept_requested = Signal(object)
    dismiss_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Proposed projects"))
        resize_on_screen(self, 620, 440)
        about = plain_label(
            self,
            "small",
            tr(
                "Conversations without a project that belong together. Nothing is moved until you accept "
                "a proposal; one that you dismiss does not return."
            ),
        )
        self.status = plain_label(self, "error")
        self.status.hide()
        self._body = QWidget(self)
        self._rows = QVBoxLayout(self._body)
        column_in(
            self, about, self.status, (scroll_area(self, self._body), 1), closing_buttons(self)[0]
        )

    def show_proposals(self, proposals: Sequence[ProjectProposal]) -> None:
        """Show the proposals."""
        while (item := self._rows.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        for each in proposals:
            self._rows.addWidget(self._row(each))
        if not proposals:
            none = tr(
                "There are no proposals. Folders that coding agents worked in, and topics with several "
                "conversations, are proposed here."
            )
            self._rows.addWidget(plain_label(self._body, "muted", none))
        self._rows.addStretch(1)

    def show_error(self, error: KnownError) -> None:
        """Show why a proposal was not accepted."""
        self.status.setText(error.display_text)
        self.status.show()

    def _row(self, proposal: ProjectProposal) -> QWidget:
        row = QWidget(self._body)
        count = trn("{count} conversation", "{count} conversations", len(proposal.conversations))
        origin = tr("from a topic") if proposal.is_topic else tr("from a folder of coding agents")
        text = plain_label(row, "", f"{proposal.name}\n{count}, {origin}")
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
            tr("Dismiss"),
            lambda: self.dismiss_requested.emit(proposal),
            kind="quiet",
            name=tr("Dismiss {name}").format(name=proposal.name),
        )
        row.setLayout(row_of((text, 1), accept, dismiss))
        return row
