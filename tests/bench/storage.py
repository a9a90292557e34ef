"""Benchmark of the store: commits, bulk, replay, opening, forgetting, the check; prints JSON.

    python -m tests.bench.storage [--messages N]

Wall-clock figures are medians on whatever else the machine is doing; `cpu` figures are not.
"""

import shutil
import statistics
import tempfile
from contextlib import closing
from pathlib import Path

from app.check import check
from app.domain.changes import ReplyGrew, SettingPut
from app.storage.deletion.erasure import erase_bytes
from app.storage.deletion.forget import forget
from app.storage.engine.store import Store
from app.storage.safety.backup import make_backup
from app.storage.safety.recovery import open_store
from tests.bench.shared.measuring import Figures, median_ms, options, print_json, timed
from tests.fakes.stored import AT, add_running, killed, made, new_conversation

_TURNS = 10
_TEXT = "how do I raise the limit of a connection that times out after a minute, and why " * 4


def main() -> None:
    given = options(__doc__, messages=100_000)
    figures: Figures = {"messages": given.messages}
    with tempfile.TemporaryDirectory(prefix="commonplace-bench-") as folder:
        root = Path(folder)
        with closing(open_store(made(root / "live"))) as store:
            took = timed(lambda: _write(store, given.messages))
            figures["bulk_messages_per_s"] = round(given.messages / took.wall_s)
            figures["bulk_messages_per_cpu_s"] = round(given.messages / took.cpu_s)
            unclean = killed(store, root / "unclean")
        paths = store.paths
        figures["database_mb"] = round(paths.database.stat().st_size / 1e6, 1)
        figures["open_clean_ms"] = median_ms(lambda: open_store(paths).close(), 5)
        figures["open_unclean_ms"] = _opening_copies(unclean, root)
        figures |= _replay(unclean, root, given.messages)
        with closing(open_store(paths)) as store:
            figures |= _single(store)
            figures["backup_ms"] = median_ms(lambda: make_backup(store), 3)
            deleted = store.read(lambda c: c.execute("SELECT max(id) FROM conversation").fetchall())
            figures["forget_ms"] = median_ms(lambda: forget(store, [deleted[0][0]]), 1)
            figures["erase_ms"] = median_ms(lambda: erase_bytes(store), 1)
            checked = timed(lambda: check(store))
            figures |= {"check_s": round(checked.wall_s, 1), "check_cpu_s": round(checked.cpu_s, 1)}
    print_json(figures)


def _write(store: Store, messages: int) -> None:
    waiting = []
    for _ in range(messages // (2 * _TURNS)):
        waiting.append(store.commit(*new_conversation(store, *([_TEXT] * _TURNS)).changes))
        if len(waiting) > 200:
            waiting.pop(0).result()
    for future in waiting:
        future.result()


def _single(store: Store) -> Figures:
    reply = store.ids.message()
    grew = ReplyGrew(
        add_running(store, "Why?").exchanges[0].id, reply, "text", _TEXT, AT, "openai:m"
    )
    return {
        "turn_p50_ms": median_ms(lambda: store.save(*new_conversation(store, _TEXT).changes), 100),
        "setting_p50_ms": median_ms(lambda: store.save(SettingPut("theme", '"dark"')), 100),
        "reply_grew_p50_ms": median_ms(lambda: store.journal_only(grew).result(), 100),
    }


def _opening_copies(image: Path, root: Path) -> float:
    times = []
    for number in range(3):
        copy = made(shutil.copytree(image, root / f"copy{number}"))
        times.append(timed(lambda: open_store(copy).close()).ms)  # noqa: B023 - called at once
        shutil.rmtree(copy.root)
    return round(statistics.median(times), 1)


def _replay(image: Path, root: Path, messages: int) -> Figures:
    paths = made(shutil.copytree(image, root / "journal-alone"))
    paths.database.unlink()
    paths.wal.unlink(missing_ok=True)
    took = timed(lambda: open_store(paths))
    with closing(took.result) as store:
        records = store.journal.last_position
    return {
        "replay_records_per_s": round(records / took.wall_s),
        "replay_messages_per_s": round(messages / took.wall_s),
        "replay_messages_per_cpu_s": round(messages / took.cpu_s),
    }


if __name__ == "__main__":
    main()
