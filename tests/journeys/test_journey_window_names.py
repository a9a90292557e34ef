"""The window for everyone: each control has a name that is not its value, and no text is cut."""

import asyncio
from collections.abc import AsyncIterator, Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QAbstractScrollArea, QComboBox, QLineEdit, QPlainTextEdit, QWidget

from tests.fakes.user import User
from tests.fakes.window_walk import dialogs, memory_pages, settings_pages, texts_of

DIALOGS = (
    "why", "palette", "shortcuts", "about", "privacy", "forget", "check", "routines", "documents",
)  # fmt: skip


async def screens(user: User) -> AsyncIterator[tuple[str, QWidget]]:
    """Every screen of the window, one after the other."""
    yield "welcome", user.window
    await user.say("Our hives stand behind the barn.")
    await user.until(lambda: user.titles() and not user.transcript.is_streaming)
    yield "conversation", user.window
    openers: dict[str, Callable[[], object]] = {each: user.action(each).trigger for each in DIALOGS}
    openers["routine"] = user.presenters.routines.add
    for walk in (memory_pages(user), settings_pages(user), dialogs(user, openers)):
        async for screen in walk:
            yield screen


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
    return str((labels[0] if labels else interface).text(QAccessible.Text.Name)).strip()


def value_of(widget: QWidget) -> str:
    match widget:
        case QComboBox():
            return widget.currentText()
        case QLineEdit():
            return widget.text()
        case QPlainTextEdit():
            return widget.toPlainText()
    return ""


async def test_every_control_has_a_name_unlike_its_value_and_no_text_is_cut(user: User) -> None:
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
