"""How fast an export comes into storage and text index, and what memory that takes; prints JSON.

    python -m tests.bench.import_speed [--messages 20000] [--megabytes 200]

Each figure comes from a child process of its own. `wall` rates are what a user waits for, on a
machine that may be busy; `cpu` rates count the processor seconds of all threads, and are the ones
to compare. Growth is that of the peak resident set from the opened library to the end of the
import. With 0 megabytes the large export is left out.
"""

import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from app.bootstrap import RunMode, Services, build
from app.domain.transfer import ImportReport
from app.system.paths import DataPaths
from app.transfer.importing import import_files
from tests.bench.shared.measuring import (
    Figures,
    Timed,
    options,
    peak_mb,
    print_json,
    rates,
    run_step,
    timed,
)
from tests.fakes.exports import Shape, write_chatgpt_export

_TURNS, _WORDS = 12, 60
_MESSAGES_A_CONVERSATION = 26.96  # that are shown, of 12 turns; some turns have two answers
_BYTES_A_CONVERSATION = 21_800


def main() -> None:
    given = options(
        __doc__, messages=20_000, megabytes=200, step=("", *_STEPS), export=Path, data=Path
    )
    if given.step:
        with closing(build(DataPaths(given.data), RunMode.COMMAND_LINE)) as services:
            print_json(_STEPS[given.step](services, given.export))
        return
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small.json"), Path(folder, "large.json")
        _write(small, round(given.messages / _MESSAGES_A_CONVERSATION))
        figures = {
            "apart": _child("apart", small, "apart"),
            "together": _child("together", small, "together"),
            "again": _child("again", small, "together"),
        }
        if given.megabytes:
            _write(large, (given.megabytes << 20) // _BYTES_A_CONVERSATION)
            figures["large"] = _child("large", large, "large")
            figures["large"]["export_megabytes"] = round(large.stat().st_size / (1 << 20), 1)
    print_json(figures)


def _write(path: Path, conversations: int) -> None:
    write_chatgpt_export(path, Shape(conversations, _TURNS, _WORDS))


def _child(step: str, export: Path, data: str) -> Figures:
    arguments = ("--step", step, "--export", export, "--data", export.parent / data)
    return run_step("import_speed", *arguments)


# -- in a child


def _apart(services: Services, export: Path) -> Figures:
    stored = timed(lambda: import_files(services.store, [export]).messages)
    indexed = timed(services.index_sync.catch_up)
    return _rates("storage", stored.result, stored) | _rates("index", stored.result, indexed)


def _together(services: Services, export: Path) -> Figures:
    """Storage and index at the same time, as the command does it."""
    took = timed(lambda: _imported(services, export))
    return _rates("all", took.result.messages, took)


def _again(services: Services, export: Path) -> Figures:
    took = timed(lambda: _imported(services, export))
    return _rates("again", took.result.duplicates, took)


def _large(services: Services, export: Path) -> Figures:
    services.index_sync.catch_up()
    before_mb = peak_mb()
    figures = _together(services, export)
    return figures | {"growth_megabytes": round(peak_mb() - before_mb, 1)}


_STEPS: dict[str, Callable[[Services, Path], Figures]] = {
    "apart": _apart, "together": _together, "again": _again, "large": _large,
}  # fmt: skip


def _imported(services: Services, export: Path) -> ImportReport:
    services.index_sync.start()
    report = import_files(services.store, [export])
    services.index_sync.catch_up()
    return report


def _rates(name: str, messages: int, took: Timed[Any]) -> Figures:
    return {"messages": messages} | rates(name, messages, took)


if __name__ == "__main__":
    main()
