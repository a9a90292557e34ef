"""Torn and reordered writes: what a power cut could leave of a recorded run, opened; prints JSON. Needs a C compiler.

    python -m tests.bench.torn [--images N] [--seed N] [--writes N]

A writer as in `tests.bench.crash` is recorded: each write, sync, rename and unlink. For random moments a data
directory is made of what was synced before and of any part of the rest: whole writes, some of their 4 KiB blocks, or
nothing. Renames and unlinks become durable in order, all with the next sync, as on ext4. Each image must open by
itself with everything that was acknowledged, and pass the check. Of what was not, any records may be there, each
whole: many that waited are one write, of which a block in the middle may be missing.
"""

import json
import random
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from app.check import check
from app.storage.engine.frames import frames
from app.storage.engine.journal import segments
from app.storage.safety.recovery import open_store
from app.system.paths import DataPaths
from tests.bench.shared.measuring import options, print_json, timed
from tests.fakes.crash_rounds import Victim, after_a_kill, comparable_rows, repeat
from tests.fakes.stored import made, opened

_HEADER = struct.Struct("<ciiqq")
_BLOCK = 4096
_RECORDER = Path(__file__).with_name("shared") / "recorder.c"


@dataclass(frozen=True, slots=True)
class Operation:
    """One record; its letters are explained in `recorder.c`."""

    what: str
    name: str
    other: str
    offset: int
    content: bytes


@dataclass(slots=True)
class _File:
    """What is durable of a file, and what was written since: (offset, data), or (size, None) to truncate."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self) -> None:
        for offset, content in self.pending:
            _write(self.durable, offset, content)
        self.pending = []

    def torn(self, chance: random.Random) -> bytearray:
        """Return any state that a cut may leave."""
        left = bytearray(self.durable)
        for offset, content in self.pending:
            drawn = chance.random()
            if content is None or drawn < 0.4:
                if drawn < 0.6:
                    _write(left, offset, content)
            elif drawn < 0.7:
                for start in range(0, len(content), _BLOCK):
                    if chance.random() < 0.5:
                        _write(left, offset + start, content[start : start + _BLOCK])
        return left


class Folder:
    """The files of a data directory while operations are repeated."""

    def __init__(self, root: Path) -> None:
        self._durable: dict[str, _File] = {
            str(path): _File(bytearray(path.read_bytes()))
            for path in root.rglob("*")
            if path.is_file()
        }
        self._names = dict(self._durable)
        self._renames: list[Operation] = []
        self._made: dict[int, _File] = {}  # by the operation that made it

    def apply(self, operation: Operation) -> None:
        name = operation.name
        match operation.what:
            case "O" | "T":
                if name not in self._names:
                    if not operation.offset:
                        return  # a folder, or not to be created
                    self._names[name] = self._made[id(operation)] = _File()
                    self._renames.append(operation)
                elif operation.what == "T":
                    self._names[name].pending.append((0, None))
            case "W" if name in self._names:
                self._names[name].pending.append((operation.offset, operation.content))
            case "R":
                self._names[name].pending.append((operation.offset, None))
            case "S":
                if name in self._names:
                    self._names[name].sync()
                for each in self._renames:
                    self._change(self._durable, each)
                self._renames.clear()
            case "N" | "U":
                self._change(self._names, operation)
                self._renames.append(operation)

    def image(self, chance: random.Random) -> dict[str, bytearray]:
        """Return the files that a cut may leave, by name."""
        names = dict(self._durable)
        for each in self._renames[: chance.randint(0, len(self._renames))]:
            self._change(names, each)
        return {name: file.torn(chance) for name, file in names.items()}

    def _change(self, names: dict[str, _File], operation: Operation) -> None:
        if operation.what in "OT":
            names[operation.name] = self._made[id(operation)]
        elif operation.name in names:
            file = names.pop(operation.name)
            if operation.what == "N":
                names[operation.other] = file


def main() -> int:
    """Run and print; the exit code is 1 when something was lost."""
    given = options(__doc__, images=2000, seed=1, writes=120)
    with tempfile.TemporaryDirectory(prefix="commonplace-torn-") as folder:
        took = timed(lambda: _run(Path(folder), given.images, given.seed, given.writes))
    figures = took.result
    print_json({**figures, "seconds": round(took.wall_s)})
    return 1 if figures["bad"] else 0


def _run(folder: Path, images: int, seed: int, writes: int) -> dict[str, Any]:
    chance = random.Random(seed)
    root, before = folder / "live", folder / "before"
    made(root)
    shutil.copytree(root, before)
    operations = _recorded(folder, root, seed, writes)
    said = b"".join(each.content for each in operations if each.name == "said")
    found = (json.loads(each) for each in said.decode().split("\n") if each.endswith("}"))
    writes_said = [each for each in found if "do" in each]
    states = list(_states(folder, before, writes_said, each=True))
    files, heard = Folder(before), b""
    renamed = {str(before): str(root)}
    restored, bad, made_count = 0, list[str](), 0
    moments = sorted(chance.choices(range(len(operations) // 20, len(operations)), k=images))
    at = 0
    for moment in moments:
        for operation in operations[at:moment]:
            if operation.name == "said":
                heard += operation.content
            else:
                files.apply(_moved(operation, renamed))
        at = moment
        target = folder / "image"
        _put(files.image(chance), before, target)
        sure = heard.count(b'{"ok"')
        made_count += 1
        try:
            kept = _records_in(target)
            some = [each for n, each in enumerate(writes_said, 1) if n <= sure or n in kept]
            restored += _opens(target, states[sure:], lambda: next(_states(folder, before, some)))  # noqa: B023
        except Exception as error:  # noqa: BLE001 - that is what is counted
            bad.append(f"moment {moment}, {sure} acknowledged: {type(error).__name__}: {error}")
    return {
        "operations": len(operations), "images": made_count, "acknowledged": said.count(b'{"ok"'),
        "restored": restored, "bad": bad,
    }  # fmt: skip


def _recorded(folder: Path, root: Path, seed: int, writes: int) -> list[Operation]:
    """Return what a writer did until so many writes were acknowledged."""
    library, log = folder / "recorder.so", folder / "log"
    compiler = shutil.which("cc") or "gcc"
    subprocess.run(
        [compiler, "-O1", "-w", "-shared", "-fPIC", "-o", library, _RECORDER, "-ldl"], check=True
    )
    variables = (f"LD_PRELOAD={library}", f"RECORD_FOLDER={root}", f"RECORD_LOG={log}")
    victim = Victim(root, seed, ("env", *variables))
    victim.wait(writes, 0.01)
    if why := victim.kill():
        raise RuntimeError(f"the writer ended by itself: {why}")
    return list(_operations(log.read_bytes()))


def _operations(log: bytes) -> Iterator[Operation]:
    at = 0
    while at + _HEADER.size <= len(log):
        what, name, other, offset, length = _HEADER.unpack_from(log, at)
        at += _HEADER.size
        parts = []
        for size in (name, other, length):
            parts.append(log[at : at + size])
            at += size
        yield Operation(what.decode(), parts[0].decode(), parts[1].decode(), offset, parts[2])


def _states(
    folder: Path, before: Path, writes: Sequence[dict[str, str]], *, each: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield the rows after all of the writes, or after each of them, beginning with none."""
    copy = folder / "repeated"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(before, copy)
    with opened(copy) as store:
        for write in writes:
            if each:
                yield after_a_kill(store, folder / "state")
            repeat(store, write)
        yield after_a_kill(store, folder / "state")


