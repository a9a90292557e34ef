"""Priority of the window's shortcuts over the editing keys of text widgets.

On X11 Qt's editors claim Ctrl+K, Ctrl+E, Ctrl+D and others as line editing keys, so that the
window's actions with these shortcuts do not run while a text has the focus.
"""

from collections.abc import Iterable

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QWidget

_ESCAPE = "Esc"  # not a line editing key: an editor that claims it has something to close


class ShortcutGuard(QObject):
    """Keeps the shortcuts of `actions` from the text widgets it watches."""

    def __init__(self, actions: Iterable[QAction], parent: QObject) -> None:
        super().__init__(parent)
        self._actions = tuple(actions)

    def watch(self, widget: QWidget) -> None:
        widget.installEventFilter(self)

    def _claims(self, key: QKeySequence) -> bool:
        """Return whether a key is that of an action now; the user can change them."""
        is_known = key.toString() not in ("", _ESCAPE)
        return is_known and any(key in action.shortcuts() for action in self._actions)

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Pass a claimed key to the window."""
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and self._claims(QKeySequence(event.keyCombination()))
        ):
            event.ignore()
            return True
        return super().eventFilter(watched, event)
