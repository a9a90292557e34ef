"""A gate: many threads pass at once, or one thread closes it and is alone (a readers-writer lock)."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """Lets readers of a resource pass, and its replacement wait until none is inside.

    Passing is reentrant, so that a query may run another query.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._shut = False
        self._own = threading.local()

    @property
    def is_inside(self) -> bool:
        """Whether the calling thread is inside; it must not close the gate then."""
        return bool(getattr(self._own, "depth", 0))

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Stay inside for the block; wait first while the gate is shut."""
        depth = getattr(self._own, "depth", 0)
        if not depth:
            with self._changed:
                while self._shut:
                    self._changed.wait()
                self._inside += 1
        self._own.depth = depth + 1
        try:
            yield
        finally:
            self._own.depth = depth
            if not depth:
                with self._changed:
                    self._inside -= 1
                    self._changed.notify_all()

    @contextmanager
    def shut(self, *, waits: bool = True) -> Iterator[bool]:
        """Hold the gate shut for the block, once everyone inside has left.

        Without `waits` it is held only if nobody is inside; gives whether that is so.
        """
        with self._changed:
            if waits:
                self._changed.wait_for(lambda: not self._shut)
                self._shut = True
                self._changed.wait_for(lambda: not self._inside)
            is_alone = waits or not (self._shut or self._inside)
            self._shut = self._shut or is_alone
        try:
            yield is_alone
        finally:
            if is_alone:
                with self._changed:
                    self._shut = False
                    self._changed.notify_all()
