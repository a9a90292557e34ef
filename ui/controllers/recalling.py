"""Recall in the window: chips under answers, whether it is on here, and what it says when it fails."""

from collections import Counter
from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject

from app.bootstrap import Services
from app.chat.inspecting import Contribution, Source
from app.domain.conversations import Conversation
from app.domain.errors import KnownError
from app.domain.events import Changed
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.passages import PassageKind
from app.domain.recalls import RecallLayer
from app.domain.settings_schema import SettingPage
from app.domain.text import one_line
from ui.bridge import Bridge
from ui.controllers.chatting import ChatController
from ui.models.source_words import chip_words, kind_words, sign_of, tip_words
from ui.views.main_window import MainWindow
from ui.widgets.transcript.values import SourceChip, Sources
from ui.widgets.transcript.view import TranscriptView

_NOTICE_CHARS = 48
_OF_A_TURN = (RecallLayer.EXCHANGE, RecallLayer.HISTORY, RecallLayer.CONVERSATION)

OpenTurn = Callable[[ConversationId, ExchangeId | None, MessageId | None], None]


class RecallController(QObject):
    """Shows what memory contributed, opens it where it was said, and switches recall off and on.

    `open_turn` shows a turn, `open_fact` and `open_memory` what no conversation said, `open_settings` a page of
    the settings by its name.
    """

    def __init__(
        self,
        services: Services,
        bridge: Bridge,
        window: MainWindow,
        chat: ChatController,
        open_turn: OpenTurn,
        open_fact: Callable[[int], None],
        open_memory: Callable[[int], object],
        open_settings: Callable[[str], object],
    ) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._window = window
        self._chat = chat
        self._open_turn = open_turn
        self._open_fact = open_fact
        self._open_memory = open_memory
        self._conversation: Conversation | None = None
        self._known: dict[ExchangeId, Contribution] = {}
        transcript = window.chat.transcript
        assert isinstance(transcript, TranscriptView)
        self._transcript = transcript
        transcript.content_requested.connect(self._on_content_requested)
        transcript.source_clicked.connect(self._on_source_clicked)
        bridge.changed.connect(self._on_changed)
        chat.opened.connect(self._on_chat_opened)
        self._switch = window.actions_by_name["memory_here"]
        self._switch.triggered.connect(self._on_switch_triggered)
        window.recall_status.clicked.connect(lambda: open_settings(SettingPage.RECALL.value))
        self._show_state()

    def open(self, source: Source) -> None:
        """Show where a source was said, centred and highlighted, wherever that is."""
        place, item = source.place, source.place.item
        if item.kind is PassageKind.FACT and place.exchange_id is None:
            self._open_fact(item.passage_id)
        elif item.conversation_id is not None:
            self._open_turn(item.conversation_id, place.exchange_id, item.message_id)
        else:
            self._open_memory(item.passage_id)

    # -- chips

    def _on_content_requested(self, first: int, last: int) -> None:
        view = self._chat.view
        if view is not None:
            wanted = [each.id for each in view.path[max(0, first) : last + 1]]
            self._bridge.start(f"sources {first}", self._show_sources(wanted))

    async def _show_sources(self, wanted: Iterable[ExchangeId]) -> None:
        found = await self._bridge.run(lambda: self._services.inspector.contributions(wanted))
        for exchange_id, contribution in found.items():
            if (turn := self._chat.turn_of(exchange_id)) is not None:
                self._known[exchange_id] = contribution
                self._transcript.show_sources(turn, sources_of(contribution))
        self._show_state()
        view = self._chat.view
        if view is not None and view.path and view.path[-1].id in found:
            await self._show_stand_in(view.path[-1].id)

    async def _show_stand_in(self, newest: ExchangeId) -> None:
        """Mark where the newest prompt began, if a summary stood for what is before."""
        found = await self._bridge.run(lambda: self._services.inspector.stand_in(newest))
        if (last := self._chat.turn_of(newest)) is None or self._chat.view is None:
            return
        if found is None:
            self._transcript.show_stand_in(last, "")
            return
        path = self._chat.view.path
        turn = next((at for at, each in enumerate(path) if found.first_sent in each.message_ids), 0)
        self._transcript.show_stand_in(turn, found.text if turn else "")

    def _on_source_clicked(self, turn: int, number: int) -> None:
        view = self._chat.view
        known = self._known.get(view.path[turn].id) if view and turn < len(view.path) else None
        if known is not None and number < len(known.sources):
            self.open(known.sources[number])

    # -- on and off

    def _on_switch_triggered(self, on: bool) -> None:
        if (conversation := self._conversation) is not None:
            self._bridge.carry_out(self._use(conversation.id, on))
        else:
            self._chat.uses_memory = on
            self._show_state()

    async def _use(self, conversation_id: ConversationId, on: bool) -> None:
        try:
            await self._bridge.write(lambda: self._services.library.use_memory(conversation_id, on))
        except KnownError as error:
            self._window.chat.tell(error)
            self._show_state()
            return
        words = "Memory is used here again." if on else "From now on nothing is recalled here."
        self._window.chat.banner.tell(words, brief=True)

    def _show_state(self) -> None:
        conversation = self._conversation
        self._switch.setEnabled(conversation is None or conversation.deleted_at is None)
        is_on_here = conversation.recalls if conversation is not None else self._chat.uses_memory
        self._switch.setChecked(is_on_here)
        is_on = self._services.settings.flag("rag_enabled")
        notice = self._notice() if is_on else ""
        words = state_words(is_on=is_on, is_on_here=is_on_here, notice=notice)
        self._window.recall_status.setText(one_line(words, _NOTICE_CHARS))
        self._window.recall_status.setToolTip(f"{words}. Click for the settings of recall")

    def _notice(self) -> str:
        """Return what went wrong with recall for the newest answer."""
        view = self._chat.view
        known = self._known.get(view.path[-1].id) if view is not None and view.path else None
        return known.notice if known is not None else ""

    # -- what happens elsewhere

    def _on_chat_opened(self, conversation: Conversation | None) -> None:
        self._conversation = conversation
        path = self._chat.view.path if self._chat.view is not None else ()
        shown = {each.id for each in path}
        self._known = {each: known for each, known in self._known.items() if each in shown}
        self._show_state()

    def _on_changed(self, changed: Changed) -> None:
        if "rag_enabled" in changed.settings:
            self._show_state()
        conversation = self._conversation
        if conversation is None or self._chat.view is None:
            return
        if conversation.id in changed.conversations:
            self._bridge.start("recall here", self._follow(conversation.id))
        shown = {each.id for each in self._chat.view.path}
        wanted = set(changed.exchanges & shown)
        if changed.passages and changed.learned:  # something was forgotten
            wanted |= self._known.keys()
        if wanted:
            self._bridge.carry_out(self._show_sources(wanted))

    async def _follow(self, conversation_id: ConversationId) -> None:
        try:
            fresh = await self._bridge.run(
                lambda: self._services.conversations.get(conversation_id)
            )
        except KnownError:
            return  # it was forgotten
        if self._conversation is not None and self._conversation.id == conversation_id:
            self._conversation = fresh
            self._show_state()


