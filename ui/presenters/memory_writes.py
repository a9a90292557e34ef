"""Rows under answers: what a model saved to memory there, with Undo, or Keep and Remove."""

from collections.abc import Callable, Sequence

from app.domain.changes import ChangeSet
from app.domain.facts import MemoryWrite, WriteState
from app.domain.ids import ExchangeId
from app.domain.text import one_line
from app.domain.translation import tr
from app.memory.memory_writes import MemoryWriteService
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.views.memory.knowledge_view import KnowledgeView
from ui.widgets.transcript.values import WrittenLine
from ui.widgets.transcript.view import TranscriptView

_SHOWN_CHARS = 1_000


class MemoryWritePresenter(Presenter):
    """Shows writes to memory in their turns, and the proposals that wait on the page of core memory.

    `on_deleted` is called after a text was deleted.
    """

    _writes: MemoryWriteService
    _view: KnowledgeView
    _transcript: TranscriptView
    _conversation: ConversationPresenter
    _on_deleted: Callable[[], object]

    def _set_up(self) -> None:
        self._proposals: dict[str, MemoryWrite] = {}
        self._transcript.content_requested.connect(self._on_content_requested)
        self._conversation.content_shown.connect(self._on_content_requested)
        self._transcript.events.write_action_requested.connect(self._on_action_requested)
        self._view.proposals.action_requested.connect(self._on_action_requested)
        self._view.proposals.source_requested.connect(self._on_source_requested)
        self._bridge.subscribe(self._on_changed, "memory")

    def refresh(self) -> None:
        """Read again which proposals wait."""
        self._bridge.start("proposals", self._show_proposals())

    def _on_content_requested(self, first: int, last: int) -> None:
        if wanted := self._conversation.ids_between(first, last):
            self._bridge.start(f"written {first}", self._show(wanted))

    def _on_changed(self, changed: ChangeSet) -> None:
        path = self._conversation.path
        if changed.memory and path:
            self._bridge.start("written", self._show([each.id for each in path]))
        if self._view.isVisible():
            self.refresh()

    async def _show_proposals(self) -> None:
        listed = await self._bridge.run(self._writes.listed)
        waiting = [each for each in listed if each.state is WriteState.PROPOSED]
        self._proposals = {each.uid: each for each in waiting}
        self._view.show_proposals([written_line(each) for each in waiting])

    def _on_source_requested(self, uid: str) -> None:
        if (write := self._proposals.get(uid)) is not None:
            self._conversation.open(write.conversation_id, write.exchange_id, None)

    async def _show(self, wanted: Sequence[ExchangeId]) -> None:
        found = await self._bridge.run(lambda: self._writes.of_exchanges(wanted))
        for exchange_id in wanted:
            if (turn := self._conversation.turn_of(exchange_id)) is not None:
                lines = tuple(written_line(each) for each in found.get(exchange_id, ()))
                self._transcript.show_written(turn, lines)

    def _on_action_requested(self, uid: str, action: str) -> None:
        change = self._writes.keep if action == "keep" else self._writes.undo

        def report(write: MemoryWrite) -> None:
            if write.memory_id is not None:
                self._on_deleted()

        self._bridge.save(lambda: change(uid), report)


def written_line(write: MemoryWrite) -> WrittenLine:
    """Return the row for a write."""
    text = one_line(write.text, _SHOWN_CHARS)
    target = tr("memory") if write.memory_id is not None else tr("core memory")
    if write.state is WriteState.PROPOSED:
        text = tr("Save to {target}? “{text}” (the model had read {outside})").format(
            target=target, text=text, outside=write.outside
        )
        return WrittenLine(write.uid, text, (("keep", tr("Keep")), ("undo", tr("Remove"))), True)
    if write.state is WriteState.REMOVED:
        return WrittenLine(
            write.uid,
            tr("Not in {target}: “{text}”").format(target=target, text=text)
            if text
            else tr("Removed from {target}").format(target=target),
        )
    said = tr("Saved to {target}: \u201c{text}\u201d")
    if not write.new:
        said = tr("Removed from {target}: \u201c{text}\u201d")
    shown = said.format(target=target, text=text)
    return WrittenLine(write.uid, shown, (("undo", tr("Undo")),))
