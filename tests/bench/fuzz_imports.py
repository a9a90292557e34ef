"""Fuzzing of the importers: damaged files of every format; prints JSON.

    python -m tests.bench.fuzz_imports [--runs 400]

Each run damages a file of each format and reads it. It must give valid conversations and reports or be
refused, within seconds; whatever else happens is listed with the format and seed that repeat it.
"""

import random
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path

from app.domain.errors import ImportRefused
from app.transfer.importers import read_export
from tests.bench.shared.measuring import options, print_json
from tests.fakes.damaged_exports import check_imported, damage
from tests.fakes.export_files import FILES, write


def main() -> None:
    given = options(__doc__, runs=400)
    failures: dict[str, str] = {}
    slowest_s = 0.0
    for name in FILES:
        for seed in range(given.runs):
            with tempfile.TemporaryDirectory() as folder:
                file = write(name, Path(folder))
                damage(file, random.Random(f"{name} {seed}"))
                started = time.perf_counter()
                try:
                    _read(file)
                except Exception as error:  # noqa: BLE001 - any is a find
                    at = traceback.extract_tb(error.__traceback__)[-1]
                    place = f"{Path(at.filename).name}:{at.lineno} {type(error).__name__}"
                    failures.setdefault(place, f"{name} {seed}: {error}"[:200])
                slowest_s = max(slowest_s, time.perf_counter() - started)
    print_json(
        {"files": len(FILES) * given.runs, "slowest_s": round(slowest_s, 2), "failures": failures}
    )


def _read(file: Path) -> None:
    with suppress(ImportRefused):
        for found in read_export(file):
            check_imported(found)


if __name__ == "__main__":
    main()
