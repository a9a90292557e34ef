"""Processor time of the tests: a pytest plugin that writes a row for each setup, call and teardown.

Times are processor seconds of the test process and the child processes it waited for, so a busy
machine changes them less than wall time. `COSTS_EVERY=n` keeps every n-th test, for an estimate.

    COSTS_FILE=build/costs.tsv python -m pytest -p tests.bench.processor_time
    python -m tests.bench.processor_time build/costs.tsv

A shared fixture's time counts for the first test that uses it.
"""

import collections
import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

_SHOWN = 40
_ROWS = Path(os.environ.get("COSTS_FILE", "build/costs.tsv")).resolve()  # tests change the folder


def _processor_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = items[:: int(os.environ.get("COSTS_EVERY", "1"))]


def _measure(item: pytest.Item, phase: str) -> Generator[None, object, object]:
    before = _processor_s()
    try:
        return (yield)
    finally:
        # One short append is atomic, so parallel workers share the file.
        with _ROWS.open("a", encoding="utf-8") as rows:
            rows.write(f"{_processor_s() - before:.2f}\t{phase}\t{item.nodeid}\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _measure(item, "setup"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _measure(item, "call"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _measure(item, "teardown"))


def _print_totals(rows: Path) -> None:
    """Print processor seconds by phase, by file and by test, largest first."""
    totals: dict[str, dict[str, float]] = {
        group: collections.defaultdict(float) for group in ("phase", "file", "test")
    }
    for row in rows.read_text(encoding="utf-8").splitlines():
        spent_s, phase, test = row.split("\t", 2)
        for group, key in (("phase", phase), ("file", test.split("::")[0]), ("test", test)):
            totals[group][key] += float(spent_s)
    for group, counted in totals.items():
        sys.stdout.write(f"\n{group} ({len(counted)}), {sum(counted.values()):.1f} s\n")
        for key, seconds in sorted(counted.items(), key=lambda item: -item[1])[:_SHOWN]:
            sys.stdout.write(f"{seconds:8.2f}  {key}\n")


if __name__ == "__main__":
    _print_totals(Path(sys.argv[1]))
