"""Recall in the window: sources under answers, the switch of a conversation, the status."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from PySide6.QtCore import Signal

from app.chat.inspector import Contribution, InspectionService, SentSummary, Source
from app.chat.library import Library
from app.domain.change_set import ChangeSet
from app.domain.errors import KnownError
from app.domain.ids import ExchangeId
from app.domain.links import name_of_document
from app.domain.passages import PassageKind
from app.domain.recall import RecallLayer
from app.domain.text import translate_lines
from app.domain.translation import tr
from ui.models.labels import chip_text, icon_of, kind_text, tip_text
from ui.presenters.conversation.open_conversation import ConversationPresenter
from ui.presenters.presenter import Navigation, Presenter
from ui.widgets.banner import Banner
from ui.widgets.transcript.values import SourceChip, Sources
from ui.widgets.transcript.view import TranscriptView

_TURN_LAYERS = (
    RecallLayer.EXCHANGE, RecallLayer.HISTORY, RecallLayer.HINT, RecallLayer.CONVERSATION,
    RecallLayer.MENTION,
)  # fmt: skip


class RecallPresenter(Presenter):
    """Shows what memory contributed to answers, opens sources, and switches recall off and on.

    `is_on` is the setting of recall.

    Signals:
        status_changed: (Text, what the newest answer lacked or "", whether it is on in the open
            conversation, whether it can be switched).
    """

    status_changed = Signal(str, str, bool, bool)

    _inspector: InspectionService
    _library: Library
    _is_on: Callable[[], bool]
    _messages: Banner
    _transcript: TranscriptView
    _conversation: ConversationPresenter
    _navigation: Navigation

    def _set_up(self) -> None:
        self._known: dict[ExchangeId, Contribution] = {}
        self._reads = 0
        self._read: dict[ExchangeId, int] = {}  # the newest read that is shown
        self._transcript.content_requested.connect(self._on_content_requested)
        self._conversation.content_shown.connect(self._on_content_requested)
        self._transcript.events.source_clicked.connect(self._on_source_clicked)
        self._bridge.subscribe(self.show_status, "rag_enabled")
        self._bridge.subscribe(self._on_changed, "exchanges", "passages")
        self._conversation.opened.connect(self._on_conversation_opened)
        self._conversation.updated.connect(self.show_status)

    def open(self, source: Source) -> None:
        place, item = source.place, source.place.item
        if item.kind is PassageKind.FACT and place.exchange_id is None:
            self._navigation.fact(item.passage_id)
        elif item.kind is PassageKind.DOCUMENT:
            self._navigation.page(name_of_document(item.passage_id), place.title)
        elif item.conversation_id is not None:
            self._navigation.turn(item.conversation_id, place.exchange_id, item.message_id)
        else:
            self._navigation.memory(item.passage_id)

    def switch(self, on: bool) -> None:
        if (view := self._conversation.view) is None:
            self._conversation.new = replace(self._conversation.new, recalls=on)
            self.show_status()
            return
        text = tr("Nothing will be recalled in this conversation from now on.")
        if on:
            text = tr("Memory is used in this conversation again.")

        def on_error(error: KnownError) -> None:
            self._messages.show_error(error)
            self.show_status()

        self._bridge.save(
            lambda: self._library.use_memory(view.conversation.id, on),
            lambda _: self._messages.show_message(text, brief=True),
            on_error,
        )

    # -- sources of answers

    def _on_content_requested(self, first: int, last: int) -> None:
        if wanted := [each.id for each in self._conversation.path[max(0, first) : last + 1]]:
            self._bridge.start(f"sources {first}", self._show_sources(wanted))

    async def _show_sources(self, wanted: Sequence[ExchangeId]) -> None:
        """Show sources, and with those of the newest turn the summary that its prompt began with."""
        self._reads += 1
        number, path = self._reads, self._conversation.path
        newest = path[-1].id if path else None

        def read() -> tuple[Mapping[ExchangeId, Contribution], SentSummary | None]:
            found = self._inspector.contributions(wanted)
            if newest is None or newest not in found:
                return found, None
            return found, self._inspector.sent_summary(newest)

        found, summary = await self._bridge.run(read)
        for exchange_id, contribution in found.items():
            is_newest = number > self._read.get(exchange_id, 0)  # reads may end in another order
            if is_newest and (turn := self._conversation.turn_of(exchange_id)) is not None:
                self._known[exchange_id], self._read[exchange_id] = contribution, number
                self._transcript.show_sources(turn, sources_of(contribution))
        self.show_status()
        if newest is not None and self._read.get(newest) == number:
            self._show_summary_note(newest, summary)

    def _show_summary_note(self, newest: ExchangeId, summary: SentSummary | None) -> None:
        """Mark where the newest prompt begins, if a summary replaces the turns before."""
        if (last := self._conversation.turn_of(newest)) is None:
            return
        turn, text = last, ""
        if summary is not None:
            path = enumerate(self._conversation.path)
            turn = next((at for at, each in path if summary.first_sent in each.message_ids), 0)
            text = summary.text if turn else ""
        self._transcript.show_summary_note(turn, text)

    def _on_source_clicked(self, turn: int, number: int) -> None:
        exchange = self._conversation.exchange_at(turn)
        known = self._known.get(exchange.id) if exchange is not None else None
        if known is not None and number < len(known.sources):
            self.open(known.sources[number])

    # -- status

    def show_status(self, *_: object) -> None:
        view, is_on, notice = self._conversation.view, self._is_on(), ""
        is_on_here, can_switch = self._conversation.new.recalls, True
        if view is not None:
            is_on_here = view.conversation.recalls
            can_switch = view.conversation.deleted_at is None
            known = self._known.get(view.path[-1].id) if view.path else None
            notice = translate_lines(known.notice) if known is not None else ""
        text = status_text(is_on=is_on, is_on_here=is_on_here, is_whole=not notice)
        self.status_changed.emit(text, notice, is_on_here, can_switch)

    def _on_conversation_opened(self) -> None:
        shown = {each.id for each in self._conversation.path}
        self._known = {each: known for each, known in self._known.items() if each in shown}
        self._read = {each: number for each, number in self._read.items() if each in shown}
        self.show_status()

    def _on_changed(self, changed: ChangeSet) -> None:
        is_deletion = changed.passages and changed.memory
        wanted = [
            each.id
            for each in self._conversation.path
            if each.id in changed.exchanges or (is_deletion and each.id in self._known)
        ]
        if wanted:
            self._bridge.submit(self._show_sources(wanted))
        elif changed.passages and (quoting := self._with_documents()):
            self._bridge.start("sources of documents", self._show_sources(quoting))

    def _with_documents(self) -> list[ExchangeId]:
        """Return the turns with a source in a file, which may have changed."""
        return [
            each.id
            for each in self._conversation.path
            if (known := self._known.get(each.id)) is not None
            and any(one.place.item.kind is PassageKind.DOCUMENT for one in known.sources)
        ]


def status_text(*, is_on: bool, is_on_here: bool, is_whole: bool) -> str:
    """Return what the status bar says about recall, "" where the composer's switch says it all."""
    if not is_on:
        return tr("Memory off")
    if not is_on_here:
        return tr("Memory off here")
    return "" if is_whole else tr("Memory incomplete")


