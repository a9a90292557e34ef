"""Construction of the program: `build` is the one place where its parts are put together.

Everything below the window is made in `services`, in order, and closed in reverse.
"""

from enum import Enum, auto

from app.bootstrap.services import Services, locked
from app.system.paths import DataPaths

__all__ = ["RunMode", "Services", "build", "locked"]


class RunMode(Enum):
    """Who builds: a window runs everything in the background, a command only what it needs."""

    WINDOW = auto()
    COMMAND_LINE = auto()


def build(paths: DataPaths, mode: RunMode) -> Services:
    """Return the program, opened on a data directory. Blocking; not for the GUI thread.

    Raises AlreadyOpen, DatabaseTooNew, ReadOnlyStorage, DiskFull, StorageError.
    """
    services = Services(paths)
    if mode is RunMode.WINDOW:
        try:
            services.start()
        except BaseException:
            services.close()
            raise
    return services
