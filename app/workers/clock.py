"""Time as workers see it, so that tests can let six hours pass at once."""

import threading
import time
from datetime import datetime
from typing import Protocol

from app.storage.times import now


class Clock(Protocol):
    """The time of day, which may jump, and the time that passes, which does not."""

    def now(self) -> datetime:
        """Return the present, UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some moment; never goes back."""
        ...

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        """Block until `event` is set, at most `timeout_s`; return whether it is."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the present, UTC."""
        return now()

    def monotonic(self) -> float:
        """Return seconds since some moment."""
        return time.monotonic()

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        """Block until `event` is set, at most `timeout_s`; return whether it is."""
        return event.wait(timeout_s)
