"""Rounds of killing the writer: start it, let it write, end it, open what it left, compare.

What was acknowledged must be there; of what was handed in and not acknowledged, only the first writes
may be, each whole. So the writes are repeated, one after the other, on a copy from before the round,
until that comes to what the kill left.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.check import check
from app.domain import codec
from app.domain.changes import Change
from app.storage.engine.frames import frames
from app.storage.engine.journal import segments
from app.storage.engine.store import Store
from app.storage.safety.interrupted import running_exchanges
from app.storage.safety.recovery import open_store
from app.system.paths import DataPaths
from tests.fakes.stored import killed, made, opened, tables

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 60
CARRIED = 8  # records of running replies that one round carries over to a new segment
FRESH_EVERY = 10  # rounds; later ones would spend their time copying


class Lost(AssertionError):
    """Something acknowledged is not there, or something is there by half."""


class Victim:
    """A writer in a process of its own; what it says is collected until it ends.

    `prefix` is a command that runs it. `times` has the monotonic second of each of `lines`.
    """

    def __init__(self, root: Path, seed: int, prefix: Sequence[str] = ()) -> None:
        self.lines: list[str] = []
        self.times: list[float] = []
        self._acknowledged = 0
        self._news = threading.Condition()
        self._process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "tests.fakes.crash_writer", str(root), str(seed)],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self.lines.append(line.strip())
                self.times.append(time.monotonic())
                self._acknowledged += line.startswith('{"ok"')
                self._news.notify_all()
        with self._news:
            self._acknowledged = sys.maxsize
            self._news.notify_all()

    def wait(self, acknowledged: int, seconds: float) -> None:
        """Wait until so many writes were acknowledged, and so long after, or until it ends."""
        with self._news:
            self._news.wait_for(lambda: self._acknowledged >= acknowledged, WAIT_S)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def kill(self) -> str:
        """Kill it; return why it ended before by itself, "" if it did not."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # with the command that runs it
        self._reading.join()
        _, complaints = self._process.communicate()
        return complaints or "silently" if self._process.returncode != -9 else ""


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
    """One data directory, killed over and over; a fresh one every ten rounds.

    Other ways to end it are subclasses: `_start` starts the writer, `_end` ends it, usually after a number of
    writes between `least_acknowledged` and `most_acknowledged`.
    """

    least_acknowledged, most_acknowledged = 0, 20

    def __init__(self, folder: Path, seed: int, root: Path | None = None) -> None:
        """Use `folder`; the data directory is in it, or at `root`."""
        self._folder = folder
        self._root = root or folder / "live"
        self.chance = random.Random(seed)
        self._seed = seed
        self.figures = Figures()

    def _start(self, seed: int) -> Victim:
        return Victim(self._root, seed)

    def _end(self, victim: Victim) -> list[str]:
        """End the writer; return the lines of what must have been kept."""
        if why := victim.kill():
            raise Lost(f"the writer ended by itself: {why}")
        return victim.lines

    def one(self) -> None:
        """Kill, open, compare; raise Lost when something acknowledged is not there."""
        number = self.figures.rounds
        root, before = self._root, self._folder / "before"
        if number % FRESH_EVERY == 0:
            shutil.rmtree(root, ignore_errors=True)
        made(root)
        shutil.rmtree(before, ignore_errors=True)
        shutil.copytree(root, before)
        self.figures.rounds += 1
        victim = self._start(self._seed * 10_000 + number)
        try:
            if self.chance.random() < 0.15:
                victim.wait(0, self.chance.uniform(0.2, 1.0))
            else:
                writes = self.chance.randint(self.least_acknowledged, self.most_acknowledged)
                victim.wait(writes, self.chance.uniform(0, 0.05))
        except KeyboardInterrupt:
            victim.kill()  # its reader would wait for it for ever
            raise
        lines = self._end(victim)
        self.figures.killed_while_opening += not victim.lines
        position = last_position(self._root)
        began = time.perf_counter()
        store = open_store(made(root))
        took_ms = (time.perf_counter() - began) * 1000
        self.figures.slowest_open_ms = max(self.figures.slowest_open_ms, took_ms)
        try:
            self.figures.restored += any("backup" in notice for notice in store.notices)
            found, problems = comparable_rows(store), check(store).problems
        finally:
            store.close()
        if problems:
            raise Lost(f"problems: {problems}")
        self._compare(lines, found, before, position)

    def _compare(
        self, lines: list[str], found: dict[str, Any], before: Path, position: int
    ) -> None:
        """Repeat what the writer said it did up to `position`: that must come to `found`; raise Lost."""
        events = [json.loads(line) for line in lines if line.endswith("}")]
        writes = [event for event in events if "do" in event]
        sure = [event["ok"] for event in events if "ok" in event]
        if sure != list(range(1, len(sure) + 1)):
            raise Lost(f"acknowledged out of order: {sure}")
        self.figures.acknowledged += len(sure)
        self.figures.in_doubt += len(writes) - len(sure)
        with opened(before) as store:
            # What the removal of forgotten bytes adds to the journal is not among the writes.
            most = min(position - store.journal.last_position, len(writes))
            least = max(len(sure), most - CARRIED)
            for kept in range(most + 1):
                if kept:
                    repeat(store, writes[kept - 1])
                if kept >= least and after_a_kill(store, self._folder / "image") == found:
                    self.figures.in_doubt_lost += kept < len(writes)
                    return
        raise Lost(f"{len(sure)} of {len(writes)} writes were acknowledged, and that is not there")


def last_position(root: Path) -> int:
    """Return the position of the last record in a journal, 0 for an empty one."""
    found = segments(root / "journal")
    if not found:
        return 0
    first, path = found[-1]
    return max((each.position for each in frames(path.read_bytes()) if each), default=first - 1)


def repeat(store: Store, write: dict[str, str]) -> None:
    """Do once more what a writer said it would do."""
    changes: tuple[Change, ...] = codec.loads(tuple[Change, ...], write["do"])
    getattr(store, write["kind"])(*changes).result()


def after_a_kill(store: Store, image: Path) -> dict[str, Any]:
    """Return the rows that the next start would find, which ends running replies."""
    if not running_exchanges(store):
        return comparable_rows(store)
    shutil.rmtree(image, ignore_errors=True)
    DataPaths(killed(store, image)).mark_closed()  # nothing damaged it: it is not read in full
    with opened(image) as again:
        return comparable_rows(again)


def comparable_rows(store: Store) -> dict[str, Any]:
    """Return all rows but for journal positions, and for the uids of messages that recovery made."""
    return tables(
        store, "meta", "state", "erasure", "passage_gone", "exchange.position", "passage.position",
        "message.uid",
    )  # fmt: skip