def sources_of(contribution: Contribution) -> Sources:
    """Return a contribution as chips, one per place; a chip's number is that of its source."""
    sources = contribution.sources
    turns, cited_in = set(), set()  # conversations of which a turn is shown, or cited
    for each in sources:
        item = each.place.item
        if item.layer in (RecallLayer.EXCHANGE, RecallLayer.HISTORY):
            turns.add(item.conversation_id)
        if each.cited and item.layer is not RecallLayer.CONVERSATION:
            cited_in.add(item.conversation_id)
    shown: dict[int, Source] = {}
    seen: set[ExchangeId] = set()
    for number, source in enumerate(sources):
        place, item = source.place, source.place.item
        if item.layer is RecallLayer.CONVERSATION and item.conversation_id in turns:
            is_only_citation = source.cited and item.conversation_id not in cited_in
            if not is_only_citation:
                continue
        elif item.layer in _TURN_LAYERS and place.exchange_id is not None:
            if place.exchange_id in seen:
                continue
            seen.add(place.exchange_id)
        shown[number] = source
    per_conversation = Counter(each.place.item.conversation_id for each in shown.values())
    return Sources(
        tuple(
            _chip(number, each, with_turn=per_conversation[each.place.item.conversation_id] > 1)
            for number, each in shown.items()
        ),
        translate_lines(contribution.notice),
    )


def _chip(number: int, source: Source, *, with_turn: bool) -> SourceChip:
    place = source.place
    text = chip_text(place, with_turn=with_turn)
    return SourceChip(
        number, icon_of(place), kind_text(place), text, tip_text(source), source.cited
    )
