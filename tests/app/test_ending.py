"""The end of the process: threads that were told to stop are waited for."""

import subprocess
import sys

_PROGRAM = """
import threading, time
from app.system.ending import wait_for_threads_at_exit
def slow():
    time.sleep(0.5)
    print("ended")
threading.Thread(target=slow, daemon=True).start()
{}
print("main is done", flush=True)
"""


def test_a_daemon_thread_is_waited_for() -> None:
    assert _output("wait_for_threads_at_exit()") == ["main is done", "ended"]


def test_without_it_a_daemon_thread_is_cut_off() -> None:
    assert _output("") == ["main is done"]


def _output(line: str) -> list[str]:
    program = _PROGRAM.format(line)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return ended.stdout.decode().split("\n")[:-1]
