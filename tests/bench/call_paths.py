"""Call paths: how many files and functions of the product one user action passes through.

Run: .venv/bin/python -m tests.bench.call_paths

The real window, offscreen, with a loopback server as the model. Counted are the distinct functions
of `app` and `ui` that are entered between an action and its visible result, on every thread, with
the workers switched off, and the threads they ran on. Prints JSON, an entry for each action.
"""

import asyncio
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from PySide6.QtCore import QRunnable

from app.bootstrap import Services
from app.domain.workers import WorkerName
from app.storage.tables.settings import ProviderRow
from tests.bench.shared.measuring import ROOT, Figures, options, print_json
from tests.bench.shared.window import measured_in_window, status_of
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import text, usage
from tests.fakes.user import User

_PRODUCT = (f"{ROOT}/app/", f"{ROOT}/ui/")
_QUIET_S = 0.5  # without a new function before an action counts as finished


class Recorder:
    """Profiles every thread; keeps what is entered while `is_on`."""

    def __init__(self) -> None:
        self.is_on = False
        self.entered: set[CodeType] = set()
        self.threads: set[int] = set()

    def install(self) -> None:
        """Profile this thread and every later one, those of Qt's pools included."""
        threading.setprofile(self._hook)
        sys.setprofile(self._hook)
        for kind in QRunnable.__subclasses__():
            inner: Callable[[Any], None] = kind.run

            def run(job: Any, inner: Callable[[Any], None] = inner) -> None:
                sys.setprofile(self._hook)
                inner(job)

            kind.run = run  # type: ignore[method-assign]

    def _hook(self, frame: FrameType, event: str, _argument: object) -> None:
        if self.is_on and event == "call" and frame.f_code.co_filename.startswith(_PRODUCT):
            self.entered.add(frame.f_code)
            self.threads.add(threading.get_ident())

    async def record(
        self, user: User, act: Callable[[], object], is_done: Callable[[], bool]
    ) -> dict[str, int]:
        """Count what `act` and its consequences enter, until it is done and nothing new comes."""
        self.entered, self.threads, self.is_on = set(), set(), True
        acted = act()
        if asyncio.iscoroutine(acted):
            await acted
        await user.until(is_done)
        known = -1
        while known != len(self.entered):
            known = len(self.entered)
            await asyncio.sleep(_QUIET_S)
        self.is_on = False
        files = {code.co_filename for code in self.entered}
        return {"files": len(files), "functions": known, "threads": len(self.threads)}


def main() -> None:
    options(__doc__)
    recorder = Recorder()
    recorder.install()
    with Loopback() as server:
        print_json(measured_in_window(lambda user, _: _measured(user, server, recorder)))


async def _measured(user: User, server: Loopback, recorder: Recorder) -> Figures:
    await user.start()
    await user.ask(lambda services: _prepare(services, server.v1))
    for number in range(2):  # imports and caches of a first message are not the path
        _type_question(user, server, number)
        user.press("Return")
        await user.until(_answered(user, number))
    figures = {}
    _type_question(user, server, 2)
    figures["send a message"] = await recorder.record(
        user, lambda: user.press("Return"), _answered(user, 2)
    )
    user.press("Ctrl+N")
    await user.until(lambda: user.transcript.turn_count == 0)
    user.press("Ctrl+K")
    user.type("flour")
    await user.until(user.results)
    figures["open a result"] = await recorder.record(
        user,
        lambda: user.click_row(user.window.sidebar.result_list, user.results()[0]),
        lambda: user.transcript.turn_count == 3,
    )
    figures["change a setting"] = await recorder.record(
        user, lambda: user.ask(_set_threshold), lambda: True
    )
    name = WorkerName.EMBEDDING_PIPELINE
    user.action("dashboard").trigger()
    await user.until(user.window.dashboard.isVisible)
    figures["switch a worker on"] = await recorder.record(
        user,
        lambda: user.window.dashboard.switched.emit(name, True),
        lambda: bool(status_of(user, name).completed),
    )
    await user.leave()
    return figures


def _type_question(user: User, server: Loopback, number: int) -> None:
    server.reply(text(f"Answer {number} about sourdough.", chunks=5), usage(12, 6))
    user.press("Ctrl+J")
    user.type(f"Question {number} about the sourdough starter and its flour")


def _answered(user: User, number: int) -> Callable[[], bool]:
    return lambda: (
        f"Answer {number} about" in user.turn_text(number) and not user.transcript.is_streaming
    )


def _set_threshold(services: Services) -> None:
    services.settings.set("rag_min_similarity", 0.6)


def _prepare(services: Services, base_url: str) -> None:
    services.settings.put_provider(ProviderRow("loop", "compatible", base_url, None))
    services.settings.set("default_model", "loop:test-model")
    for name in WorkerName:
        services.workers.set_enabled(name, False)


if __name__ == "__main__":
    main()
