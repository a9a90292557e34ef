"""How long the window stops answering while it imports, works, is written in and read; prints JSON.

The phases `with_a_model...` are background work by a server in a process of its own, the dashboard
open: summaries, facts and embeddings of thousands of exchanges, requests and answers included;
meanwhile a message is written, and a conversation of 10,000 turns read. The other phases use what
is built in. Then the window is left, with everything at work.

Run: .venv/bin/python -m tests.bench.window_stalls [--messages 20000] [--seconds 10] [--blame]

The real window, offscreen, with its threads as the program sets them. A timer of the GUI thread
beats every 5 ms; a gap is the time from one beat to the next, and `own` the processor time that
the GUI thread itself took in it: the rest it waited, for the interpreter's lock or for a processor
on a busy machine (`nice -n -20` helps, for root). With `--blame` a thread looks at what the GUI
thread does whenever a beat is late: that costs a little, so its gaps are longer.
"""

import argparse
import asyncio
import collections
import gc
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import qasync
from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication

from app.bootstrap import Services
from app.domain.ids import ConversationId
from app.storage.settings import ProviderRow
from tests.fakes.exports import Shape, write_chatgpt_export
from tests.fakes.user import User
from ui.theme import STYLE

_BEAT_MS = 5
_TYPE_EVERY_S = 0.1
_GOAL_MS = 50.0
_LATE_S = 0.03
_PATIENCE_S = 600.0
_TURNS, _WORDS, _MESSAGES_A_CONVERSATION = 12, 60, 26.96
SWITCH_INTERVAL_S = 0.0005
_LONG = 10_000  # turns of the conversation that is read

Figures = dict[str, object]


class Heartbeat(QObject):
    """Beats on the GUI thread and notes the gaps, and its own work in them, in milliseconds."""

    def __init__(self) -> None:
        super().__init__()
        self.gaps_ms: list[float] = []
        self.own_ms: list[float] = []
        self.at, self._worked = time.perf_counter(), time.thread_time()
        self._timer = QTimer(self, interval=_BEAT_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._on_timeout)
        self._timer.start()

    def stop(self) -> None:
        """Beat no more."""
        self._timer.stop()

    def _on_timeout(self) -> None:
        now, worked = time.perf_counter(), time.thread_time()
        self.gaps_ms.append((now - self.at) * 1000)
        self.own_ms.append((worked - self._worked) * 1000)
        self.at, self._worked = now, worked


class Blame(threading.Thread):
    """Notes where the GUI thread is while a beat is late: our innermost lines, counted."""

    def __init__(self, heartbeat: Heartbeat) -> None:
        super().__init__(daemon=True)
        self.counts: collections.Counter[str] = collections.Counter()
        self._heartbeat = heartbeat
        self._main = threading.main_thread().ident or 0
        self._over = threading.Event()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        self.join()

    def run(self) -> None:
        """Look every few milliseconds."""
        while not self._over.wait(0.004):
            if time.perf_counter() - self._heartbeat.at > _LATE_S:
                frame = sys._current_frames().get(self._main)
                stack = traceback.extract_stack(frame)[-4:]
                del frame
                places = (f"{Path(each.filename).name}:{each.lineno}" for each in stack)
                self.counts[" > ".join(places)] += 1


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure stalls of the window.")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="of typing, and of scrolling")
    parser.add_argument("--blame", action="store_true", help="say what the late beats waited for")
    options = parser.parse_args()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.disable()
    with tempfile.TemporaryDirectory() as folder:
        export = Path(folder, "conversations.json")
        conversations = round(options.messages / _MESSAGES_A_CONVERSATION)
        write_chatgpt_export(export, Shape(conversations, _TURNS, _WORDS))
        long = Path(folder, "long.json")
        write_chatgpt_export(long, Shape(1, _LONG, _WORDS, seed=2))
        application = QApplication([sys.argv[0], "-style", STYLE])
        application.setQuitOnLastWindowClosed(False)
        with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
            user = User(application, Path(folder, "data"))
            figures = runner.run(_measured(user, [export, long], options.seconds, options.blame))
        gc.unfreeze()
    print(json.dumps(figures, indent=1))  # noqa: T201


