"""Failing disks under a process that writes through the store; prints JSON. Needs root and strace.

    python -m tests.bench.disk [--rounds N] [--seed N]

Two of three rounds have the kernel refuse a call of the writer: the Nth write, fsync, truncation or rename of one of
its threads fails with ENOSPC or EIO. What was acknowledged must be there, as in `tests.bench.crash`. The others write
until a small file system is full, give room back, and go on within five seconds in the same process.
"""

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from app.check import check
from app.domain.errors import StorageError
from app.storage.engine.store import Store
from app.storage.safety.backup import make_backup
from tests.bench.shared.measuring import Figures, options, print_json
from tests.bench.shared.rounds import run_rounds
from tests.fakes.crash_rounds import Rounds, Victim
from tests.fakes.small_disk import small_disk
from tests.fakes.stored import add_conversation, opened, titles

_CALLS = ("write", "pwrite64", "fsync", "fdatasync", "ftruncate", "rename")
_MOST_CALLS = 40  # of a thread, and commits share them
_GOES_ON_WITHIN_S = 5.0


class RefusedCalls(Rounds):
    """Rounds in which a system call of the writer fails."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        self.refused = 0

    def _start(self, seed: int) -> Victim:
        call, error = self.chance.choice(_CALLS), self.chance.choice(("ENOSPC", "EIO"))
        which = int(_MOST_CALLS ** self.chance.random())
        inject = f"inject={call}:error={error}:when={which}"
        # Its output is a pipe, which `write` would be refused for too: only these files are.
        names = (
            "commonplace.duckdb",
            "commonplace.duckdb.wal",
            "journal/00000000000000000001.journal",
        )
        path = [part for name in names for part in ("-P", str(self._root / name))]
        return Victim(
            self._root, seed, ("strace", "-f", "-qq", "-o", "/dev/null", *path, "-e", inject)
        )

    def _end(self, victim: Victim) -> list[str]:
        self.refused += bool(victim.kill())
        return victim.lines


def main() -> int:
    """Run and print; the exit code is 1 when something was lost."""
    given = options(__doc__, rounds=200, seed=1)
    full = given.rounds // 3
    with tempfile.TemporaryDirectory(prefix="commonplace-disk-") as folder:
        rounds = RefusedCalls(Path(folder), given.seed)
        refused = run_rounds(rounds, given.rounds - full)
        filled = [_fill(Path(folder) / "full", given.seed + number) for number in range(full)]
    bad = [each["bad"] for each in filled if each["bad"]]
    print_json(
        {
            "refused_calls": {**refused, "writers_that_ended": rounds.refused},
            "full_disks": {
                "rounds": full,
                "acknowledged": sum(each["acknowledged"] for each in filled),
                "slowest_going_on_ms": max((each["goes_on_ms"] for each in filled), default=0),
                "bad": bad,
            },
        }
    )
    return 1 if refused["lost"] or bad else 0


def _fill(folder: Path, seed: int) -> Figures:
    """Write until the disk is full, at times with checkpoints and backups; make room; go on."""
    chance = random.Random(seed)
    acknowledged: set[str] = set()
    goes_on_ms, bad = 0, ""
    with small_disk(folder, chance.randint(6, 24)) as disk:
        with opened(disk.root / "data") as store:
            works = (lambda: store.checkpoint().result(), lambda: make_backup(store))
            for number in range(chance.randint(1, 5)):
                _write(store, acknowledged, f"A{number}", chance)
            disk.fill(leave_bytes=chance.randrange(2 << 20))
            for number in range(40):
                if chance.random() < 0.2 and not _tried(chance.choice(works)):
                    continue
                if not _write(store, acknowledged, f"B{number}", chance):
                    break
            disk.free()
            began = time.monotonic()
            while not _write(store, acknowledged, "C", chance):
                if time.monotonic() - began > _GOES_ON_WITHIN_S:
                    bad = f"{seed}: it does not go on"
                    break
            goes_on_ms = round((time.monotonic() - began) * 1000)
        with opened(disk.root / "data") as again:
            if lost := acknowledged - titles(again):
                bad = f"{seed}: lost {sorted(lost)}"
            if problems := check(again).problems:
                bad = f"{seed}: {problems[0]}"
    return {"acknowledged": len(acknowledged), "goes_on_ms": goes_on_ms, "bad": bad}


def _write(store: Store, acknowledged: set[str], title: str, chance: random.Random) -> bool:
    text = chance.randbytes(chance.randrange(100, 200_000)).hex()
    if done := _tried(lambda: add_conversation(store, text, title=title)):
        acknowledged.add(title)
    return done


def _tried(work: Callable[[], object]) -> bool:
    try:
        work()
    except StorageError:
        return False
    return True


if __name__ == "__main__":
    raise SystemExit(main())
