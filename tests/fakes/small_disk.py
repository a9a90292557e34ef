"""Disks without room: a small tmpfs where we may mount one, and a limit on the size of files."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


class SmallDisk:
    """A tmpfs of our own; made by `small_disk`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._ballast = root / "ballast"

    def fill(self, leave_bytes: int = 0) -> None:
        """Take all the room there is, but for `leave_bytes`."""
        descriptor = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            with suppress(OSError):
                while True:
                    os.write(descriptor, bytes(4096))
            size = os.fstat(descriptor).st_size
            os.ftruncate(descriptor, max(0, size - leave_bytes) // 4096 * 4096)
        finally:
            os.close(descriptor)

    def free(self) -> None:
        """Give the room back."""
        self._ballast.unlink()


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Mount a tmpfs of that size at `folder`; skips the test where that is not allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    options = f"size={megabytes}m,mode=0700"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)],
        capture_output=True,
        text=True,
    )
    if mounted.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def no_file_beyond(limit_bytes: int) -> Iterator[None]:
    """Let no file of this process grow past a size: EFBIG, as on a file system with a limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
