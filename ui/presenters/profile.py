"""The page of the profile: proposals decided, the text edited, use switched."""

from collections.abc import Callable
from functools import partial

from app.domain.translation import tr
from app.memory.profile import ENABLED, ProfileService
from ui.presenters.presenter import OpenPage, Presenter
from ui.views.dialogs.confirm import confirm_unsaved
from ui.views.memory.knowledge_view import KnowledgeView

_PROFILE = "profile"
_LIMIT = "profile_max_tokens"


class ProfilePresenter(Presenter):
    """Shows the profile while it is visible. `open_page` shows a page of the memory pane."""

    _profile: ProfileService
    _view: KnowledgeView
    _open_page: OpenPage
    _open_fact: Callable[[int], object]

    def _set_up(self) -> None:
        pane, profile = self._view.profile, self._profile
        for requested, change in (
            (pane.switched, profile.turn),
            (pane.accept_requested, profile.accept),
            (pane.reject_requested, profile.reject),
        ):
            requested.connect(partial(self._change, change))
        for requested, edit in (
            (pane.save_requested, profile.set),
            (pane.editor.restore_requested, profile.restore),
        ):
            requested.connect(partial(self._change, edit, replaces_edit=True))
        pane.fact_requested.connect(self._open_fact)
        self._bridge.subscribe(
            self.refresh, "memory", "conversations", ENABLED, _LIMIT, while_shown=self._view
        )

    def refresh(self, *_: object) -> None:
        """Show the present state."""
        self._bridge.start(_PROFILE, self._show())

    def ask_before_leaving(self, leave: Callable[[], object]) -> None:
        """Call `leave`, after asking about the profile if it is edited and not saved."""
        pane = self._view.profile
        if not pane.editor.is_edited:
            leave()
            return
        self._open_page("profile")

        def save() -> None:
            text = pane.editor.text.toPlainText()
            self._change(self._profile.set, text, pane.decides, replaces_edit=True, then=leave)

        confirm_unsaved(self._view, tr("the profile"), save, pane.editor.undo, leave)

    async def _show(self, *, replaces_edit: bool = False) -> None:
        state, versions = await self._bridge.run(
            lambda: (self._profile.state(), self._profile.versions())
        )
        self._view.profile.show_profile(state, versions, replaces_edit=replaces_edit)
        self._view.mark_profile(waits=state.proposal is not None)

    def _change(
        self,
        change: Callable[..., object],
        *values: object,
        replaces_edit: bool = False,
        then: Callable[[], object] = lambda: None,
    ) -> None:
        async def run() -> None:
            await self._bridge.write(lambda: change(*values))
            await self._show(replaces_edit=replaces_edit)
            then()

        self._bridge.submit(run(), self._view.profile.editor.show_error)
