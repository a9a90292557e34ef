"""What benches share: arguments, timing, memory, child processes and the printing of figures."""

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")
Figures = dict[str, Any]
Vectors = npt.NDArray[np.float32]

ROOT = Path(__file__).resolve().parents[3]
MODEL = ROOT / "resources" / "models" / "all-MiniLM-L6-v2"
SWITCH_INTERVAL_S = 0.0005  # of the interpreter's lock, as the window has it


def options(
    description: str | None, *, required: Sequence[str] = (), **defaults: Any
) -> argparse.Namespace:
    """Parse the command line: an option for each keyword, named and typed by its default.

    False makes a switch, a type an option that may be missing, a tuple a choice (the first is the
    default), a list an option of several values; a list of a type may be repeated.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in defaults.items():
        how: dict[str, Any] = {"type": type(default), "default": default}
        if default is False:
            how = {"action": "store_true"}
        elif isinstance(default, type):
            how = {"type": default}
        elif isinstance(default, tuple):
            how = {"choices": default, "default": default[0]}
        elif isinstance(default, list) and isinstance(default[0], type):
            how = {"type": default[0], "nargs": "+", "action": "extend", "default": []}
        elif isinstance(default, list):
            how = {"type": type(default[0]), "nargs": "*", "default": default}
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, required=name in required, **how)
    return parser.parse_args()


def print_json(figures: object) -> None:
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")


def run_step(module: str, *arguments: object) -> Figures:
    """Run a bench in a process of its own and return the figures it prints."""
    command = [sys.executable, "-m", f"tests.bench.{module}", *map(str, arguments)]
    ended = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    figures: Figures = json.loads(ended.stdout)
    return figures


# -- time


@dataclass(frozen=True, slots=True)
class Timed(Generic[T]):
    """Seconds by the clock and of the processor (all threads), and what the work returned."""

    wall_s: float
    cpu_s: float
    result: T

    @property
    def ms(self) -> float:
        return self.wall_s * 1000


def timed(work: Callable[[], T]) -> Timed[T]:
    started, cpu_started = time.perf_counter(), time.process_time()
    result = work()
    return Timed(time.perf_counter() - started, time.process_time() - cpu_started, result)


def median_ms(work: Callable[[], object], times: int) -> float:
    return round(statistics.median(timed(work).ms for _ in range(times)), 1)


def side_by_side(
    ways: Mapping[str, Callable[[T], object]], questions: Iterable[T]
) -> dict[str, dict[str, float]]:
    """Return the latency of each way; every question is asked in all ways in turn."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for question in questions:
        for name, ask in ways.items():
            taken[name].append(timed(lambda: ask(question)).ms)  # noqa: B023 - called at once
    return {name: latency(each) for name, each in taken.items()}


def best(rounds: Sequence[Timed[Any]]) -> tuple[float, float]:
    """Return the least seconds by the clock and of the processor."""
    return min(each.wall_s for each in rounds), min(each.cpu_s for each in rounds)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` (0-1) of the values do not exceed, interpolated linearly."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = ordered[math.floor(place)]
    return below + (ordered[math.ceil(place)] - below) * (place - math.floor(place))


def latency(taken_ms: Sequence[float]) -> dict[str, float]:
    """Return p50 and p95 in milliseconds; of nothing, nothing."""
    if not taken_ms:
        return {}
    return {f"p{share}": round(percentile(taken_ms, share / 100), 2) for share in (50, 95)}


def rates(name: str, count: int, took: Timed[Any]) -> Figures:
    """Return seconds and `count` per second, by the clock and of the processor."""
    return {
        f"{name}_wall_s": round(took.wall_s, 2),
        f"{name}_cpu_s": round(took.cpu_s, 2),
        f"{name}_messages_per_wall_s": round(count / took.wall_s),
        f"{name}_messages_per_cpu_s": round(count / took.cpu_s),
    }


def wait_for(condition: Callable[[], object], limit_s: float = 900.0) -> None:
    ends = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < ends, "it takes too long"
        time.sleep(0.005)


# -- memory and made-up data


def peak_mb() -> float:
    """Return the largest resident size of this process so far (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resident_mb() -> dict[str, int]:
    """Return what of this process is in memory, and how much of that is its own, not mapped files."""
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    kept = {line[0]: round(int(line[1]) / 1024) for line in lines if line[0] in _RESIDENT}
    return {name: kept[field] for field, name in _RESIDENT.items()}


_RESIDENT = {"VmRSS:": "all", "RssAnon:": "own"}


def unit_vectors(source: np.random.Generator, count: int, dimension: int) -> Vectors:
    """Return random vectors, float32, (count, dimension), rows of unit length."""
    drawn = source.standard_normal((count, dimension), dtype=np.float32)
    unit: Vectors = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit
