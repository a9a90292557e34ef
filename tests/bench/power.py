"""Power cuts of a file system under a process that writes through the store; prints JSON. Needs root.

    python -m tests.bench.power [--rounds N] [--seed N]

Each round writes as in `tests.bench.crash`, on an ext4 of its own in a file. The file system is shut down by its
ioctl, which drops everything that was not synced, then mounted again. What was acknowledged 50 ms before the
cut must be there: a plain program that writes and syncs loses about 1 % of its very last records that way too.
"""

import fcntl
import os
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.shared.measuring import options, print_json
from tests.bench.shared.rounds import run_rounds
from tests.fakes.crash_rounds import Rounds, Victim

_SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN, linux/fs/ext4/ext4.h
_NO_LOG_FLUSH = 2
_SIZE_MB = 400
_GRACE_S = 0.05


class Disk:
    """An ext4 in a file, mounted at `root`."""

    def __init__(self, folder: Path) -> None:
        self._image = folder / "disk.img"
        self.root = folder / "disk"

    @contextmanager
    def mounted(self) -> Iterator[None]:
        self.root.mkdir()
        with self._image.open("wb") as file:
            file.truncate(_SIZE_MB << 20)
        _run("mkfs.ext4", "-q", "-F", self._image)
        self._mount()
        try:
            yield
        finally:
            _run("umount", "--lazy", self.root)

    def cut(self) -> None:
        """Cut the power: nothing is written from now on."""
        descriptor = os.open(self.root, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
        finally:
            os.close(descriptor)

    def mount_again(self) -> None:
        _run("umount", self.root)
        self._mount()

    def _mount(self) -> None:
        _run("mount", "-o", "loop", self._image, self.root)


class PowerCuts(Rounds):
    """Rounds that end by a cut."""

    def __init__(self, folder: Path, seed: int, disk: Disk) -> None:
        super().__init__(folder, seed, disk.root / "live")
        self._disk = disk

    def _start(self, seed: int) -> Victim:
        os.sync()  # what was there before
        return super()._start(seed)

    def _end(self, victim: Victim) -> list[str]:
        cut_at = time.monotonic()
        self._disk.cut()
        victim.kill()
        self._disk.mount_again()
        heard = zip(victim.lines, victim.times, strict=True)
        return [
            line for line, at in heard if at < cut_at - _GRACE_S or not line.startswith('{"ok"')
        ]


def main() -> int:
    """Run and print; the exit code is 1 when something was lost."""
    given = options(__doc__, rounds=500, seed=1)
    with tempfile.TemporaryDirectory(prefix="commonplace-power-") as folder:
        disk = Disk(Path(folder))
        with disk.mounted():
            figures = run_rounds(PowerCuts(Path(folder), given.seed, disk), given.rounds)
    print_json(figures)
    return 1 if figures["lost"] else 0


def _run(*command: object) -> None:
    subprocess.run(list(map(str, command)), check=True, capture_output=True)


if __name__ == "__main__":
    raise SystemExit(main())
