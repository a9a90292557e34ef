"""Memory that the C library keeps after it was freed."""

import subprocess
import sys

import pytest

# Arrays beside small things that stay, after a large array has been freed once.
_WORK = """
import re, sys
from app.system.process import limit_malloc_retention

if sys.argv[1] == "given back":
    limit_malloc_retention()

b"x" * int("8000000")
kept = [(b"y" * size, b"z" * 20_000) for size in range(1_000_000, 1_000_050)]
kept = [small for _, small in kept]
print(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's own")
def test_freed_memory_goes_back_to_the_system() -> None:
    def kept_kb(how: str) -> int:
        ran = subprocess.run(
            [sys.executable, "-c", _WORK, how], capture_output=True, text=True, check=True
        )
        return int(ran.stdout)

    assert kept_kb("given back") < kept_kb("as it is") / 2
