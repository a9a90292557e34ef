"""Process control: child programs with limits, malloc settings, and waiting for threads at exit."""

import atexit
import contextlib
import ctypes
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.domain.errors import Cancelled

_ROOT = Path(__file__).resolve().parents[2]
_RUN = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module(sys.argv.pop(1), run_name='__main__')"
_POLL_S = 0.1
_READ_BYTES = 1 << 16
_EXIT_WAIT_S = 1.0  # for a program that has closed its output
_THREAD_WAIT_S = 10.0
# Options and values of glibc's mallopt (malloc.h).
_MALLOC_OPTIONS = {-8: 2, -3: 128 << 10, -1: 1 << 20}  # arenas, mmap threshold, trim threshold


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """The run time and output after which a program is killed."""

    seconds: float
    output_bytes: int


class LimitExceeded(Exception):
    """A program exceeded its run time or output limit; the message says which."""


def module_command(name: str) -> list[str]:
    """Return the command that runs one of our modules by its name, isolated from the environment."""
    return [sys.executable, "-I", "-c", _RUN, str(_ROOT), name]


def run_captured(
    command: Sequence[str],
    environment: Mapping[str, str],
    limits: ProcessLimits,
    is_cancelled: Callable[[], bool],
) -> tuple[int, bytes]:
    """Run a program and return its exit code and standard output. Blocking.

    It has no input and its own process group, which is killed with all its children at the limits.
    Raises LimitExceeded, `Cancelled` within 0.1 s of `is_cancelled`, OSError when it cannot be started.
    """
    process = subprocess.Popen(  # noqa: S603 - a list of arguments, without a shell
        command,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        with process:
            try:
                output = _read(process, limits, is_cancelled)
                return process.wait(_EXIT_WAIT_S), output
            except BaseException:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise
    except subprocess.TimeoutExpired as error:
        raise LimitExceeded("did not end") from error


def _read(
    process: "subprocess.Popen[bytes]", limits: ProcessLimits, is_cancelled: Callable[[], bool]
) -> bytes:
    assert process.stdout is not None
    deadline = time.monotonic() + limits.seconds
    output = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if is_cancelled():
                raise Cancelled("The worker was stopped")
            if time.monotonic() > deadline:
                raise LimitExceeded(f"took longer than {limits.seconds:.0f} s")
            if not selector.select(_POLL_S):
                continue
            if not (chunk := os.read(process.stdout.fileno(), _READ_BYTES)):
                return bytes(output)
            output += chunk
            if len(output) > limits.output_bytes:
                raise LimitExceeded(f"wrote more than {limits.output_bytes >> 20} MB")


def limit_malloc_retention() -> None:
    """Make glibc return freed memory to the system at once; call before other threads start.

    By default glibc keeps an arena for nearly every thread and raises its mmap threshold with each
    large block that is freed, so that fragmented arenas keep their pages. With all workers running on
    100,000 turns, 400 of 600 MB were free but retained. Fixed limits cost no measurable time. Other C
    libraries are not changed.
    """
    if not sys.platform.startswith("linux"):
        return  # on Windows, CDLL(None) raises TypeError
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for option, value in _MALLOC_OPTIONS.items():
            mallopt(option, value)


def wait_for_threads_at_exit() -> None:
    """Wait at most 10 s for running threads before the interpreter exits.

    A daemon thread that returns from native code, such as the loading of a model, to a finalized
    interpreter is unwound through C++, which aborts the process. Windows are closed and files are
    released before that wait.
    """
    atexit.unregister(_join_threads)
    atexit.register(_join_threads)


def _join_threads() -> None:
    deadline = time.monotonic() + _THREAD_WAIT_S
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and type(thread) is threading.Thread:
            thread.join(max(0.0, deadline - time.monotonic()))


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
