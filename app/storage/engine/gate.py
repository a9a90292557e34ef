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
    def shut(self) -> Iterator[None]:
        """Hold the gate shut for the block, once everyone inside has left."""
        with self._changed:
            self._changed.wait_for(lambda: not self._shut)
            self._shut = True
            self._changed.wait_for(lambda: not self._inside)
        try:
            yield
        finally:
            with self._changed:
                self._shut = False
                self._changed.notify_all()

    @contextmanager
    def shut_if_empty(self) -> Iterator[bool]:
        """Hold the gate shut for the block if nobody is inside; give whether that is so. Never waits."""
        with self._changed:
            is_alone = not (self._shut or self._inside)
            self._shut = self._shut or is_alone
        try:
            yield is_alone
        finally:
            if is_alone:
                with self._changed:
                    self._shut = False
                    self._changed.notify_all()