def state_words(*, is_on: bool, is_on_here: bool, notice: str) -> str:
    """Return what the status bar says of recall."""
    if not is_on:
        return "Recall off"
    if not is_on_here:
        return "Recall off here"
    return f"Recall: {notice}" if notice else "Recall on"


def sources_of(contribution: Contribution) -> Sources:
    """Return a contribution as chips: one for each place, named by its number among the sources."""
    sources = contribution.sources
    turns = {
        each.place.item.conversation_id
        for each in sources
        if each.place.item.layer in (RecallLayer.EXCHANGE, RecallLayer.HISTORY)
    }
    cited_in = {
        each.place.item.conversation_id
        for each in sources
        if each.cited and each.place.item.layer is not RecallLayer.CONVERSATION
    }
    shown: dict[int, Source] = {}
    seen: set[ExchangeId] = set()
    for number, source in enumerate(sources):
        place, item = source.place, source.place.item
        if item.layer is RecallLayer.CONVERSATION and item.conversation_id in turns:
            stands_for_none = source.cited and item.conversation_id not in cited_in
            if not stands_for_none:
                continue
        elif item.layer in _OF_A_TURN and place.exchange_id is not None:
            if place.exchange_id in seen:
                continue
            seen.add(place.exchange_id)
        shown[number] = source
    talks = Counter(each.place.item.conversation_id for each in shown.values())
    return Sources(
        tuple(
            _chip(number, each, with_turn=talks[each.place.item.conversation_id] > 1)
            for number, each in shown.items()
        ),
        contribution.notice,
    )


def _chip(number: int, source: Source, *, with_turn: bool) -> SourceChip:
    place = source.place
    words = chip_words(place, with_turn=with_turn)
    return SourceChip(
        number, sign_of(place), kind_words(place), words, tip_words(source), source.cited
    )
