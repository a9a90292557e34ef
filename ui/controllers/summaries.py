"""The summaries of the open conversation: the dialog and its work."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject

from app.bootstrap import Services
from app.domain.conversations import Conversation
from app.domain.errors import KnownError
from app.domain.ids import ConversationId
from app.domain.text import one_line
from app.memory.summaries import SummaryOf
from app.storage.summaries import Summary
from ui.bridge import Bridge
from ui.controllers.chatting import ChatController
from ui.errors import words_for
from ui.theme import Appearance
from ui.views.main_window import MainWindow
from ui.views.summaries_dialog import SummariesDialog, SummaryPlace

_QUESTION_CHARS = 80


class SummariesController(QObject):
    """Opens the dialog for the conversation that is open."""

    def __init__(
        self,
        services: Services,
        bridge: Bridge,
        window: MainWindow,
        appearance: Appearance,
        chat: ChatController,
    ) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._window = window
        self._appearance = appearance
        self._chat = chat
        self._action = window.actions_by_name["summaries"]
        self._action.triggered.connect(self._on_triggered)
        window.chat.summaries_requested.connect(self._on_triggered)
        chat.opened.connect(self._on_chat_opened)

    def _on_chat_opened(self, conversation: Conversation | None) -> None:
        self._action.setEnabled(conversation is not None and not conversation.private)

    def _on_triggered(self) -> None:
        view = self._chat.view
        if view is None:
            return
        conversation = view.conversation
        dialog = SummariesDialog(conversation.title, self._appearance.theme, self._window)
        book = self._services.summary_book
        dialog.place_chosen.connect(
            lambda place: self._bridge.start("summary", self._show(dialog, place))
        )
        dialog.save_requested.connect(
            lambda place, text: self._do(
                dialog, place, lambda: book.write(place.of, place.source_id, text)
            )
        )
        dialog.restore_requested.connect(
            lambda place, made_at: self._do(
                dialog, place, lambda: book.restore(place.of, place.source_id, made_at)
            )
        )
        dialog.finished.connect(lambda: self._close(dialog))
        dialog.open()
        self._bridge.start("summaries", self._list(dialog, conversation.id))

    async def _list(self, dialog: SummariesDialog, conversation_id: ConversationId) -> None:
        try:
            places = await self._bridge.run(lambda: self._places(conversation_id))
        except KnownError as error:
            dialog.show_error(*words_for(error))
        else:
            dialog.show_places(places)

    def _places(self, conversation_id: ConversationId) -> Sequence[SummaryPlace]:
        """Return the conversation, then the turns of its shown path. On the pool."""
        path = self._services.library.open(conversation_id).path
        asked = self._services.passages.questions(each.id for each in path)
        whole = SummaryPlace(SummaryOf.CONVERSATION, conversation_id, "The whole conversation")
        turns = (
            SummaryPlace(
                SummaryOf.EXCHANGE,
                each.id,
                f"Turn {each.turn_number}: {one_line(asked.get(each.id, ''), _QUESTION_CHARS)}",
            )
            for each in path
        )
        return (whole, *turns)

    async def _show(self, dialog: SummariesDialog, place: SummaryPlace) -> None:
        found: Sequence[Summary] = await self._bridge.run(
            lambda: self._services.summaries.versions(place.of, place.source_id)
        )
        if dialog.place == place:
            dialog.show_versions(found)

    def _do(
        self, dialog: SummariesDialog, place: SummaryPlace, deed: Callable[[], Summary]
    ) -> None:
        self._bridge.start("summary", self._done(dialog, place, deed))

    async def _done(
        self, dialog: SummariesDialog, place: SummaryPlace, deed: Callable[[], Summary]
    ) -> None:
        try:
            await self._bridge.write(deed)
        except KnownError as error:
            dialog.show_error(*words_for(error))
        else:
            await self._show(dialog, place)

    def _close(self, dialog: SummariesDialog) -> None:
        for name in ("summaries", "summary"):
            self._bridge.cancel(name)
        dialog.deleteLater()
