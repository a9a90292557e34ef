"""A model server in a process of its own, for measuring what works with one; prints its base URL.

Run: .venv/bin/python -m tests.bench.model_server [--writes TOKENS]
"""

import json
import sys
from collections.abc import Callable, Sequence

from tests.bench.shared.made_up import CONTENT
from tests.fakes.loopback import Loopback, Seen
from tests.fakes.loopback_embeddings import EMBEDDINGS
from tests.fakes.loopback_script import Step, slow, text, usage, vectors

_ANSWER = {
    "summary": "They asked how it is done, and it was explained step by step.",
    "title": "How it is done", "tags": ["explanation"],
    "turns": [{"number": number, "line": "It was explained."} for number in range(1, 61)],
    "facts": [], "lines": [],
}  # fmt: skip
_DIMENSION = 384
_DELAY_MS = 5.0
_CHARS_A_TOKEN = 4


def answer(seen: Seen) -> Sequence[Step]:
    if seen.wire == EMBEDDINGS:
        return (vectors(_DIMENSION),)
    return (slow(_DELAY_MS), text(json.dumps(_ANSWER), chunks=8), usage(900, 60))


def writing(tokens: int) -> Callable[[Seen], Sequence[Step]]:
    """Return what answers with content of every kind, 150 tokens a second."""
    written = (CONTENT * (tokens * _CHARS_A_TOKEN // len(CONTENT) + 1))[: tokens * _CHARS_A_TOKEN]
    return lambda _seen: (slow(1000 / 150), text(written, chunks=tokens), usage(900, tokens))


def main() -> None:
    """Serve until the caller closes our standard input."""
    reply: Callable[[Seen], Sequence[Step]] = answer
    if "--writes" in sys.argv:
        reply = writing(int(sys.argv[sys.argv.index("--writes") + 1]))
    with Loopback().by(reply) as server:
        sys.stdout.write(f"{server.v1}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
