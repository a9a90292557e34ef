"""Proposed projects: the dialog that lists them, accepting and dismissing."""

from collections.abc import Callable

from app.chat.project_proposals import ProjectProposal, ProjectProposals
from app.domain.translation import tr, trn
from ui.bridge import Refresh
from ui.presenters.presenter import Presenter, ask_for_text
from ui.views.dialogs.proposals_dialog import ProposalsDialog
from ui.widgets.banner import Banner

_HINT_AFTER_MS = 15_000


class ProposalsPresenter(Presenter):
    """Opens the dialog, and says once that there are proposals, as soon as the banner is free."""

    _proposals: ProjectProposals
    _messages: Banner
    _hint_after_ms: int = _HINT_AFTER_MS

    def __post_init__(self) -> None:
        super().__post_init__()
        self._hint = Refresh(
            self, self._bridge, "project hint", self._hint_after_ms, self._show_hint
        )
        self._bridge.subscribe(lambda _: self._hint.request(), "found_topics")
        self._hint.request()

    def open(self) -> ProposalsDialog:
        """Show the proposals; return the dialog."""
        dialog = ProposalsDialog(self._messages.window())
        dialog.accept_requested.connect(lambda each: self._accept(each, dialog))
        dialog.dismiss_requested.connect(
            lambda each: self._change(lambda: self._proposals.dismiss(each), dialog)
        )
        self._load(dialog)
        return self._open_dialog(dialog)

    async def _show_hint(self) -> None:
        if not self._messages.isHidden():
            self._hint.request()
            return
        found = await self._bridge.run(self._proposals.unannounced)
        if not found or not self._messages.isHidden():
            return
        groups = trn(
            "{count} group of conversations could be a project",
            "{count} groups of conversations could be projects",
            len(found),
        )
        text = tr("{groups}, such as “{name}”.").format(groups=groups, name=found[0].name)
        self._messages.show_message(
            text, tr("Show"), self._open_from_hint, brief=False, closed=self._note_hint
        )

    def _open_from_hint(self) -> None:
        self._note_hint()
        self.open()

    def _note_hint(self) -> None:
        self._bridge.save(self._proposals.note_announced, on_error=self._messages.show_error)

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
