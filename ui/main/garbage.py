"""Cyclic garbage collection on the GUI thread, in small steps.

Automatic collection may run in any thread and destroy QObjects there. It is therefore disabled, and
a timer collects. A collection stops the interpreter for about 0.4 us per object examined.
"""

import gc

from PySide6.QtCore import QObject, QTimer

_INTERVAL_MS = 1_000
_YOUNG_MIN = 700  # new objects below which it does nothing; Python's own threshold
_PER_OLDER = 10  # collections of a generation before one of the next older; Python's own, too
_EXAMINED_MAX = 20_000  # objects: as many as are examined in 8 ms


class GarbageCollector(QObject):
    """Collects garbage in the thread it lives in, until `stop`.

    Many new objects at once are not garbage but modules (an SDK creates 100,000 objects, 50 ms per
    collection) or a long list. They are frozen, that is, exempt from collection; reference counting
    still frees them, except for cycles among them.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self, interval=_INTERVAL_MS)
        self._timer.timeout.connect(self.collect)
        self._timer.start()

    def stop(self) -> None:
        """Stop collecting."""
        self._timer.stop()

    def collect(self) -> None:
        """Collect young objects, sometimes older ones; at most about 20,000 each time."""
        young, middle, old = gc.get_count()
        if young < _YOUNG_MIN:
            return
        if young > _EXAMINED_MAX:
            gc.freeze()
        elif middle < _PER_OLDER:
            gc.collect(0)
        elif old < _PER_OLDER:
            gc.collect(1)
        elif len(gc.get_objects(generation=2)) > _EXAMINED_MAX:
            gc.freeze()
        else:
            gc.collect()
