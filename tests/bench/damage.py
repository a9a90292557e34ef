"""Hundreds of damaged data directories, each opened by the program itself; prints JSON.

    python -m tests.bench.damage [--times N] [--seed N] [--kind NAME]

Every kind of damage of `tests.fakes.damage` is done N times by chance to a library that a kill
left. Each must open without help, hold everything acknowledged, pass the check, and go on. Each
kind runs in a process of its own, so that a crash of the engine is counted and not suffered.
"""

import logging
import random
import shutil
import tempfile
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from app.check import check
from app.system.paths import DataPaths
from tests.bench.shared.measuring import Figures, in_process, options, print_json, timed
from tests.fakes.damage import KINDS
from tests.fakes.libraries import Library, left_by_a_kill
from tests.fakes.stored import opened


def main() -> int:
    """Run and print; the exit code is 1 when anything was lost or did not open."""
    given = options(__doc__, times=40, seed=1, kind=[str])
    kinds = given.kind or list(KINDS)
    took = timed(lambda: {kind: _in_a_process(kind, given.times, given.seed) for kind in kinds})
    bad = sum(len(figures["bad"]) for figures in took.result.values())
    print_json(
        {
            "directories": given.times * len(kinds),
            "opened_with_everything": given.times * len(kinds) - bad, "bad": bad,
            "seconds": round(took.wall_s), "kinds": took.result,
        }
    )  # fmt: skip
    return 1 if bad else 0


def _in_a_process(kind: str, times: int, seed: int) -> Figures:
    """Return the figures of a kind; a process that died is one that is bad."""
    try:
        return in_process(_of_kind, kind, times, seed)
    except BrokenProcessPool as error:
        return {"bad": [f"the process ended: {error}"]}


def _of_kind(kind: str, times: int, seed: int) -> Figures:
    logging.disable(logging.CRITICAL)
    bad: list[str] = []
    restored, slowest_ms = 0, 0.0
    with tempfile.TemporaryDirectory(prefix="commonplace-damage-") as folder:
        original = left_by_a_kill(Path(folder))
        for number in range(seed, seed + times):
            root = Path(folder) / str(number)
            shutil.copytree(original, root)
            KINDS[kind](DataPaths(root), random.Random(number))
            try:
                took = timed(Library(DataPaths(root)).opens)
                slowest_ms = max(slowest_ms, took.ms)
                restored += any("backup of" in notice for notice in took.result)
                with opened(root) as store:
                    bad += (f"{number}: {problem}" for problem in check(store).problems)
            except Exception as error:  # noqa: BLE001 - that is what is counted
                bad.append(f"{number}: {type(error).__name__}: {error}")
            shutil.rmtree(root)
    return {"times": times, "restored": restored, "slowest_ms": round(slowest_ms), "bad": bad}


if __name__ == "__main__":
    raise SystemExit(main())
