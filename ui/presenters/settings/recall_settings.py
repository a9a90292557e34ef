"""The memory page of the settings: previews what recall finds with settings that are only tried.

A question is looked up once; every change of a setting plans anew with what was found. Changes are
marked against the settings of the moment the dialog was opened, and undo goes back to those.
"""

import asyncio
from collections.abc import Callable, Mapping

from PySide6.QtCore import QObject

from app.chat.recall_preview import Preview, RecallCandidates, RecallPreviews
from app.domain.changes import ChangeSet
from app.domain.errors import KnownError
from app.domain.ids import ConversationId
from app.domain.recall import RecalledItemDetails
from app.domain.settings_schema import SETTINGS, SettingPage, SettingValue
from app.storage.tables.settings import Settings
from ui.bridge import Bridge
from ui.errors import error_text
from ui.views.settings.memory_page import MemoryPage

_KEYS = frozenset(key for key, each in SETTINGS.items() if each.page is SettingPage.RECALL)
_FETCH, _PLAN = "preview", "preview plan"

_Fetched = tuple[RecallCandidates, Preview]


class RecallSettingsPresenter(QObject):
    """Shows previews, and undoes or resets the settings.

    `open_conversation` returns the id and the title of the open conversation, both None without
    one; `open_item` shows a recalled item in the window.
    """

    def __init__(
        self,
        settings: Settings,
        previews: RecallPreviews,
        bridge: Bridge,
        page: MemoryPage,
        open_conversation: Callable[[], tuple[ConversationId | None, str | None]],
        open_item: Callable[[RecalledItemDetails], None],
    ) -> None:
        super().__init__(page)
        self._settings = settings
        self._previews = previews
        self._bridge = bridge
        self._page = page
        self._open_conversation = open_conversation
        self._open_item = open_item
        self._tried: dict[str, SettingValue] = {}
        self._initial: Mapping[str, SettingValue] = {}
        self._initially_chosen: frozenset[str] = frozenset()
        self._candidates: RecallCandidates | None = None
        self._before: Preview | None = None
        self._fetching: asyncio.Task[_Fetched | KnownError] | None = None
        bridge.changed.connect(self._on_changed)
        page.tried.connect(self._on_tried)
        page.undo_requested.connect(self._on_undo_requested)
        page.defaults_requested.connect(self._on_defaults_requested)
        page.preview.asked.connect(self._on_asked)
        page.preview.open_requested.connect(self._on_open_requested)

    def show(self) -> None:
        """Show the page as the dialog opens: undo goes back to the present settings."""
        self._tried.clear()
        self._initial = {key: self._settings.get(key) for key in _KEYS}
        self._initially_chosen = frozenset(self._settings.chosen()) & _KEYS
        self._page.preview.show_place(self._open_conversation()[1])
        self._show_state()
        self._bridge.start("recent questions", self._show_recent())
        self._page.preview.ask()

    async def _show_recent(self) -> None:
        self._page.preview.show_recent(await self._bridge.run(self._previews.recent))

    # -- a question

    def _on_asked(self, question: str) -> None:
        self._bridge.cancel(_PLAN)
        if not question:
            self._bridge.cancel(_FETCH)
            self._candidates = self._before = None
            self._page.preview.show_nothing()
            return
        is_here = self._page.preview.here.isChecked()
        conversation_id = self._open_conversation()[0] if is_here else None
        self._bridge.start(_FETCH, self._fetch(question, conversation_id))

    async def _fetch(self, question: str, conversation_id: ConversationId | None) -> None:
        """Look up a question after the one before it has ended: at most one thread is busy."""
        while self._fetching is not None and not self._fetching.done():
            await asyncio.wait([self._fetching])
        self._fetching = fetching = self._bridge.start(
            "fetch for the preview", self._fetched(question, conversation_id, dict(self._tried))
        )
        await asyncio.wait([fetching])
        if fetching.cancelled() or fetching.exception() is not None:
            return
        outcome = fetching.result()
        if isinstance(outcome, KnownError):
            self._candidates = self._before = None
            self._page.preview.show_nothing(*error_text(outcome))
            return
        self._candidates, self._before = outcome
        self._plan_again()

    async def _fetched(
        self,
        question: str,
        conversation_id: ConversationId | None,
        tried: Mapping[str, SettingValue],
    ) -> _Fetched | KnownError:
        previews, initial = self._previews, self._initial

        def fetch() -> _Fetched:
            candidates = previews.fetch(question, conversation_id, tried)
            before = candidates
            if not previews.is_current(candidates, initial):
                before = previews.fetch(question, conversation_id, initial)
            return candidates, previews.preview(before, initial)

        try:
            return await self._bridge.run(fetch)
        except KnownError as error:
            return error

    # -- a setting

    def _on_tried(self, key: str, value: SettingValue) -> None:
        self._tried[key] = value
        self._plan_again()

    def _on_changed(self, changed: ChangeSet) -> None:
        if not (saved := changed.settings & _KEYS):
            return
        for key in saved:
            if self._tried.get(key) == self._settings.get(key):
                self._tried.pop(key, None)
        self._show_state()
        if self._page.isVisible():
            self._plan_again()

    def _plan_again(self) -> None:
        if (candidates := self._candidates) is None:
            return
        if self._previews.is_current(candidates, self._tried):
            self._bridge.start(_PLAN, self._plan(candidates, dict(self._tried)))
        else:
            self._page.preview.ask()

    async def _plan(self, candidates: RecallCandidates, tried: Mapping[str, SettingValue]) -> None:
        before, previews = self._before, self._previews
        preview = await self._bridge.run(lambda: previews.preview(candidates, tried, before))
        self._page.preview.show_preview(preview)

    # -- undo and reset

    def _show_state(self) -> None:
        get = self._settings.get
        self._page.show_state(
            is_changed=any(get(key) != value for key, value in self._initial.items()),
            is_default=not self._settings.chosen().keys() & _KEYS,
        )

    def _on_undo_requested(self) -> None:
        self._tried.clear()
        self._bridge.submit(self._bridge.write(self._undo))

    def _undo(self) -> None:
        for key, value in self._initial.items():
            if self._settings.get(key) != value:
                if key in self._initially_chosen:
                    self._settings.set(key, value)
                else:
                    self._settings.reset(key)

    def _on_defaults_requested(self) -> None:
        self._tried.clear()
        self._bridge.submit(self._bridge.write(self._reset))

    def _reset(self) -> None:
        for key in self._settings.chosen().keys() & _KEYS:
            self._settings.reset(key)

    def _on_open_requested(self, item: RecalledItemDetails) -> None:
        self._page.window().hide()
        self._open_item(item)
