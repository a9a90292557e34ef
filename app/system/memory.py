"""How much memory the C library keeps after it was freed."""

import ctypes
import sys
from contextlib import suppress

# Of glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8

_ARENAS = 2
_OWN_MAPPING_FROM = 128 << 10
_KEPT_AT_THE_TOP = 1 << 20


def give_back_freed_memory() -> None:
    """Have freed memory go back to the system at once; to be called before other threads start.

    glibc keeps an arena for nearly every thread, and puts ever larger blocks into them once it has
    seen one freed: arrays of many lengths, freed in another order, then hold the arenas' pages.
    With all workers at work on 100,000 turns 400 MB of 600 were free and held. Fixed limits cost no
    measurable time. Another C library is left as it is.
    """
    if not sys.platform.startswith("linux"):
        return  # Windows has no library that `None` could name: a TypeError
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_ARENA_MAX, _ARENAS)
        mallopt(_MMAP_THRESHOLD, _OWN_MAPPING_FROM)
        mallopt(_TRIM_THRESHOLD, _KEPT_AT_THE_TOP)
