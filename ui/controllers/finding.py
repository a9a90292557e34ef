"""Finding words inside the open conversation: in all of it, loaded or not."""

import re
from collections.abc import Sequence

from PySide6.QtCore import QObject

from app.bootstrap import Services
from app.chat.library import ConversationView
from ui.bridge import Bridge
from ui.controllers.chatting import ChatController
from ui.views.main_window import MainWindow
from ui.widgets.transcript.values import FindMark, searchable_text
from ui.widgets.transcript.view import TranscriptView

_MARKS_LIMIT = 10_000
_BATCH_TURNS = 500


class FindController(QObject):
    """Keeps the find bar and the marks in the transcript in step."""

    def __init__(
        self, services: Services, bridge: Bridge, window: MainWindow, chat: ChatController
    ) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._chat = chat
        self._bar = window.chat.find_bar
        transcript = window.chat.transcript
        assert isinstance(transcript, TranscriptView)
        self._transcript = transcript
        self._marks: list[FindMark] = []
        self._current = 0
        self._bar.words_changed.connect(self._on_bar_words_changed)
        self._bar.stepped.connect(self._on_bar_stepped)
        self._bar.closed.connect(self._on_bar_closed)
        window.actions_by_name["find"].triggered.connect(self._on_find_triggered)
        chat.opened.connect(self._on_chat_opened)

    def _on_find_triggered(self) -> None:
        if self._chat.view is not None:
            self._bar.begin()

    def _on_bar_words_changed(self, words: str) -> None:
        if self._chat.view is None or not words.strip():
            self._show([])
            return
        self._bridge.start("find", self._find(self._chat.view, words))

    async def _find(self, view: ConversationView, words: str) -> None:
        marks = await self._bridge.run(lambda: self._places(view, words))
        if self._chat.view is view:
            self._show(marks)

    def _places(self, view: ConversationView, words: str) -> list[FindMark]:
        """Return where words stand, in reading order; upper and lower case are the same."""
        pattern = re.compile(re.escape(words), re.IGNORECASE)
        marks: list[FindMark] = []
        for start in range(0, len(view.path), _BATCH_TURNS):
            exchanges = view.path[start : start + _BATCH_TURNS]
            messages = self._services.library.messages(exchanges)
            for turn, exchange in enumerate(exchanges, start):
                text = searchable_text(messages[exchange.id])
                marks += [FindMark(turn, *found.span()) for found in pattern.finditer(text)]
            if len(marks) > _MARKS_LIMIT:
                return marks[:_MARKS_LIMIT]
        return marks

    def _show(self, marks: Sequence[FindMark]) -> None:
        self._marks = list(marks)
        self._current = 0
        self._transcript.set_find_marks(self._marks)
        self._go()

    def _on_bar_stepped(self, step: int) -> None:
        if self._marks:
            self._current = (self._current + step) % len(self._marks)
            self._go()

    def _go(self) -> None:
        self._bar.show_place(self._current + 1, len(self._marks))
        if self._marks:
            self._transcript.show_find_mark(self._current)

    def _on_bar_closed(self) -> None:
        self._show([])
        self._transcript.setFocus()

    def _on_chat_opened(self, _conversation: object) -> None:
        if self._bar.isVisible():
            self._bar.dismiss()
