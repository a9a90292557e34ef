"""The memory page of the settings: previews what recall finds with settings that are only tried.

A question is looked up once; every change of a setting plans anew with what was found. Changes are
marked against the settings of the moment the dialog was opened, and undo goes back to those.
"""

from collections.abc import Callable, Mapping

from app.chat.recall_preview import Preview, RecallCandidates, RecallPreviews
from app.domain.change_set import ChangeSet
from app.domain.errors import KnownError
from app.domain.ids import ConversationId
from app.domain.recall import RecalledItemDetails
from app.domain.settings_schema import SETTINGS, SettingPage, SettingValue
from app.storage.tables.settings import Settings
from ui.errors import error_text
from ui.presenters.presenter import Presenter
from ui.views.settings.memory_page import MemoryPage

_KEYS = frozenset(key for key, each in SETTINGS.items() if each.page is SettingPage.RECALL)
_FETCH, _PLAN = "preview", "preview plan"


class RecallSettingsPresenter(Presenter):
    """Shows previews, and undoes or resets the settings.

    `open_conversation` returns the id and the title of the open conversation, both None without
    one; `open_item` shows a recalled item in the window.
    """

    _settings: Settings
    _previews: RecallPreviews
    _page: MemoryPage
    _open_conversation: Callable[[], tuple[ConversationId | None, str | None]]
    _open_item: Callable[[RecalledItemDetails], None]

    def _set_up(self) -> None:
        self._tried: dict[str, SettingValue] = {}
        self._initial: Mapping[str, SettingValue] = {}
        self._initially_chosen: frozenset[str] = frozenset()
        self._candidates: RecallCandidates | None = None
        self._before: Preview | None = None
        self._bridge.subscribe(self._on_changed, *_KEYS)
        page = self._page
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
        self._bridge.load("recent questions", self._previews.recent, self._page.preview.show_recent)
        self._page.preview.ask()

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
        previews, initial, tried = self._previews, self._initial, dict(self._tried)

        def fetch() -> tuple[RecallCandidates, Preview]:
            candidates = previews.fetch(question, conversation_id, tried)
            before = candidates
            if not previews.is_current(candidates, initial):
                before = previews.fetch(question, conversation_id, initial)
            return candidates, previews.preview(before, initial)

        outcome = await self._bridge.run_alone("fetch for the preview", fetch)
        if outcome is None:
            return
        if isinstance(outcome, KnownError):
            self._candidates = self._before = None
            self._page.preview.show_nothing(*error_text(outcome))
            return
        self._candidates, self._before = outcome
        self._plan_again()

    # -- a setting

    def _on_tried(self, key: str, value: SettingValue) -> None:
        self._tried[key] = value
        self._plan_again()

    def _on_changed(self, changed: ChangeSet) -> None:
        for key in changed.settings & _KEYS:
            if self._tried.get(key) == self._settings.get(key):
                self._tried.pop(key, None)
        self._show_state()
        if self._page.isVisible():
            self._plan_again()

    def _plan_again(self) -> None:
        if (candidates := self._candidates) is None:
            return
        if self._previews.is_current(candidates, self._tried):
            previews, tried, before = self._previews, dict(self._tried), self._before
            self._bridge.load(
                _PLAN,
                lambda: previews.preview(candidates, tried, before),
                self._page.preview.show_preview,
            )
        else:
            self._page.preview.ask()

    # -- undo and reset

    def _show_state(self) -> None:
        get = self._settings.get
        self._page.show_state(
            is_changed=any(get(key) != value for key, value in self._initial.items()),
            is_default=not self._settings.chosen().keys() & _KEYS,
        )

    def _on_undo_requested(self) -> None:
        self._tried.clear()
        self._bridge.save(self._undo)

    def _undo(self) -> None:
        for key, value in self._initial.items():
            if self._settings.get(key) != value:
                if key in self._initially_chosen:
                    self._settings.set(key, value)
                else:
                    self._settings.reset(key)

    def _on_defaults_requested(self) -> None:
        self._tried.clear()
        self._bridge.save(self._reset)

    def _reset(self) -> None:
        for key in self._settings.chosen().keys() & _KEYS:
            self._settings.reset(key)

    def _on_open_requested(self, item: RecalledItemDetails) -> None:
        self._page.window().hide()
        self._open_item(item)
