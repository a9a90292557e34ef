"""Benchmark of the summarizers: speed, and what another thread feels of it; prints JSON.

    python -m tests.bench.workers [--exchanges N] [--turns N]

A library of made-up conversations is written, then summarised on the board in threads of its own,
as in the window. Meanwhile a thread with a 4 ms beat, standing for the window's, notes how late it
is woken; the same beat on an idle program is the control. `wake_ms` is the time from the end of a
commit that completes an exchange to the worker's being at work on it.
"""

import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.domain.workers import WorkerName, WorkerState
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.workers.board import WorkerBoard
from app.workers.jobs import JobParts
from tests.bench.shared.made_up import ZipfText
from tests.bench.shared.measuring import (
    SWITCH_INTERVAL_S,
    Figures,
    latency,
    options,
    print_json,
    timed,
)
from tests.fakes.stored import new_conversation, opened

BEAT_S = 0.004
WAKES = 50


def main() -> None:
    given = options(__doc__, exchanges=10_000, turns=10)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder) / "data") as store:
        filled(store, given.exchanges, given.turns)
        figures: Figures = {"exchanges": given.exchanges, "control": idle_beat()}
        for name in (WorkerName.EXCHANGE_SUMMARIZER, WorkerName.CONVERSATION_SUMMARIZER):
            figures[name] = worked(store, name)
        figures["wake_ms"] = woken(store)
    print_json(figures)


def worked(store: Store, name: WorkerName) -> Figures:
    board = WorkerBoard(JobParts(store, Settings(store)))
    late_ms: list[float] = []
    with beating(late_ms):
        took = timed(lambda: board.run_until_idle([name]))
    (status,) = took.result
    return {
        "items": status.completed,
        "per_second": round(status.completed / took.wall_s, 1),
        "per_processor_second": round(status.completed / took.cpu_s, 1),
        "beat_late_ms": latency(late_ms, worst=True),
    }


def idle_beat() -> dict[str, float]:
    late_ms: list[float] = []
    with beating(late_ms):
        threading.Event().wait(3)
    return latency(late_ms, worst=True)


def woken(store: Store) -> dict[str, float]:
    settings = Settings(store)
    settings.set("summarizer_idle_timeout", 86_400)
    board = WorkerBoard(JobParts(store, settings))
    at_work = threading.Event()
    began = (WorkerName.EXCHANGE_SUMMARIZER, WorkerState.RUNNING)
    board.subscribe(lambda each: at_work.set() if (each.name, each.state) == began else None)
    rests = threading.Event()
    board.start(lambda loop: threading.Thread(target=loop, daemon=True).start())
    took_ms = []
    for number in range(WAKES):
        while any(
            each.state is not WorkerState.IDLE
            for each in board.statuses()
            if each.name is began[0]  # others are off or blocked
        ):
            rests.wait(0.01)
        at_work.clear()
        store.save(*new_conversation(store, f"question {number}").changes)
        started = time.perf_counter()
        at_work.wait(10)
        took_ms.append((time.perf_counter() - started) * 1000)
    board.stop()
    return latency(took_ms, worst=True)


@contextmanager
def beating(late_ms: list[float]) -> Iterator[None]:
    """Note how late a thread with a beat is woken while the block runs."""
    over = threading.Event()

    def beat() -> None:
        last = time.perf_counter()
        while not over.wait(BEAT_S):
            present = time.perf_counter()
            late_ms.append((present - last - BEAT_S) * 1000)
            last = present

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def filled(store: Store, exchanges: int, turns: int) -> None:
    """Write made-up conversations of long and short answers."""
    made = ZipfText()
    waiting = []
    for _ in range(exchanges // turns):
        texts = [made.text(int(made.source.integers(20, 200))) for _ in range(turns)]
        waiting.append(store.commit(*new_conversation(store, *texts).changes))
    for each in waiting:
        each.result()


if __name__ == "__main__":
    main()
