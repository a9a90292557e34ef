"""The main window without a program behind it: first frame, docks, sidebar, actions, palette."""

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt, QTimer
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QLabel,
    QLineEdit,
    QPushButton,
    QSplitter,
    QToolButton,
    QTreeView,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.domain.translation import LANGUAGES
from app.system.paths import DataPaths, store_state
from tests.fakes.screens import FakeBridge, Recorder
from ui.main import start
from ui.main.memory_panels import _yield_to_user
from ui.main.start import first_window
from ui.theme import Appearance, Theme
from ui.views.main_window import MainWindow
from ui.views.palette import CommandPalette
from ui.views.sidebar_fold import SidebarFold
from ui.views.welcome import Welcome
from ui.widgets.transcript.view import TranscriptView

LATER = {
    "app.domain.conversations", "app.domain.text", "asyncio", "duckdb", "markdown_it", "pygments",
    "qasync", "tantivy", "ui.bridge",
}  # fmt: skip
FIRST_FRAME = """
import json, linecache, pathlib, sys
import ui.main
ui.main.skip_source_scan()
from PySide6 import QtWidgets
from app.system.paths import DataPaths
from ui.main import start
application = QtWidgets.QApplication(["test", "-platform", "offscreen", "-style", start.STYLE])
appearance = start.first_appearance(application, {})
window = start.first_window(DataPaths(pathlib.Path("nowhere")))
start._wait_for_the_first_frame(window)
print(json.dumps([sorted(sys.modules), [*linecache.cache], [*vars(QtWidgets)]]), flush=True)
import os
os._exit(0)
"""


