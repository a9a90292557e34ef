"""A line across the top of a screen: something to know, with at most one thing to do about it."""

from collections.abc import Callable

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QToolButton, QWidget

from ui.widgets.plain_label import PlainLabel

_TOAST_MS = 8000


class Banner(QFrame):
    """Words, an optional action and a way to dismiss both; hidden until it is shown.

    Signals:
        dismissed: The user has read it, or its time is over.
    """

    dismissed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("panel", "warning")
        self._words = PlainLabel(self)
        self._words.setWordWrap(True)
        self._action = QPushButton(self)
        self._action.setProperty("kind", "quiet")
        self._action.clicked.connect(self._on_action_clicked)
        close = QToolButton(self)
        close.setText("\N{MULTIPLICATION X}")
        close.setAccessibleName("Dismiss")
        close.clicked.connect(self.dismiss)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 8, 6)
        row.addWidget(self._words, 1)
        row.addWidget(self._action)
        row.addWidget(close)
        self._timer = QTimer(self, singleShot=True, interval=_TOAST_MS)
        self._timer.timeout.connect(self.dismiss)
        self._act: Callable[[], None] | None = None
        self.hide()

    @property
    def words(self) -> str:
        """What it says."""
        return self._words.text()

    def tell(
        self, words: str, action: str = "", act: Callable[[], None] | None = None, *, brief: bool
    ) -> None:
        """Show words; `brief` ones go by themselves, such as the offer to undo."""
        self._words.setText(words)
        self._action.setText(action)
        self._action.setVisible(bool(action))
        self._act = act
        self.show()
        if brief:
            self._timer.start()
        else:
            self._timer.stop()

    def dismiss(self) -> None:
        """Go away."""
        self._timer.stop()
        self.hide()
        self.dismissed.emit()

    def _on_action_clicked(self) -> None:
        act, self._act = self._act, None
        self.dismiss()
        if act is not None:
            act()
