"""Recall while typing: after a short pause memory is searched, and the switch shows what it brings."""

import threading
from collections.abc import Callable

from PySide6.QtCore import QTimer
from PySide6.QtGui import QTextDocumentFragment

from app.chat.typed_recall import TypedContribution, TypedItem, TypedRecall
from app.domain.formatting import format_day
from app.domain.passages import PassageKind
from app.domain.text import one_line
from ui.models.source_labels import kind_text, source_text
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.widgets.composer import Composer
from ui.widgets.memory_switch import MemoryItem

_PAUSE_MS = 300
_NAME = "recall while typing"
_TITLE_CHARS, _SENTENCE_CHARS = 28, 220  # as much as the list is wide
_TEXT_KINDS = (PassageKind.FACT, PassageKind.MEMORY)


class TypedRecallPresenter(Presenter):
    """Has what is typed searched for; the result is shown, and kept for sending the same text.

    `is_on` is the setting of recall.
    """

    _typed: TypedRecall
    _composer: Composer
    _conversation: ConversationPresenter
    _is_on: Callable[[], bool]

    def _set_up(self) -> None:
        self._pause = QTimer(self, singleShot=True, interval=_PAUSE_MS)
        self._pause.timeout.connect(self._search)
        self._is_changed = threading.Event()  # of the last text that was searched for
        self._composer.box.textChanged.connect(self._on_text_changed)
        self._composer.memory.choice_changed.connect(self._search)
        self._conversation.opened.connect(self.show_use)
        self._conversation.updated.connect(self.show_use)
        self._conversation.project_chosen.connect(self._search)
        self._bridge.subscribe(self.show_use, "rag_enabled")

    @property
    def is_waiting(self) -> bool:
        """Whether the text is still being typed."""
        return self._pause.isActive()

    def show_use(self, *_: object) -> None:
        """Show whether memory is used here, and what it brings."""
        view = self._conversation.view
        is_on_here = self._conversation.recalls if view is None else view.conversation.recalls
        self._composer.memory.show_use(is_on=self._is_on(), is_on_here=is_on_here)
        self._pause.start()

    def _on_text_changed(self) -> None:
        """Cancel the search for another text; sending, which takes the text out, waits for it."""
        if self._composer.text.strip():
            self._is_changed.set()
        self._pause.start()

    def _search(self) -> None:
        draft, here = self._composer.draft, self._conversation.conversation_id
        if not draft.text.strip():
            self._composer.memory.show_items(None)
            self._composer.box.mark_mentions(())
            return
        changed = self._is_changed = threading.Event()
        project = self._conversation.project
        # A failure concerns nobody here: sending the message meets and reports it.
        self._bridge.load(
            _NAME,
            lambda: self._typed.prepare(draft, here, changed.is_set, project),
            lambda found: self._show(found, draft.text),
            lambda _: None,
        )

    def _show(self, found: TypedContribution, text: str) -> None:
        if self._composer.text == text:
            items = found.items
            self._composer.memory.show_items(None if items is None else [*map(_item, items)])
            self._composer.box.mark_mentions([(each.start, each.end) for each in found.mentions])


def _item(found: TypedItem) -> MemoryItem:
    place = found.place
    is_text = place.item.kind in _TEXT_KINDS
    title = source_text(place, _TITLE_CHARS)
    if is_text:  # the label of a fact is its text
        title = ", ".join(filter(None, (kind_text(place), one_line(place.title, _TITLE_CHARS))))
    if place.said_at is not None:
        title = f"{title} \N{MIDDLE DOT} {format_day(place.said_at)}"
    words = QTextDocumentFragment.fromMarkdown(found.sentence).toPlainText()
    return MemoryItem(
        place.item.passage_id, title, kind_text(place),
        one_line(words, _SENTENCE_CHARS), is_left_out=found.is_left_out,
    )  # fmt: skip
