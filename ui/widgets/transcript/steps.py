"""Work of the GUI thread in small steps between two events, so that nothing makes it stutter."""

from collections import deque
from collections.abc import Callable
from time import perf_counter

from PySide6.QtCore import QObject, QTimer
from shiboken6 import isValid

BUDGET_S = 0.008


class Steps(QObject):
    """Runs steps while there are any, for at most 8 ms at a time.

    A step is a method that returns whether it wants to be called again; when its widget is gone, it
    is dropped.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: deque[Callable[[], bool]] = deque()
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._on_timeout)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    def add(self, step: Callable[[], bool]) -> None:
        """Have `step` run soon, and again while it returns True."""
        if step not in self._waiting:
            self._waiting.append(step)
        self._timer.start()

    def _on_timeout(self) -> None:
        until = perf_counter() + BUDGET_S
        while self._waiting:
            step = self._waiting[0]
            wants_more = _is_alive(step) and step()
            if not wants_more and self._waiting and self._waiting[0] is step:
                self._waiting.popleft()
            if perf_counter() >= until:
                return
        self._timer.stop()


def _is_alive(step: Callable[[], bool]) -> bool:
    owner = getattr(step, "__self__", None)
    return not isinstance(owner, QObject) or isValid(owner)
