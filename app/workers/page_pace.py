"""How fast manual pages go to a remote embedder: thousands of them must not use up its limits."""

import time
from collections import deque
from collections.abc import Callable

from app.domain.errors import Cancelled

MOST_PAGES = 10  # of one request
_REQUESTS = 10
_PER_S = 60.0
_LOOK_EVERY_S = 0.1


class PagePace:
    """Ten requests in any minute."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._sent: deque[float] = deque(maxlen=_REQUESTS)

    def turn(self, gives_way: Callable[[], bool]) -> None:
        """Wait until a request may be sent, and count it; raise Cancelled once `gives_way`."""
        while len(self._sent) == _REQUESTS and self._clock() < self._sent[0] + _PER_S:
            if gives_way():
                raise Cancelled("Manual pages gave way")
            self._sleep(_LOOK_EVERY_S)
        self._sent.append(self._clock())
