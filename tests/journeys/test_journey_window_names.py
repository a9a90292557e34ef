"""The window for everyone: each control has a name that is not its value, and no text is cut."""

import asyncio
from collections.abc import AsyncIterator

from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QApplication,
    QComboBox,
    QDialog,
    QLineEdit,
    QListWidget,
    QPlainTextEdit,
    QWidget,
)

from gallery import texts_of
from tests.fakes.user import User

PAGES = (
    "sources",
    "sent",
    "facts",
    "summaries",
    "profile",
    "core",
    "saved",
    "questions",
    "activity",
)
DIALOGS = (
    "why",
    "palette",
    "shortcuts",
    "about",
    "privacy",
    "forget",
    "check",
    "routines",
    "documents",
)


async def screens(user: User) -> AsyncIterator[tuple[str, QWidget]]:
    """Every screen of the window, one after the other."""
    window = user.window
    yield "welcome", window
    await user.say("Our hives stand behind the barn.")
    await user.until(lambda: user.titles() and not user.transcript.is_streaming)
    yield "conversation", window
    for page in PAGES:
        window.memory.open_page(page)
        yield page, window.memory
    window.memory_dock.hide()
    dialog = user.presenters.settings.open()
    names = dialog.findChild(QListWidget)
    assert names is not None
    for row in range(names.count()):
        names.setCurrentRow(row)
        yield f"settings {names.item(row).text()}", dialog
    dialog.reject()
    for name in (*DIALOGS, "routine"):
        if name == "routine":
            user.presenters.routines.add()
        else:
            user.action(name).trigger()
        await user.until(lambda: opened() is not None, name)
        shown = opened()
        assert shown is not None
        yield name, shown
        shown.reject()
        await user.until(lambda: opened() is None, f"{name} closed")


def opened() -> QDialog | None:
    tops = QApplication.topLevelWidgets()
    return next((each for each in tops if isinstance(each, QDialog) and each.isVisible()), None)


def controls(top: QWidget) -> list[QWidget]:
    """What Tab stops at, without the editors inside combo and spin boxes."""
    found = [each for each in top.findChildren(QWidget) if each.isVisibleTo(top)]
    stops = [each for each in found if each.focusPolicy() & Qt.FocusPolicy.TabFocus]
    return [
        each
        for each in stops
        if not (each.parent() and type(each.parent()).__name__.endswith("Box"))
    ]


def name_of(widget: QWidget) -> str:
    """What a screen reader calls it: its label, where Qt names a combo box by its value."""
    interface = QAccessible.queryAccessibleInterface(widget)
    if interface is None:
        return ""
    labels = [
        each for each, kind in interface.relations() if kind is QAccessible.RelationFlag.Label
    ]
    named = labels[0] if labels else interface
    return str(named.text(QAccessible.Text.Name)).strip()


def value_of(widget: QWidget) -> str:
    match widget:
        case QComboBox():
            return widget.currentText()
        case QLineEdit():
            return widget.text()
        case QPlainTextEdit():
            return widget.toPlainText()
    return ""


async def test_every_control_has_a_name_that_is_not_its_value_and_no_text_is_cut(
    user: User,
) -> None:
    await user.start()
    user.window.resize(900, 600)
    nameless, cut = [], []
    async for screen, top in screens(user):
        await asyncio.sleep(0)
        for each in controls(top):
            is_area = type(each) is QAbstractScrollArea
            name = name_of(each)
            if not is_area and (not name or name == value_of(each).strip() != ""):
                nameless.append(f"{screen}: {type(each).__name__} {name!r}")
        cut += [f"{screen}: {text}" for text in texts_of(top)["cut"]]
    assert sorted(set(nameless)) == []
    assert sorted(set(cut)) == []
