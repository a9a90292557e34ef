"""Hundreds of damaged data directories, each opened by the program itself; prints JSON.

    python -m tests.bench.damage [--times N] [--seed N] [--kind NAME]

Every kind of damage of `tests.fakes.damage` is done N times by chance to a library that a kill
left. Each must open without help, hold everything acknowledged, pass the check, and go on. Each
kind runs in a process of its own, so that a crash of the engine is counted and not suffered.
"""

import argparse
import json
import logging
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from app.check import check
from app.system.paths import DataPaths
from tests.fakes.damage import KINDS
from tests.fakes.libraries import Library, left_by_a_kill
from tests.fakes.stored import opened


def main() -> int:
    """Run and print; the exit code is 1 when anything was lost or did not open."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--times", type=int, default=40)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--kind", choices=KINDS)
    given = arguments.parse_args()
    if given.kind:
        sys.stdout.write(json.dumps(of_kind(given.kind, given.times, given.seed)) + "\n")
        return 0
    began = time.perf_counter()
    kinds = {kind: in_a_process(kind, given.times, given.seed) for kind in KINDS}
    bad = sum(len(figures["bad"]) for figures in kinds.values())
    figures = {
        "directories": given.times * len(KINDS),
        "opened_with_everything": given.times * len(KINDS) - bad,
        "bad": bad,
        "seconds": round(time.perf_counter() - began),
        "kinds": kinds,
    }
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")
    return 1 if bad else 0


def in_a_process(kind: str, times: int, seed: int) -> dict[str, Any]:
    """Return the figures of a kind; a process that died is one that is bad."""
    command = [sys.executable, "-m", "tests.bench.damage", "--kind", kind]
    ended = subprocess.run(
        [*command, "--times", str(times), "--seed", str(seed)], capture_output=True, text=True
    )
    if ended.returncode:
        return {"bad": [f"the process ended with {ended.returncode}: {ended.stderr[-500:]}"]}
    figures: dict[str, Any] = json.loads(ended.stdout)
    return figures


def of_kind(kind: str, times: int, seed: int) -> dict[str, Any]:
    """Damage and open in this process."""
    logging.disable(logging.CRITICAL)
    bad: list[str] = []
    restored, slowest_ms = 0, 0.0
    with tempfile.TemporaryDirectory(prefix="commonplace-damage-") as folder:
        original = left_by_a_kill(Path(folder))
        for number in range(seed, seed + times):
            root = Path(folder) / str(number)
            shutil.copytree(original, root)
            KINDS[kind](DataPaths(root), random.Random(number))
            began = time.perf_counter()
            try:
                notices = Library(DataPaths(root)).opens()
                slowest_ms = max(slowest_ms, (time.perf_counter() - began) * 1000)
                restored += any("backup of" in notice for notice in notices)
                with opened(root) as store:
                    bad += (f"{number}: {problem}" for problem in check(store).problems)
            except Exception as error:  # noqa: BLE001 - that is what is counted
                bad.append(f"{number}: {type(error).__name__}: {error}")
            shutil.rmtree(root)
    return {"times": times, "restored": restored, "slowest_ms": round(slowest_ms), "bad": bad}


if __name__ == "__main__":
    raise SystemExit(main())
