"""Background work gives way to whoever waits for the window: both share one interpreter."""

import threading

from app.workers.clock import Clock

_SERVED_FOR_S = 0.3  # after a key, or a page that was turned: until the next one, as a rule
_REST_S = 0.1


class Courtesy:
    """Notes when the user is being served, and has workers rest meanwhile; thread-safe.

    With four threads at work the window's gets a fifth of the interpreter: a page of 30 ms came
    after 150. Work goes on between two rests, so that who never stops typing does not stop it.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = float("-inf")

    def serve(self) -> None:
        """Note that the user did something that the window must answer at once; never waits."""
        self._until = self._clock.monotonic() + _SERVED_FOR_S

    def give_way(self, stop: threading.Event) -> None:
        """Rest a tenth of a second while the user is being served, until `stop` is set."""
        if self._clock.monotonic() < self._until:
            self._clock.wait(stop, _REST_S)
