"""Slash commands: run one after the other off the GUI thread; their output is shown in a panel."""

import asyncio

from app.chat.sent_turns import SEGMENT_BREAKS_KEY, SegmentBreaks
from app.commands.command import (
    Action,
    AskExport,
    ChoosePreset,
    ChooseProject,
    CommandContext,
    ImportFiles,
    NewRoutine,
    OpenDocument,
    OpenTurn,
    Outcome,
    RunRoutine,
)
from app.commands.table import CommandSession
from app.domain.conversations import Conversation
from app.domain.errors import KnownError
from app.domain.ids import ConversationId
from ui.presenters.conversation.open_conversation import ConversationPresenter
from ui.presenters.presenter import Navigation, Presenter
from ui.views.command_panel import CommandPanel
from ui.widgets.composer.composer import Composer
from ui.widgets.transcript.view import TranscriptView


class CommandPresenter(Presenter):
    """Runs what is typed as a command; marks where a clean slate begins."""

    _session: CommandSession
    _segments: SegmentBreaks
    _panel: CommandPanel
    _composer: Composer
    _transcript: TranscriptView
    _conversation: ConversationPresenter
    _navigation: Navigation

    def _set_up(self) -> None:
        self._one_at_a_time = asyncio.Lock()
        self._opened: ConversationId | None = None
        panel, composer = self._panel, self._composer
        panel.dismissed.connect(self._session.cancel)
        panel.dismissed.connect(composer.box.setFocus)
        composer.set_commands(self._session.accepts, self._session.complete)
        composer.command_requested.connect(self.run)
        composer.dismiss_requested.connect(panel.dismiss)
        composer.send_requested.connect(panel.dismiss)
        self._conversation.opened.connect(self._on_conversation_opened)
        self._bridge.subscribe(
            lambda _: self._show_segment_end(goes_there=True), SEGMENT_BREAKS_KEY
        )

    def run(self, text: str) -> None:
        """Run a command in the open conversation."""
        here = self._conversation
        if here.target_id != here.conversation_id:  # it stays in the box until that is shown
            return
        last = here.path[-1].id if here.path else None
        context = CommandContext(here.conversation_id, last, here.new.project)
        self._bridge.submit(self._run(text, context))

    async def _run(self, text: str, context: CommandContext) -> None:
        async with self._one_at_a_time:
            try:
                outcome = await self._bridge.run(lambda: self._session.run(text, context))
            except KnownError as error:
                self._panel.show_error(text, error)
                return
        if self._composer.text == text and not outcome.keeps_text:
            self._composer.discard()
        self._show(text, outcome)

    def _show(self, text: str, outcome: Outcome) -> None:
        if outcome.markdown:
            self._panel.show_output(text, outcome.markdown)
        elif outcome.action is None:
            self._panel.dismiss()
        if outcome.action is not None:
            self._act(outcome.action)

    def _act(self, action: Action) -> None:
        match action:
            case OpenTurn(conversation_id, exchange_id):
                self._navigation.turn(conversation_id, exchange_id, None)
            case OpenDocument(place, title):
                self._navigation.page(place, title)
            case ImportFiles(paths):
                self._navigation.import_files(list(paths))
            case AskExport(conversation_id):
                self._navigation.export([conversation_id])
            case ChoosePreset(uid):
                self._navigation.preset(uid)
            case ChooseProject(uid):
                self._conversation.choose_project(uid)
            case NewRoutine():
                self._navigation.new_routine()
            case RunRoutine(uid):
                self._navigation.run_routine(uid)

    def _on_conversation_opened(self, conversation: Conversation | None) -> None:
        """Dismiss output about another conversation; results of a search stay to be opened."""
        opened = conversation.id if conversation else None
        if opened != self._opened and not self._panel.title.text().startswith("/search"):
            self._panel.dismiss()
        self._opened = opened
        self._show_segment_end()

    def _show_segment_end(self, *, goes_there: bool = False) -> None:
        path = self._conversation.path
        is_break = bool(path) and self._segments.is_after(path[-1].id)
        self._transcript.show_segment_end(is_break, goes_there=goes_there)
