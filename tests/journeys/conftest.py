"""Parts that the stories of the window share: one loop, someone who uses the program, an orderly end."""

import asyncio
import gc
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
import qasync
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from tests.fakes.loopback import Loopback
from tests.fakes.stored import made
from tests.fakes.user import User


@pytest.fixture
def gui_loop(qapp: QApplication) -> Iterator[asyncio.AbstractEventLoop]:
    """Return the loop that a story runs in; what it leaves is collected at its end.

    So the program freezes nothing: only what is there before a story is, modules above all.
    """
    gc.freeze()
    loop = qasync.QEventLoop(qapp)
    asyncio.set_event_loop(loop)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "freeze", lambda: None)
        yield loop
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    asyncio.set_event_loop(None)
    gc.collect()


@pytest.fixture
def server() -> Iterator[Loopback]:
    """Return a server on this computer that answers as the test scripts it."""
    with Loopback() as running:
        yield running


@pytest.fixture
def user(
    qapp: QApplication, qtbot: QtBot, gui_loop: asyncio.AbstractEventLoop, data_dir: Path
) -> Iterator[User]:
    """Return someone who has not started the program yet; afterwards it is closed in order."""
    someone = User(qapp, data_dir, lambda root: root.exists() or made(root))
    unhandled: list[object] = []
    gui_loop.set_exception_handler(lambda _loop, context: unhandled.append(context))
    yield someone
    if someone.is_there:
        gui_loop.run_until_complete(someone.leave())
    assert not someone.failures
    assert not unhandled


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a story written as a coroutine inside the window's loop, and have its user leave there.

    After it qasync and pytest-qt let events pass: a task would go on without a running loop.
    """
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    given = {name: value for name, value in pyfuncitem.funcargs.items() if name in wanted}
    loop = pyfuncitem.funcargs["gui_loop"]
    assert isinstance(loop, asyncio.AbstractEventLoop)

    async def story() -> None:
        await pyfuncitem.obj(**given)
        someone = given.get("user")
        if isinstance(someone, User) and someone.is_there:
            await someone.leave()

    loop.run_until_complete(story())
    return True
