"""How much memory a large export takes, and how fast it is read; prints one JSON document.

    python -m tests.bench.import_memory [--megabytes 200] [--form chatgpt|claude] [--store]

The export is made up and written to a temporary folder; a child process reads it, so that what
this process used does not count; with `--store` it is stored too, in an empty data directory.
Growth is that of the peak resident set since everything was loaded and open; rates are per second
of processor time, since machines are rarely idle.
"""

import json
import tempfile
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from app.domain.transfer import ImportedConversation
from app.storage.safety.recovery import open_store
from app.system.paths import DataPaths
from app.transfer.importers import read_export
from app.transfer.importing import import_files
from tests.bench.shared.measuring import Figures, options, peak_mb, print_json, run_step, timed
from tests.fakes.exports import Shape, array_pieces, chatgpt_conversations, claude_conversations

_ENDLESS = Shape(conversations=10**9, turns=12, words=120)
_FORMS = {"chatgpt": chatgpt_conversations, "claude": claude_conversations}


def main() -> None:
    given = options(__doc__, megabytes=200, form=tuple(_FORMS), store=False, read=Path)
    if given.read:
        print_json(_measured(given.read, given.store))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "conversations.json")
        with path.open("w", encoding="utf-8") as out:
            out.writelines(
                array_pieces(_until(given.megabytes << 20, _FORMS[given.form](_ENDLESS)))
            )
        stored = ["--store"] if given.store else []
        print_json({"form": given.form, **run_step("import_memory", "--read", path, *stored)})


def _until(size_bytes: int, conversations: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    written = 0
    for conversation in conversations:
        yield conversation
        written += len(json.dumps(conversation, ensure_ascii=False).encode())
        if written >= size_bytes:
            return


def _measured(path: Path, stored: bool) -> Figures:
    if not stored:
        return _figures(path, lambda: _read(path))
    paths = DataPaths(path.parent / "library")
    paths.make()
    with closing(open_store(paths)) as store:

        def store_all() -> tuple[int, int]:
            report = import_files(store, [path])
            return report.conversations, report.messages

        return _figures(path, store_all)


def _figures(path: Path, work: Callable[[], tuple[int, int]]) -> Figures:
    before_mb, took = peak_mb(), timed(work)
    conversations, messages = took.result
    size_bytes = path.stat().st_size
    return {
        "bytes": size_bytes,
        "conversations": conversations,
        "messages": messages,
        "seconds": round(took.wall_s, 2),
        "cpu_seconds": round(took.cpu_s, 2),
        "messages_per_s": round(messages / took.wall_s),
        "messages_per_cpu_s": round(messages / took.cpu_s),
        "megabytes_per_cpu_s": round(size_bytes / took.cpu_s / (1 << 20), 1),
        "growth_megabytes": round(peak_mb() - before_mb, 1),
    }


def _read(path: Path) -> tuple[int, int]:
    sizes = [
        len(each.messages) for each in read_export(path) if isinstance(each, ImportedConversation)
    ]
    return len(sizes), sum(sizes)


if __name__ == "__main__":
    main()
