"""Find in conversation: search the text of every turn of the open conversation, loaded or not."""

import re

from app.chat.library import ConversationView, Library
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.widgets.find_bar import FindBar
from ui.widgets.transcript.values import FindMark, searchable_text
from ui.widgets.transcript.view import TranscriptView

_TASK = "find"
_MARKS_LIMIT = 10_000
_BATCH_TURNS = 500


class FindPresenter(Presenter):
    """Keeps the find bar and the marks in the transcript in step."""

    _library: Library
    _bar: FindBar
    _transcript: TranscriptView
    _conversation: ConversationPresenter

    def _set_up(self) -> None:
        self._marks: list[FindMark] = []
        self._current = 0
        self._bar.words_changed.connect(self._on_words_changed)
        self._bar.stepped.connect(self._on_stepped)
        self._bar.closed.connect(self._on_closed)
        self._conversation.opened.connect(self._bar.dismiss)

    def open(self) -> None:
        """Show the find bar, if a conversation with turns is open."""
        if self._conversation.view is not None:
            self._bar.begin()

    def _on_words_changed(self, words: str) -> None:
        if (view := self._conversation.view) is not None and words.strip():
            self._bridge.load(
                _TASK, lambda: self._matches(view, words), lambda marks: self._show_in(view, marks)
            )
        else:
            self._clear()

    def _show_in(self, view: ConversationView, marks: list[FindMark]) -> None:
        if self._conversation.path is view.path:
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
