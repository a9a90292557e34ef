"""Benchmark of the window's stalls while it imports, works, is written in and read; prints JSON.

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

import asyncio
import collections
import itertools
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from app.bootstrap import Services
from app.domain.ids import ConversationId
from tests.bench.shared.measuring import Figures, options, print_json
from tests.bench.shared.window import (
    Heartbeat,
    choose_models,
    import_files,
    measured_in_window,
    model_server,
)
from tests.fakes.exports import Shape, write_chatgpt_export
from tests.fakes.user import User

_TYPE_EVERY_S = 0.1
_GOAL_MS = 50.0
_LATE_S = 0.03
_TURNS, _WORDS, _MESSAGES_A_CONVERSATION = 12, 60, 26.96
_LONG = 10_000  # turns of the conversation that is read


class Blame(threading.Thread):
    """Notes where the GUI thread is while a beat is late: our innermost lines, counted."""

    def __init__(self, heartbeat: Heartbeat) -> None:
        super().__init__(daemon=True)
        self.counts: collections.Counter[str] = collections.Counter()
        self._heartbeat = heartbeat
        self._main = threading.main_thread().ident or 0
        self._over = threading.Event()

    def stop(self) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        while not self._over.wait(0.004):
            if time.perf_counter() - self._heartbeat.at > _LATE_S:
                frame = sys._current_frames().get(self._main)
                stack = traceback.extract_stack(frame)[-4:]
                del frame
                places = (f"{Path(each.filename).name}:{each.lineno}" for each in stack)
                self.counts[" > ".join(places)] += 1


def main() -> None:
    given = options(__doc__, messages=20_000, seconds=10.0, blame=False)

    async def measure(user: User, folder: Path) -> Figures:
        conversations = round(given.messages / _MESSAGES_A_CONVERSATION)
        export, long = folder / "conversations.json", folder / "long.json"
        write_chatgpt_export(export, Shape(conversations, _TURNS, _WORDS))
        write_chatgpt_export(long, Shape(1, _LONG, _WORDS, seed=2))
        return await _measured(user, [export, long], given.seconds, given.blame)

    print_json(measured_in_window(measure))


async def _measured(user: User, exports: list[Path], seconds: float, blame: bool) -> Figures:
    await user.start()
    heartbeat, figures = Heartbeat(), Figures()
    watcher = Blame(heartbeat) if blame else None
    if watcher is not None:
        watcher.start()

    @asynccontextmanager
    async def phase(name: str) -> AsyncIterator[None]:
        await asyncio.sleep(0.1)
        heartbeat.take()
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
        await user.ask(
            lambda services: choose_models(services, base_url, "bench:embed", "bench:chat")
        )
        user.press("Ctrl+Shift+W")
        async with phase("with_a_model_importing"):
            await import_files(user, exports)
        await user.dismiss()
        async with phase("with_a_model"):
            await asyncio.sleep(seconds)
        async with phase("with_a_model_writing"):
            await _write(user, seconds)
        async with phase("with_a_model_reading"):
            await _read(user, seconds)
        figures["with_a_model_made"] = await user.ask(_made_by_model)
        await user.ask(lambda services: choose_models(services, base_url, "builtin", None))
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
    letters = itertools.cycle("What did we say about the garden, and when was that?\n")
    user.press("Ctrl+J")
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        user.window.chat.composer.box.insertPlainText(next(letters))
        await asyncio.sleep(_TYPE_EVERY_S)


async def _read(user: User, seconds: float) -> None:
    """Scroll by the page through the longest conversation, and leap far back every second."""
    found = await user.ask(lambda services: services.store.read(_longest))
    await user.presenters.conversation.open(found)
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


def _figures(heartbeat: Heartbeat, seconds: float) -> Figures:
    gaps, own = map(sorted, heartbeat.take())
    return {
        "seconds": round(seconds, 1), "beats": len(gaps), "p50_ms": round(gaps[len(gaps) // 2], 1),
        "p99_ms": round(gaps[int(len(gaps) * 0.99)], 1), "worst_ms": round(gaps[-1], 1),
        "over_50_ms": sum(gap > _GOAL_MS for gap in gaps),
        "own_p99_ms": round(own[int(len(own) * 0.99)], 1), "own_worst_ms": round(own[-1], 1),
        "own_over_50_ms": sum(each > _GOAL_MS for each in own),
    }  # fmt: skip


if __name__ == "__main__":
    main()
