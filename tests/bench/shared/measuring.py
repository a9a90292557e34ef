"""Parts that benches share: arguments, timing, memory, processes of their own and the printing of figures."""

import argparse
import json
import math
import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Figures = dict[str, Any]

ROOT = Path(__file__).resolve().parents[3]
MODEL = ROOT / "resources" / "models" / "all-MiniLM-L6-v2"
SWITCH_INTERVAL_S = 0.0005  # of the interpreter's lock, as the window has it


def options(
    description: str | None, *, required: Sequence[str] = (), **defaults: Any
) -> argparse.Namespace:
    """Parse the command line: an option for each keyword, named and typed by its default.

    False makes a switch, a type an option that may be missing, a list an option of several values
    (the default replaces none); a list of a type may be repeated.
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
        elif isinstance(default, list) and isinstance(default[0], type):
            how = {"type": default[0], "nargs": "+", "action": "extend", "default": []}
        elif isinstance(default, list):
            how = {"type": type(default[0]), "nargs": "*", "default": default}
        parser.add_argument(f"--{name.replace('_', '-')}", required=name in required, **how)
    return parser.parse_args()


def print_json(figures: object) -> None:
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")


def in_process(work: Callable[..., T], *arguments: object) -> T:
    """Run a function of a module in a fresh process; raise BrokenProcessPool if that dies."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


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


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` (0-1) of the values do not exceed, interpolated linearly."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = ordered[math.floor(place)]
    return below + (ordered[math.ceil(place)] - below) * (place - math.floor(place))


def latency(taken_ms: Sequence[float], *, worst: bool = False) -> dict[str, float]:
    """Return p50 and p95 in milliseconds, or p50, p99 and the worst; of nothing, nothing."""
    shares = {"p50": 0.5, "p99": 0.99, "max": 1} if worst else {"p50": 0.5, "p95": 0.95}
    return {name: round(percentile(taken_ms, at), 2) for name, at in shares.items() if taken_ms}


def wait_for(condition: Callable[[], object], limit_s: float = 900.0) -> None:
    ends = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < ends, "it takes too long"
        time.sleep(0.005)


# -- memory
def peak_mb() -> float:
    """Return the largest resident size of this process so far (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resident_mb() -> dict[str, int]:
    """Return what of this process is in memory, and how much of that is its own, not mapped files."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    fields = {"all": "VmRSS", "own": "RssAnon"}
    return {name: int(status[field].split()[0]) // 1024 for name, field in fields.items()}