async def _measured(user: User, exports: list[Path], seconds: float, blame: bool) -> Figures:
    await user.start()
    heartbeat, figures = Heartbeat(), Figures()
    watcher = Blame(heartbeat) if blame else None
    if watcher is not None:
        watcher.start()

    @asynccontextmanager
    async def phase(name: str) -> AsyncIterator[None]:
        await asyncio.sleep(0.1)
        heartbeat.gaps_ms.clear()
        heartbeat.own_ms.clear()
        began = time.perf_counter()
        yield
        await asyncio.sleep(0.1)
        figures[name] = _figures(heartbeat, time.perf_counter() - began)
        if watcher is not None:
            figures[f"{name}_blame"] = dict(watcher.counts.most_common(12))
            watcher.counts.clear()

    async with phase("idle"):
        await asyncio.sleep(1)
    with model_server() as base_url:
        await user.ask(lambda services: _choose(services, base_url, "bench:embed", "bench:chat"))
        user.press("Ctrl+Shift+W")
        async with phase("with_a_model_importing"):
            user.drop(user.window, exports)
            await _until(lambda: not user.program.importing.running)
        await user.dismiss()
        async with phase("with_a_model"):
            await asyncio.sleep(seconds)
        async with phase("with_a_model_writing"):
            await _write(user, seconds)
        async with phase("with_a_model_reading"):
            await _read(user, seconds)
        figures["with_a_model_made"] = await user.ask(_made_by_model)
        await user.ask(lambda services: _choose(services, base_url, "builtin", None))
    async with phase("workers"):
        await asyncio.sleep(seconds)
    async with phase("typing"):
        await _type(user, seconds)
    async with phase("scrolling"):
        await _scroll(user, seconds)
    heartbeat.stop()
    if watcher is not None:
        watcher.stop()
    left_at = time.perf_counter()
    await user.leave()
    figures["left_after_s"] = round(time.perf_counter() - left_at, 2)
    return figures


@contextmanager
def model_server(*options: str) -> Iterator[str]:
    """A model server in a process of its own, for a block; its base URL."""
    command = [sys.executable, "-m", "tests.bench.model_server", *options]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def _choose(services: Services, base_url: str, embedder: str, model: str | None) -> None:
    services.settings.put_provider(ProviderRow("bench", "compatible", base_url, None))
    services.settings.set("background_model", model)
    services.settings.set("embedder", embedder)
    services.settings.set("embedder_before", embedder)


def _made_by_model(services: Services) -> Figures:
    """What the phase with a model came to: it must not be nothing."""
    statements = {
        "summaries": "SELECT count(*) FROM summary WHERE model = 'bench:chat'",
        "read_for_facts": "SELECT count(*) FROM extraction",
        "requests": "SELECT count(*) FROM spend",
    }
    return {
        name: services.store.read(lambda cursor, each=each: cursor.execute(each).fetchone()[0])  # type: ignore[misc]
        for name, each in statements.items()
    }


async def _write(user: User, seconds: float) -> None:
    """Write a message, letter by letter."""
    letters = itertools.cycle("What did we say about the garden, and when was that?\n")
    user.press("Ctrl+J")
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        user.window.chat.composer.box.insertPlainText(next(letters))
        await asyncio.sleep(_TYPE_EVERY_S)


async def _read(user: User, seconds: float) -> None:
    """Scroll by the page through the longest conversation, and leap far back every second."""
    found = await user.ask(lambda services: services.store.read(_longest))
    await user.program.chat.open(found)
    until, leaps = time.perf_counter() + seconds, itertools.count(1)
    while time.perf_counter() < until:
        user.transcript.scroll_to_turn(_LONG - next(leaps) * 700 % _LONG)
        for _ in range(30):
            await asyncio.sleep(0.03)
            user.transcript.scroll_by(-300)


def _longest(cursor: Any) -> ConversationId:
    row = cursor.execute(
        "SELECT conversation_id FROM exchange GROUP BY 1 ORDER BY count(*) DESC LIMIT 1"
    ).fetchone()
    return ConversationId(row[0])


async def _type(user: User, seconds: float) -> None:
    """Type words of the export, letter by letter, one query after the other."""
    words = itertools.cycle("the people of the water and their time ")
    user.press("Ctrl+K")
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        if len(user.window.sidebar.box.text()) > 30:
            user.window.sidebar.box.clear()
        user.type(next(words))
        await asyncio.sleep(_TYPE_EVERY_S)


async def _scroll(user: User, seconds: float) -> None:
    """Open one conversation after the other and scroll through it by the page."""
    user.window.sidebar.box.clear()
    listed = user.window.sidebar.conversations
    rows = itertools.cycle(range(min(listed.rowCount(), 40)))
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        if (chosen := listed.value_at(listed.index(next(rows), 0))) is None:
            continue
        user.window.sidebar.conversation_chosen.emit(chosen)
        for _ in range(20):
            await asyncio.sleep(0.03)
            user.transcript.scroll_by(-300)


async def _until(condition: collections.abc.Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.2)


def _figures(heartbeat: Heartbeat, seconds: float) -> Figures:
    gaps, own = sorted(heartbeat.gaps_ms), sorted(heartbeat.own_ms)
    return {
        "seconds": round(seconds, 1),
        "beats": len(gaps),
        "p50_ms": round(gaps[len(gaps) // 2], 1),
        "p99_ms": round(gaps[int(len(gaps) * 0.99)], 1),
        "worst_ms": round(gaps[-1], 1),
        "over_50_ms": sum(gap > _GOAL_MS for gap in gaps),
        "own_p99_ms": round(own[int(len(own) * 0.99)], 1),
        "own_worst_ms": round(own[-1], 1),
        "own_over_50_ms": sum(each > _GOAL_MS for each in own),
    }


if __name__ == "__main__":
    main()
