"""The very end of the process, after everything was closed."""

import atexit
import threading
import time

_PATIENCE_S = 10.0


def wait_for_threads_at_exit() -> None:
    """Let threads that were told to stop end before the interpreter goes; at most 10 s.

    One that is inside native code then, such as the loading of a model, would come back to no
    interpreter: CPython unwinds it through C++, which aborts the process. Nobody sees the wait: windows
    are closed and files let go by then.
    """
    atexit.unregister(_wait)
    atexit.register(_wait)


def _wait() -> None:
    until = time.monotonic() + _PATIENCE_S
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and type(thread) is threading.Thread:
            thread.join(max(0.0, until - time.monotonic()))
