"""Rounds of killing the writer: start it, let it write, kill it, open what it left, compare.

What was acknowledged must be there; of what was handed in and not acknowledged, only the first writes
may be, each whole. So the writes are repeated, one after the other, on a copy from before the round,
until that comes to what the kill left.
"""

import json
import random
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.check import check
from app.domain import codec
from app.domain.changes import Change
from app.storage.engine.store import Store
from app.storage.safety.recovery import open_store
from tests.fakes.stored import killed, made, opened, tables

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 60
FRESH_EVERY = 10  # rounds; later ones would spend their time copying


class Lost(AssertionError):
    """Something acknowledged is not there, or something is there by half."""


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
    """What many rounds came to: writes, kills that lost some of those in doubt, times in ms."""

    rounds: int = 0
    killed_while_opening: int = 0
    restored: int = 0
    acknowledged: int = 0
    in_doubt: int = 0
    in_doubt_lost: int = 0
    slowest_open_ms: float = 0.0


class Rounds:
    """One data directory, killed over and over; a fresh one every ten rounds."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._chance = random.Random(seed)
        self._seed = seed
        self.figures = Figures()

    def one(self) -> None:
        """Kill, open, compare; raise Lost when something acknowledged is not there."""
        number = self.figures.rounds
        root, before = self._folder / "live", self._folder / "before"
        if number % FRESH_EVERY == 0:
            shutil.rmtree(root, ignore_errors=True)
        made(root)
        shutil.rmtree(before, ignore_errors=True)
        shutil.copytree(root, before)
        self.figures.rounds += 1
        victim = Victim(root, self._seed * 10_000 + number)
        if self._chance.random() < 0.15:
            victim.kill_after(0, self._chance.uniform(0.2, 1.0))
        else:
            victim.kill_after(self._chance.randint(0, 20), self._chance.uniform(0, 0.05))
        self.figures.killed_while_opening += not victim.lines
        began = time.perf_counter()
        store = open_store(made(root))
        took_ms = (time.perf_counter() - began) * 1000
        self.figures.slowest_open_ms = max(self.figures.slowest_open_ms, took_ms)
        try:
            self.figures.restored += any("backup" in notice for notice in store.notices)
            found, problems = _rows(store), check(store).problems
        finally:
            store.close()
        if problems:
            raise Lost(f"problems: {problems}")
        self._compare(victim.lines, found, before)

    def _compare(self, lines: list[str], found: dict[str, Any], before: Path) -> None:
        """Repeat what the writer said it did until that comes to `found`; raise Lost."""
        events = [json.loads(line) for line in lines if line.endswith("}")]
        writes = [event for event in events if "do" in event]
        sure = [event["ok"] for event in events if "ok" in event]
        if sure != list(range(1, len(sure) + 1)):
            raise Lost(f"acknowledged out of order: {sure}")
        self.figures.acknowledged += len(sure)
        self.figures.in_doubt += len(writes) - len(sure)
        with opened(before) as store:
            for count in range(len(writes) + 1):
                if count:
                    _repeat(store, writes[count - 1])
                if count >= len(sure) and _after_a_kill(store, self._folder / "image") == found:
                    self.figures.in_doubt_lost += count < len(writes)
                    return
        raise Lost(f"{len(sure)} of {len(writes)} writes were acknowledged, and that is not there")


def _repeat(store: Store, write: dict[str, str]) -> None:
    changes: tuple[Change, ...] = codec.loads(tuple[Change, ...], write["do"])
    getattr(store, write["kind"])(*changes).result()


def _after_a_kill(store: Store, image: Path) -> dict[str, Any]:
    """Return the rows that the next start would find, which ends running replies."""
    shutil.rmtree(image, ignore_errors=True)
    with opened(killed(store, image)) as again:
        return _rows(again)


def _rows(store: Store) -> dict[str, Any]:
    """Return all rows but for journal positions, and for the uids of messages that recovery made."""
    return tables(
        store,
        "meta",
        "state",
        "passage_gone",
        "exchange.position",
        "passage.position",
        "message.uid",
    )
