"""Benchmark of imports into storage and text index: speed and memory; prints JSON.

    python -m tests.bench.import_speed [--messages 20000] [--megabytes 200]

Each figure comes from a process of its own. `wall` rates are what a user waits for, on a machine
that may be busy; `cpu` rates count the processor seconds of all threads, and are the ones to
compare. Growth is that of the peak resident set from the opened library to the end of the import.
`again` imports the same export, `grown` one in which every conversation has one turn more. With 0
megabytes the large export is left out.
"""

import tempfile
from contextlib import closing
from pathlib import Path

from app.bootstrap import RunMode, Services, build
from app.domain.transfer import ImportReport
from app.system.paths import DataPaths
from app.transfer.importing import import_files
from tests.bench.shared.made_up import write_export
from tests.bench.shared.measuring import Figures, in_process, options, peak_mb, print_json, timed

_BYTES_A_MESSAGE = 810


def main() -> None:
    given = options(__doc__, messages=20_000, megabytes=200)
    with tempfile.TemporaryDirectory() as folder:
        small = write_export(Path(folder, "small.json"), given.messages)
        figures = {
            "apart": in_process(_apart, small),
            "together": in_process(_together, small, "together"),
            "again": in_process(_together, small, "together"),
            "grown": in_process(
                _together, write_export(Path(folder, "grown.json"), given.messages, 1), "together"
            ),
        }
        if given.megabytes:
            messages = (given.megabytes << 20) // _BYTES_A_MESSAGE
            large = write_export(Path(folder, "large.json"), messages)
            figures["large"] = in_process(_together, large, "large")
            figures["large"]["export_megabytes"] = round(large.stat().st_size / (1 << 20), 1)
    print_json(figures)


def _apart(export: Path) -> Figures:
    with closing(_opened(export, "apart")) as services:
        stored = timed(lambda: import_files(services.store, [export]).messages)
        indexed = timed(services.index_sync.catch_up)
    count = stored.result
    return {"messages": count, **stored.rates("storage", count), **indexed.rates("index", count)}


def _together(export: Path, data: str) -> Figures:
    """Storage and index at the same time, as the command does it."""
    with closing(_opened(export, data)) as services:
        services.index_sync.catch_up()
        before_mb = peak_mb()
        took = timed(lambda: _imported(services, export))
        count = took.result.messages or took.result.duplicates
        grown_mb = round(peak_mb() - before_mb, 1)
    return {"messages": count, **took.rates("all", count), "growth_megabytes": grown_mb}


def _opened(export: Path, data: str) -> Services:
    return build(DataPaths(export.parent / data), RunMode.COMMAND_LINE)


def _imported(services: Services, export: Path) -> ImportReport:
    services.index_sync.start()
    report = import_files(services.store, [export])
    services.index_sync.catch_up()
    return report


if __name__ == "__main__":
    main()
