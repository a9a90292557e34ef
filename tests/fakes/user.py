"""Someone at the window: keys, clicks and drops go in, what stands on screen comes out.

The program behind it is whole: real window, real database, real threads, one qasync loop.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QMimeData, QObject, QPoint, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QAction, QDragEnterEvent, QDropEvent, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QListView,
    QPlainTextEdit,
    QScrollArea,
    QTextEdit,
    QWidget,
)

from app.bootstrap import Services
from app.providers.configuration import ProviderConfig
from app.storage.tables.passages.vectors import Vectors
from app.system.paths import DataPaths
from ui.main.application import DesktopApplication
from ui.main.composition import Presenters
from ui.main.start import first_window
from ui.theme import Appearance
from ui.views.main_window import MainWindow
from ui.widgets.transcript.turn import TurnWidget
from ui.widgets.transcript.view import TranscriptView

T = TypeVar("T")
W = TypeVar("W", bound=QWidget)
LOOPBACK_MODEL = "loop:test-model"
_LOOK_EVERY_MS, _LOOK_SELDOM_MS = 5, 200
_LOOK_SHARE = 16  # it looks for a 17th of the time at most
_PATIENCE_S = 120.0  # a window in a process of its own, on a machine that is busy elsewhere
_LEFT = Qt.MouseButton.LeftButton


class User:
    """Starts the program, uses it, leaves it; `failures` are the bugs it reported meanwhile."""

    def __init__(
        self,
        application: QApplication,
        data_dir: Path,
        prepare: Callable[[Path], object] = lambda _: None,
    ) -> None:
        self.data_dir = data_dir
        self.prepare = prepare  # the data directory, before each start
        self.failures: list[BaseException] = []
        self._application = application
        self._font = application.font()
        self._running: DesktopApplication | None = None

    # -- coming and going

    async def start(self) -> None:
        """Start the program and wait until it is ready."""
        await self.start_only()
        running = self.running
        await self.until(
            lambda: running.presenters is not None and running.presenters.ready.is_set()
        )

    async def start_with_model(self, base_url: str) -> None:
        """Start with a compatible server at `base_url`, its `test-model` as the default one."""
        await self.start()
        config = ProviderConfig("loop", "compatible", base_url)
        await self.ask(lambda services: services.models.add_provider(config))
        await self.ask(lambda services: services.settings.set("default_model", LOOPBACK_MODEL))
        await self.until(lambda: self.window.chat.model.model == LOOPBACK_MODEL)

    async def start_only(self) -> None:
        """Start the program, whatever comes of it."""
        self.prepare(self.data_dir)
        paths, appearance = DataPaths(self.data_dir), Appearance(self._application)
        window = first_window(paths)
        self._running = running = DesktopApplication(paths, appearance, window)
        running.bridge.task_failed.connect(self.failures.append)
        running.open()
        await self.in_front()

    async def leave(self) -> None:
        """Close the window by its own means and wait until the program has ended."""
        self.window.close()
        await self.gone()

    async def gone(self) -> None:
        """Wait until the program has ended,"""
        running, self._running = self.running, None
        await asyncio.wait_for(running.finished.wait(), _PATIENCE_S)
        await self.until(lambda: not _is_alive(running.window))
        self._application.setFont(self._font)  # a new process would begin with the system's

    async def restart(self) -> None:
        """Leave and come back."""
        await self.leave()
        await self.start()

    @property
    def is_there(self) -> bool:
        """Whether the program runs."""
        return self._running is not None

    @property
    def running(self) -> DesktopApplication:
        assert self._running is not None
        return self._running

    @property
    def window(self) -> MainWindow:
        return self.running.window

    @property
    def presenters(self) -> Presenters:
        assert self.running.presenters is not None
        return self.running.presenters

    @property
    def transcript(self) -> TranscriptView:
        """The open conversation."""
        shown = self.window.chat.transcript
        assert isinstance(shown, TranscriptView)
        return shown

    async def ask(self, question: Callable[[Services], T]) -> T:
        """Return what the program below the window answers, to compare with what is on screen."""
        services = self.running.services
        assert services is not None
        return await self.running.bridge.run(lambda: question(services))

    async def until_so(self, question: Callable[[Services], object]) -> None:
        """Wait until the program below the window answers yes."""
        began = time.monotonic()
        deadline = began + _PATIENCE_S
        while not await self.ask(question):
            assert time.monotonic() < deadline, "the program never said yes"
            await asyncio.sleep(_pause_ms(began) / 1000)
            began = time.monotonic()

    # -- looking

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Wait until something is so; the window goes on living meanwhile."""
        found: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = QTimer(interval=_LOOK_EVERY_MS)

        def look() -> None:
            began = time.monotonic()
            if self.failures and not found.done():
                found.set_exception(self.failures[0])
            try:
                if condition() and not found.done():
                    found.set_result(None)
            except Exception as error:  # noqa: BLE001 - it belongs to the story, not to Qt's slot
                if not found.done():
                    found.set_exception(error)
            timer.setInterval(_pause_ms(began))

        timer.timeout.connect(look)
        timer.start()
        try:
            await asyncio.wait_for(found, _PATIENCE_S)
        except TimeoutError:
            shown = self.screen() if self.is_there else "(nothing)"
            raise AssertionError(
                f"waited in vain{what and ' for '}{what}; shown:\n{shown}"
            ) from None
        finally:
            timer.stop()

    async def answered(self, turn: int, words: str) -> None:
        """Wait until a turn holds the end of an answer."""
        await self.until(
            lambda: words in self.turn_text(turn) and not self.transcript.is_streaming,
            f"{words!r} in turn {turn}",
        )

    async def sees(self, *words: str) -> None:
        """Wait until all of these words are on screen."""
        await self.until(lambda: all(each in self.screen() for each in words), repr(words))

    async def sees_no_more(self, words: str) -> None:
        """Wait until words are gone from the screen."""
        await self.until(lambda: words not in self.screen(), f"{words!r} to go")

    def screen(self) -> str:
        """Return every word on screen, one widget a line."""
        tops = [each for each in QApplication.topLevelWidgets() if each.isVisible()]
        return "\n".join(words for top in tops for each in _shown(top) if (words := _words(each)))

    def turn(self, index: int) -> TurnWidget:
        """Return a turn of the transcript that is drawn now."""
        widget = self.transcript.turn_widget(index)
        assert widget is not None, f"turn {index} of {len(self.transcript.heights)} is not drawn"
        return widget

    def turn_text(self, index: int) -> str:
        """Return what is written in a turn, "" while it is not drawn."""
        widget = self.transcript.turn_widget(index)
        return "" if widget is None else "\n".join(filter(None, map(_words, _shown(widget))))

    def titles(self) -> list[str]:
        """Return the rows of the list of conversations, headings left out."""
        return _rows(self.window.sidebar.conversation_list)

    def results(self) -> list[str]:
        """Return the rows of the search results, headings left out."""
        return _rows(self.window.sidebar.result_list)

    def find(self, kind: type[W], name: str, inside: QWidget | None = None) -> W:
        """Return the visible widget of this accessible name, the frontmost window's first."""
        for top in [inside] if inside is not None else _front_first(self.window):
            for each in _shown(top):
                if isinstance(each, kind) and each.accessibleName() == name:
                    return each
        raise AssertionError(f"there is no {kind.__name__} '{name}'; shown:\n{self.screen()}")

    # -- doing

    def press(self, keys: str, times: int = 1) -> None:
        """Press keys where the focus is, such as "Ctrl+K"."""
        for _ in range(times):
            QTest.keySequence(self._focus(), QKeySequence(keys))

    def type(self, words: str) -> None:
        QTest.keyClicks(self._focus(), words)

    def click(self, words: str, inside: QWidget | None = None) -> None:
        """Click the button that says this, or is named so to screen readers; scroll there first."""
        button = self.button(words, inside)
        above = button.parentWidget()
        while above is not None:
            if isinstance(above, QScrollArea):
                above.ensureWidgetVisible(button)
            above = above.parentWidget()
        # A check box may be wider than its words, and be clicked on these alone.
        said = min(button.width(), button.sizeHint().width())
        QTest.mouseClick(button, _LEFT, pos=QPoint(said // 2, button.height() // 2))

    async def dismiss(self, words: str = "Close") -> None:
        """Click the button that closes a dialog, and wait for the window to be in front again."""
        self.click(words)
        await self.in_front()

    async def in_front(self) -> None:
        """Have the window in front, as a desktop does once a dialog or a list has closed."""
        self.window.activateWindow()
        await self.until(self.window.isActiveWindow, "the window in front")

    def button(self, words: str, inside: QWidget | None = None) -> QAbstractButton:
        """Return the visible button that says this, the frontmost window's first."""
        for top in [inside] if inside is not None else _front_first(self.window):
            for each in _shown(top):
                if isinstance(each, QAbstractButton) and words in (
                    each.text(),
                    each.accessibleName(),
                ):
                    return each
        raise AssertionError(f"there is no button '{words}'; shown:\n{self.screen()}")

    def click_row(self, view: QListView, words: str) -> None:
        """Click the first row of a list that shows these words."""
        model = view.model()
        for number in range(model.rowCount()):
            index = model.index(number, 0)
            if words in str(index.data()) and index.flags() & Qt.ItemFlag.ItemIsEnabled:
                view.scrollTo(index)
                QTest.mouseClick(
                    view.viewport(), _LEFT, pos=view.visualRect(index).center() - QPoint(0, 2)
                )
                return
        raise AssertionError(f"there is no row '{words}' in {_rows(view)}")

    def choose(self, box: QComboBox, words: str) -> None:
        """Choose an entry of a closed box, as the keyboard does."""
        index = box.findText(words)
        assert index >= 0, [box.itemText(number) for number in range(box.count())]
        box.setCurrentIndex(index)
        box.activated.emit(index)

    def action(self, name: str) -> QAction:
        return self.window.actions_by_name[name]

    def drop(self, target: QWidget, paths: Iterable[Path]) -> None:
        """Drag files onto a widget and let go."""
        mime = QMimeData()
        mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
        at, copy = target.rect().center(), Qt.DropAction.CopyAction
        none = Qt.KeyboardModifier.NoModifier
        enter = QDragEnterEvent(at, copy, mime, _LEFT, none)
        QApplication.sendEvent(target, enter)
        assert enter.isAccepted()
        QApplication.sendEvent(target, QDropEvent(QPointF(at), copy, mime, _LEFT, none))

    async def bring(self, *paths: Path) -> None:
        """Import files by dropping them on the window, agree to the preview, and close the report."""
        self.drop(self.window, paths)
        await self.until(
            lambda: re.search("^Import (finished|.*[?])$", self.screen(), re.MULTILINE)
        )
        if "Import finished" not in self.screen():
            self.click("Import", self.presenters.imports.dialog)
        await self.sees("Import finished", "Close")
        await self.dismiss()

    async def say(self, words: str) -> None:
        """Write a message and send it."""
        await self.in_front()
        self.press("Ctrl+J")
        self.type(words)
        self.press("Return")

    def _focus(self) -> QWidget:
        return QApplication.focusWidget() or QApplication.activeWindow() or self.window


def _pause_ms(began: float) -> int:
    """Return the time to the next look: to read the whole screen or to search takes processor time."""
    took_ms = (time.monotonic() - began) * 1000
    return min(max(_LOOK_EVERY_MS, int(took_ms * _LOOK_SHARE)), _LOOK_SELDOM_MS)


def is_searched_by_meaning(services: Services) -> bool:
    """Return whether every passage is found by its meaning, by a search that begins now."""
    search = services.vector_search
    embedded, asked = search.embedded(), search.query_vector("Anything")
    if embedded is None or embedded.share < 1 or asked is None:
        return False
    return asked.index.passage_count == Vectors(services.store).count(embedded.space)[0]


def _is_alive(thing: QObject) -> bool:
    import shiboken6

    return bool(shiboken6.isValid(thing))


def _front_first(window: QWidget) -> list[QWidget]:
    """Return the windows on screen, dialogs before the main one."""
    active = QApplication.activeModalWidget() or QApplication.activeWindow() or window
    others = [
        top for top in QApplication.topLevelWidgets() if top.isVisible() and top is not active
    ]
    return [active, *sorted(others, key=lambda top: top is window)]


def _shown(top: QWidget) -> list[QWidget]:
    window = top.window()
    inner = (each for each in top.findChildren(QWidget) if each.isVisible())
    return [top, *(each for each in inner if each.window() is window)]


def _words(widget: QWidget) -> str:
    if isinstance(widget, QLabel | QAbstractButton):
        return widget.text()
    if isinstance(widget, QLineEdit):
        return widget.text()
    if isinstance(widget, QPlainTextEdit | QTextEdit):
        return widget.toPlainText()
    if isinstance(widget, QComboBox):
        return widget.currentText()
    if isinstance(widget, QListView):
        return "\n".join(_rows(widget))
    return ""


def _rows(view: QListView) -> list[str]:
    model = view.model()
    if model is None:
        return []
    indexes = (model.index(number, 0) for number in range(model.rowCount()))
    return [str(each.data()) for each in indexes if each.flags() & Qt.ItemFlag.ItemIsEnabled]
