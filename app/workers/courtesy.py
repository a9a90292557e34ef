"""Background work gives way to whoever waits for the window: both share one interpreter."""

import threading
from collections.abc import Callable

from app.workers.clock import Clock

_SERVED_FOR_S = 0.3  # after a key, or a page that was turned: until the next one, as a rule
_REST_S = 0.1
_ASK_EVERY_S = 0.005
_LATE_S = 0.003


class Courtesy:
    """Notes when the user is being served or the window is late, and has others rest; thread-safe.

    With four threads at work the window's gets a fifth of the interpreter: a page of 30 ms came
    after 150. Work goes on between two rests, so that who never stops typing does not stop it.

    Attributes:
        ask_window: Called on any thread, returns at once: has the window call `answer` as soon as
            it gets to it. None where there is no window.
    """

    def __init__(self, clock: Clock) -> None:
        self.ask_window: Callable[[], None] | None = None
        self._clock = clock
        self._until = float("-inf")
        self._asked_at = float("-inf")
        self._answered = threading.Event()
        self._answered.set()
        self._window_thread = 0

    def serve(self) -> None:
        """Note that the user did something that the window must answer at once; never waits."""
        self._until = self._clock.monotonic() + _SERVED_FOR_S

    def give_way(self, stop: threading.Event) -> None:
        """Rest a tenth of a second while the user is being served, until `stop` is set.

        And do as `step_aside` does.
        """
        if self._clock.monotonic() < self._until:
            self._clock.wait(stop, _REST_S)
        self.step_aside()

    def answer(self) -> None:
        """Note that the window got to what it was asked; on its thread, never waits."""
        self._window_thread = threading.get_ident()
        self._answered.set()

    def step_aside(self) -> None:
        """Rest while the window is late to answer, a tenth of a second for each question at most.

        The window's own thread never rests.
        It costs 0.2 microseconds, 10 when it asks: call it after each millisecond of work.
        """
        if self.ask_window is None or threading.get_ident() == self._window_thread:
            return
        now = self._clock.monotonic()
        late_s = now - self._asked_at - _LATE_S
        if self._answered.is_set():
            if now - self._asked_at > _ASK_EVERY_S:
                self._answered.clear()
                self._asked_at = now
                self.ask_window()
        elif 0.0 < late_s < _REST_S:
            self._clock.wait(self._answered, _REST_S - late_s)
