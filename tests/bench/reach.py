"""Following session logs: how fast a first read is, how much memory it takes, and what idling costs.

    python -m tests.bench.reach [--files 200] [--megabytes 40]

Makes session logs of Claude Code in a temporary home, with text and code of this repository, reads them through the
source reader into storage while the text index follows, then idles, then adds a line and waits until search finds it.
Megabytes are of the logs, processor times and memory of this process and of the one that writes the index.
"""

import json
import os
import random
import resource
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from app.bootstrap import RunMode, Services, build
from app.domain.records.sources import SOURCES, SourceName
from app.system.paths import DataPaths
from app.workers.jobs import JobParts
from app.workers.jobs.source_reader import SourceReader
from tests.bench.shared.measuring import ROOT, options, peak_mb, print_json, timed

_PROSE = " ".join(
    path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("packaging/decisions/*.md"))
).split()
_CODE = "".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("app/*/*.py")))
_OUTPUT_CHARS = 2_400
_IDLE_S = 20.0
_FOUND = "xylophonequartz"


def main() -> None:
    given = options(__doc__, files=200, megabytes=40)
    with tempfile.TemporaryDirectory(prefix="commonplace-reach-") as folder:
        os.environ["HOME"] = folder
        size_bytes = _write(Path(folder, ".claude", "projects"), given.files, given.megabytes)
        print_json(_measure(DataPaths(Path(folder, "data")), Path(folder), size_bytes))


def _measure(paths: DataPaths, home: Path, size_bytes: int) -> dict[str, float]:
    services = build(paths, RunMode.COMMAND_LINE)
    try:
        services.settings.set(SOURCES[SourceName.CLAUDE_CODE].setting, True)
        job = SourceReader(JobParts(services.store, services.settings))
        before_mb = peak_mb()
        read = timed(lambda: _read_and_index(services, job))
        grown_mb = peak_mb() - before_mb + _apart_mb()
        idle = timed(lambda: _idle(job))
        added_s = _time_of_a_new_line(services, job, home)
    finally:
        services.close()
    apart = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = read.cpu_s + apart.ru_utime + apart.ru_stime
    mb = size_bytes / 1e6
    return {
        "files": read.result,
        "megabytes": round(mb, 1),
        "read_mb_per_s": round(mb / read.wall_s, 1),
        "read_mb_per_cpu_s": round(mb / cpu_s, 1),
        "read_mb_per_cpu_s_of_the_busier_process": round(
            mb / max(read.cpu_s, cpu_s - read.cpu_s), 1
        ),
        "memory_growth_mb": round(grown_mb, 1),
        "idle_cpu_percent": round(100 * idle.cpu_s / idle.wall_s, 2),
        "new_line_found_after_s": round(added_s, 2),
    }


def _apart_mb() -> float:
    """Return the peak of processes that were started: `ru_maxrss` of children includes that before `exec`."""
    found = 0
    for thread in Path("/proc/self/task").iterdir():
        for process in (thread / "children").read_text().split():
            status = Path("/proc", process, "status").read_text()
            found += int(status.partition("VmHWM:")[2].split()[0])
    return found / 1024


def _read_and_index(services: Services, job: SourceReader) -> int:
    """Read all files while the index follows, as the window does."""
    services.index_sync.start()
    count = _read_all(job)
    services.index_sync.catch_up()
    return count


def _idle(job: SourceReader) -> None:
    until = time.monotonic() + _IDLE_S
    while time.monotonic() < until:
        _read_all(job)
        time.sleep(job.poll_interval_s())


def _read_all(job: SourceReader) -> int:
    count = 0
    while found := job.find(datetime.now(UTC)):
        job.save([job.make([each], lambda: False) for each in found])
        count += len(found)
    return count


def _time_of_a_new_line(services: Services, job: SourceReader, home: Path) -> float:
    """Return the seconds from the writing of a line until search finds it."""
    path = next(home.glob(".claude/projects/*/*.jsonl"))
    last = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    message = {"role": "user", "content": f"What is a {_FOUND}?"}
    record = {**last, "uuid": "new", "parentUuid": last["uuid"], "type": "user", "message": message}
    started = time.monotonic()
    with path.open("a", encoding="utf-8") as log:
        log.write(json.dumps(record) + "\n")
    while True:
        _read_all(job)
        services.index_sync.catch_up()
        if services.search.search(_FOUND).results:
            return time.monotonic() - started
        time.sleep(0.05)


def _write(folder: Path, files: int, mb: int) -> int:
    """Write session logs; return their size in bytes."""
    drawn = random.Random(1)
    per_file = int(mb * 1e6 / files)
    total = 0
    for number in range(files):
        path = folder / f"-home-me-project{number % 20}" / f"session-{number}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_session(drawn, number, per_file), encoding="utf-8")
        total += path.stat().st_size
    return total


def _session(drawn: random.Random, number: int, size_chars: int) -> str:
    lines: list[str] = []
    parent, length, turn = None, 0, 0
    while length < size_chars:
        turn += 1
        kinds = [("user", _said(drawn, 30)), ("assistant", _reply(drawn, turn))]
        start = drawn.randrange(len(_CODE) - _OUTPUT_CHARS)
        output = _CODE[start : start + _OUTPUT_CHARS]
        result = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": output}
        kinds += [("user", [result]), ("assistant", [{"type": "text", "text": _said(drawn, 120)}])]
        for place, (kind, content) in enumerate(kinds):
            name = f"{number}-{turn}-{place}"
            message = {"role": kind, "content": content, "id": f"m{name}", "model": "claude"}
            record: dict[str, object] = {
                "uuid": name, "parentUuid": parent, "sessionId": f"session-{number}",
                "isSidechain": False, "type": kind, "cwd": f"/home/me/project{number % 20}",
                "timestamp": f"2026-03-{1 + turn % 28:02}T10:{place:02}:00Z", "message": message,
                "version": "2.0.0", "gitBranch": "main", "userType": "external",
            }  # fmt: skip
            if kind == "user" and place:  # the program repeats what a tool returned
                file = {"filePath": f"f{turn}.py", "content": output, "numLines": 40}
                record["toolUseResult"] = {"type": "text", "file": file}
            lines.append(json.dumps(record))
            length += len(lines[-1]) + 1
            parent = name
    return "\n".join(lines) + "\n"


def _reply(drawn: random.Random, turn: int) -> list[dict[str, object]]:
    call: dict[str, object] = {
        "type": "tool_use", "id": f"t{turn}", "name": "Read", "input": {"path": f"f{turn}.py"},
    }  # fmt: skip
    text: dict[str, object] = {"type": "text", "text": _said(drawn, 20)}
    return [text, call]


def _said(drawn: random.Random, words: int) -> str:
    """Return running text of this repository: the number of different words decides what an index costs."""
    start = drawn.randrange(len(_PROSE) - words)
    return " ".join(_PROSE[start : start + words])


if __name__ == "__main__":
    main()
