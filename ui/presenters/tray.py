"""The icon in the desktop's tray, and the quick search that it opens."""

from collections.abc import Callable
from functools import partial

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QMenu, QSystemTrayIcon

from app.domain.errors import KnownError
from app.domain.links import Link, link_to
from app.domain.passages import PassageKind
from app.domain.results import SearchResponse, SearchResult
from app.domain.translation import tr
from app.memory.search.service import SearchService
from app.storage.tables.settings import Settings
from ui.bridge import Refresh
from ui.icons import app_icon
from ui.presenters.presenter import Presenter
from ui.views.dialogs.confirm import Confirmation, confirm
from ui.views.main_window import MainWindow
from ui.views.quick_find import QuickFind

SWITCH = "tray"
_PAUSE_MS = 60
_SHOWN = 8
_MIN_CHARS = 2
_KINDS = (PassageKind.TURN, PassageKind.CONVERSATION_SUMMARY)


class TrayPresenter(Presenter):
    """Shows the icon while it is switched on, where the desktop has a tray.

    `quick_find` shows the quick search.
    """

    _settings: Settings
    _window: MainWindow
    _quick_find: Callable[[], object]

    def _set_up(self) -> None:
        self.icon: QSystemTrayIcon | None = None
        self._act: Callable[[], object] = lambda: None
        self._bridge.subscribe(lambda _: self.apply(), SWITCH)
        self.apply()

    def apply(self) -> None:
        """Show or hide the icon, as the setting says."""
        is_on = self._settings.text(SWITCH) == "on" and QSystemTrayIcon.isSystemTrayAvailable()
        if is_on and self.icon is None:
            self.icon = self._made()
            self.icon.show()
        elif not is_on and self.icon is not None:
            self.icon.hide()
            self.icon.deleteLater()
            self.icon = None

    def close(self, leave: Callable[[], None]) -> None:
        """Hide the window or `leave`, as the user decided; ask if that was never asked."""
        if self.icon is not None:
            self._window.hide()
        elif self._settings.text(SWITCH) == "ask" and QSystemTrayIcon.isSystemTrayAvailable():
            self._ask(leave)
        else:
            leave()

    def notify(self, text: str, act: Callable[[], object]) -> None:
        """Show a message of the desktop unless the window is in front; a click on it runs `act`."""
        if self._window.isActiveWindow():
            return
        QApplication.alert(self._window)
        self._act = act
        if self.icon is not None:
            self.icon.showMessage("Commonplace", text, app_icon())

    def _on_message_clicked(self) -> None:
        self._window.bring_to_front()
        act, self._act = self._act, lambda: None
        act()

    def _ask(self, leave: Callable[[], None]) -> None:
        texts = Confirmation(
            tr("Close"),
            tr("Keep Commonplace running in the tray?"),
            tr(
                "Background work goes on, and other programs can read your memory. "
                "The settings can change this later, under General."
            ),
            tr("Keep running"),
            tr("Cancel"),
            tr("Quit"),
        )

        def keep() -> None:
            self._save("on", self._window.hide)

        confirm(self._window, texts, keep, on_other=lambda: self._save("off", leave))

    def _save(self, value: str, then: Callable[[], object]) -> None:
        self._bridge.save(lambda: self._settings.set(SWITCH, value), lambda _: then())

    def _made(self) -> QSystemTrayIcon:
        icon, menu = QSystemTrayIcon(app_icon(), self._window), QMenu(self._window)
        actions = self._window.actions_by_name
        for text, run in (
            (tr("Open Commonplace"), self._window.bring_to_front),
            (tr("Quick search"), self._quick_find),
            (tr("New conversation"), self._begin),
            (tr("Quit"), actions["quit"].trigger),
        ):
            menu.addAction(text).triggered.connect(lambda _checked=False, run=run: run())
        icon.setContextMenu(menu)
        icon.setToolTip("Commonplace")
        icon.activated.connect(self._on_activated)
        icon.messageClicked.connect(self._on_message_clicked)
        return icon

    def _begin(self) -> None:
        self._window.bring_to_front()
        self._window.actions_by_name["new"].trigger()

    def _on_activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason == QSystemTrayIcon.ActivationReason.Trigger:
            self._window.bring_to_front()


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
