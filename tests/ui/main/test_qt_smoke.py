"""Behavior of PySide6 that an upgrade must not break, and that the tests rely on."""

import gc
import sys

from PySide6.QtCore import QCoreApplication, QObject, Signal

EMITS = 1000


class Counter(QObject):
    """Counts its own signal."""

    ticked = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self.received = 0
        self.ticked.connect(self._on_self_ticked)

    def _on_self_ticked(self, flag: bool) -> None:
        self.received += flag


def test_a_thousand_emits_keep_every_reference_to_true(qapp: QCoreApplication) -> None:
    # PySide6 6.12.0 on Python 3.11 loses one per emit; some hundred later the process dies.
    counter = Counter()
    gc.collect()
    before = sys.getrefcount(True)
    for _ in range(EMITS):
        counter.ticked.emit(True)
    gc.collect()
    assert counter.received == EMITS
    if sys.version_info < (3, 12):  # from 3.12 on True is immortal, and its count means nothing
        assert abs(sys.getrefcount(True) - before) < EMITS // 10
