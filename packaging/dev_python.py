"""The Python this program runs on: found or asked for. Any Python from 3.6 on can read this."""

import os
import subprocess
import sys

OLDEST, NEWEST = (3, 11), (3, 13)


def require() -> None:
    """Return on a Python that will do; otherwise go on as one that does, or say what is needed."""
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        name = f"python3.{minor}"
        if _works(name):
            os.execvp(name, [name, *sys.argv])
    sys.exit(
        f"Commonplace needs Python 3.{OLDEST[1]} to 3.{NEWEST[1]}, and this is "
        f"{sys.version_info[0]}.{sys.version_info[1]}. Install one of them and start this again "
        f"with it, for example: python3.{NEWEST[1]} {' '.join(sys.argv)}"
    )


def _works(name: str) -> bool:
    # Version managers put stubs on the path that exist and fail.
    silent = subprocess.DEVNULL
    try:
        return subprocess.call([name, "-c", ""], stdout=silent, stderr=silent) == 0
    except OSError:
        return False
