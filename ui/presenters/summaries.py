"""The page of summaries: those of the open conversation and of its turns."""

from collections.abc import Callable, Sequence
from functools import partial

from app.chat.library import Library
from app.domain.errors import KnownError
from app.domain.ids import ConversationId
from app.domain.text import one_line
from app.domain.translation import format_turn, tr
from app.memory.summaries import SummaryService, SummaryTarget
from app.storage.tables.passages import Passages
from app.storage.tables.summaries import Summaries
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import OpenPage, Presenter
from ui.views.dialogs.confirm import confirm_unsaved
from ui.views.memory.summaries_pane import SummariesPane, SummarySource
from ui.widgets.banner import Banner

_QUESTION_CHARS = 80


class SummariesPresenter(Presenter):
    """Shows summaries while their page is visible; an edit stays until it is saved or undone.

    `open_page` shows a page of the memory pane.
    """

    _library: Library
    _questions: Passages
    _summaries: Summaries
    _service: SummaryService
    _pane: SummariesPane
    _messages: Banner
    _conversation: ConversationPresenter
    _open_page: OpenPage

    def _set_up(self) -> None:
        pane, service = self._pane, self._service
        pane.shown.connect(self.refresh)
        pane.source_chosen.connect(lambda source: self._bridge.start("summary", self._show(source)))
        pane.save_requested.connect(partial(self._change, service.write))
        pane.restore_requested.connect(partial(self._change, service.restore, replaces_edit=True))
        pane.leave_requested.connect(self.ask_before_leaving)
        self._conversation.opened.connect(self.refresh)
        self._bridge.subscribe(self.refresh, "passages", "messages_in", while_shown=pane)

    def refresh(self, *_: object) -> None:
        """Show the summaries of the open conversation, unless one is being edited."""
        pane, view = self._pane, self._conversation.view
        if not pane.isVisible() or pane.is_edited:
            return
        if view is None or view.conversation.private or view.conversation.deleted_at:
            pane.show_nothing(
                tr(
                    "The summaries of the open conversation are shown here, unless it is private or in "
                    "the trash."
                )
            )
            return
        of, title = view.conversation.id, view.conversation.title
        self._bridge.load(
            "summaries",
            lambda: self._sources(of),
            partial(self._show_sources, title),
            pane.show_error,
        )

    def ask_before_leaving(self, leave: Callable[[], object]) -> None:
        """Call `leave`, after asking about a summary that is edited and not saved."""
        pane, source = self._pane, self._pane.source
        if source is None or not pane.is_edited:
            leave()
            return
        self._open_page("summaries")

        def save() -> None:
            self._change(self._service.write, source, pane.text.toPlainText(), then=leave)

        confirm_unsaved(pane, tr("this summary"), save, pane.undo, leave)

    def _sources(self, conversation_id: ConversationId) -> Sequence[SummarySource]:
        """Return the conversation and the turns of its path; blocking."""
        path = self._library.open(conversation_id).path
        questions = self._questions.questions(each.id for each in path)
        whole = SummarySource(
            SummaryTarget.CONVERSATION, conversation_id, tr("The whole conversation")
        )
        turns = (
            SummarySource(
                SummaryTarget.EXCHANGE,
                each.id,
                f"{format_turn(each.turn_number).capitalize()}: {one_line(questions.get(each.id, ''), _QUESTION_CHARS)}",
            )
            for each in path
        )
        return (whole, *turns)

    def _show_sources(self, title: str, sources: Sequence[SummarySource]) -> None:
        if not self._pane.is_edited:  # typed while they were read
            self._pane.show_sources(title, sources)

    async def _show(self, source: SummarySource, *, replaces_edit: bool = False) -> None:
        versions = await self._bridge.run(
            lambda: self._summaries.versions(source.of, source.source_id)
        )
        if self._pane.source == source:
            self._pane.show_versions(versions, replaces_edit=replaces_edit)

    def _change(
        self,
        change: Callable[..., object],
        source: SummarySource,
        value: object,
        *,
        replaces_edit: bool = False,
        then: Callable[[], object] = lambda: None,
    ) -> None:
        """Change a summary; an error is shown where the user is by then."""

        async def run() -> None:
            await self._bridge.write(lambda: change(source.of, source.source_id, value))
            await self._show(source, replaces_edit=replaces_edit)
            then()
            self.refresh()

        def on_error(error: KnownError) -> None:
            if self._pane.isVisible() and self._pane.source == source:
                self._pane.show_error(error)
            else:
                self._messages.show_error(error)

        self._bridge.submit(run(), on_error)
