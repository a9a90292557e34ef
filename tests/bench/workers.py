"""How fast the summarisers go, and what another thread feels of it; prints JSON.

    python -m tests.bench.workers [--exchanges N] [--turns N]

A library of made-up conversations is written, then summarised on the board in threads of its own,
as in the window. Meanwhile a thread with a 4 ms beat, standing for the window's, notes how late it
is woken; the same beat on an idle program is the control. `wake_ms` is the time from the end of a
commit that completes an exchange to the worker's being at work on it.
"""

import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from app.domain.workers import WorkerName, WorkerState
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.workers.board import WorkerBoard
from tests.bench.shared.measuring import SWITCH_INTERVAL_S, Figures, options, print_json, timed
from tests.fakes.stored import new_conversation, opened

BEAT_S = 0.004
SYLLABLES = "ka lo mi ten sur val per dor an est vi mo gra pel tu shen ra bi no fer"
FUNCTION = "the of and to in a is that for it with as on be at by this from or an"
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
    board = WorkerBoard(store, Settings(store))
    late_ms: list[float] = []
    with beating(late_ms):
        took = timed(lambda: board.run_until_idle([name]))
    (status,) = took.result
    return {
        "items": status.completed,
        "per_second": round(status.completed / took.wall_s, 1),
        "per_processor_second": round(status.completed / took.cpu_s, 1),
        "beat_late_ms": spread(late_ms),
    }


def idle_beat() -> dict[str, float]:
    late_ms: list[float] = []
    with beating(late_ms):
        threading.Event().wait(3)
    return spread(late_ms)


def woken(store: Store) -> dict[str, float]:
    settings = Settings(store)
    settings.set("summarizer_idle_timeout", 86_400)
    board = WorkerBoard(store, settings)
    at_work = threading.Event()
    board.subscribe(lambda status: at_work.set() if status.state is WorkerState.RUNNING else None)
    rests = threading.Event()
    board.start(lambda loop: threading.Thread(target=loop, daemon=True).start())
    took_ms = []
    for number in range(WAKES):
        while any(status.state is not WorkerState.IDLE for status in board.statuses()):
            rests.wait(0.01)
        at_work.clear()
        store.save(*new_conversation(store, f"question {number}").changes)
        started = time.perf_counter()
        at_work.wait(10)
        took_ms.append((time.perf_counter() - started) * 1000)
    board.stop()
    return spread(took_ms)


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


def spread(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    points = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {
        name: round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)
        for name, share in points.items()
    }


def filled(store: Store, exchanges: int, turns: int) -> None:
    """Write made-up conversations of long and short answers, lists and code among them."""
    made = random.Random(7)
    vocabulary = [
        "".join(made.choices(SYLLABLES.split(), k=made.randint(2, 4))) for _ in range(4_000)
    ]
    waiting = []
    for _ in range(exchanges // turns):
        topic = made.sample(vocabulary, 40)
        texts = [said(made, vocabulary, topic) for _ in range(turns)]
        waiting.append(store.commit(*new_conversation(store, *texts).changes))
    for each in waiting:
        each.result()


def said(made: random.Random, vocabulary: Sequence[str], topic: Sequence[str]) -> str:
    lines = []
    for kind in made.choices(("prose", "list", "code"), (6, 3, 1), k=made.randint(2, 10)):
        if kind == "code":
            lines.append("```\n" + "\n".join(f"{word} = 1" for word in topic[:8]) + "\n```")
        elif kind == "list":
            lines += [f"- **{topic[0]}**: {sentence(made, vocabulary, topic)}" for _ in range(3)]
        else:
            count = made.randint(1, 5)
            lines.append(" ".join(sentence(made, vocabulary, topic) for _ in range(count)))
    return "\n\n".join(lines)


def sentence(made: random.Random, vocabulary: Sequence[str], topic: Sequence[str]) -> str:
    """Return a sentence with as many words of grammar as English has."""
    words = [
        made.choice(made.choices((FUNCTION.split(), topic, vocabulary), (45, 30, 25))[0])
        for _ in range(made.randint(5, 25))
    ]
    return " ".join(words).capitalize() + "."


if __name__ == "__main__":
    main()
