"""The window as the eye sees it: start, opening, jumping, scrolling, streaming, switching; prints JSON.

Run: .venv/bin/python -m tests.bench.window [--rounds 5] [--turns 5000] [--switches 1000] [--tokens 1500]
With a display: QT_QPA_PLATFORM=xcb xvfb-run -a .venv/bin/python -m tests.bench.window

The real window and database, workers off, with an imported conversation of 10,000 messages that have
code, tables and formulas. A frame is the time from one beat of a 5 ms timer to the next; `busy` is
the processor time of the GUI thread in it, which other programs on the machine do not stretch. The
start is measured beside a bare QMainWindow, in processes of their own.
"""

import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QApplication

from app.bootstrap import Services
from app.domain.ids import ConversationId
from tests.bench.shared.made_up import CONTENT
from tests.bench.shared.measuring import Figures, latency, options, print_json, resident_mb
from tests.bench.shared.window import (
    Heartbeat,
    import_files,
    measured_in_window,
    model_server,
    until,
)
from tests.fakes.exports import chatgpt_message, chatgpt_row
from tests.fakes.user import User

_SMALL = 40  # conversations to switch between
_BEGIN = 1_700_000_000
_WORKERS = (
    "summarizer_conversation", "summarizer_exchange", "embedding_pipeline", "knowledge_extractor",
)  # fmt: skip
_GOALS = {
    "start_ratio": 1.5, "first_paint_ms": 300, "jump_ms": 150, "scroll_p99_ms": 50,
    "stream_p99_ms": 33, "stream_cores": 0.5, "growth": 1.05,
}  # fmt: skip
_BARE = """
import sys, time
from PySide6.QtWidgets import QApplication, QMainWindow
{imports}
class Window(QMainWindow):
    def paintEvent(self, event):
        super().paintEvent(event)
        print(time.monotonic(), flush=True)
        application.quit()
application = QApplication(sys.argv[:1])
window = Window()
window.resize(1180, 780)
window.show()
application.exec()
"""
_OURS = """
import gc, sys, time
import ui.main
gc.disable()  # before what follows, as the program does
ui.main.skip_source_scan()
from PySide6 import QtCore, QtGui, QtWidgets
from ui.views.main_window import MainWindow
def painted(self, event, before=MainWindow.paintEvent):
    before(self, event)
    if not told:
        told.append(True)
        heavy = {"duckdb", "tantivy", "openai", "anthropic", "numpy", "app.bootstrap", "ziamath"}
        print(time.monotonic(), *sorted(heavy & set(sys.modules)), flush=True)
        for module in (QtCore, QtGui, QtWidgets):
            names = [each for each in vars(module) if each[0] == "Q"]
            print(f"from {module.__name__} import", ", ".join(names), flush=True)
told = []
MainWindow.paintEvent = painted
ui.main.main()
"""


def main() -> None:
    given = options(__doc__, rounds=5, turns=5000, switches=1000, tokens=1500)
    load = os.getloadavg()[0]
    figures = _start(given.rounds)

    async def measure(user: User, folder: Path) -> Figures:
        export = folder / "conversations.json"
        export.write_text(json.dumps(_export(given.turns)), encoding="utf-8")
        return await _in_window(user, export, given.rounds, given.switches, given.tokens)

    figures |= measured_in_window(measure)
    figures |= {
        "platform": QApplication.platformName(),
        "load": [round(load, 1), os.getloadavg()[0]],
    }
    print_json(figures | {"goals": _GOALS})


# start


