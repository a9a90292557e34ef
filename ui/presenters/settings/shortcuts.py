"""Keyboard shortcuts: applies the changed ones to the window's actions, and shows the list of all."""

from collections.abc import Mapping

from PySide6.QtGui import QAction, QKeySequence

from app.domain.translation import tr
from app.storage.tables.settings import Settings
from ui.models.shortcuts import format_shortcuts, parse_shortcuts, with_shortcut
from ui.presenters.presenter import Presenter
from ui.views.dialogs.shortcuts_dialog import ShortcutRow, ShortcutsDialog
from ui.widgets.banner import Banner

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
