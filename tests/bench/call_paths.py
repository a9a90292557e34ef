"""Call paths: how many files and functions of the product one user action passes through.

Run: .venv/bin/python -m tests.bench.call_paths

The real window, offscreen, with a loopback server as the model. Counted are the distinct functions
and lambdas of `app` and `ui` that an action and its consequences enter, whichever thread runs them,
and the kinds of threads. Comprehensions are part of the function around them, and what `dataclass`
generates is not written by anyone; neither counts. `afterwards` are the functions that only
background threads enter, which nobody waits for: index synchronization, compaction and workers; they
are not among the others. What runs by the clock is stopped: repeating timers, the dashboard's totals,
maintenance, vector search's checks, and the workers but for the one that is switched on. Each action
begins and ends when all is quiet. One message is sent that has nothing to recall but its own
conversation, and one that recalls another conversation. The whole is repeated in fresh processes
until two of them agree on an action. Prints JSON, an entry for each action.
"""

import asyncio
import gc
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from PySide6.QtCore import QRunnable, QTimer
from PySide6.QtWidgets import QApplication

from app.bootstrap import Services
from app.domain.chat import StoredProvider
from app.domain.workers import WorkerName
from tests.bench.shared.measuring import ROOT, Figures, in_process, options, print_json
from tests.bench.shared.window import measured_in_window, status_of
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import text, usage
from tests.fakes.user import User
from ui.bridge import Refresh

_PRODUCT = (f"{ROOT}/app/", f"{ROOT}/ui/")
_QUIET_S = 2.5  # without a new function; longer than every delay of a consequence
_NEVER_S = 100_000.0
_RUNS_MAX = 6
_PARTS_OF_FUNCTIONS = {"<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<module>"}
_BACKGROUND = {"text-index", "vector-index", "token-index", "compactor", *WorkerName}


class Recorder:
    """Profiles every thread and keeps what is entered."""

    def __init__(self) -> None:
        self.entered: dict[CodeType, set[str]] = {}
        self.threads: set[str] = set()

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
        if event == "call" and frame.f_code.co_filename.startswith(_PRODUCT):
            thread = threading.current_thread().name.rstrip("0123456789")
            self.entered.setdefault(frame.f_code, set()).add(thread)
            self.threads.add(thread)

    async def record(
        self, user: User, act: Callable[[], object], is_done: Callable[[], bool]
    ) -> dict[str, int]:
        """Count what `act` and its consequences enter, from quiet to quiet."""
        await self._quiet()
        self.entered, self.threads = {}, set()
        acted = act()
        if asyncio.iscoroutine(acted):
            await acted
        await user.until(is_done)
        await self._quiet()
        functions = {
            code: threads
            for code, threads in self.entered.items()
            if code.co_name not in _PARTS_OF_FUNCTIONS
        }
        path = [code for code, threads in functions.items() if not threads <= _BACKGROUND]
        return {
            "files": len({code.co_filename for code in path}),
            "functions": len(path),
            "afterwards": len(functions) - len(path),
            "threads": len(self.threads),
        }

    async def _quiet(self) -> None:
        """Wait until nothing is entered that was not entered since the last action."""
        known = -1
        while known != len(self.entered):
            known = len(self.entered)
            await asyncio.sleep(_QUIET_S)


def main() -> None:
    options(__doc__)
    runs: list[Figures] = []
    agreed: Figures = {}
    while len(runs) < _RUNS_MAX and (not runs or len(agreed) < len(runs[0])):
        runs.append(in_process(_measure_once))
        for action, counts in runs[-1].items():
            if any(counts == earlier[action] for earlier in runs[:-1]):
                agreed.setdefault(action, counts)
    print_json({"runs": len(runs), **{action: agreed.get(action) for action in runs[0]}})


def _measure_once() -> Figures:
    recorder = Recorder()
    recorder.install()
    with Loopback() as server:
        return measured_in_window(lambda user, _: _measured(user, server, recorder))


async def _measured(user: User, server: Loopback, recorder: Recorder) -> Figures:
    await user.start()
    await user.ask(lambda services: _prepare(services, server.v1))
    _stop_clocks(user)
    for number in range(2):  # imports and caches of a first message are not the path
        _type_question(user, server, number)
        user.press("Return")
        await user.until(_answered(user, number))
    figures = {}
    _type_question(user, server, 2)
    figures["send a message"] = await recorder.record(
        user, lambda: user.press("Return"), _answered(user, 2)
    )
    await _begin_new(user)
    _type_question(user, server, 3, "Which sourdough starter did we feed?")
    user.press("Return")
    await user.until(_answered(user, 3, turn=0))
    _type_question(user, server, 4, "And how is the sourdough starter fed in summer?")
    figures["send a message that recalls"] = await recorder.record(
        user, lambda: user.press("Return"), _answered(user, 4, turn=1)
    )
    await _begin_new(user)
    user.press("Ctrl+K")
    user.type("flour")
    await user.until(user.results)
    figures["open a result"] = await recorder.record(
        user,
        lambda: user.click_row(user.window.sidebar.result_list, user.results()[0]),
        lambda: len(user.transcript.heights) == 3,
    )
    figures["change a setting"] = await recorder.record(
        user, lambda: user.ask(_set_threshold), lambda: True
    )
    name = WorkerName.EMBEDDING_PIPELINE
    user.action("activity").trigger()
    await user.until(user.window.memory.dashboard.isVisible)
    figures["switch a worker on"] = await recorder.record(
        user,
        lambda: user.window.memory.dashboard.switched.emit(name, True),
        lambda: bool(status_of(user, name).completed),
    )
    await user.leave()
    return figures


async def _begin_new(user: User) -> None:
    user.press("Ctrl+N")
    await user.until(lambda: len(user.transcript.heights) == 0)


def _type_question(user: User, server: Loopback, number: int, question: str = "") -> None:
    server.reply(text(f"Answer {number} about sourdough.", chunks=5), usage(12, 6))
    user.press("Ctrl+J")
    user.type(question or f"Question {number} about the sourdough starter and its flour")


def _answered(user: User, number: int, turn: int | None = None) -> Callable[[], bool]:
    place = number if turn is None else turn
    return lambda: (
        f"Answer {number} about" in user.turn_text(place) and not user.transcript.is_streaming
    )


def _set_threshold(services: Services) -> None:
    services.settings.set("rag_min_similarity", 0.6)


def _stop_clocks(user: User) -> None:
    """Stop what runs however little is done: repeating timers, the cursor, totals every 2 s."""
    QApplication.setCursorFlashTime(0)
    gc.unfreeze()  # or else some objects are not listed
    for timer in [each for each in gc.get_objects() if isinstance(each, QTimer)]:
        if isinstance(timer, Refresh) and timer.interval() >= 1000:
            timer.setInterval(int(_NEVER_S * 1000))
        elif timer.isActive() and not timer.isSingleShot():
            timer.stop()


def _prepare(services: Services, base_url: str) -> None:
    services.maintenance.stop()
    services.vector_search._look_again_s = _NEVER_S
    services.settings.put_provider(StoredProvider("loop", "compatible", base_url, None))
    services.settings.set("default_model", "loop:test-model")
    for name in WorkerName:
        services.workers.set_enabled(name, False)


if __name__ == "__main__":
    main()
