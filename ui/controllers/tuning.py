"""The memory page at work: a question is looked up once, every change of a setting planned anew."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from PySide6.QtCore import QObject

from app.bootstrap import Services
from app.chat.previewing import Asked, Preview
from app.domain.errors import KnownError
from app.domain.events import Changed
from app.domain.ids import ConversationId
from app.domain.recalls import RecalledPlace
from app.domain.settings_schema import SETTINGS, SettingPage, SettingValue
from ui.bridge import Bridge
from ui.controllers.chatting import ChatController
from ui.errors import words_for
from ui.theme import Appearance
from ui.views.memory_page import MemoryPage

_KEYS = frozenset(key for key, each in SETTINGS.items() if each.page is SettingPage.RECALL)
_LOOK, _PLAN = "preview", "preview plan"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is to be previewed: a question, and where it is asked (None: a new conversation)."""

    question: str
    conversation_id: ConversationId | None


class TuningController(QObject):
    """Previews what is typed and tried on the page; what is compared with is how it was opened."""

    def __init__(
        self,
        services: Services,
        bridge: Bridge,
        appearance: Appearance,
        chat: ChatController,
        open_place: Callable[[RecalledPlace], None],
    ) -> None:
        super().__init__(chat)
        self._services = services
        self._bridge = bridge
        self._appearance = appearance
        self._chat = chat
        self._open_place = open_place
        self._page: MemoryPage | None = None
        self._tried: dict[str, SettingValue] = {}
        self._at_first: Mapping[str, SettingValue] = {}
        self._chosen_at_first: frozenset[str] = frozenset()
        self._asked: Asked | None = None
        self._before: Preview | None = None
        self._looking: asyncio.Task[tuple[Asked, Preview] | KnownError] | None = None
        bridge.changed.connect(self._on_changed)

    def attach(self, page: MemoryPage) -> None:
        """Serve a page from now on."""
        self._page = page
        page.preview.set_theme(self._appearance.theme)
        self._appearance.theme_changed.connect(page.preview.set_theme)
        page.tried.connect(self._on_tried)
        page.undo_requested.connect(self._on_undo_requested)
        page.defaults_requested.connect(self._on_defaults_requested)
        page.preview.asked.connect(self._on_asked)
        page.preview.open_requested.connect(self._on_open_requested)

    def show(self) -> None:
        """Show the page anew, at the time the dialog is opened: changes count from now on."""
        if (page := self._page) is None:
            return
        settings = self._services.settings
        self._tried.clear()
        self._at_first = {key: settings.get(key) for key in _KEYS}
        self._chosen_at_first = frozenset(settings.chosen()) & _KEYS
        view = self._chat.view
        page.preview.show_place(view.conversation.title if view is not None else None)
        self._show_state()
        self._bridge.start("recent questions", self._show_recent(page))
        page.preview.ask()

    async def _show_recent(self, page: MemoryPage) -> None:
        page.preview.show_recent(await self._bridge.run(self._services.previews.recent))

    # -- a question

    def _on_asked(self, question: str) -> None:
        page = self._page
        assert page is not None
        self._bridge.cancel(_PLAN)
        if not question:
            self._bridge.cancel(_LOOK)
            self._asked = self._before = None
            page.preview.show_nothing()
            return
        is_here = page.preview.here.isChecked()
        where = self._chat.conversation_id if is_here else None
        self._bridge.start(_LOOK, self._look(page, _Wanted(question, where)))

    async def _look(self, page: MemoryPage, wanted: _Wanted) -> None:
        """Look up a question once the one before has been: so one thread is busy at most."""
        while self._looking is not None and not self._looking.done():
            await asyncio.wait([self._looking])
        tried = dict(self._tried)
        self._looking = looking = self._bridge.start(
            "look-up for the preview", self._looked_up(wanted, tried)
        )
        await asyncio.wait([looking])
        if looking.cancelled() or looking.exception() is not None:
            return
        outcome = looking.result()
        if isinstance(outcome, KnownError):
            self._asked = self._before = None
            page.preview.show_nothing(*words_for(outcome))
            return
        self._asked, self._before = outcome
        self._replan()

    async def _looked_up(
        self, wanted: _Wanted, tried: Mapping[str, SettingValue]
    ) -> tuple[Asked, Preview] | KnownError:
        previews, at_first = self._services.previews, self._at_first

        def look() -> tuple[Asked, Preview]:
            asked = previews.ask(wanted.question, wanted.conversation_id, tried)
            first = asked
            if not previews.suits(asked, at_first):
                first = previews.ask(wanted.question, wanted.conversation_id, at_first)
            return asked, previews.preview(first, at_first)

        try:
            return await self._bridge.run(look)
        except KnownError as error:
            return error

    # -- a setting

    def _on_tried(self, key: str, value: SettingValue) -> None:
        self._tried[key] = value
        self._replan()

    def _on_changed(self, changed: Changed) -> None:
        page = self._page
        if page is None or not (saved := changed.settings & _KEYS):
            return
        for key in saved:
            if self._tried.get(key) == self._services.settings.get(key):
                self._tried.pop(key, None)
        self._show_state()
        if page.isVisible():
            self._replan()

    def _replan(self) -> None:
        page, asked = self._page, self._asked
        if page is None or asked is None:
            return
        if self._services.previews.suits(asked, self._tried):
            self._bridge.start(_PLAN, self._plan(page, asked, dict(self._tried)))
        else:
            page.preview.ask()

    async def _plan(
        self, page: MemoryPage, asked: Asked, tried: Mapping[str, SettingValue]
    ) -> None:
        before, previews = self._before, self._services.previews
        preview = await self._bridge.run(lambda: previews.preview(asked, tried, before))
        page.preview.show_preview(preview)

    # -- deeds

    def _show_state(self) -> None:
        settings = self._services.settings
        assert self._page is not None
        self._page.show_state(
            is_changed=any(settings.get(key) != value for key, value in self._at_first.items()),
            is_default=not settings.chosen().keys() & _KEYS,
        )

    def _on_undo_requested(self) -> None:
        self._tried.clear()
        self._bridge.carry_out(self._bridge.write(self._undo))

    def _undo(self) -> None:
        settings = self._services.settings
        for key, value in self._at_first.items():
            if settings.get(key) != value:
                if key in self._chosen_at_first:
                    settings.set(key, value)
                else:
                    settings.reset(key)

    def _on_defaults_requested(self) -> None:
        self._tried.clear()
        self._bridge.carry_out(self._bridge.write(self._reset))

    def _reset(self) -> None:
        settings = self._services.settings
        for key in settings.chosen().keys() & _KEYS:
            settings.reset(key)

    def _on_open_requested(self, place: RecalledPlace) -> None:
        if self._page is not None:
            self._page.window().hide()
        self._open_place(place)
