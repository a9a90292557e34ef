"""How fast an export comes into storage and text index, and what memory that takes; prints JSON.

    python tests/bench/import_speed.py [--messages 20000] [--megabytes 200]

Each figure comes from a child process of its own. `wall` rates are what a user waits for, on a
machine that may be busy; `cpu` rates count the processor seconds of all threads, and are the ones
to compare. Growth is that of the peak resident set from the opened book to the end of the import.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from app.bootstrap import Role, Services, build
from app.domain.transfer import ImportReport
from app.system.paths import DataPaths
from app.transfer.importing import import_files
from tests.fakes.exports import Shape, write_chatgpt_export

_TURNS = 12
_WORDS = 60
_MESSAGES_A_CONVERSATION = 26.96  # that are shown, of 12 turns; some turns have two answers
_BYTES_A_CONVERSATION = 21_800

Figures = dict[str, float]


def main() -> None:
    """Make exports, let children import them, print what they measured."""
    options = _options()
    if options.step:
        print(json.dumps(_STEPS[options.step](Path(options.export), Path(options.data))))  # noqa: T201
        return
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small.json"), Path(folder, "large.json")
        _write(small, round(options.messages / _MESSAGES_A_CONVERSATION))
        figures = {
            "apart": _child("apart", small, Path(folder, "apart")),
            "together": _child("together", small, Path(folder, "together")),
            "again": _child("again", small, Path(folder, "together")),
        }
        if options.megabytes:
            _write(large, (options.megabytes << 20) // _BYTES_A_CONVERSATION)
            figures["large"] = _child("large", large, Path(folder, "large"))
            figures["large"]["export_megabytes"] = round(large.stat().st_size / (1 << 20), 1)
    print(json.dumps(figures, indent=1))  # noqa: T201


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure imports.")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--megabytes", type=int, default=200, help="0 leaves the large one out")
    parser.add_argument("--step", choices=tuple(_STEPS), help="measure one thing in this process")
    parser.add_argument("--export")
    parser.add_argument("--data")
    return parser.parse_args()


def _write(path: Path, conversations: int) -> None:
    write_chatgpt_export(path, Shape(conversations, _TURNS, _WORDS))


def _child(step: str, export: Path, data: Path) -> Figures:
    command = [
        sys.executable,
        __file__,
        "--step",
        step,
        "--export",
        str(export),
        "--data",
        str(data),
    ]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    figures: Figures = json.loads(ran.stdout)
    return figures


# -- in a child


def _apart(export: Path, data: Path) -> Figures:
    """Storage alone, then the index alone."""
    services = build(DataPaths(data), Role.COMMAND_LINE)
    stored = _timed("storage", lambda: import_files(services.store, [export]).messages)
    count = round(stored["messages"])

    def index() -> int:
        services.index_sync.catch_up()
        return count

    indexed = _timed("index", index)
    services.close()
    return stored | indexed


def _together(export: Path, data: Path) -> Figures:
    """Storage and index at the same time, as the command does it."""
    services = build(DataPaths(data), Role.COMMAND_LINE)
    figures = _timed("all", lambda: _imported(services, export).messages)
    services.close()
    return figures


def _again(export: Path, data: Path) -> Figures:
    """The same export once more."""
    services = build(DataPaths(data), Role.COMMAND_LINE)
    figures = _timed("again", lambda: _imported(services, export).duplicates)
    services.close()
    return figures


def _large(export: Path, data: Path) -> Figures:
    """A large export, and what memory it took."""
    services = build(DataPaths(data), Role.COMMAND_LINE)
    services.index_sync.catch_up()
    before_kb = _peak_kb()
    figures = _timed("all", lambda: _imported(services, export).messages)
    figures["growth_megabytes"] = round((_peak_kb() - before_kb) / 1024, 1)
    services.close()
    return figures


_STEPS = {"apart": _apart, "together": _together, "again": _again, "large": _large}


def _imported(services: Services, export: Path) -> ImportReport:
    services.index_sync.start()
    report = import_files(services.store, [export])
    services.index_sync.catch_up()
    return report


def _timed(name: str, work: Callable[[], int]) -> Figures:
    began, began_cpu = time.perf_counter(), time.process_time()
    messages = work()
    wall_s, cpu_s = time.perf_counter() - began, time.process_time() - began_cpu
    return {
        "messages": messages,
        f"{name}_wall_s": round(wall_s, 2),
        f"{name}_cpu_s": round(cpu_s, 2),
        f"{name}_messages_per_wall_s": round(messages / wall_s),
        f"{name}_messages_per_cpu_s": round(messages / cpu_s),
    }


def _peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
