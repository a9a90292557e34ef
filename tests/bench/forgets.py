"""Many forgets in one library, and what is left of them in any file; prints JSON.

    python -m tests.bench.forgets [--rounds 500] [--seed 1]

Each forgotten conversation has a word of its own in its title, turns, summary and a fact. Half-way a backup is
made and the bytes are removed, as in a quiet time, and once more at the end. The exit code is 1 when such a word
is found in a file (databases are written without compression, journals are unpacked), when what was kept is not
whole, or when `check` finds a problem. Resident memory is in MB.
"""

import random
import tempfile
from pathlib import Path

from app.check import check
from app.domain.changes import SummaryPut
from app.domain.ids import ConversationId
from app.storage.deletion.erasure import erase_bytes
from app.storage.deletion.forget import forget
from app.storage.engine.frames import frames
from app.storage.engine.store import Store
from app.storage.safety.backup import make_backup
from tests.bench.shared.measuring import options, print_json, resident_mb, timed
from tests.fakes.canary import plain_databases
from tests.fakes.stored import AT, add_conversation, learned, opened, titles

_KEPT = 100


def main() -> int:
    """Run and print."""
    given = options(__doc__, rounds=500, seed=1)
    words = [f"zq{number:05d}xk" for number in range(given.rounds + _KEPT)]
    random.Random(given.seed).shuffle(words)
    gone, kept = words[_KEPT:], words[:_KEPT]
    with tempfile.TemporaryDirectory(prefix="commonplace-forgets-") as folder:
        root = Path(folder) / "data"
        with plain_databases(), opened(root) as store:
            ids = {word: _add(store, word) for word in sorted(words)}
            make_backup(store)
            before = resident_mb()["all"]
            took = []
            for number, word in enumerate(gone):
                took.append(timed(lambda: forget(store, [ids[word]])).cpu_s)  # noqa: B023 - called at once
                if number == len(gone) // 2:
                    make_backup(store)
                    erase_bytes(store)
            erasing = timed(lambda: erase_bytes(store))
            problems = check(store).problems
            is_whole = titles(store) == set(kept)
            after = resident_mb()["all"]
        left = _found(root, gone)
        seen = len(_found(root, kept))  # else nothing could be found
    print_json(
        {
            "forgets": len(gone),
            "words_left": sorted(left)[:10],
            "kept_words_seen": seen,
            "kept_whole": is_whole,
            "problems": problems,
            "forget_cpu_ms": {
                "first_100": round(sum(took[:100]) * 10),
                "last_100": round(sum(took[-100:]) * 10),
            },
            "erase_cpu_s": round(erasing.cpu_s, 1),
            "memory_mb": {"before": before, "after": after},
        }
    )
    return 1 if left or problems or not is_whole or seen < len(kept) else 0


def _add(store: Store, word: str) -> ConversationId:
    made = add_conversation(store, f"Keep {word}", f"And again {word}", title=word)
    here = made.conversation.id
    learned(store, made, f"The word is {word}")
    store.save(SummaryPut("conversation", here, here, f"About {word}", "m", "h", AT))
    return here


def _found(root: Path, words: list[str]) -> set[str]:
    """Return the words that some file contains."""
    left = set()
    for path in root.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            if path.suffix == ".journal":
                content += "".join(r.payload for r in frames(content) if r is not None).encode()
            left |= {word for word in words if word.encode() in content}
    return left


if __name__ == "__main__":
    raise SystemExit(main())