@pytest.fixture
def window(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> Iterator[MainWindow]:
    appearance = Appearance(qapp)
    window = first_window(DataPaths(tmp_path))
    qtbot.waitExposed(window)
    window.split.setSizes([250, window.split.width() - 250])
    kept = window.split.sizes()
    list(window.build_panels(QWidget()))
    assert window.split.sizes() == kept
    yield window
    appearance.deleteLater()


def test_the_first_frame_imports_nothing_that_it_does_not_show() -> None:
    code = [sys.executable, "-c", FIRST_FRAME]
    ran = subprocess.run(code, check=True, capture_output=True, text=True)
    modules, sources_read, classes = json.loads(ran.stdout)
    assert not LATER & set(modules)
    assert not [each for each in sources_read if each.endswith("translation.py")]
    assert "QLabel" in classes
    assert "QStyle" not in classes, "its enums take 7 ms"


def test_the_window_answers_while_the_application_is_imported(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = threading.Event()
    monkeypatch.setattr(start, "import_module", lambda _: answered.wait(10))

    def use(act: Callable[[], object]) -> bool:
        answered.clear()
        QTimer.singleShot(0, act)
        QTimer.singleShot(1, answered.set)
        return start._import_the_rest(window)

    assert use(lambda: QTest.keyClicks(window.chat.composer.box, "early"))
    assert window.chat.composer.text == "early"
    assert not use(window.close), "it was closed meanwhile"


def test_a_notice_is_in_the_column_of_the_text(window: MainWindow) -> None:
    window.resize(1280, 760)
    window.show()
    chat = window.chat
    chat.show_private()
    QApplication.processEvents()
    (title, *_) = (each for each in chat.notice.findChildren(QLabel) if each.text())
    left = title.mapTo(chat, QPoint()).x()
    assert left == chat.composer.mapTo(chat, QPoint()).x()


def test_an_opening_that_takes_long_is_said_unless_something_else_is(window: MainWindow) -> None:
    window._opening.timeout.emit()
    assert [label for label in window.findChildren(QLabel) if "Opening" in label.text()]
    window.chat.show_notice("It cannot be opened")
    window._opening.timeout.emit()
    assert not [label for label in window.findChildren(QLabel) if "Opening" in label.text()]
    window.set_usable(True)
    assert not window._opening.isActive()


def test_the_message_gets_the_focus_when_what_had_it_is_gone(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.set_usable(True)
    window.sidebar.box.setFocus()
    hidden = QPushButton(window.chat)
    hidden.hide()
    for gone, has_moved in ((window.sidebar.box, False), (hidden, True)):
        monkeypatch.setattr(window, "focusWidget", lambda gone=gone: gone)
        QApplication.sendEvent(window, QEvent(QEvent.Type.ActivationChange))
        assert window.chat.composer.box.hasFocus() is has_moved


def test_tips_name_the_keys_that_the_user_chose(window: MainWindow) -> None:
    window.chat.model.show_model("recall:")
    line, picker = window.sidebar.box, window.chat.model
    assert (line.placeholderText()[-8:], picker.toolTip()[-14:]) == ("(Ctrl+K)", "(Ctrl+Shift+M)")
    window.actions_by_name["search"].setShortcut("F7")
    window.actions_by_name["model"].setShortcuts([])
    assert line.placeholderText().endswith(" (F7)")
    assert "(" not in picker.toolTip()


def test_a_hidden_sidebar_keeps_its_width_at_a_restart(window: MainWindow, tmp_path: Path) -> None:
    window.actions_by_name["sidebar"].setChecked(False)
    store_state(file := tmp_path / "window.json", window.state_to_store())
    again = MainWindow()
    again.restore_state(file)
    again.actions_by_name["sidebar"].setChecked(False)
    again.show()
    list(again.build_panels(QWidget()))
    again.actions_by_name["sidebar"].setChecked(True)
    QApplication.processEvents()
    assert again.split.sizes()[0] == 250


def test_what_is_typed_after_a_conversation_was_clicked_goes_into_the_message(
    window: MainWindow, qtbot: QtBot
) -> None:
    window.set_usable(True)
    listed, box = window.sidebar.conversation_list, window.chat.composer.box
    listed.setFocus()
    QTest.keyClicks(listed, "Hi")
    assert box.toPlainText() == "Hi"
    qtbot.waitUntil(box.hasFocus)
    box.setEnabled(False)
    QTest.keyClicks(listed, "Hi")
    assert box.toPlainText() == "Hi"


def test_a_narrow_window_has_no_sidebar_from_its_first_frame_on(qtbot: QtBot) -> None:
    window = MainWindow()
    window.resize(500, 500)
    window.show()
    shows_sidebar = window.actions_by_name["sidebar"].isChecked
    qtbot.waitUntil(lambda: not shows_sidebar())
    window.resize(1200, 500)
    qtbot.waitUntil(shows_sidebar)


def test_what_is_typed_for_the_search_box_before_there_is_one_gets_there(tmp_path: Path) -> None:
    window = first_window(DataPaths(tmp_path))
    QTest.keyClicks(window.chat.composer.box, "a draft")
    window.actions_by_name["search"].trigger()
    QTest.keyClicks(window.chat.composer.box, "bre")
    window.actions_by_name["search"].trigger()  # impatience
    QTest.keyClicks(window.chat.composer.box, "ad")
    next(panels := window.build_panels(QWidget()))
    assert (window.sidebar.box.text(), window.chat.composer.text) == ("bread", "a draft")
    assert window.focusWidget() is window.sidebar.box
    list(panels)
    window.close_now()


def test_what_is_asked_for_before_the_window_is_usable_is_done_then(window: MainWindow) -> None:
    assert not window.actions_by_name["delete"].isEnabled()
    done: list[str] = []
    for name in ("settings", "search", "new"):
        window.actions_by_name[name].triggered.connect(lambda _, name=name: done.append(name))
    window.actions_by_name["search"].trigger()
    assert window.focusWidget() is window.sidebar.box
    window.conversation_id = 7
    window.actions_by_name["new"].trigger()
    assert window.conversation_id is None
    window.actions_by_name["settings"].trigger()
    done.clear()
    window.set_usable(True)
    window.begin()
    window.begin()
    assert done == ["settings"]
    window.set_usable(False)
    window.drop_early_action()
    assert not window.actions_by_name["import"].isEnabled()


def test_the_sidebar_is_disabled_but_for_its_box_in_the_beginning(window: MainWindow) -> None:
    assert window.split.widget(0) is window.sidebar
    assert window.sidebar.box.isEnabled()
    assert not window.sidebar.conversation_list.isEnabled()
    window.set_usable(True)
    assert window.sidebar.conversation_list.isEnabled()
    window.sidebar.box.setFocus()
    window.actions_by_name["sidebar"].trigger()
    assert not window.sidebar.isVisible()
    assert window.focusWidget() is window.chat.composer.box, "not the title beside it"


def checked(window: MainWindow) -> list[str]:
    """The actions of memory pages that are checked."""
    pages = (
        "sources", "sent", "facts", "summaries", "profile", "core", "saved", "questions",
        "activity",
    )  # fmt: skip
    return [each for each in pages if window.actions_by_name[each].isChecked()]


def test_the_memory_pane_opens_at_a_page_and_closes_by_the_same_action(window: MainWindow) -> None:
    window.set_usable(True)
    actions, dock = window.actions_by_name, window.memory_dock
    for page in (
        "sources",
        "sent",
        "facts",
        "summaries",
        "profile",
        "core",
        "saved",
        "questions",
        "activity",
    ):
        actions[page].trigger()
        assert (dock.isVisible(), window.memory.page, checked(window)) == (True, page, [page])
    window.memory.tabs.setCurrentIndex(2)
    assert checked(window) == ["questions"], "the page of that tab shown last"
    window.memory.knowledge.setCurrentIndex(0)
    assert checked(window) == ["facts"]
    actions["facts"].trigger()
    assert (dock.isVisible(), checked(window)) == (False, [])
    actions["facts"].trigger()
    assert window.focusWidget() is window.memory.knowledge.facts.box
    actions["facts"].trigger()
    assert window.focusWidget() is window.chat.composer.box


def test_the_memory_pane_opens_and_closes_from_the_header_too(window: MainWindow) -> None:
    window.set_usable(True)
    next(each for each in window.chat.findChildren(QPushButton) if each.text() == "Memory").click()
    assert (window.memory_dock.isVisible(), checked(window)) == (True, ["sources"])
    window.memory.knowledge.facts.box.setFocus()
    close = window.memory_dock.titleBarWidget().findChild(QToolButton)
    close.click()
    assert window.memory_dock.isHidden()
    assert window.focusWidget() is window.chat.composer.box, "not the title, which is edited then"


def test_the_memory_pane_stays_open_when_minimized(window: MainWindow, qtbot: QtBot) -> None:
    window.set_usable(True)
    window.actions_by_name["sent"].trigger()
    window.showMinimized()
    qtbot.waitUntil(lambda: not window.memory_dock.isVisible() or window.isMinimized())
    window.showNormal()
    QApplication.processEvents()
    assert (window.memory_dock.isVisible(), checked(window)) == (True, ["sent"])
    window.memory_dock.close()
    assert checked(window) == []


def test_the_sources_tab_counts_what_was_sent(window: MainWindow) -> None:
    assert window.memory_dock.windowTitle() == window.memory.accessibleName() == "Memory"
    for sent, text in ((1_200, "Sources (1,200)"), (0, "Sources")):
        window.memory.inspector.counted.emit(sent)
        assert window.memory.tabs.tabText(0) == text


def test_names_of_tabs_are_short_where_they_would_be_cut(window: MainWindow) -> None:
    window.memory_dock.show()
    tabs = window.memory.tabs
    window.memory.resize(tabs.sizeHint().width() + 10, 400)
    assert tabs.tabText(2) == tabs.accessibleTabName(2)
    window.memory.inspector.counted.emit(1_200_000)
    assert tabs.tabText(2) == "Facts"


def test_typing_and_scrolling_make_workers_yield(window: MainWindow, qtbot: QtBot) -> None:
    window.chat.transcript = TranscriptView(Theme())
    priority, bridge = Recorder(), FakeBridge()
    services = SimpleNamespace(workers=SimpleNamespace(ui_priority=priority))
    _yield_to_user(cast("Any", services), bridge, window)
    assert priority.calls == [("gui_ready",)]
    window.chat.composer.box.setPlainText("a")
    window.sidebar.box.setText("b")
    window.chat.transcript.visible_changed.emit(0, 1)
    assert priority.calls[1:] == [("user_active",)] * 3
    priority.ping_gui()
    qtbot.waitUntil(lambda: priority.calls[-1] == ("gui_ready",))


def test_no_shortcut_is_used_twice(window: MainWindow) -> None:
    actions = window.actions_by_name
    keys = Counter(each.toString() for action in actions.values() for each in action.shortcuts())
    assert [each for each, count in keys.items() if count > 1] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_letter_of_a_menu_is_used_twice(language: str) -> None:
    code = (
        "import json; from app.domain.translation import choose_language; "
        f"choose_language('{language}'); from ui.views.actions import _ROWS; "
        "print(json.dumps([(row.menu, row.text) for row in _ROWS]))"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    letters = [(menu, text.partition("&")[2][:1].lower()) for menu, text in json.loads(ran.stdout)]
    assert [each for each, count in Counter(letters).items() if count > 1] == []


def test_the_palette_runs_an_action_once_where_a_single_click_activates() -> None:
    parent = QWidget()
    action, runs = QAction("Do it", parent), []
    action.triggered.connect(lambda: runs.append(1))
    palette = CommandPalette([action], parent)
    palette.open()
    view = palette.findChild(QTreeView)
    row = view.model().index(0, 0)
    view.clicked.emit(row)  # Qt emits both where the desktop activates on a single click
    view.activated.emit(row)
    assert runs == [1]


def test_the_palette_is_filtered_and_steered_from_its_box(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    actions, runs = [QAction(each, parent) for each in ("&Find", "Find off", "New", "Find all")], []
    actions[1].setEnabled(False)
    for action in actions:
        action.triggered.connect(lambda _, action=action: runs.append(action.text()))
    palette = CommandPalette(actions, parent)
    palette.show()
    box = palette.findChild(QLineEdit)
    assert box is not None
    QTest.keyClicks(box, "find")
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Return):
        QTest.keyClick(box, key)
    QTest.keyClicks(box, "xyz")
    assert not palette.none.isHidden()
    QTest.keyClick(box, Qt.Key.Key_Return)
    assert runs == ["Find all"], "after the first, without what is disabled or does not match"


class Pane:
    """A splitter of a sidebar of at least 200 px and a conversation of at least 300 px."""

    def __init__(self) -> None:
        self.window = QWidget()
        self.split = QSplitter(Qt.Orientation.Horizontal, self.window)
        column = QVBoxLayout(self.window)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.split)
        self.split.setChildrenCollapsible(False)
        self.sidebar, chat = QWidget(), QWidget()
        self.sidebar.setMinimumWidth(200)
        chat.setMinimumWidth(300)
        self.split.addWidget(self.sidebar)
        self.split.addWidget(chat)
        self.action = QAction("Sidebar", self.split, checkable=True, checked=True)
        self.action.toggled.connect(self.sidebar.setVisible)
        self.fold = SidebarFold(self.split, self.action, 300)
        self.resize(800)
        self.window.show()

    def resize(self, width_px: int) -> None:
        self.window.resize(width_px, 200)
        QApplication.sendPostedEvents()


@pytest.fixture
def pane() -> Pane:
    return Pane()


def test_the_sidebar_is_hidden_in_a_narrow_window_unless_the_user_shows_it(pane: Pane) -> None:
    for width_px, is_shown in ((400, False), (600, True)):
        pane.resize(width_px)
        assert pane.sidebar.isVisible() is pane.action.isChecked() is is_shown
    pane.resize(400)
    pane.action.setChecked(True)
    pane.resize(400)
    assert (pane.window.width() >= 500, pane.sidebar.isVisible()) == (True, True)
    pane.resize(700)
    pane.resize(400)
    assert not pane.sidebar.isVisible()
    pane.resize(800)
    pane.action.setChecked(False)
    pane.resize(400)
    pane.resize(800)
    assert not pane.sidebar.isVisible()  # the user hid it


def test_the_welcome_page_begins_where_the_composer_does(window: MainWindow) -> None:
    window.resize(1400, 800)
    window.chat.show_welcome()
    window.show()
    QApplication.processEvents()
    lefts = {
        each.mapTo(window, QPoint(0, 0)).x()
        for each in (window.chat.welcome.drop_zone, window.chat.composer)
    }
    assert len(lefts) == 1


def test_no_text_of_the_welcome_page_is_cut_in_a_small_window(qtbot: QtBot) -> None:
    welcome = Welcome()
    welcome.greet(is_newcomer=True)
    welcome.resize(320, 240)
    welcome.show()
    qtbot.waitExposed(welcome)
    qtbot.waitUntil(lambda: not cut(welcome))
    assert welcome.verticalScrollBar().maximum() > 0


def cut(welcome: Welcome) -> list[str]:
    """Return the visible texts that have less room than they need."""
    labels = [label for label in welcome.findChildren(QLabel) if label.isVisible()]
    buttons = [button for button in welcome.findChildren(QPushButton) if button.isVisible()]
    return [
        *(each.text() for each in labels if each.height() < each.heightForWidth(each.width())),
        *(each.text() for each in buttons if each.width() < each.minimumSizeHint().width()),
        *(each.text() for each in buttons if each.mapTo(welcome, each.rect().topRight()).x() > 320),
    ]
