"""How fast the store is: commits, bulk, replay, opening; prints JSON.

    python -m tests.bench.storage [--messages N]

Wall-clock figures are medians on whatever else the machine is doing; `cpu` figures are not.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from app.domain.changes import ReplyGrew, SettingPut
from app.storage.backup import make_backup
from app.storage.forget import forget
from app.storage.recovery import open_store
from app.storage.store import Store
from tests.fakes.stored import AT, asked, killed, made, tell

TURNS = 10
TEXT = "how do I raise the limit of a connection that times out after a minute, and why " * 4


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--messages", type=int, default=100_000)
    given = arguments.parse_args()
    figures: dict[str, float] = {"messages": given.messages}
    with tempfile.TemporaryDirectory(prefix="commonplace-bench-") as folder:
        root = Path(folder)
        store = open_store(made(root / "live"))
        figures |= _bulk(store, given.messages)
        unclean = killed(store, root / "unclean")
        store.close()
        figures["database_mb"] = round(store.paths.database.stat().st_size / 1e6, 1)
        figures["open_clean_ms"] = _median_ms(lambda: open_store(store.paths).close(), 5)
        figures["open_unclean_ms"] = _opening_copies(unclean, root)
        figures |= _replay(unclean, root, given.messages)
        store = open_store(store.paths)
        figures |= _single(store)
        figures["backup_ms"] = _median_ms(lambda: make_backup(store), 3)
        gone = store.read(lambda c: c.execute("SELECT max(id) FROM conversation").fetchall())
        figures["forget_ms"] = _median_ms(lambda: forget(store, [gone[0][0]]), 1)
        store.close()
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")


def _bulk(store: Store, messages: int) -> dict[str, float]:
    began, cpu = time.perf_counter(), time.process_time()
    waiting = []
    for _ in range(messages // (2 * TURNS)):
        waiting.append(store.commit(*tell(store, *([TEXT] * TURNS)).changes))
        if len(waiting) > 200:
            waiting.pop(0).result()
    for future in waiting:
        future.result()
    return {
        "bulk_messages_per_s": round(messages / (time.perf_counter() - began)),
        "bulk_messages_per_cpu_s": round(messages / (time.process_time() - cpu)),
    }


def _single(store: Store) -> dict[str, float]:
    running = asked(store, "Why?")
    reply = store.ids.message()
    grew = ReplyGrew(running.exchanges[0].id, reply, "text", TEXT, AT, "openai:m")
    return {
        "turn_p50_ms": _median_ms(lambda: store.save(*tell(store, TEXT).changes), 100),
        "setting_p50_ms": _median_ms(lambda: store.save(SettingPut("theme", '"dark"')), 100),
        "reply_grew_p50_ms": _median_ms(lambda: store.journal_only(grew).result(), 100),
    }


def _opening_copies(image: Path, root: Path) -> float:
    times = []
    for number in range(3):
        copy = root / f"copy{number}"
        shutil.copytree(image, copy)
        times.append(_median_ms(lambda copy=copy: open_store(made(copy)).close(), 1))  # type: ignore[misc]
        shutil.rmtree(copy)
    return statistics.median(times)


def _replay(image: Path, root: Path, messages: int) -> dict[str, float]:
    """Open with the journal alone."""
    copy = root / "journal-alone"
    shutil.copytree(image, copy)
    paths = made(copy)
    paths.database.unlink()
    paths.wal.unlink(missing_ok=True)
    began, cpu = time.perf_counter(), time.process_time()
    store = open_store(paths)
    took_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    records = store.journal.last_position
    store.close()
    return {
        "replay_records_per_s": round(records / took_s),
        "replay_messages_per_s": round(messages / took_s),
        "replay_messages_per_cpu_s": round(messages / cpu_s),
    }


def _median_ms(work: Callable[[], object], times: int) -> float:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1000)
    return round(statistics.median(taken), 1)


if __name__ == "__main__":
    main()
