"""The instance lock: one process per data directory, by flock on a separate file.

The database itself is never locked this way: closing any other descriptor of it would drop DuckDB's lock.
"""

import os
from types import TracebackType
from typing import Self

from app.domain.errors import AlreadyOpen
from app.system.paths import DataPaths

if os.name == "nt":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class InstanceLock:
    """Locks the data directory until `release`; raises AlreadyOpen when another process has it."""

    def __init__(self, paths: DataPaths) -> None:
        self._descriptor = os.open(paths.lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(self._descriptor)
        except OSError as error:
            holder = os.read(self._descriptor, 32).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            who = f" (process {holder})" if holder.isdigit() else ""
            raise AlreadyOpen(
                f"Another program{who} is using the data directory '{paths.root}'",
                "Close it, or choose another directory with --data-dir.",
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Release the lock; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
