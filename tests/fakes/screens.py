"""Fakes for tests of one presenter: bridges, the banner, the open conversation; and its values."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import fields, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication, QDialog, QMenu, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from app.chat.library import ConversationView
from app.chat.planner import NewConversation
from app.domain.conversations import (
    Conversation,
    Exchange,
    ExchangeStatus,
    Message,
    Role,
    Text,
    TitleOrigin,
)
from app.domain.errors import KnownError
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.settings_schema import SETTINGS, SettingValue
from app.domain.workers import WorkerStatus
from app.storage.tables.settings import SettingValues
from ui.bridge import Bridge, OnError, Work
from ui.presenters.conversation.open_conversation import ConversationPresenter
from ui.presenters.presenter import Navigation, Presenter
from ui.widgets.transcript.heights import AtEnd

T = TypeVar("T")
D = TypeVar("D", bound=QDialog)
P = TypeVar("P", bound=Presenter)
AT = datetime(2026, 3, 18, 15, 0, tzinfo=UTC)
TALK = ConversationId(7)


def conversation(number: int = TALK, **more: Any) -> Conversation:
    whole = Conversation(
        ConversationId(number), "u", "Talk", TitleOrigin.USER, "commonplace", AT, AT
    )
    return replace(whole, **more)


def message(number: int, role: Role = Role.USER) -> Message:
    return Message(MessageId(number), f"u{number}", TALK, None, role, (Text(f"text {number}"),), AT)


def exchange(number: int, parent: int | None = None, **more: Any) -> Exchange:
    """Return a completed turn `number - 1`, whose messages are ten times its number and the next."""
    messages = (MessageId(10 * number), MessageId(10 * number + 1))
    given = {"status": ExchangeStatus.COMPLETED, "message_ids": messages, "started_at": AT}
    return Exchange(
        ExchangeId(number), TALK, ExchangeId(parent) if parent else None,
        number - 1, 0, **{**given, **more},
    )  # fmt: skip


def view_of(*numbers: int, **more: Any) -> ConversationView:
    """Return a conversation at the exchanges of these numbers."""
    path = tuple(exchange(each) for each in numbers)
    return ConversationView(conversation(**more), (), "", path, tuple((each.id,) for each in path))


def press(text: str, parent: QWidget | None = None) -> None:
    """Press a button of the question that is shown, of those over `parent` if given."""
    shown = parent.findChildren(QMessageBox) if parent else QApplication.topLevelWidgets()
    (box,) = (each for each in shown if isinstance(each, QMessageBox) and each.isVisible())
    (button,) = (each for each in box.buttons() if each.text().replace("&", "") == text)
    button.click()
    QApplication.processEvents()


class Recorder:
    """Stands in for a service: records its calls, returns what `results` has, raises `error`."""

    def __init__(self, **results: Any) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.results = results
        self.error: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any, **more: Any) -> Any:
            if self.error is not None:
                raise self.error
            self.calls.append((name, *given, *more.values()))
            found = self.results.get(name)
            return found(*given) if callable(found) else found

        return call

    def __call__(self, *given: Any) -> Any:
        return self.__getattr__("__call__")(*given)


class Pause:
    """What a task awaits while `FakeBridge.hold` is in force."""

    def __await__(self) -> Any:
        yield self


class FakeBridge(Bridge):
    """Runs calls and tasks at once on the calling thread; no pool, no event loop.

    After `hold`, calls wait until `release`. `failures` are exceptions that no `on_error` took,
    `hosted` the worker loops to run.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[BaseException] = []
        self.hosted: list[Callable[[], None]] = []
        self.is_held = False
        self._waiting: dict[str, tuple[Work, OnError | None]] = {}
        self._names = 0

    def hold(self) -> None:
        """Make calls wait, as a busy database does."""
        self.is_held = True

    def release(self) -> None:
        """Let waiting calls and tasks go on."""
        self.is_held = False
        for name, (work, on_error) in tuple(self._waiting.items()):
            if self._waiting.pop(name, None) is not None:
                self._step(name, work, on_error)

    async def run(self, call: Callable[[], T]) -> T:
        while self.is_held:
            await Pause()
        return call()

    write = run

    async def wait(self, future: "Future[T]") -> T:
        while self.is_held or not future.done():
            await Pause()
        return future.result()

    def start(self, name: str, work: Work, on_error: OnError | None = None) -> Any:
        self.cancel(name)
        self._step(name, work, on_error)

    def submit(self, work: Work, on_error: OnError | None = None) -> Any:
        self._names += 1
        self.start(f"command {self._names}", work, on_error)

    def is_running(self, name: str) -> bool:
        return name in self._waiting

    def cancel(self, name: str) -> None:
        if (waiting := self._waiting.pop(name, None)) is not None:
            waiting[0].close()

    def run_long(self, call: Callable[[], object], on_error: OnError) -> None:
        self.save(call, on_error=on_error)

    def on_gui(self, call: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            call()

        return run

    def host_worker(self, loop: Callable[[], None]) -> None:
        self.hosted.append(loop)

    def post_status(self, status: WorkerStatus) -> None:
        self.worker_changed.emit(status)

    def _step(self, name: str, work: Work, on_error: OnError | None) -> None:
        try:
            work.send(None)
            self._waiting[name] = (work, on_error)
        except StopIteration:
            pass
        except KnownError as error:
            (on_error or self.failures.append)(error)
        except Exception as error:  # noqa: BLE001 - reported as the bridge does
            self.failures.append(error)
            self.task_failed.emit(error)


class LoopBridge(Bridge):
    """A bridge for tests that run an event loop: calls run on it, and may return an awaitable."""

    async def run(self, call: Callable[[], Any]) -> Any:
        found = call()
        return await found if asyncio.isfuture(found) else found

    write = run


class FakeBanner(QWidget):
    """The banner as a presenter sees it; `messages` and `errors` are what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []
        self.errors: list[BaseException] = []
        self.act: Callable[[], None] | None = None

    def show_message(
        self,
        text: str,
        _action: str = "",
        act: Callable[[], None] | None = None,
        *,
        brief: bool,
        closed: Callable[[], object] | None = None,
    ) -> None:
        self.messages.append(text)
        self.act = act

    def shows(self, text: str) -> bool:
        return self.messages[-1:] == [text]

    def show_error(self, error: BaseException) -> None:
        self.errors.append(error)

    def dismiss(self) -> None:
        pass

    def leave(self) -> None:
        pass


class FakeConversation(QObject):
    """An open conversation of exchanges that a test gives; see `open_path`. `shown` was asked for."""

    opened = Signal(object)
    updated = Signal(object)
    left = Signal(object)
    content_shown = Signal(int, int)
    scrolled_to = Signal(int)
    project_chosen = Signal()
    new = NewConversation()
    listed_project: str | None = None
    view: ConversationView | None = None
    conversation_id: Any = ConversationPresenter.conversation_id
    target_id: Any = ConversationPresenter.conversation_id
    project_here: Any = ConversationPresenter.project_here
    path: Any = ConversationPresenter.path
    exchange_at: Any = ConversationPresenter.exchange_at
    turn_of: Any = ConversationPresenter.turn_of

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[tuple[Any, ...]] = []

    def open(self, *given: Any) -> None:
        self.shown.append(given)

    def choose_project(self, uid: str | None) -> None:
        self.new = replace(self.new, project=uid)
        self.project_chosen.emit()

    def begin_new(self) -> None:
        self.view = None
        self.new = NewConversation(project=self.listed_project)
        self.opened.emit(None)

    def open_path(self, view: object) -> None:
        self.view = cast(ConversationView, view)
        if view is None:
            self.new = NewConversation(project=self.new.project)
        self.opened.emit(self.view.conversation if self.view else None)

    def update(self, **changes: Any) -> None:
        """Change the record of the open conversation."""
        assert self.view is not None
        changed = replace(self.view.conversation, **changes)
        self.view = replace(self.view, conversation=changed)
        self.updated.emit(changed)


class FakeSettings(SettingValues):
    """Settings in memory; `check` is called before each write."""

    def __init__(
        self,
        values: Mapping[str, SettingValue] | None = None,
        check: Callable[[], object] = lambda: None,
    ) -> None:
        self.values = dict(values or {})
        self._check = check

    def get(self, key: str) -> SettingValue:
        return self.values.get(key, SETTINGS[key].default)

    def chosen(self) -> dict[str, SettingValue]:
        return self.values

    def environment_variable(self, _key: str) -> None:
        return None

    def set(self, key: str, value: SettingValue) -> None:
        self._check()
        self.values[key] = SETTINGS[key].check(value)

    def reset(self, key: str) -> None:
        self.values.pop(key, None)


class FakeTranscript(QObject):
    """Records what it is asked to show."""

    content_requested = Signal(int, int)
    source_clicked = Signal(int, int)

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, ...]] = []
        self.events = SimpleNamespace(source_clicked=self.source_clicked)
        self.visible_items: tuple[int, int] = (0, 2)
        self.anchor: object = AtEnd()

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **more: self.calls.append((name, *given, *more.values()))

    def take(self) -> list[tuple[Any, ...]]:
        """Return the calls since the last time."""
        calls, self.calls = self.calls, []
        return calls


class Parts:
    """What presenters use of a window; `went` is where they navigated."""

    def __init__(self, qtbot: QtBot) -> None:
        self.bridge, self.banner, self.open = FakeBridge(), FakeBanner(), FakeConversation()
        self.transcript, self.went = FakeTranscript(), list[tuple[Any, ...]]()
        self.qtbot = qtbot
        names = Navigation.__dataclass_fields__
        self.navigation = Navigation(**{name: self.go(name) for name in names})

    def make(self, kind: Callable[..., P], **given: Any) -> P:
        """Return a presenter whose fields are `given`, else these parts, else a `Recorder`."""
        own = {
            "bridge": self.bridge, "messages": self.banner, "conversation": self.open,
            "transcript": self.transcript, "navigation": self.navigation,
        }  # fmt: skip
        names = [each.name.removeprefix("_") for each in fields(cast("Any", kind))]
        assert set(given) <= set(names), set(given) - set(names)
        return kind(*((own | given).get(name) or Recorder() for name in names))

    def go(self, name: str) -> Callable[..., Any]:
        """Return a function that records where it was asked to go."""
        return lambda *given: self.went.append((name, *given))

    def dialog(self, kind: type[D]) -> D:
        (found,) = (each for each in self.banner.findChildren(kind) if each.isVisible())
        return found

    def choose(self, text: str, of: QWidget | None = None) -> None:
        """Choose an entry of the menu of a widget, by default of the banner, that is open."""
        (menu,) = (of or self.banner).findChildren(QMenu)
        next(each for each in menu.actions() if each.text().startswith(text)).trigger()
        menu.close()
        menu.setParent(None)
