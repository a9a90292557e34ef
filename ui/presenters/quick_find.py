"""The quick search: results as one types, opened in the window or copied with their link."""

from collections.abc import Callable
from functools import partial

from PySide6.QtGui import QGuiApplication

from app.domain.errors import KnownError
from app.domain.links import Link, link_to
from app.domain.passages import PassageKind
from app.domain.results import SearchResponse, SearchResult
from app.domain.translation import tr
from app.memory.search import SearchService
from ui.bridge import Refresh
from ui.presenters.presenter import Presenter
from ui.views.quick_find import QuickFind

_PAUSE_MS = 60
_SHOWN = 8
_MIN_CHARS = 2
_KINDS = (PassageKind.TURN, PassageKind.CONVERSATION_SUMMARY)


class QuickFindPresenter(Presenter):
    """Searches by words at once and by meaning when that is ready; `open_link` opens a turn."""

    _search: SearchService
    _open_link: Callable[[Link], object]
    _raise_window: Callable[[], object]
    _view: QuickFind

    def _set_up(self) -> None:
        self._refresh = Refresh(self, self._bridge, "quick search", _PAUSE_MS, self._find)
        self._view.typed.connect(lambda _: self._refresh.request())
        self._view.chosen.connect(self._open)
        self._view.copied.connect(self._copy)

    def show(self) -> None:
        """Show the palette."""
        self._view.appear()

    async def _find(self) -> None:
        text = self._view.field.text().strip()
        if len(text) < _MIN_CHARS:
            self._view.show_results(())
            return
        for by_meaning in (False, True):
            try:
                found = await self._bridge.run(partial(self._found, text, by_meaning=by_meaning))
            except KnownError as error:
                self._view.show_results((), error.display_text)
                return
            if text != self._view.field.text().strip():
                return
            useful = [each for each in found.results if each.is_hint or not each.is_weak]
            notice = "" if useful or not by_meaning else tr("Nothing was found.")
            self._view.show_results(useful, notice)

    def _found(self, text: str, *, by_meaning: bool) -> SearchResponse:
        return self._search.search(text, _SHOWN, _KINDS, by_meaning=by_meaning)

    def _open(self, result: SearchResult) -> None:
        if result.conversation_id is None:
            return
        self._raise_window()
        exchange = None if result.is_shown else result.exchange_id
        self._open_link(Link(result.conversation_id, result.turn_number, exchange))

    def _copy(self, result: SearchResult) -> None:
        link = ""
        if result.conversation_id is not None:
            link = link_to(
                result.conversation_id,
                result.turn_number,
                result.exchange_id,
                is_shown=result.is_shown,
            )
        QGuiApplication.clipboard().setText(f"{result.snippet}\n{link}".strip())
        self._view.hide()
