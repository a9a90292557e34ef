"""The window of memory at work: core memory and saved texts come from the pool, wishes go there."""

from collections.abc import Callable, Sequence
from datetime import datetime

from PySide6.QtCore import QObject

from app.bootstrap import Services
from app.domain.errors import IndexUnavailable, InvalidInput, KnownError
from app.domain.events import Changed
from app.domain.ids import ConversationId, ExchangeId, PassageId
from app.domain.passages import PassageKind
from app.domain.text import one_line
from app.storage.memories import KnownMemory
from ui.bridge import Bridge
from ui.controllers.asking import Question, ask, ask_to_forget
from ui.errors import words_for
from ui.theme import Appearance
from ui.views.main_window import MainWindow
from ui.views.memories_dialog import MemoriesDialog

_MOST_RANKED = 50
_SHOWN_CHARS = 200
_BUDGET = "core_memory_max_tokens"
_SAVE_OR_NOT = Question(
    "Core memory",
    "Save the changes to core memory?",
    "Discarded, they are gone; what was saved last stays.",
    yes="Save",
    also="Discard",
)


def _nothing() -> None:
    """Be done with it."""


class MemoriesController(QObject):
    """Opens the window of memory, which stays as it was when it is opened again."""

    def __init__(
        self,
        services: Services,
        bridge: Bridge,
        window: MainWindow,
        appearance: Appearance,
        open_turn: Callable[[ConversationId, ExchangeId | None], None],
    ) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._window = window
        self._appearance = appearance
        self._open_turn = open_turn
        self._dialog: MemoriesDialog | None = None
        bridge.changed.connect(self._on_changed)
        window.actions_by_name["memories"].triggered.connect(self._on_triggered)

    def open(self, memory_id: int | None = None) -> MemoriesDialog:
        """Show the window, at a saved text if one is named; return it."""
        dialog = self._dialog or self._made()
        if memory_id is not None:
            dialog.saved.want(memory_id)
            dialog.show_saved()
        self._bridge.start("core memory", self._show_core(dialog))
        dialog.saved.ask()
        dialog.show()
        dialog.raise_()
        dialog.activateWindow()
        return dialog

    def ask_before_leaving(self, leave: Callable[[], None]) -> None:
        """Call `leave`, after the question if core memory is edited and not saved."""
        dialog = self._dialog
        if dialog is None or not dialog.core.is_edited:
            leave()
            return
        dialog.show()
        dialog.show_core()

        def discard() -> None:
            dialog.core.undo()
            leave()

        ask(
            dialog,
            _SAVE_OR_NOT,
            lambda: self._change_core(dialog, dialog.core.text.toPlainText(), leave),
            first=discard,
        )

    def _on_triggered(self) -> None:
        self.open()

    def _made(self) -> MemoriesDialog:
        self._dialog = dialog = MemoriesDialog(self._appearance.theme, self._window)
        self._appearance.theme_changed.connect(dialog.set_theme)
        core, saved = dialog.core, dialog.saved
        dialog.save_or_not_requested.connect(lambda: self.ask_before_leaving(dialog.reject))
        core.save_requested.connect(lambda text: self._change_core(dialog, text))
        core.restore_requested.connect(lambda made_at: self._restore_core(dialog, made_at))
        saved.asked.connect(lambda words: self._bridge.start("memories", self._list(dialog, words)))
        saved.add_requested.connect(lambda words: self._bridge.carry_out(self._save(dialog, words)))
        saved.source_requested.connect(self._on_source_requested)
        saved.forget_requested.connect(lambda known: self._ask_forget(dialog, known))
        return dialog

    def _on_changed(self, changed: Changed) -> None:
        dialog = self._dialog
        if dialog is None or not dialog.isVisible():
            return
        if changed.learned or changed.conversations:
            dialog.saved.ask()
        if changed.learned or _BUDGET in changed.settings:
            self._bridge.start("core memory", self._show_core(dialog))

    # -- core memory

    async def _show_core(self, dialog: MemoriesDialog, *, anew: bool = False) -> None:
        versions = await self._bridge.run(self._services.core_memory.versions)
        most = self._services.settings.number(_BUDGET)
        dialog.core.show_versions(versions, most, anew=anew)

    def _change_core(
        self, dialog: MemoriesDialog, text: str, then: Callable[[], None] = _nothing
    ) -> None:
        core = self._services.core_memory
        self._bridge.carry_out(self._changed_core(dialog, lambda: core.set(text), then))

    def _restore_core(self, dialog: MemoriesDialog, made_at: datetime) -> None:
        core = self._services.core_memory
        self._bridge.carry_out(self._changed_core(dialog, lambda: core.restore(made_at)))

    async def _changed_core(
        self,
        dialog: MemoriesDialog,
        deed: Callable[[], object],
        then: Callable[[], None] = _nothing,
    ) -> None:
        try:
            await self._bridge.write(deed)
        except KnownError as error:
            dialog.core.show_error(*words_for(error))
        else:
            await self._show_core(dialog, anew=True)
            then()

    # -- saved texts

    async def _list(self, dialog: MemoriesDialog, words: str) -> None:
        dialog.saved.show_memories(await self._bridge.run(lambda: self._found(words)))

    def _found(self, words: str) -> Sequence[KnownMemory]:
        """Return all, or the best for words first, then those that say all of them. On the pool."""
        known = {each.memory.id: each for each in self._services.memories.known()}
        if not words:
            return tuple(known.values())
        ranked: list[PassageId] = []
        try:
            answer = self._services.search.search(
                words, limit=_MOST_RANKED, kinds={PassageKind.MEMORY}
            )
            ranked = [result.passage_id for result in answer.results if not result.is_weak]
        except (InvalidInput, IndexUnavailable):
            pass  # words alone find
        wanted = words.casefold().split()
        said = [
            each for each, there in known.items()
            if all(word in there.memory.text.casefold() for word in wanted)
        ]  # fmt: skip
        return [known[each] for each in dict.fromkeys([*ranked, *said]) if each in known]

    async def _save(self, dialog: MemoriesDialog, words: str) -> None:
        try:
            saved = await self._bridge.write(lambda: self._services.memories.save(words))
        except KnownError as error:
            dialog.saved.show_error(*words_for(error))
            return
        dialog.saved.clear_new()
        dialog.saved.want(saved.id)
        dialog.saved.ask()

    def _on_source_requested(self, known: KnownMemory) -> None:
        memory = known.memory
        if memory.conversation_id is not None and self._dialog is not None:
            self._dialog.hide()
            self._open_turn(memory.conversation_id, memory.exchange_id)

    def _ask_forget(self, dialog: MemoriesDialog, known: KnownMemory) -> None:
        ask_to_forget(
            dialog,
            f"\u201c{one_line(known.memory.text, _SHOWN_CHARS)}\u201d",
            "The text is erased from the database, the journal and every backup. What was said in "
            "the conversation stays. This cannot be undone.",
            lambda: self._bridge.carry_out(self._forget(dialog, known)),
        )

    async def _forget(self, dialog: MemoriesDialog, known: KnownMemory) -> None:
        memories = self._services.memories
        try:
            left = await self._bridge.write(lambda: memories.forget(known.memory.id))
        except KnownError as error:
            dialog.saved.show_error(*words_for(error))
            return
        self._services.index_sync.catch_up_soon()
        self._window.chat.banner.tell(" ".join(("The text is forgotten.", *left)), brief=False)
