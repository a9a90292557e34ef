"""A thousand kills of a process that writes through the store; prints JSON.

    python -m tests.bench.crash [--rounds N] [--seed N]

Each round starts a real process that tells, imports, streams replies, tags, sets, summarises,
forgets, backs up and checkpoints, kills it at a random moment (while it opens, too), opens what it
left, runs the check and compares with what had been acknowledged. `lost` must be 0.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from tests.fakes.crash_ledger import Lost
from tests.fakes.crash_rounds import Rounds


def main() -> int:
    """Run and print; the exit code is 1 when something was lost."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=1000)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="commonplace-crash-") as folder:
        rounds = Rounds(Path(folder), given.seed)
        lost: list[str] = []
        for _ in range(given.rounds):
            try:
                rounds.one()
            except Lost as loss:
                lost.append(f"round {rounds.figures.rounds}: {loss}")
                break  # what follows would be compared with a wrong account
        seen = rounds.figures
        figures = {
            "rounds": seen.rounds,
            "killed_while_opening": seen.killed_while_opening,
            "restored": seen.restored,
            "slowest_open_ms": round(seen.slowest_open_ms),
            "acknowledged": sum(each.acknowledged for each in rounds.ledgers),
            "in_doubt": sum(each.in_doubt for each in rounds.ledgers),
            "longest_lost_stream_chars": max(each.lost_stream_chars for each in rounds.ledgers),
            "lost": len(lost),
            "what": lost,
            "seconds": round(time.perf_counter() - began),
        }
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")
    return 1 if lost else 0


if __name__ == "__main__":
    raise SystemExit(main())