def _start(rounds: int) -> Figures:
    """Return the first paint beside that of bare windows, and what was loaded before it.

    `start_bare` imports QMainWindow alone, `start_bare_imports` also the names of PySide6 that the
    first frame uses, whose classes and enums PySide creates when they are first asked for.
    """
    taken: dict[str, list[float]] = {"start": [], "start_bare": [], "start_bare_imports": []}
    heavy, imports = set[str](), ""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds + 1):
            arguments = ["--smoke", "--data-dir", f"{folder}/data"]
            ours_ms, loaded, printed = _first_paint_ms(_OURS, folder, *arguments)
            heavy |= set(loaded)
            imports = "\n".join(printed)
            bare_ms, *_ = _first_paint_ms(_BARE.format(imports=""), folder)
            imports_ms, *_ = _first_paint_ms(_BARE.format(imports=imports), folder)
            if number:  # the first round fills the disk's cache
                for figures, ms in zip(taken.values(), (ours_ms, bare_ms, imports_ms), strict=True):
                    figures.append(ms)
    ours, bare, with_imports = taken.values()
    medians = {f"{name}_ms": round(statistics.median(each)) for name, each in taken.items()}
    return medians | {
        "start_ratio": _ratio(ours, with_imports),
        "start_ratio_bare": _ratio(ours, bare),
        "start_ratio_of_best": round(min(ours) / min(with_imports), 2),
        "heavy_modules_before_the_first_paint": sorted(heavy),
    }


def _ratio(ours: list[float], bare: list[float]) -> float:
    return round(statistics.median(mine / other for mine, other in zip(ours, bare, strict=True)), 2)


def _first_paint_ms(code: str, folder: str, *arguments: str) -> tuple[float, list[str], list[str]]:
    """Start a process with compiled modules; return the first paint, and what it said beside it."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120,
        check=True, env=environment,
    )  # fmt: skip
    first, *printed = ended.stdout.splitlines()
    at, *words = first.split()
    return (float(at) - started) * 1000, words, printed


# the open window


async def _in_window(user: User, export: Path, rounds: int, switches: int, tokens: int) -> Figures:
    with model_server("--writes", str(tokens)) as base_url:
        await user.start_with_model(base_url)
        for name in _WORKERS:
            await user.ask(partial(_switch_off, f"{name}_enabled"))
        await import_files(user, [export])
        await user.dismiss()
        await _until_idle()
        long, *small = await user.ask(lambda services: services.store.read(_by_length))
        heartbeat, figures = Heartbeat(), Figures()
        figures |= await _open_and_jump(user, long, small[0], rounds)
        figures |= _frames("scroll", heartbeat, await _scroll(user, heartbeat))
        figures |= await _stream(user, heartbeat, tokens)
        figures |= await _switch(user, small[:_SMALL], switches)
        heartbeat.stop()
        await user.leave()
    return figures


async def _until_idle() -> None:
    """Wait until the program does nothing any more, such as indexing what was imported."""
    worked = -1.0
    while (now := time.process_time()) - worked > 0.1:
        worked = now
        await asyncio.sleep(1)


def _switch_off(key: str, services: Services) -> None:
    services.settings.set(key, False)


async def _open_and_jump(
    user: User, long: ConversationId, small: ConversationId, rounds: int
) -> Figures:
    openings: list[tuple[float, float]] = []
    few: list[tuple[float, float]] = []
    jumps: list[tuple[float, float]] = []
    for number in range(rounds):
        few.append(await _painted_ms(user, lambda: _open(user, small)))
        openings.append(await _painted_ms(user, lambda: _open(user, long)))
        far = len(user.transcript.heights) * (number + 1) // (rounds + 2)
        jumps.append(await _painted_ms(user, partial(user.transcript.scroll_to_turn, far)))
        await until(lambda: user.transcript.is_settled)
    named = {"first_paint": openings, "first_paint_small": few, "jump": jumps}
    return {
        f"{name}_{kind}": round(statistics.median(each[at] for each in taken))
        for name, taken in named.items()
        for at, kind in enumerate(("ms", "busy_ms"))
    }


def _open(user: User, conversation: ConversationId) -> "asyncio.Task[None]":
    return user.presenters.conversation.open(conversation)


async def _painted_ms(user: User, act: Callable[[], object]) -> tuple[float, float]:
    """Return the time from an act to a paint with the text of all turns on screen, and its work."""
    started, worked = time.perf_counter(), time.thread_time()
    if isinstance(done := act(), asyncio.Task):
        await done
    await until(lambda: _has_text(user))
    user.transcript.viewport().repaint()
    return (time.perf_counter() - started) * 1000, (time.thread_time() - worked) * 1000


def _has_text(user: User) -> bool:
    view = user.transcript
    first, last = view.visible_items
    widgets = [view.turn_widget(index) for index in range(first, last + 1)]
    return bool(widgets) and all(each is not None and each.content is not None for each in widgets)


async def _scroll(user: User, heartbeat: Heartbeat) -> float:
    """Scroll up by the wheel's steps through what was never shown, and return the seconds."""
    await until(lambda: user.transcript.is_settled)
    heartbeat.take()
    started = time.perf_counter()
    for _ in range(400):
        user.transcript.scroll_by(-120)
        await asyncio.sleep(0.016)
    return time.perf_counter() - started


