"""The settings dialog: opens it, saves values as they are entered, applies theme and text size."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from app.domain.changes import ChangeSet
from app.domain.errors import KnownError
from app.domain.settings_schema import SETTINGS, SettingValue
from app.storage.tables.settings import Settings
from ui.bridge import Bridge
from ui.theme import Appearance, ThemeChoice
from ui.views.settings.settings_dialog import SettingsDialog

_STEP_PERCENT = 10


class PagePresenter(Protocol):
    """The presenter of one page of the dialog."""

    def show(self) -> None:
        """Show the current state; called each time the dialog opens."""
        ...


class SettingsPresenter(QObject):
    """Keeps the dialog, the appearance and the stored settings in step.

    `present_pages` returns the presenters of a new dialog's pages. `notify` shows an error while
    the dialog is closed.
    """

    def __init__(
        self,
        settings: Settings,
        bridge: Bridge,
        parent: QWidget,
        actions: Mapping[str, QAction],
        appearance: Appearance,
        present_pages: Callable[[SettingsDialog], Sequence[PagePresenter]],
        notify: Callable[[str], None],
    ) -> None:
        super().__init__(parent)
        self._settings = settings
        self._bridge = bridge
        self._parent = parent
        self._appearance = appearance
        self._present_pages = present_pages
        self._notify = notify
        self._dialog: SettingsDialog | None = None
        self._pages: Sequence[PagePresenter] = ()
        bridge.changed.connect(self._on_changed)
        actions["settings"].triggered.connect(self._on_settings_triggered)
        actions["larger"].triggered.connect(lambda: self._zoom(_STEP_PERCENT))
        actions["smaller"].triggered.connect(lambda: self._zoom(-_STEP_PERCENT))
        actions["actual"].triggered.connect(lambda: self._save("text_size", 100))
        self._apply_appearance()

    def _on_settings_triggered(self) -> None:
        self.open()

    def open(self, page: str = "") -> SettingsDialog:
        """Show the dialog, at a page by its name; return it.

        The pages are refreshed only if the dialog was closed: undo on the memory page goes back
        to the values of that moment.
        """
        if self._dialog is None:
            self._dialog = dialog = SettingsDialog(self._parent)
            dialog.edited.connect(self._save)
            dialog.reset_requested.connect(self._on_reset_requested)
            self._pages = self._present_pages(dialog)
        if not self._dialog.isVisible():
            self._show_values()
            for each in self._pages:
                each.show()
        if page:
            self._dialog.show_page(page)
        self._dialog.open()
        return self._dialog

    def open_spend_limits(self) -> None:
        """Show the dialog with the focus on the daily spend limit."""
        field = self.open("Background work").background.limits[0].control
        QTimer.singleShot(0, field, field.setFocus)  # after the dialog that asked has closed

    def _show_values(self, keys: Iterable[str] = SETTINGS) -> None:
        if self._dialog is None:
            return
        chosen = self._settings.chosen()
        for key in keys:
            if key in SETTINGS:
                self._dialog.show_value(
                    key,
                    self._settings.get(key),
                    is_default=key not in chosen,
                    ruled_by=self._settings.environment_variable(key),
                )

    def _save(self, key: str, value: SettingValue) -> None:
        self._bridge.submit(self._save_value(key, value))

    async def _save_value(self, key: str, value: SettingValue) -> None:
        try:
            await self._bridge.write(lambda: self._settings.set(key, value))
        except KnownError as error:
            if self._dialog is not None and self._dialog.isVisible():
                self._dialog.show_error(key, error.display_text)
            else:
                self._notify(error.display_text)

    def _on_reset_requested(self, key: str) -> None:
        self._bridge.submit(self._bridge.write(lambda: self._settings.reset(key)))

    def _zoom(self, percent: int) -> None:
        setting = SETTINGS["text_size"]

        def step() -> None:
            wanted = self._settings.number("text_size") + percent
            low, high = int(setting.minimum or 0), int(setting.maximum or wanted)
            self._settings.set("text_size", max(low, min(high, wanted)))

        self._bridge.submit(self._bridge.write(step))

    def _on_changed(self, changed: ChangeSet) -> None:
        if changed.settings & {"theme", "text_size"}:
            self._apply_appearance()
        self._show_values(changed.settings)

    def _apply_appearance(self) -> None:
        theme = ThemeChoice(self._settings.text("theme"))
        self._appearance.choose(theme, self._settings.number("text_size"))
