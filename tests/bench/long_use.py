"""Long use of the window on a large library: what grows from minute to minute; prints JSON.

    python -m tests.bench.long_use --library DIR [--minutes 40]

Works in a copy of a data directory, such as one that `tests.bench.scale --folder` has made, with a model
server in a process of its own and all workers on. A round searches, opens a result, pages back, opens and closes
panels, and every fifth sends a message. `growth` compares the means of the last five minutes with those of
the five after the fifth: memory that is not of mapped files, threads, open files, widgets and tasks.
"""

import asyncio
import gc
import itertools
import shutil
import statistics
import threading
import time
from pathlib import Path

from PySide6.QtWidgets import QApplication

from tests.bench.shared.made_up import ZipfText
from tests.bench.shared.measuring import Figures, latency, options, print_json, resident_mb
from tests.bench.shared.window import (
    Heartbeat,
    choose_models,
    measured_in_window,
    model_server,
    until,
)
from tests.fakes.user import User

_SETTLED = 5  # minutes
_PANELS = ("Ctrl+Shift+W", "Ctrl+I")
_TOKENS = 300  # of a reply


def main() -> None:
    given = options(__doc__, required=["library"], library=Path, minutes=40.0)

    async def measure(user: User, _: Path) -> Figures:
        shutil.copytree(given.library, user.data_dir)
        with model_server("--writes", str(_TOKENS)) as base_url:
            await user.start_with_model(base_url)
            await user.ask(lambda services: choose_models(services, base_url, "builtin", None))
            figures = await _used(user, given.minutes * 60)
            await user.leave()
        failures = [repr(each) for each in user.failures]
        return {**figures, "threads_left": threading.active_count(), "failures": failures}

    print_json(measured_in_window(measure))


async def _used(user: User, seconds: float) -> Figures:
    words = ZipfText()
    heartbeat = Heartbeat()
    minutes: list[Figures] = []
    worked_ms: list[float] = []
    stalls = {"over_100_ms": 0, "own_over_100_ms": 0}
    ends_at, minute_ends_at = time.monotonic() + seconds, time.monotonic() + 60
    for rounds in itertools.count(1):
        await _round(user, words, rounds)
        gaps, own = heartbeat.take()
        stalls["over_100_ms"] += sum(gap > 100 for gap in gaps)
        stalls["own_over_100_ms"] += sum(each > 100 for each in own)
        worked_ms += own
        if time.monotonic() > minute_ends_at:
            minute_ends_at += 60
            minutes.append({"rounds": rounds, **_size(), **latency(worked_ms, worst=True)})
            worked_ms.clear()
            await asyncio.sleep(0.05)  # until a beat has come
            heartbeat.take()  # collecting garbage was the bench's work
        if time.monotonic() > ends_at:
            break
    heartbeat.stop()
    first, last = minutes[_SETTLED : 2 * _SETTLED] or minutes, minutes[-_SETTLED:]
    growth = {name: round(_mean(last, name) / _mean(first, name), 3) for name in _size()}
    return {"rounds": rounds, **stalls, "growth": growth, "minutes": minutes}


async def _round(user: User, words: ZipfText, number: int) -> None:
    user.press("Ctrl+K")
    user.window.sidebar.box.setText(words.text(3))
    await asyncio.sleep(0.5)
    user.window.sidebar.box.clear()
    listed = user.window.sidebar.conversations
    chosen = listed.value_at(listed.index(number * 7 % min(listed.rowCount(), 200), 0))
    if chosen is not None:
        user.window.sidebar.conversation_chosen.emit(chosen)
        await asyncio.sleep(0.3)
    for _ in range(10):
        user.transcript.scroll_by(-300)
        await asyncio.sleep(0.03)
    for keys in _PANELS:
        for _ in range(2):  # open, close
            user.press(keys)
            await asyncio.sleep(0.2)
    if not number % 5:
        await user.say(words.text(8))
        await until(lambda: user.transcript.is_streaming)
        await until(lambda: not user.transcript.is_streaming)


def _mean(minutes: list[Figures], name: str) -> float:
    return float(statistics.mean(each[name] for each in minutes))


def _size() -> dict[str, int]:
    gc.collect()
    return {
        "own_mb": resident_mb()["own"],
        "threads": threading.active_count(),
        "open_files": sum(1 for _ in Path("/proc/self/fd").iterdir()),
        "widgets": len(QApplication.allWidgets()),
        "tasks": len(asyncio.all_tasks()),
    }


if __name__ == "__main__":
    main()
