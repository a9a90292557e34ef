"""Display check: whether a window can be shown, asked before Qt is loaded.

Qt aborts the process with a misleading message when no display server answers. Standard library
only: `packaging/dev.py` uses this before anything is installed.
"""

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path


def display_problem(environ: Mapping[str, str]) -> str | None:
    """Return why no window can be shown, or None.

    Only what is certain is reported: no display is named, or no named display has a server. A
    display on another machine, and a Qt platform chosen by the user, are left to Qt. Blocking for
    two local connections at most.
    """
    if sys.platform != "linux" or environ.get("QT_QPA_PLATFORM"):
        return None
    display, wayland = environ.get("DISPLAY", ""), environ.get("WAYLAND_DISPLAY", "")
    if not display and not wayland:
        return "neither DISPLAY nor WAYLAND_DISPLAY is set"
    problems = [
        *([_x11_problem(display)] if display else []),
        *([_wayland_problem(wayland, environ)] if wayland else []),
    ]
    return None if None in problems else "; ".join(filter(None, problems))


def _x11_problem(display: str) -> str | None:
    number = display.removeprefix("unix").removeprefix(":").partition(".")[0]
    if not number.isdigit():
        return None
    path = f"/tmp/.X11-unix/X{number}"  # noqa: S108 - X(7), "DISPLAY NAMES"
    if any(_answers(address) for address in (f"\0{path}", path)):
        return None
    return f"DISPLAY is {display}, but no X server answers at {path}"


def _wayland_problem(display: str, environ: Mapping[str, str]) -> str | None:
    # wl_display_connect(3): an absolute path, or a name in XDG_RUNTIME_DIR.
    path = Path(environ.get("XDG_RUNTIME_DIR", "")) / display
    if not path.is_absolute() or _answers(os.fspath(path)):
        return None
    return f"WAYLAND_DISPLAY is {display}, but no compositor answers at {path}"


def _answers(address: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(address)
        except OSError:
            return False
    return True
