"""Random use of the window: what raises, what Qt warns of, what ends the program; prints JSON.

    python -m tests.bench.random_use [--minutes 10] [--seed 1] [--library DIR]

Clicks on anything that is shown, presses keys, types, triggers actions, drops files, sends messages
and changes the size of the window, in a copy of the library (or an empty one), with a model server in
a process of its own. Each step goes to standard error before it is taken, so that the last line is
what ended the program; a repetition with the same seed takes the same steps as long as the screen is
the same. Nothing restores a backup, and nothing is opened outside the window.
"""

import asyncio
import faulthandler
import random
import shutil
import sys
import threading
import time
import traceback
from collections import Counter
from functools import partial
from pathlib import Path

from PySide6.QtCore import QPoint, Qt, QTimer, qInstallMessageHandler
from PySide6.QtGui import QDesktopServices, QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QMenu,
    QTabBar,
    QWidget,
)

from app.domain.errors import KnownError
from tests.bench.shared.measuring import ROOT, Figures, options, print_json
from tests.bench.shared.window import measured_in_window, model_server
from tests.fakes.user import User

_TEXTS = (
    "Hello there", "What did we say about trains?", "And when was that again?", "/", "@", "x\ty",
    "日本語の質問です", "🙂👨\u200d👩\u200d👧", "a" * 300, "**bold** `code`", "/help", "/new", "/compact",
    "/model", "/remember I like tea", "/forget", "/undo", "/project", "/search tea", "'; drop table",
)  # fmt: skip
_KEYS = (
    "Return", "Escape", "Tab", "Shift+Tab", "Down", "Up", "Left", "Right", "Home", "End", "PgUp",
    "PgDown", "Space", "Backspace", "Delete", "F2", "F6", "Menu", "Ctrl+A", "Ctrl+C", "Ctrl+V",
    "Ctrl+X", "Ctrl+Z", "Ctrl+Tab", "Ctrl+Return", "Shift+Return",
)  # fmt: skip
_FILES = [
    each for each in sorted((ROOT / "tests" / "data" / "exports").rglob("*")) if each.is_file()
]
_LEAVING = ("uit", "Restore")  # in the names of what ends the program
_SHOWN = (QAbstractButton, QAbstractScrollArea, QComboBox, QLabel, QLineEdit, QTabBar)
_OPEN_MS = 3_000  # a menu or dialog with a loop of its own is closed after it
_PAUSES_S = (0, 0, 0.02, 0.05, 0.2)


