"""Private conversations when they are left: kept or discarded, as the user says."""

from collections.abc import Callable
from datetime import UTC, datetime

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QMessageBox

from app.bootstrap import Services
from app.domain.conversations import Conversation
from app.domain.errors import KnownError
from app.domain.ids import ConversationId
from ui.bridge import Bridge
from ui.controllers.chatting import ChatController
from ui.views.main_window import MainWindow


class PrivacyController(QObject):
    """Asks about a private conversation once it is left, by going elsewhere or by quitting.

    Until the user decides it is kept: nothing is lost by a crash, or by not reading.
    """

    def __init__(
        self, services: Services, bridge: Bridge, window: MainWindow, chat: ChatController
    ) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._window = window
        self._chat = chat
        self._session_began = datetime.now(UTC)
        self._decided: set[ConversationId] = set()
        chat.left.connect(self._on_chat_left)

    def ask_before_leaving(self, leave: Callable[[], None]) -> None:
        """Call `leave`, after the question if a private conversation of this session is open."""
        view = self._chat.view
        if view is None or not self._is_undecided(view.conversation):
            leave()
            return
        conversation = view.conversation
        box = QMessageBox(self._window)
        box.setIcon(QMessageBox.Icon.Question)
        box.setWindowTitle("Private conversation")
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setText(f"Keep the private conversation '{conversation.title}'?")
        box.setInformativeText("Kept, it stays out of search and recall. Discarded, it is gone.")
        keep = box.addButton("Keep", QMessageBox.ButtonRole.AcceptRole)
        discard = box.addButton("Discard", QMessageBox.ButtonRole.DestructiveRole)
        box.addButton(QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(keep)

        def done() -> None:
            if box.clickedButton() is discard:
                self._begin_discard(conversation, leave)
            elif box.clickedButton() is keep:
                leave()

        box.finished.connect(done)
        box.finished.connect(box.deleteLater)
        box.open()

    def _is_undecided(self, conversation: Conversation) -> bool:
        is_of_now = conversation.created_at >= self._session_began
        return conversation.private and is_of_now and conversation.id not in self._decided

    def _on_chat_left(self, conversation: Conversation) -> None:
        if self._is_undecided(conversation):
            self._decided.add(conversation.id)
            self._window.chat.banner.tell(
                f"'{conversation.title}' was private and is kept, out of search and recall.",
                "Discard",
                lambda: self._begin_discard(conversation, lambda: None),
                brief=False,
            )

    def _begin_discard(self, conversation: Conversation, then: Callable[[], None]) -> None:
        self._bridge.carry_out(self._discard(conversation, then))

    async def _discard(self, conversation: Conversation, then: Callable[[], None]) -> None:
        self._decided.add(conversation.id)
        try:
            await self._bridge.write(lambda: self._forgotten(conversation))
        except KnownError as error:
            self._window.chat.tell(error)
            return
        then()

    def _forgotten(self, conversation: Conversation) -> None:
        self._services.chat.stop([conversation.id])
        self._services.forget([conversation.id])
