"""Keyboard shortcuts: the searchable list, changes that are stored, conflicts, and reset."""

from collections.abc import Iterator

import pytest
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QTreeWidgetItem, QWidget

from tests.fakes.screens import FakeSettings, Parts
from ui.models.shortcuts import format_shortcuts, owner_of, parse_shortcuts, with_shortcut
from ui.presenters.settings.dialog import SETTING, ShortcutsPresenter
from ui.views.dialogs.help_dialogs import ShortcutsDialog
from ui.widgets.shortcut_guard import ShortcutGuard


@pytest.fixture
def actions() -> Iterator[dict[str, QAction]]:
    owner = QWidget()
    made = {}
    for name, keys in {"search": "Ctrl+K", "new": "Ctrl+N", "shortcuts": "F1", "pin": ""}.items():
        made[name] = QAction(f"&{name.capitalize()}\u2026", owner)
        made[name].setShortcuts([QKeySequence(keys)] if keys else [])
    yield made
    del owner


def keys(action: QAction) -> list[str]:
    return [each.toString() for each in action.shortcuts()]


def row(dialog: ShortcutsDialog, text: str) -> QTreeWidgetItem:
    table = dialog.table
    items = [table.topLevelItem(number) for number in range(table.topLevelItemCount())]
    return next(each for each in items if each is not None and each.text(0) == text)


def test_a_key_is_taken_over_stored_and_reset(parts: Parts, actions: dict[str, QAction]) -> None:
    settings = FakeSettings()
    presenter = parts.make(ShortcutsPresenter, settings=settings, actions=actions)
    actions["shortcuts"].trigger()
    dialog = parts.dialog(ShortcutsDialog)
    dialog.table.setCurrentItem(row(dialog, "New"))
    assert dialog.status.text() == ""
    dialog.key.setKeySequence(QKeySequence("Ctrl+K"))
    assert "Search" in dialog.status.text()
    dialog.apply.click()
    assert parse_shortcuts(settings.text(SETTING)) == {"new": ("Ctrl+K",), "search": ()}
    presenter._apply()
    assert (keys(actions["new"]), keys(actions["search"])) == (["Ctrl+K"], [])
    assert row(dialog, "New").font(1).bold()
    assert dialog.status.text() == "", "it has lost it"

    again = parts.make(ShortcutsPresenter, settings=settings, actions=actions)
    assert keys(actions["new"]) == ["Ctrl+K"], "as after a start"
    again.deleteLater()
    dialog.table.setCurrentItem(row(dialog, "New"))
    dialog.reset.click()
    dialog.reset_all.click()
    assert parse_shortcuts(settings.text(SETTING)) == {}
    presenter._apply()
    assert (keys(actions["new"]), keys(actions["search"])) == (["Ctrl+N"], ["Ctrl+K"])


def test_the_list_is_searched_by_command_and_key_and_fixed_keys_cannot_be_changed(
    parts: Parts, actions: dict[str, QAction]
) -> None:
    parts.make(ShortcutsPresenter, settings=FakeSettings(), actions=actions)
    actions["shortcuts"].trigger()
    dialog = parts.dialog(ShortcutsDialog)
    for words in ("ctrl+k", "SEARCH"):
        dialog.search.setText(words)
        assert not row(dialog, "Search").isHidden()
        assert row(dialog, "New").isHidden()
    dialog.search.setText("")
    dialog.table.setCurrentItem(row(dialog, "Send the message"))
    assert not dialog.apply.isEnabled()


def test_damaged_text_changes_nothing() -> None:
    for text in ("", "[]", "{", '{"a": 3}'):
        assert parse_shortcuts(text) == {}
    assert parse_shortcuts(format_shortcuts({"a": ("Ctrl+A",)})) == {"a": ("Ctrl+A",)}


def test_a_command_may_keep_its_own_key_and_may_have_none() -> None:
    current = {"a": ("Ctrl+A", "Ctrl+B"), "b": ("Ctrl+C",)}
    assert owner_of(current, "Ctrl+A", but="a") == ""
    assert with_shortcut({}, current, "a", "Ctrl+A") == {"a": ("Ctrl+A",)}
    assert with_shortcut({}, current, "a", "") == {"a": ()}


def test_a_changed_key_reaches_the_window_from_a_text_field(actions: dict[str, QAction]) -> None:
    guard = ShortcutGuard(actions.values(), actions["search"])
    assert not guard._claims(QKeySequence("Ctrl+E"))
    actions["search"].setShortcuts([QKeySequence("Ctrl+E")])
    assert guard._claims(QKeySequence("Ctrl+E"))
    assert not guard._claims(QKeySequence("Ctrl+K"))
