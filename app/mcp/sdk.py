"""The first import of MCP's SDK, which must not happen on two threads: its packages import each other.

It takes 0.8 s of processor time, so nothing imports it before a program or a tool server connects.
"""

import importlib
import threading

_lock = threading.Lock()


def load_sdk() -> None:
    """Import the SDK as a whole; call this before any other import of it. Thread-safe."""
    with _lock:
        importlib.import_module("mcp")
