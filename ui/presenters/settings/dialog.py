"""The settings dialog with theme and text size, and the dialog of keyboard shortcuts."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from PySide6.QtCore import QTimer
from PySide6.QtGui import QAction, QKeySequence

from app.domain.change_set import ChangeSet
from app.domain.errors import KnownError
from app.domain.settings_schema import SETTINGS, SettingPage, SettingValue
from app.domain.translation import tr
from app.storage.tables.settings import Settings
from ui.models.shortcuts import format_shortcuts, parse_shortcuts, with_shortcut
from ui.presenters.presenter import Presenter
from ui.theme import Appearance, ThemeChoice
from ui.views.dialogs.help_dialogs import ShortcutRow, ShortcutsDialog
from ui.views.settings.settings_dialog import SettingsDialog
from ui.widgets.banner import Banner

APPEARANCE_SETTINGS = ("theme", "text_size", "reduced_motion")
_STEP_PERCENT = 10
SETTING = "shortcuts"
_FIXED = (
    (tr("Send the message"), ("Return",)),
    (tr("Begin a new line in the message"), ("Shift+Return",)),
    (tr("Previous and next message of the conversation"), ("Up", "Down")),
    (tr("Buttons and links of a message"), ("Left", "Right")),
    (tr("Scroll the conversation"), ("PgUp", "PgDown")),
    (tr("Beginning and end of the conversation"), ("Home", "End")),
    (tr("Close a list, a question or a card"), ("Esc",)),
)


class SettingsPresenter(Presenter):
    """Keeps the dialog, the appearance and the stored settings in step.

    `present_pages` creates the presenters of a new dialog's pages and returns what shows the
    current state on each, to be called whenever the dialog opens.
    """

    _settings: Settings
    _messages: Banner
    _actions: Mapping[str, QAction]
    _appearance: Appearance
    _present_pages: Callable[[SettingsDialog], Sequence[Callable[[], object]]]

    def _set_up(self) -> None:
        self._dialog: SettingsDialog | None = None
        self._pages: Sequence[Callable[[], object]] = ()
        self._bridge.subscribe(self._apply_appearance, *APPEARANCE_SETTINGS)
        self._bridge.subscribe(self._on_changed, "settings")
        for name, command in {
            "settings": self.open,
            "larger": lambda: self._zoom(_STEP_PERCENT),
            "smaller": lambda: self._zoom(-_STEP_PERCENT),
            "actual": lambda: self._save("text_size", 100),
        }.items():
            self._actions[name].triggered.connect(lambda _checked=False, run=command: run())
        self._apply_appearance()

    def open(self, page: str = "") -> SettingsDialog:
        """Show the dialog, at a page by its name; return it.

        The pages are refreshed only if the dialog was closed: undo on the memory page goes back
        to the values of that moment.
        """
        if self._dialog is None:
            self._dialog = dialog = SettingsDialog(self._messages.window())
            dialog.edited.connect(self._save)
            dialog.reset_requested.connect(
                lambda key: self._bridge.save(lambda: self._settings.reset(key))
            )
            self._pages = self._present_pages(dialog)
        if not self._dialog.isVisible():
            self._show_values()
            for show in self._pages:
                show()
        if page:
            self._dialog.show_page(page)
        self._dialog.open()
        return self._dialog

    def open_provider(self, name: str) -> None:
        self.open(SettingPage.MODELS.value).models.opened.emit(name)

    def connect_provider(self, name: str) -> None:
        """Show the dialog with the form of a server on this computer, and connect to it."""
        self.open(SettingPage.MODELS.value).models.connect_requested.emit(name)

    def open_spend_limits(self) -> None:
        """Show the dialog with the focus on the daily spend limit."""
        field = self.open(SettingPage.WORKERS.value).background.limits[0].control
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
        def on_error(error: KnownError) -> None:
            if self._dialog is not None and self._dialog.isVisible():
                self._dialog.editors[key].error.show_text(error.display_text)
            else:
                self._messages.show_error(error)

        self._bridge.save(lambda: self._settings.set(key, value), on_error=on_error)

    def _zoom(self, percent: int) -> None:
        setting = SETTINGS["text_size"]

        def step() -> None:
            wanted = self._settings.number("text_size") + percent
            low, high = int(setting.minimum or 0), int(setting.maximum or wanted)
            self._settings.set("text_size", max(low, min(high, wanted)))

        self._bridge.save(step)

    def _on_changed(self, changed: ChangeSet) -> None:
        self._show_values(changed.settings)

    def _apply_appearance(self, _changed: ChangeSet | None = None) -> None:
        theme = ThemeChoice(self._settings.text("theme"))
        self._appearance.choose(
            theme,
            self._settings.number("text_size"),
            reduced_motion=self._settings.flag("reduced_motion"),
        )


class ShortcutsPresenter(Presenter):
    """Keeps actions, setting and dialog in step."""

    _settings: Settings
    _messages: Banner
    _actions: Mapping[str, QAction]

    def _set_up(self) -> None:
        self._usual = {name: _keys(action) for name, action in self._actions.items()}
        self._dialog: ShortcutsDialog | None = None
        self._bridge.subscribe(lambda _: self._apply(), SETTING)
        self._actions["shortcuts"].triggered.connect(lambda _checked=False: self.open())
        self._apply()

    def open(self) -> ShortcutsDialog:
        """Show the list; return its dialog."""
        dialog = self._dialog = ShortcutsDialog(self._messages.window())
        dialog.chosen.connect(self._on_chosen)
        dialog.reset_requested.connect(self._on_reset_requested)
        dialog.finished.connect(self._on_finished)
        self._show_rows()
        return self._open_dialog(dialog)

    def _changed(self) -> dict[str, tuple[str, ...]]:
        stored = parse_shortcuts(self._settings.text(SETTING))
        return {name: keys for name, keys in stored.items() if name in self._actions}

    def _apply(self) -> None:
        for name, keys in {**self._usual, **self._changed()}.items():
            self._actions[name].setShortcuts([QKeySequence(key) for key in keys])
        self._show_rows()

    def _show_rows(self) -> None:
        if self._dialog is None:
            return
        changed = self._changed()
        rows = [
            ShortcutRow(name, _text(action), _keys(action), name in changed)
            for name, action in self._actions.items()
        ]
        self._dialog.show_rows([*rows, *(ShortcutRow("", text, keys) for text, keys in _FIXED)])

    def _on_chosen(self, name: str, key: str) -> None:
        current = {each: _keys(action) for each, action in self._actions.items()}
        changed = with_shortcut(self._changed(), current, name, key)
        self._store(
            {each: tuple(keys) for each, keys in changed.items() if keys != self._usual[each]}
        )

    def _on_reset_requested(self, name: str) -> None:
        changed = self._changed()
        self._store({each: keys for each, keys in changed.items() if name not in ("", each)})

    def _store(self, changed: Mapping[str, tuple[str, ...]]) -> None:
        self._bridge.save(lambda: self._settings.set(SETTING, format_shortcuts(changed)))

    def _on_finished(self) -> None:
        self._dialog = None


def _keys(action: QAction) -> tuple[str, ...]:
    return tuple(each.toString() for each in action.shortcuts())


def _text(action: QAction) -> str:
    return action.text().replace("&", "").rstrip("\u2026")
