"""Find in conversation: search the text of every turn of the open conversation, loaded or not."""

import re
from collections.abc import Sequence
from typing import Protocol

from PySide6.QtCore import QObject

from app.chat.library import ConversationView, Library
from ui.bridge import Bridge
from ui.presenters.protocols import ShownConversation
from ui.widgets.find_bar import FindBar
from ui.widgets.transcript.values import FindMark, searchable_text

_TASK = "find"
_MARKS_LIMIT = 10_000
_BATCH_TURNS = 500


class FindView(Protocol):
    """The transcript, as far as it shows matches."""

    def set_find_marks(self, marks: Sequence[FindMark], /) -> None: ...  # noqa: D102
    def show_find_mark(self, number: int, /) -> None: ...  # noqa: D102
    def setFocus(self) -> None: ...  # noqa: D102


class FindPresenter(QObject):
    """Keeps the find bar and the marks in the transcript in step."""

    def __init__(
        self,
        library: Library,
        bridge: Bridge,
        bar: FindBar,
        transcript: FindView,
        conversation: ShownConversation,
    ) -> None:
        super().__init__(bar)
        self._library = library
        self._bridge = bridge
        self._bar = bar
        self._transcript = transcript
        self._conversation = conversation
        self._marks: list[FindMark] = []
        self._current = 0
        bar.words_changed.connect(self._on_words_changed)
        bar.stepped.connect(self._on_stepped)
        bar.closed.connect(self._on_closed)
        conversation.opened.connect(self._on_conversation_opened)

    def open(self) -> None:
        """Show the find bar, if a conversation with turns is open."""
        if self._conversation.view is not None:
            self._bar.begin()

    def _on_words_changed(self, words: str) -> None:
        if (view := self._conversation.view) is not None and words.strip():
            self._bridge.start(_TASK, self._find(view, words))
        else:
            self._clear()

    async def _find(self, view: ConversationView, words: str) -> None:
        marks = await self._bridge.run(lambda: self._matches(view, words))
        now = self._conversation.view
        if now is not None and now.path is view.path:
            self._show(marks)

    def _matches(self, view: ConversationView, words: str) -> list[FindMark]:
        """Return the matches in reading order, ignoring case; blocking."""
        pattern = re.compile(re.escape(words), re.IGNORECASE)
        marks: list[FindMark] = []
        for start in range(0, len(view.path), _BATCH_TURNS):
            exchanges = view.path[start : start + _BATCH_TURNS]
            messages = self._library.messages(exchanges)
            for turn, exchange in enumerate(exchanges, start):
                text = searchable_text(messages[exchange.id])
                marks += [FindMark(turn, *found.span()) for found in pattern.finditer(text)]
            if len(marks) > _MARKS_LIMIT:
                break
        return marks[:_MARKS_LIMIT]

    def _clear(self) -> None:
        self._bridge.cancel(_TASK)
        self._show([])

    def _show(self, marks: list[FindMark]) -> None:
        self._marks, self._current = marks, 0
        self._transcript.set_find_marks(marks)
        self._show_current()

    def _show_current(self) -> None:
        self._bar.show_place(self._current + 1, len(self._marks))
        if self._marks:
            self._transcript.show_find_mark(self._current)

    def _on_stepped(self, step: int) -> None:
        if self._marks:
            self._current = (self._current + step) % len(self._marks)
            self._show_current()

    def _on_closed(self) -> None:
        self._clear()
        self._transcript.setFocus()

    def _on_conversation_opened(self, _conversation: object) -> None:
        if self._bar.isVisible():
            self._bar.dismiss()
