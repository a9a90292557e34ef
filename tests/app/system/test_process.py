"""Process control: limits of child programs, malloc settings, and the wait for threads at exit."""

import ctypes
import subprocess
import sys
from unittest import mock

import pytest

from app.domain.errors import Cancelled
from app.system.process import LimitExceeded, ProcessLimits, limit_malloc_retention, run_captured

ENVIRONMENT = {"PATH": "/bin:/usr/bin"}
_THREADED = """
import threading, time
from app.system.process import wait_for_threads_at_exit
def slow():
    time.sleep(0.2)
    print("ended")
threading.Thread(target=slow, daemon=True).start()
{}
print("main is done", flush=True)
"""


def never() -> bool:
    return False


def test_the_exit_code_and_the_output_are_returned() -> None:
    limits = ProcessLimits(20, 1 << 20)
    assert run_captured(["sh", "-c", "echo a; exit 3"], ENVIRONMENT, limits, never) == (3, b"a\n")


@pytest.mark.parametrize(
    ("script", "problem"),
    [("sleep 1000 & sleep 1000", "took longer"), ("exec >&-; sleep 1000", "did not end"),
     ("yes", "wrote more than 1 MB")],
)  # fmt: skip
def test_a_program_that_exceeds_its_limits_is_killed(script: str, problem: str) -> None:
    with pytest.raises(LimitExceeded, match=problem):
        run_captured(["sh", "-c", script], ENVIRONMENT, ProcessLimits(0.3, 1 << 20), never)


def test_a_program_ends_when_it_is_cancelled() -> None:
    answers = iter([False, False, True])
    with pytest.raises(Cancelled):
        run_captured(["sleep", "1000"], ENVIRONMENT, ProcessLimits(900, 1), lambda: next(answers))


@pytest.mark.parametrize(
    ("call", "output"),
    [("wait_for_threads_at_exit()", ["main is done", "ended"]), ("", ["main is done"])],
)
def test_daemon_threads_are_waited_for_at_exit(call: str, output: list[str]) -> None:
    program = _THREADED.format(call)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stdout.decode().split() == " ".join(output).split()


@pytest.mark.parametrize(
    ("platform", "library"),
    [
        ("linux", mock.Mock()),
        ("linux", object()),  # another C library than glibc
        ("win32", TypeError("NoneType")),
        ("darwin", TypeError("NoneType")),
    ],
)
def test_malloc_is_limited_with_glibc_only(
    monkeypatch: pytest.MonkeyPatch, platform: str, library: object
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    with mock.patch.object(ctypes, "CDLL", side_effect=[library]):
        limit_malloc_retention()
    if isinstance(library, mock.Mock):
        assert library.mallopt.call_count == 3
