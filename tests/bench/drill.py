"""Restore drills: write, back up, write on, restore, compare; prints JSON.

    python -m tests.bench.drill [--drills N] [--seed N]

Each drill goes on with the library of the one before, every tenth with a new one. Its export at the time of
the backup and the export after the restore must be equal, and so must all rows but for those that name the state of files.
"""

import io
import random
import re
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from app.check import check
from app.domain import changes
from app.storage.deletion.erasure import erase_bytes
from app.storage.deletion.forget import forget
from app.storage.engine.store import Store
from app.storage.safety.backup import backups_of, make_backup
from app.storage.safety.restore import restore_backup
from app.storage.tables.conversations import Conversations
from app.system.paths import DataPaths
from app.transfer.exporting import ExportFormat, write_export
from tests.bench.shared.measuring import options, print_json, timed
from tests.fakes.stored import AT, add_conversation, learned, opened, tables

_WRITES = (3, 12)
_FRESH_EVERY = 10  # drills; later ones would spend their time exporting


def main() -> int:
    """Run and print; the exit code is 1 when a restore was not equal."""
    given = options(__doc__, drills=50, seed=1)
    chance = random.Random(given.seed)
    bad: list[str] = []
    slowest_ms = 0.0
    with tempfile.TemporaryDirectory(prefix="commonplace-drill-") as folder:
        for number in range(given.drills):
            paths = DataPaths(Path(folder) / str(number // _FRESH_EVERY))
            with opened(paths.root) as store:
                _write(store, chance)
                chosen, wanted = make_backup(store), _content(store)
                for _ in range(chance.randrange(3)):
                    _write(store, chance)
                    make_backup(store)
                if gone := chance.random() < 0.3:
                    gone = bool(_forget(store, chance))
                if gone:  # the backup is cleaned, so nothing can be equal to what was there
                    erase_bytes(store)
                names = {each.path for each in backups_of(store.paths.backups, store.uid)}
            if chosen.path not in names:
                bad.append(f"{number}: the backup is gone")
                continue
            took = timed(partial(restore_backup, paths, chosen.path))
            slowest_ms = max(slowest_ms, took.ms)
            with opened(paths.root) as store:
                if not gone and _content(store) != wanted:
                    bad.append(f"{number}: what was restored differs")
                bad += (f"{number}: {problem}" for problem in check(store).problems)
    print_json(
        {
            "drills": given.drills, "equal": given.drills - len(bad), "bad": bad,
            "slowest_ms": round(slowest_ms),
        }
    )  # fmt: skip
    return 1 if bad else 0


def _content(store: Store) -> tuple[str, dict[str, Any]]:
    out = io.StringIO()
    write_export(store, out, ExportFormat.JSONL)
    return re.sub(r'"exported_at": "[^"]+"', "", out.getvalue(), count=1), tables(store, "meta")


def _write(store: Store, chance: random.Random) -> None:
    for _ in range(chance.randint(*_WRITES)):
        texts = [
            f"{chance.random()} {chance.randbytes(200).hex()}" for _ in range(chance.randint(1, 4))
        ]
        whole = add_conversation(store, *texts, title=f"T{chance.random()}")
        here = whole.conversation.id
        learned(store, whole, f"The user has {chance.random()}")
        store.save(
            changes.TagsChanged(here, (f"tag{chance.randrange(9)}",)),
            changes.SummaryPut("conversation", here, here, texts[0], "m", "h", AT),
            changes.SettingPut("rag_max_tokens", str(chance.randrange(100, 1000))),
        )


def _forget(store: Store, chance: random.Random) -> object:
    ids = [each.id for each in Conversations(store).listed()]
    return forget(store, chance.sample(ids, 1)) if ids else ()


if __name__ == "__main__":
    raise SystemExit(main())
