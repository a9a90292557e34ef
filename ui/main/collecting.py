"""Python's cyclic garbage collector, as a window needs it: on the GUI thread, a little at a time.

By itself it would run in any thread and destroy QObjects there; so it is switched off for all, and
a timer collects. The interpreter stands still meanwhile: about 0.4 us for each object looked at.
"""

import gc

from PySide6.QtCore import QObject, QTimer

_EVERY_MS = 1_000
_FEW = 700  # objects more than at the last look: not worth one; Python's own threshold
_OFTEN = 10  # collections of a generation before the next older one has its turn; Python's own too
_MANY = 20_000  # objects: as many as are looked at in 8 ms


class Collector(QObject):
    """Collects garbage in the thread it lives in, until `stop`.

    What comes in great numbers is no garbage but modules (an SDK makes 100,000 objects: 50 ms for
    each look) or a long list: it is frozen, never to be looked at, and freed when nobody refers to
    it. Only cycles that are in it by then stay for good.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self, interval=_EVERY_MS)
        self._timer.timeout.connect(self.look)
        self._timer.start()

    def stop(self) -> None:
        """Collect no more."""
        self._timer.stop()

    def look(self) -> None:
        """Collect what is young, now and then what is older; at most some 20,000 objects each."""
        young, middle, old = gc.get_count()
        if young < _FEW:
            return
        if young > _MANY:
            gc.freeze()
        elif middle < _OFTEN:
            gc.collect(0)
        elif old < _OFTEN:
            gc.collect(1)
        elif len(gc.get_objects(generation=2)) > _MANY:
            gc.freeze()
        else:
            gc.collect()
