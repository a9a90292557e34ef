"""Programs of the system, run for their output and never trusted to end."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.domain.errors import Cancelled

_LOOK_EVERY_S = 0.1
_READ_BYTES = 1 << 16
_LAST_WORDS_S = 1.0  # a program that has closed its output has little left to do


@dataclass(frozen=True, slots=True)
class Limits:
    """What a program may take before it is killed."""

    seconds: float
    output_bytes: int


class OutOfLimits(Exception):
    """A program took too long or said too much; `args` has the words."""


def output_of(
    command: Sequence[str],
    environment: Mapping[str, str],
    limits: Limits,
    is_cancelled: Callable[[], bool],
) -> tuple[int, bytes]:
    """Return the exit code of a program and all it wrote to its standard output. Blocking.

    It gets no input and a process group of its own, which is killed with all its children at the
    limits. Raises OutOfLimits, `Cancelled` within 0.1 s of `is_cancelled`, OSError when it cannot
    be started.
    """
    process = subprocess.Popen(  # noqa: S603 - a list of words, never a shell
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
                return process.wait(_LAST_WORDS_S), output
            except BaseException:
                _kill(process)
                raise
    except subprocess.TimeoutExpired as error:
        raise OutOfLimits("did not end") from error


def _read(
    process: "subprocess.Popen[bytes]", limits: Limits, is_cancelled: Callable[[], bool]
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
                raise OutOfLimits(f"took longer than {limits.seconds:.0f} s")
            if not selector.select(_LOOK_EVERY_S):
                continue
            if not (piece := os.read(process.stdout.fileno(), _READ_BYTES)):
                return bytes(output)
            output += piece
            if len(output) > limits.output_bytes:
                raise OutOfLimits(f"wrote more than {limits.output_bytes >> 20} MB")


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a program with its children, also those that outlive it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