class RandomUser:
    """Takes random steps; `problems` are what they brought to light, each with its count."""

    def __init__(self, user: User, seed: int) -> None:
        self.problems: Counter[str] = Counter()
        self.steps = 0
        self._user, self._drawn = user, random.Random(seed)
        sys.excepthook = lambda *error: self._note("".join(traceback.format_exception(*error)))
        threading.excepthook = lambda failed: self._note(repr(failed.exc_value))
        qInstallMessageHandler(lambda _kind, _context, text: self._note(f"Qt: {text}"))
        QDesktopServices.openUrl = staticmethod(lambda _: True)  # type: ignore[method-assign]

    async def use(self, seconds: float) -> None:
        ends_at = time.monotonic() + seconds
        kinds = (
            self._click,
            self._trigger,
            self._type,
            self._press,
            self._say,
            self._drop,
            self._size,
        )
        while time.monotonic() < ends_at:
            self.steps += 1
            QTimer.singleShot(_OPEN_MS, partial(self._close_what_waits, self.steps))
            (kind,) = self._drawn.choices(kinds, (45, 17, 15, 17, 3, 1, 2))
            try:
                kind(self._front())
            except RuntimeError as gone:  # a step that closed what it was taken in
                self._step(str(gone))
            await asyncio.sleep(self._drawn.choice(_PAUSES_S))
            for each in self._user.failures:
                if not isinstance(each, KnownError):  # which the window explains
                    self._note("".join(traceback.format_exception(each)))
            self._user.failures.clear()

    def _close_what_waits(self, step: int) -> None:
        """Close a menu, and a dialog that a step still waits for."""
        waits_for = QApplication.activeModalWidget() if step == self.steps else None
        if (top := QApplication.activePopupWidget() or waits_for) is not None:
            top.close()

    def _note(self, problem: str) -> None:
        if "This plugin does not support" not in problem:
            self.problems[problem[-2_000:]] += 1
            self._step(f"  {problem}")

    def _step(self, text: str) -> None:
        sys.stderr.write(f"{time.strftime('%T')} {text}\n")

    def _front(self) -> QWidget:
        alone = QApplication.activePopupWidget() or QApplication.activeModalWidget()
        shown = [each for each in QApplication.topLevelWidgets() if each.isVisible()]
        return alone or self._drawn.choice(shown)

    def _click(self, top: QWidget) -> None:
        if isinstance(top, QMenu):
            self._choose(top)
            return
        inner = [
            each for each in top.findChildren(QWidget) if each.isVisible() and each.isEnabled()
        ]
        if not (found := [each for each in inner if isinstance(each, _SHOWN)]):
            return
        widget = self._drawn.choice(found)
        text = widget.text() if isinstance(widget, QAbstractButton) else ""
        if any(each in text for each in _LEAVING):
            return
        at = widget.rect().center()
        if not isinstance(widget, QAbstractButton):
            at = QPoint(*(self._drawn.randrange(max(1, each)) for each in widget.size().toTuple()))
        target = widget.viewport() if isinstance(widget, QAbstractScrollArea) else widget
        right = self._drawn.random() < 0.12
        button = Qt.MouseButton.RightButton if right else Qt.MouseButton.LeftButton
        click = QTest.mouseDClick if self._drawn.random() < 0.08 else QTest.mouseClick
        name = text or widget.accessibleName()
        self._step(
            f"{click.__name__} {button.name} {type(widget).__name__} '{name}' in {type(top).__name__}"
        )
        click(target, button, pos=at)

    def _choose(self, menu: QMenu) -> None:
        actions = [each for each in menu.actions() if each.isEnabled() and not each.isSeparator()]
        menu.close()
        if actions and self._drawn.random() < 0.7:
            action = self._drawn.choice(actions)
            self._step(f"choose '{action.text()}'")
            inner = action.menu()
            if isinstance(inner, QMenu):
                inner.popup(QPoint(50, 50))
            elif not any(each in action.text() for each in _LEAVING):
                action.trigger()

    def _trigger(self, top: QWidget) -> None:
        if QApplication.activeModalWidget() is not None:
            self._step("Escape")
            QTest.keyClick(top, Qt.Key.Key_Escape)
            return
        actions = self._user.window.actions_by_name.values()
        usable = [
            each for each in actions
            if each.isEnabled() and not any(word in each.text() for word in _LEAVING)
        ]  # fmt: skip
        action = self._drawn.choice(usable)
        self._step(f"trigger '{action.text()}'")
        action.trigger()

    def _type(self, _top: QWidget) -> None:
        text, focused = self._drawn.choice(_TEXTS), QApplication.focusWidget()
        if focused is None:
            return
        self._step(f"type '{text[:30]}' in {type(focused).__name__}")
        if text.isascii():
            QTest.keyClicks(focused, text)
        else:
            typed = QInputMethodEvent()
            typed.setCommitString(text)
            QApplication.sendEvent(focused, typed)

    def _press(self, _top: QWidget) -> None:
        keys = self._drawn.choice(_KEYS)
        self._step(f"press {keys} in {type(QApplication.focusWidget()).__name__}")
        self._user.press(keys)

    def _say(self, _top: QWidget) -> None:
        self._step("send")
        self._user.press("Ctrl+J")
        self._user.type(self._drawn.choice(_TEXTS[:3]))
        self._user.press("Return")

    def _drop(self, _top: QWidget) -> None:
        window = self._user.window
        target = window if self._drawn.random() < 0.6 else window.chat.composer
        files = self._drawn.sample(_FILES, self._drawn.choice((1, 2)))
        self._step(f"drop {[each.name for each in files]}")
        try:
            self._user.drop(target, files)
        except AssertionError:
            self._step("refused")

    def _size(self, _top: QWidget) -> None:
        size = self._drawn.randrange(500, 1900), self._drawn.randrange(350, 1200)
        self._step(f"resize {size}")
        self._user.window.resize(*size)


def main() -> None:
    """Run and print; a problem is no reason to end."""
    given = options(__doc__, minutes=10.0, seed=1, library=Path)
    faulthandler.enable()

    async def measure(user: User, _: Path) -> Figures:
        if given.library is not None:
            shutil.copytree(given.library, user.data_dir)
        with model_server("--writes", "60") as base_url:
            await user.start_with_model(base_url)
            random_user = RandomUser(user, given.seed)
            await random_user.use(given.minutes * 60)
            user.running.leave()  # the window would ask about an import or a text that is not saved
            await user.running.finished.wait()
        return {"steps": random_user.steps, "problems": dict(random_user.problems)}

    print_json(measured_in_window(measure))


if __name__ == "__main__":
    main()
