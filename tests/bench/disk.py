"""Failing disks under a process that writes through the store; prints JSON. Needs root and strace.

    python -m tests.bench.disk [--rounds N] [--seed N]

Two of three rounds have the kernel refuse a call of the writer: the Nth write, fsync, truncation or rename of each of
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

# How often a thread makes each call in some 40 commits, or less.
_CALLS = {"write": 25, "pwrite64": 18, "fsync": 18, "fdatasync": 6, "ftruncate": 1, "rename": 1}
_GOES_ON_WITHIN_S = 5.0


class RefusedCalls(Rounds):
    """Rounds in which a system call of the writer fails, of whatever file.

    Attributes:
        refused: Rounds in which the call was made, and so refused.
        ended: Rounds in which the writer ended by itself.
    """

    least_acknowledged, most_acknowledged = 20, 80

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        self._log = folder / "calls"
        self.refused = self.ended = 0

    def _start(self, seed: int) -> Victim:
        call, error = self.chance.choice(list(_CALLS)), self.chance.choice(("ENOSPC", "EIO"))
        which = self.chance.randint(1, _CALLS[call])
        inject = f"inject={call}:error={error}:when={which}"
        log = str(self._log)
        return Victim(
            self._root,
            seed,
            ("strace", "-f", "-qq", "-o", log, "-e", inject, "-e", f"trace={call}"),
        )

    def _end(self, victim: Victim) -> list[str]:
        self.ended += bool(victim.kill())
        self.refused += "(INJECTED)" in self._log.read_text(encoding="utf-8", errors="replace")
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
            "refused_calls": {
                **refused,
                "refused": rounds.refused,
                "writers_that_ended": rounds.ended,
            },
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
