"""The pages of core memory and of the texts that were saved on purpose."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from app.domain.changes import ChangeSet
from app.domain.errors import IndexUnavailable, InvalidInput
from app.domain.facts import Memory
from app.domain.ids import PassageId
from app.domain.passages import PassageKind
from app.domain.text import one_line
from app.domain.translation import tr
from app.memory.core_memory import ArchivalMemoryService, CoreMemoryService
from app.memory.search import SearchService
from app.storage.tables.memories import KnownMemory
from ui.presenters.presenter import OpenPage, OpenTurn, Presenter
from ui.views.dialogs.confirm import confirm_deletion, confirm_unsaved
from ui.views.memory.knowledge_view import KnowledgeView
from ui.widgets.banner import Banner

_RANKED_MAX = 50
_QUOTED_CHARS = 200
_CORE = tr("core memory")
_LIMIT = "core_memory_max_tokens"


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
            self._on_changed, "memory", "conversations", _LIMIT, while_shown=self._view
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
        """Show a saved text."""
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
        if changed.memory or _LIMIT in changed.settings:
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
            f"\u201c{one_line(known.memory.text, _QUOTED_CHARS)}\u201d",
            tr("The conversation it was saved in stays."),
            lambda: self._bridge.save(
                lambda: self._memories.forget(known.memory.id), report, self._view.saved.show_error
            ),
        )