def _records_in(root: Path) -> set[int]:
    """Return the positions of the whole records in an image's journal."""
    contents = (path.read_bytes() for _, path in segments(DataPaths(root).journal))
    return {each.position for content in contents for each in frames(content) if each}


def _moved(operation: Operation, renamed: dict[str, str]) -> Operation:
    """Return an operation on the copy of the folder that was recorded."""
    ((copy, root),) = renamed.items()
    return replace(
        operation,
        name=operation.name.replace(root, copy, 1),
        other=operation.other.replace(root, copy, 1),
    )


def _put(image: dict[str, bytearray], root: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    DataPaths(target).make()
    for name, content in image.items():
        path = target / Path(name).relative_to(root)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o600)


def _opens(
    root: Path, allowed: list[dict[str, Any]], with_gaps: Callable[[], dict[str, Any]]
) -> bool:
    """Open an image; return whether a backup was restored; raise AssertionError for a loss.

    `with_gaps` returns the rows after the writes that were acknowledged or are whole in the journal.
    """
    store = open_store(DataPaths(root))
    try:
        found, problems = comparable_rows(store), check(store).problems
        restored = any("backup of" in notice for notice in store.notices)
    finally:
        store.close()
    assert not problems, problems
    assert found in allowed or found == with_gaps(), "what was acknowledged is not there"
    return restored


def _write(content: bytearray, offset: int, data: bytes | None) -> None:
    """Write as `pwrite` does; None truncates or extends to `offset`."""
    if offset > len(content):
        content.extend(bytes(offset - len(content)))
    if data is None:
        del content[offset:]
    else:
        content[offset : offset + len(data)] = data


if __name__ == "__main__":
    raise SystemExit(main())
