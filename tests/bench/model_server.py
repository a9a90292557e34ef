"""A model server in a process of its own, for measuring what works with one; prints its base URL.

Run: .venv/bin/python -m tests.bench.model_server [--silent]
"""

import json
import sys
from collections.abc import Sequence

from tests.fakes.loopback import Loopback, Seen
from tests.fakes.loopback_embeddings import EMBEDDINGS
from tests.fakes.loopback_script import Step, slow, stall, text, usage, vectors

_ANSWER = {
    "summary": "They asked how it is done, and it was explained step by step.",
    "title": "How it is done",
    "tags": ["explanation"],
    "turns": [{"number": number, "line": "It was explained."} for number in range(1, 61)],
    "facts": [],
    "lines": [],
}
_DIMENSION = 384
_DELAY_MS = 5.0


def answer(seen: Seen) -> Sequence[Step]:
    if seen.wire == EMBEDDINGS:
        return (vectors(_DIMENSION),)
    return (slow(_DELAY_MS), text(json.dumps(_ANSWER), chunks=8), usage(900, 60))


def silence(_seen: Seen) -> Sequence[Step]:
    return (stall(),)


def main() -> None:
    """Serve until the caller closes our standard input; with --silent no request is ever answered."""
    with Loopback().by(silence if "--silent" in sys.argv else answer) as server:
        sys.stdout.write(f"{server.v1}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
