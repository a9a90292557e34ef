"""A thousand kills of a process that writes through the store; prints JSON.

    python -m tests.bench.crash [--rounds N] [--seed N]

Each round starts a real process that imports, streams replies, tags, sets, summarizes, forgets,
backs up and checkpoints, kills it at a random moment (while it opens, too), opens what it
left, runs the check and compares with what had been acknowledged. `lost` must be 0.
"""

import tempfile
from pathlib import Path

from tests.bench.shared.measuring import options, print_json, timed
from tests.fakes.crash_rounds import Lost, Rounds


def main() -> int:
    """Run and print; the exit code is 1 when something was lost."""
    given = options(__doc__, rounds=1000, seed=1)
    with tempfile.TemporaryDirectory(prefix="commonplace-crash-") as folder:
        rounds = Rounds(Path(folder), given.seed)
        took = timed(lambda: _first_loss(rounds, given.rounds))
        seen, lost = rounds.figures, took.result
        figures = {
            "rounds": seen.rounds,
            "killed_while_opening": seen.killed_while_opening,
            "restored": seen.restored,
            "slowest_open_ms": round(seen.slowest_open_ms),
            "acknowledged": seen.acknowledged,
            "in_doubt": seen.in_doubt,
            "rounds_that_lost_what_was_in_doubt": seen.in_doubt_lost,
            "lost": len(lost),
            "what": lost,
            "seconds": round(took.wall_s),
        }
    print_json(figures)
    return 1 if lost else 0


def _first_loss(rounds: Rounds, count: int) -> list[str]:
    """Run until something is lost: what follows would be compared with a wrong account."""
    try:
        for _ in range(count):
            rounds.one()
    except Lost as loss:
        return [f"round {rounds.figures.rounds}: {loss}"]
    return []


if __name__ == "__main__":
    raise SystemExit(main())
