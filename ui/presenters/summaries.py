"""The summaries dialog: summaries of the open conversation and of its turns."""

from collections.abc import Callable, Sequence
from functools import partial

from app.chat.library import Library
from app.domain.errors import KnownError
from app.domain.formatting import format_turn
from app.domain.ids import ConversationId
from app.domain.text import one_line
from app.domain.translation import tr
from app.memory.summaries import SummaryService, SummaryTarget
from app.storage.tables.passages import Passages
from app.storage.tables.summaries import Summaries
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.theme import Appearance
from ui.views.dialogs.confirm import confirm_unsaved
from ui.views.dialogs.summaries_dialog import SummariesDialog, SummarySource
from ui.widgets.banner import Banner

_QUESTION_CHARS = 80


class SummariesPresenter(Presenter):
    """Opens the dialog for the open conversation."""

    _library: Library
    _questions: Passages
    _summaries: Summaries
    _service: SummaryService
    _messages: Banner
    _appearance: Appearance
    _conversation: ConversationPresenter

    def open(self) -> SummariesDialog | None:
        """Show the dialog, if a stored conversation is open; return it."""
        view = self._conversation.view
        if view is None:
            return None
        title, conversation_id = view.conversation.title, view.conversation.id
        dialog = SummariesDialog(title, self._appearance.theme, self._messages.window())
        service = self._service
        dialog.source_chosen.connect(
            lambda source: self._bridge.start("summary", self._show(dialog, source))
        )
        dialog.save_requested.connect(
            lambda source, text: self._change(
                dialog, source, partial(service.write, source.of, source.source_id, text)
            )
        )
        dialog.restore_requested.connect(
            lambda source, made_at: self._change(
                dialog, source, partial(service.restore, source.of, source.source_id, made_at)
            )
        )
        dialog.leave_requested.connect(lambda then: self._ask_to_save(dialog, then))
        dialog.finished.connect(lambda: self._on_finished(dialog))
        dialog.open()
        self._bridge.load(
            "summaries",
            lambda: self._sources(conversation_id),
            dialog.show_sources,
            dialog.show_error,
        )
        return dialog

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

    async def _show(self, dialog: SummariesDialog, source: SummarySource) -> None:
        versions = await self._bridge.run(
            lambda: self._summaries.versions(source.of, source.source_id)
        )
        if dialog.source == source:
            dialog.show_versions(versions)

    def _ask_to_save(self, dialog: SummariesDialog, then: Callable[[], object]) -> None:
        source, text = dialog.source, dialog.text.toPlainText()
        assert source is not None
        write = partial(self._service.write, source.of, source.source_id, text)
        save = partial(self._change, dialog, source, write, then)
        confirm_unsaved(dialog, tr("this summary"), save, dialog.undo, then)

    def _change(
        self,
        dialog: SummariesDialog,
        source: SummarySource,
        change: Callable[[], object],
        then: Callable[[], object] = lambda: None,
    ) -> None:
        """Change a summary; an error is shown where the user is by then."""

        async def run() -> None:
            await self._bridge.write(change)
            if not dialog.is_closed:
                await self._show(dialog, source)
            then()

        def on_error(error: KnownError) -> None:
            if dialog.is_closed or dialog.source != source:
                self._messages.show_error(error)
            else:
                dialog.show_error(error)

        self._bridge.submit(run(), on_error)

    def _on_finished(self, dialog: SummariesDialog) -> None:
        dialog.is_closed = True
        for name in ("summaries", "summary"):
            self._bridge.cancel(name)
        dialog.deleteLater()
