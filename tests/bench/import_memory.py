"""How much memory a large export takes, and how fast it is read; prints one JSON document.

    python tests/bench/import_memory.py [--megabytes 200] [--form chatgpt|claude] [--store]

The export is made up and written to a temporary folder; a child process reads it, so that what
this process used does not count; with `--store` it is stored too, in an empty data directory.
Growth is that of the peak resident set since everything was loaded and open; rates are per second
of processor time, since machines are rarely idle.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from app.domain.transfer import ImportedConversation
from app.storage.recovery import open_store
from app.storage.store import Store
from app.system.paths import DataPaths
from app.transfer.importers import read_export
from app.transfer.importing import import_files
from tests.fakes.exports import (
    Shape,
    array_pieces,
    chatgpt_conversations,
    claude_conversations,
)

_ENDLESS = Shape(conversations=10**9, turns=12, words=120)


def main() -> None:
    """Make an export, read it in a child, print what the child measured."""
    options = _options()
    if options.read:
        print(json.dumps(_measured(Path(options.read), options.store)))  # noqa: T201
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "conversations.json")
        _write(path, options.megabytes << 20, options.form)
        stored = ["--store"] if options.store else []
        child = subprocess.run(
            [sys.executable, __file__, "--read", str(path), *stored],
            check=True,
            capture_output=True,
        )
    measured = json.loads(child.stdout)
    print(json.dumps({"form": options.form, **measured}, indent=1))  # noqa: T201


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--form", choices=("chatgpt", "claude"), default="chatgpt")
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--read", help="measure reading this file, in this process")
    return parser.parse_args()


def _write(path: Path, size_bytes: int, form: str) -> None:
    made = {"chatgpt": chatgpt_conversations, "claude": claude_conversations}[form](_ENDLESS)
    with path.open("w", encoding="utf-8") as out:
        for piece in array_pieces(_until(size_bytes, made)):
            out.write(piece)


def _until(size_bytes: int, conversations: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    written = 0
    for conversation in conversations:
        yield conversation
        written += len(json.dumps(conversation, ensure_ascii=False).encode())
        if written >= size_bytes:
            return


def _measured(path: Path, stored: bool) -> dict[str, float]:
    if not stored:
        return _figures(path, lambda: _read(path))
    paths = DataPaths(path.parent / "book")
    paths.make()
    store = open_store(paths)
    try:
        return _figures(path, lambda: _stored(store, path))
    finally:
        store.close()


def _figures(path: Path, work: Callable[[], tuple[int, int]]) -> dict[str, float]:
    before_kb = _peak_kb()
    began, began_cpu = time.perf_counter(), time.process_time()
    conversations, messages = work()
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - began_cpu
    size_bytes = path.stat().st_size
    return {
        "bytes": size_bytes,
        "conversations": conversations,
        "messages": messages,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_seconds, 2),
        "messages_per_s": round(messages / seconds),
        "messages_per_cpu_s": round(messages / cpu_seconds),
        "megabytes_per_cpu_s": round(size_bytes / cpu_seconds / (1 << 20), 1),
        "growth_megabytes": round((_peak_kb() - before_kb) / 1024, 1),
    }


def _read(path: Path) -> tuple[int, int]:
    conversations = messages = 0
    for found in read_export(path):
        if isinstance(found, ImportedConversation):
            conversations += 1
            messages += len(found.messages)
    return conversations, messages


def _stored(store: Store, path: Path) -> tuple[int, int]:
    report = import_files(store, [path])
    return report.conversations, report.messages


def _peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