async def _stream(user: User, heartbeat: Heartbeat, tokens: int) -> Figures:
    """Receive a reply of 150 tokens a second in the long conversation."""
    await user.say("Go on")
    await until(lambda: user.transcript.is_streaming)
    heartbeat.take()
    started, worked = time.perf_counter(), time.process_time()
    await until(lambda: not user.transcript.is_streaming)
    took, cpu = time.perf_counter() - started, time.process_time() - worked
    rate = {"stream_cores": round(cpu / took, 2), "stream_tokens_per_s": round(tokens / took)}
    return _frames("stream", heartbeat, took) | rate


async def _switch(user: User, small: list[ConversationId], switches: int) -> Figures:
    """Open conversations in turn; return what grew since the first tenth."""
    before: tuple[int, int] | None = None
    started = time.perf_counter()
    for number in range(switches):
        await _open(user, small[number % len(small)])
        await until(lambda: _has_text(user))
        if number == switches // 10:
            before = _size()
    after = _size()
    assert before is not None
    return {
        "switch_ms": round((time.perf_counter() - started) / switches * 1000, 1),
        "growth_memory": round(after[0] / before[0], 3),
        "growth_widgets": round(after[1] / before[1], 3),
        "memory_mb": after[0],
        "widgets": after[1],
    }


def _size() -> tuple[int, int]:
    gc.collect()
    return resident_mb()["own"], len(QApplication.allWidgets())


def _frames(name: str, heartbeat: Heartbeat, seconds: float) -> Figures:
    gaps, busy = heartbeat.take()
    frames, own = latency(gaps, worst=True), latency(busy, worst=True)
    return {
        f"{name}_s": round(seconds, 1),
        **{f"{name}_{key}_ms": value for key, value in frames.items()},
        **{f"{name}_busy_{key}_ms": value for key, value in own.items()},
    }


def _by_length(cursor: object) -> list[ConversationId]:
    rows = cursor.execute(  # type: ignore[attr-defined]
        "SELECT conversation_id FROM exchange GROUP BY 1 ORDER BY count(*) DESC, 1"
    ).fetchall()
    return [ConversationId(row[0]) for row in rows]


def _export(turns: int) -> list[dict[str, object]]:
    return [_conversation(0, turns), *(_conversation(number, 4) for number in range(1, _SMALL + 1))]


def _conversation(number: int, turns: int) -> dict[str, object]:
    messages = []
    for turn in range(turns):
        at = _BEGIN + 86_400.0 * number + 60 * turn
        question = f"Question {turn} of {number}: how do I keep the place?"
        answer = CONTENT.replace("k=1", f"k={turn}") * (
            1 + turn % 3
        )  # no formula is like another's
        messages.append(chatgpt_message(f"{number}-{turn}-q", "user", question, at=at))
        messages.append(chatgpt_message(f"{number}-{turn}-a", "assistant", answer, at=at + 30))
    row = chatgpt_row(*messages, title=f"Conversation {number}")
    return {**row, "conversation_id": f"c{number}", "id": f"c{number}"}


if __name__ == "__main__":
    main()
