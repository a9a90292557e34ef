"""Proposed projects: the dialog that lists them, accepting and dismissing."""

from collections.abc import Callable

from app.chat.project_proposals import ProjectProposal, ProjectProposals
from app.domain.translation import tr
from ui.presenters.presenter import Presenter, ask_for_text
from ui.views.dialogs.proposals_dialog import ProposalsDialog
from ui.widgets.banner import Banner


class ProposalsPresenter(Presenter):
    """Opens the dialog."""

    _proposals: ProjectProposals
    _messages: Banner

    def open(self) -> ProposalsDialog:
        """Show the proposals; return the dialog."""
        dialog = ProposalsDialog(self._messages.window())
        dialog.accept_requested.connect(lambda each: self._accept(each, dialog))
        dialog.dismiss_requested.connect(
            lambda each: self._change(lambda: self._proposals.dismiss(each), dialog)
        )
        self._load(dialog)
        return self._open_dialog(dialog)

    def _load(self, dialog: ProposalsDialog) -> None:
        self._bridge.load(
            "proposals", self._proposals.listed, dialog.show_proposals, dialog.show_error
        )

    def _accept(self, proposal: ProjectProposal, dialog: ProposalsDialog) -> None:
        """Move the conversations, after asking for the name of a project that has to be made."""

        def accept(name: str) -> None:
            self._change(lambda: self._proposals.accept(proposal, name), dialog)

        if proposal.project is not None:
            accept(proposal.name)
        else:
            label = tr("Name of the project:")
            ask_for_text(dialog, tr("Make a project"), label, proposal.name, accept)

    def _change(self, change: Callable[[], object], dialog: ProposalsDialog) -> None:
        self._bridge.save(change, lambda _: self._load(dialog), dialog.show_error)
