"""UI priority: background work yields to the user and to a late window."""

import threading
from collections.abc import Callable

from app.workers.job import Clock

_ACTIVE_FOR_S = 0.3  # after a key or a scroll, usually until the next one
_PAUSE_S = 0.1
_PING_EVERY_S = 0.005
_LATE_S = 0.003


class UiPriority:
    """Pauses background work while the user is active or the window is late. Thread-safe.

    All threads share one interpreter: with four workers a page of 30 ms took 150. Work goes on
    between two pauses, so that constant typing does not stop it.

    Attributes:
        ping_gui: Called on any thread, returns at once: has the window call `gui_ready` as soon as
            possible. None without a window.
    """

    def __init__(self, clock: Clock) -> None:
        self.ping_gui: Callable[[], None] | None = None
        self._clock = clock
        self._until = float("-inf")
        self._pinged_at = float("-inf")
        self._answered = threading.Event()
        self._answered.set()
        self._window_thread = 0

    def user_active(self) -> None:
        """Record that the user did something; never waits."""
        self._until = self._clock.monotonic() + _ACTIVE_FOR_S

    def throttle(self, stop: threading.Event) -> None:
        """Pause for 0.1 s while the user is active, unless `stop` is set; then `yield_if_late`."""
        if self._clock.monotonic() < self._until:
            self._clock.wait(stop, _PAUSE_S)
        self.yield_if_late()

    def gui_ready(self) -> None:
        """Record that the window has answered a ping; on its thread, never waits."""
        self._window_thread = threading.get_ident()
        self._answered.set()

    def yield_if_late(self) -> None:
        """Pause while the window is late to answer a ping, for 0.1 s per ping at most.

        Never pauses the window's own thread. It takes 0.2 microseconds, 10 with a ping: call it
        after each millisecond of work.
        """
        if self.ping_gui is None or threading.get_ident() == self._window_thread:
            return
        now = self._clock.monotonic()
        late_s = now - self._pinged_at - _LATE_S
        if self._answered.is_set():
            if now - self._pinged_at > _PING_EVERY_S:
                self._answered.clear()
                self._pinged_at = now
                self.ping_gui()
        elif 0.0 < late_s < _PAUSE_S:
            self._clock.wait(self._answered, _PAUSE_S - late_s)
