"""How often something is drawn that changes all the time."""

from collections.abc import Callable
from time import perf_counter

from PySide6.QtCore import QObject, QTimer

INTERVAL_MS = 33
_MOST_MS = 400
_REST = 1.5


class Pacer(QObject):
    """Calls `draw` at most 30 times a second, and less often when drawing itself takes long.

    After a drawing of t ms it rests for at least 1.5 t, so that other events get their turn.
    """

    def __init__(self, draw: Callable[[], None], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._draw = draw
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._on_timeout)
        self._rest_ms = 0

    def request(self) -> None:
        """Have it drawn soon."""
        if not self._timer.isActive():
            self._timer.start(max(INTERVAL_MS, self._rest_ms))

    def flush(self) -> None:
        """Draw now."""
        self._timer.stop()
        self._on_timeout()

    def _on_timeout(self) -> None:
        began = perf_counter()
        self._draw()
        took_ms = (perf_counter() - began) * 1000
        self._rest_ms = min(_MOST_MS, round(took_ms * _REST))
