"""The pages of the profile, of core memory and of saved texts, and the rows about what a model saved there."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from app.domain.change_set import ChangeSet
from app.domain.errors import IndexUnavailable, InvalidInput
from app.domain.ids import ExchangeId, PassageId
from app.domain.passages import PassageKind
from app.domain.records.facts import Memory, MemoryWrite, WriteState
from app.domain.text import one_line
from app.domain.translation import quoted, tr
from app.memory.core_memory import ArchivalMemoryService, CoreMemoryService
from app.memory.memory_writes import MemoryWriteService
from app.memory.profile import ENABLED, ProfileService
from app.memory.search.service import SearchService
from app.storage.tables.memories import KnownMemory
from ui.presenters.conversation.open_conversation import ConversationPresenter
from ui.presenters.presenter import OpenPage, OpenTurn, Presenter
from ui.views.dialogs.confirm import confirm_deletion, confirm_unsaved
from ui.views.memory.knowledge_view import KnowledgeView
from ui.widgets.banner import Banner
from ui.widgets.transcript.values import WrittenLine
from ui.widgets.transcript.view import TranscriptView

_RANKED_MAX = 50
_QUOTED_CHARS = 200
_CORE = tr("core memory")
_CORE_LIMIT = "core_memory_max_tokens"
_PROFILE = "profile"
_PROFILE_LIMIT = "profile_max_tokens"
_SHOWN_CHARS = 1_000


class MemoriesPresenter(Presenter):
    """Shows both pages while they are visible.

    `open_turn` shows where a text was saved, `open_page` a page of the memory pane; `on_deleted` is called
    after a text was deleted.
    """

    _core: CoreMemoryService
    _memories: ArchivalMemoryService
    _search: SearchService
    _view: KnowledgeView
    _messages: Banner
    _open_turn: OpenTurn
    _open_page: OpenPage
    _on_deleted: Callable[[], object]

    def _set_up(self) -> None:
        self._bridge.subscribe(
            self._on_changed, "memory", "conversations", _CORE_LIMIT, while_shown=self._view
        )
        core, saved = self._view.core, self._view.saved
        core.save_requested.connect(partial(self._change_core, self._core.set))
        core.restore_requested.connect(partial(self._change_core, self._core.restore))
        saved.list_requested.connect(
            lambda text: self._bridge.load(
                "memories", lambda: self._find(text), saved.show_memories
            )
        )
        saved.add_requested.connect(self._save)
        saved.source_requested.connect(self._on_source_requested)
        saved.forget_requested.connect(self._ask_to_forget)

    def open(self, memory_id: int) -> None:
        self._view.saved.select_when_listed(memory_id)
        self._open_page("saved")
        self._view.saved.request_list()

    def refresh(self) -> None:
        """Read what is shown again."""
        self._bridge.start(_CORE, self._show_core())
        self._view.saved.request_list()

    def ask_before_leaving(self, leave: Callable[[], object]) -> None:
        """Call `leave`, after asking about core memory if it is edited and not saved."""
        core = self._view.core
        if not core.is_edited:
            leave()
            return
        self._open_page("core")

        def save() -> None:
            self._change_core(self._core.set, core.text.toPlainText(), leave)

        confirm_unsaved(self._view, tr("core memory"), save, core.undo, leave)

    def _on_changed(self, changed: ChangeSet) -> None:
        if changed.memory or changed.conversations:
            self._view.saved.request_list()
        if changed.memory or _CORE_LIMIT in changed.settings:
            self._bridge.start(_CORE, self._show_core())

    # -- core memory

    async def _show_core(self, *, replaces_edit: bool = False) -> None:
        versions = await self._bridge.run(self._core.versions)
        self._view.core.show_versions(versions, self._core.max_tokens, replaces_edit=replaces_edit)

    def _change_core(
        self,
        change: Callable[[Any], object],
        value: object,
        then: Callable[[], object] = lambda: None,
    ) -> None:
        async def run() -> None:
            await self._bridge.write(lambda: change(value))
            await self._show_core(replaces_edit=True)
            then()

        self._bridge.submit(run(), self._view.core.show_error)

    # -- saved texts

    def _find(self, text: str) -> Sequence[KnownMemory]:
        """Return all texts, or the most relevant ones, then those with all words; blocking."""
        known = {each.memory.id: each for each in self._memories.known()}
        if not text:
            return tuple(known.values())
        ranked: list[PassageId] = []
        try:
            answer = self._search.search(text, limit=_RANKED_MAX, kinds={PassageKind.MEMORY})
            ranked = [result.passage_id for result in answer.results if not result.is_weak]
        except (InvalidInput, IndexUnavailable):
            pass  # the words alone select
        words = text.casefold().split()
        matching = [
            each for each, there in known.items()
            if all(word in there.memory.text.casefold() for word in words)
        ]  # fmt: skip
        return [known[each] for each in dict.fromkeys([*ranked, *matching]) if each in known]

    def _save(self, text: str) -> None:
        pane = self._view.saved

        def show(saved: Memory) -> None:
            pane.new.clear()
            pane.box.clear()
            pane.select_when_listed(saved.id)
            pane.request_list()

        self._bridge.save(lambda: self._memories.save(text), show, pane.show_error)

    def _on_source_requested(self, known: KnownMemory) -> None:
        memory = known.memory
        if memory.conversation_id is not None:
            self._open_turn(memory.conversation_id, memory.exchange_id, None)

    def _ask_to_forget(self, known: KnownMemory) -> None:
        def report(remains: Sequence[str]) -> None:
            self._on_deleted()
            text = " ".join((tr("The text was forgotten."), *remains))
            self._messages.show_message(text, brief=False)

        confirm_deletion(
            self._view,
            quoted(one_line(known.memory.text, _QUOTED_CHARS)),
            tr("The conversation it was saved in stays."),
            lambda: self._bridge.save(
                lambda: self._memories.forget(known.memory.id), report, self._view.saved.show_error
            ),
        )


class ProfilePresenter(Presenter):
    """Shows the profile while it is visible. `open_page` shows a page of the memory pane."""

    _profile: ProfileService
    _view: KnowledgeView
    _open_page: OpenPage
    _open_fact: Callable[[int], object]

    def _set_up(self) -> None:
        pane, profile = self._view.profile, self._profile
        for requested, change in (
            (pane.switched, profile.turn),
            (pane.accept_requested, profile.accept),
            (pane.reject_requested, profile.reject),
        ):
            requested.connect(partial(self._change, change))
        for requested, edit in (
            (pane.save_requested, profile.set),
            (pane.editor.restore_requested, profile.restore),
        ):
            requested.connect(partial(self._change, edit, replaces_edit=True))
        pane.fact_requested.connect(self._open_fact)
        self._bridge.subscribe(
            self.refresh, "memory", "conversations", ENABLED, _PROFILE_LIMIT, while_shown=self._view
        )

    def refresh(self, *_: object) -> None:
        self._bridge.start(_PROFILE, self._show())

    def ask_before_leaving(self, leave: Callable[[], object]) -> None:
        """Call `leave`, after asking about the profile if it is edited and not saved."""
        pane = self._view.profile
        if not pane.editor.is_edited:
            leave()
            return
        self._open_page("profile")

        def save() -> None:
            text = pane.editor.text.toPlainText()
            self._change(self._profile.set, text, pane.decides, replaces_edit=True, then=leave)

        confirm_unsaved(self._view, tr("the profile"), save, pane.editor.undo, leave)

    async def _show(self, *, replaces_edit: bool = False) -> None:
        state, versions = await self._bridge.run(
            lambda: (self._profile.state(), self._profile.versions())
        )
        self._view.profile.show_profile(state, versions, replaces_edit=replaces_edit)
        self._view.mark_profile(waits=state.proposal is not None)

    def _change(
        self,
        change: Callable[..., object],
        *values: object,
        replaces_edit: bool = False,
        then: Callable[[], object] = lambda: None,
    ) -> None:
        async def run() -> None:
            await self._bridge.write(lambda: change(*values))
            await self._show(replaces_edit=replaces_edit)
            then()

        self._bridge.submit(run(), self._view.profile.editor.show_error)


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
        if wanted := [each.id for each in self._conversation.path[max(0, first) : last + 1]]:
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
