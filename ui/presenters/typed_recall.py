"""Recall while typing: after a short pause, memory is searched for the text in the composer."""

import threading

from PySide6.QtCore import QTimer

from app.chat.typed_recall import TypedRecall
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.widgets.composer import Composer

_PAUSE_MS = 300
_NAME = "recall while typing"


class TypedRecallPresenter(Presenter):
    """Has what is typed searched for; the result is kept for sending the same text."""

    _typed: TypedRecall
    _composer: Composer
    _conversation: ConversationPresenter

    def __post_init__(self) -> None:
        super().__post_init__()
        self._pause = QTimer(self, singleShot=True, interval=_PAUSE_MS)
        self._pause.timeout.connect(self._search)
        self._is_changed = threading.Event()  # of the last text that was searched for
        self._composer.box.textChanged.connect(self._on_text_changed)

    @property
    def is_waiting(self) -> bool:
        """Whether the text is still being typed."""
        return self._pause.isActive()

    def _on_text_changed(self) -> None:
        """Cancel the search for another text; sending, which takes the text out, waits for it."""
        if self._composer.text.strip():
            self._is_changed.set()
        self._pause.start()

    def _search(self) -> None:
        text, here = self._composer.text, self._conversation.conversation_id
        if text.strip():
            changed = self._is_changed = threading.Event()
            # A failure concerns nobody here: sending the message meets and reports it.
            self._bridge.load(
                _NAME,
                lambda: self._typed.prepare(text, here, changed.is_set),
                lambda _: None,
                lambda _: None,
            )
