"""The memory dialog: core memory, and the texts that were saved on purpose."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from app.domain.changes import ChangeSet
from app.domain.errors import IndexUnavailable, InvalidInput
from app.domain.facts import Memory
from app.domain.ids import PassageId
from app.domain.passages import PassageKind
from app.domain.text import one_line
from app.memory.core_memory import ArchivalMemoryService, CoreMemoryService
from app.memory.search import SearchService
from app.storage.tables.memories import KnownMemory
from ui.presenters.presenter import OpenTurn, Presenter
from ui.presenters.profile import ProfilePresenter
from ui.theme import Appearance
from ui.views.dialogs.confirm import confirm_deletion, confirm_unsaved
from ui.views.dialogs.memories_dialog import MemoriesDialog
from ui.widgets.banner import Banner

_RANKED_MAX = 50
_QUOTED_CHARS = 200
_CORE = "core memory"
_LIMIT = "core_memory_max_tokens"


class MemoriesPresenter(Presenter):
    """Opens the dialog, which keeps its state while it is closed.

    `open_turn` shows where a text was saved; `on_deleted` is called after a text was deleted.
    """

    _core: CoreMemoryService
    _memories: ArchivalMemoryService
    _search: SearchService
    _messages: Banner
    _appearance: Appearance
    _open_turn: OpenTurn
    _on_deleted: Callable[[], object]
    _present_profile: Callable[[MemoriesDialog], ProfilePresenter]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._dialog: MemoriesDialog | None = None
        self._profile: ProfilePresenter | None = None
        self._bridge.subscribe(self._on_changed, "memory", "conversations", _LIMIT)

    def open(self, memory_id: int | None = None) -> MemoriesDialog:
        """Show the dialog, at a saved text if one is given; return it."""
        dialog = self._dialog or self._make_dialog()
        if memory_id is not None:
            dialog.saved.select_when_listed(memory_id)
            dialog.show_saved()
        self._bridge.start(_CORE, self._show_core(dialog))
        dialog.saved.request_list()
        if self._profile is not None:
            self._profile.show()
        dialog.show()
        dialog.raise_()
        dialog.activateWindow()
        return dialog

    def ask_before_leaving(self, leave: Callable[[], object]) -> None:
        """Call `leave`, after asking about what is edited and not saved."""
        dialog, profile = self._dialog, self._profile
        if profile is not None:
            leave = partial(profile.ask_before_leaving, leave)
        if dialog is None or not dialog.core.is_edited:
            leave()
            return
        dialog.show()
        dialog.show_core()

        def save() -> None:
            self._change_core(dialog, self._core.set, dialog.core.text.toPlainText(), leave)

        confirm_unsaved(dialog, "core memory", save, dialog.core.undo, leave)

    def _make_dialog(self) -> MemoriesDialog:
        self._dialog = dialog = MemoriesDialog(self._appearance.theme, self._messages.window())
        self._appearance.theme_changed.connect(dialog.set_theme)
        core, saved = dialog.core, dialog.saved
        self._profile = self._present_profile(dialog)
        dialog.leave_requested.connect(self.ask_before_leaving)
        core.save_requested.connect(partial(self._change_core, dialog, self._core.set))
        core.restore_requested.connect(partial(self._change_core, dialog, self._core.restore))
        saved.list_requested.connect(
            lambda text: self._bridge.load(
                "memories", lambda: self._find(text), saved.show_memories
            )
        )
        saved.add_requested.connect(partial(self._save, dialog))
        saved.source_requested.connect(self._on_source_requested)
        saved.forget_requested.connect(lambda known: self._ask_to_forget(dialog, known))
        return dialog

    def _on_changed(self, changed: ChangeSet) -> None:
        dialog = self._dialog
        if dialog is None or not dialog.isVisible():
            return
        if changed.memory or changed.conversations:
            dialog.saved.request_list()
        if changed.memory or _LIMIT in changed.settings:
            self._bridge.start(_CORE, self._show_core(dialog))

    # -- core memory

    async def _show_core(self, dialog: MemoriesDialog, *, replaces_edit: bool = False) -> None:
        versions = await self._bridge.run(self._core.versions)
        dialog.core.show_versions(versions, self._core.max_tokens, replaces_edit=replaces_edit)

    def _change_core(
        self,
        dialog: MemoriesDialog,
        change: Callable[[Any], object],
        value: object,
        then: Callable[[], object] = lambda: None,
    ) -> None:
        async def run() -> None:
            await self._bridge.write(lambda: change(value))
            await self._show_core(dialog, replaces_edit=True)
            then()

        self._bridge.submit(run(), dialog.core.show_error)

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

    def _save(self, dialog: MemoriesDialog, text: str) -> None:
        pane = dialog.saved

        def show(saved: Memory) -> None:
            pane.new.clear()
            pane.box.clear()
            pane.select_when_listed(saved.id)
            pane.request_list()

        self._bridge.save(lambda: self._memories.save(text), show, pane.show_error)

    def _on_source_requested(self, known: KnownMemory) -> None:
        memory = known.memory
        if memory.conversation_id is not None and self._dialog is not None:
            self._dialog.hide()
            self._open_turn(memory.conversation_id, memory.exchange_id, None)

    def _ask_to_forget(self, dialog: MemoriesDialog, known: KnownMemory) -> None:
        def report(remains: Sequence[str]) -> None:
            self._on_deleted()
            text = " ".join(("The text was forgotten.", *remains))
            self._messages.show_message(text, brief=False)

        confirm_deletion(
            dialog,
            f"\u201c{one_line(known.memory.text, _QUOTED_CHARS)}\u201d",
            "The text is deleted from the database, the journal and every backup. The "
            "conversation it was saved in stays. This cannot be undone.",
            lambda: self._bridge.save(
                lambda: self._memories.forget(known.memory.id), report, dialog.saved.show_error
            ),
        )
