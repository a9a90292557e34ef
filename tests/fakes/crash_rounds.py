"""Rounds of killing the writer: start it, let it write, kill it, open what it left, compare."""

import random
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from app.check import check
from app.storage.recovery import open_store
from tests.fakes.crash_ledger import Ledger, Lost
from tests.fakes.stored import made

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 60
# Beyond this the check of every row would take longer than the round itself.
FRESH_AFTER_CONVERSATIONS = 250


class Victim:
    """A writer in a process of its own; what it says is collected until it is killed."""

    def __init__(self, root: Path, seed: int) -> None:
        self.lines: list[str] = []
        self._acknowledged = 0
        self._news = threading.Condition()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fakes.crash_writer", str(root), str(seed)],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self.lines.append(line.strip())
                self._acknowledged += line.startswith('{"ok"')
                self._news.notify_all()
        with self._news:
            self._acknowledged = sys.maxsize
            self._news.notify_all()

    def kill_after(self, acknowledged: int, seconds: float) -> None:
        """Kill it so long after so many writes were acknowledged. Blocking."""
        with self._news:
            self._news.wait_for(lambda: self._acknowledged >= acknowledged, WAIT_S)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reading.join()
        _, complaints = self._process.communicate()
        if self._process.returncode != -9:
            raise Lost(f"the writer ended by itself: {complaints}")


@dataclass
class Figures:
    """What many rounds came to; times in ms."""

    rounds: int = 0
    killed_while_opening: int = 0
    restored: int = 0
    slowest_open_ms: float = 0.0


class Rounds:
    """One data directory, killed over and over; starts a fresh one when it has grown large."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._chance = random.Random(seed)
        self._seed = seed
        self._root = folder / "0"
        self._ledger = Ledger()
        self._done: list[Ledger] = []
        self.figures = Figures()

    @property
    def ledgers(self) -> list[Ledger]:
        """All that was compared so far."""
        return [*self._done, self._ledger]

    def one(self) -> None:
        """Kill, open, compare; raise Lost when something acknowledged is not there."""
        self.figures.rounds += 1
        number = self.figures.rounds
        victim = Victim(self._root, self._seed * 10_000 + number)
        if self._chance.random() < 0.15:
            victim.kill_after(0, self._chance.uniform(0.2, 1.0))
        else:
            victim.kill_after(self._chance.randint(0, 30), self._chance.uniform(0, 0.05))
        self.figures.killed_while_opening += not victim.lines
        self._compare(victim.lines, number)
        if len(self._ledger.told) > FRESH_AFTER_CONVERSATIONS:
            shutil.rmtree(self._root)
            self._done.append(self._ledger)
            self._ledger, self._root = Ledger(), self._folder / str(number)

    def _compare(self, lines: list[str], number: int) -> None:
        began = time.perf_counter()
        store = open_store(made(self._root))
        took_ms = (time.perf_counter() - began) * 1000
        self.figures.slowest_open_ms = max(self.figures.slowest_open_ms, took_ms)
        try:
            self.figures.restored += any("backup" in notice for notice in store.notices)
            self._ledger.settle(lines, store)
            problems = check(store).problems
        finally:
            store.close()
        if problems:
            raise Lost(f"round {number}: {problems}")
