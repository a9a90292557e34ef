"""The icon in the desktop's tray: whether closing the window keeps the program running is asked once."""

from collections.abc import Callable

from PySide6.QtWidgets import QApplication, QMenu, QSystemTrayIcon

from app.domain.translation import tr
from app.storage.tables.settings import Settings
from ui.icons import app_icon
from ui.presenters.presenter import Presenter
from ui.views.dialogs.confirm import Confirmation, confirm
from ui.views.main_window import MainWindow

SWITCH = "tray"


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
