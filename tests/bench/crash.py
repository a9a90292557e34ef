"""A thousand kills of a process that writes through the store; prints JSON.

    python -m tests.bench.crash [--rounds N] [--seed N]

Each round starts a real process that imports, streams replies, tags, sets, summarizes, forgets,
backs up and checkpoints, kills it at a random moment (while it opens, too), opens what it
left, runs the check and compares with what had been acknowledged. `lost` must be 0.
"""

import tempfile
from pathlib import Path

from tests.bench.shared.measuring import options, print_json
from tests.bench.shared.rounds import run_rounds
from tests.fakes.crash_rounds import Rounds


def main() -> int:
    """Run and print; the exit code is 1 when something was lost."""
    given = options(__doc__, rounds=1000, seed=1)
    with tempfile.TemporaryDirectory(prefix="commonplace-crash-") as folder:
        figures = run_rounds(Rounds(Path(folder), given.seed), given.rounds)
    print_json(figures)
    return 1 if figures["lost"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
