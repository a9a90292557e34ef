"""Folds the sidebar where it leaves the conversation no room, and brings it back where it does."""

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QSplitter


class SidebarFold(QObject):
    """Unchecks the sidebar's action when the splitter gets too narrow for both, as by a dock.

    Who shows the sidebar all the same has it, and the window is made wider for it.
    """

    def __init__(self, split: QSplitter, shown: QAction, least_beside_px: int) -> None:
        super().__init__(split)
        self._split = split
        self._shown = shown
        self._least_beside_px = least_beside_px
        self._has_folded = False
        self._is_folding = False
        split.setMinimumWidth(least_beside_px)  # else it would never be found too narrow
        split.installEventFilter(self)
        shown.toggled.connect(self._on_shown_toggled)

    def fit(self) -> None:
        """Fold the sidebar or bring it back, as the width is now."""
        is_narrow = self._split.width() < self._wanted_px()
        if self._split.minimumWidth() == 0:  # it is there by wish
            if not is_narrow:
                self._split.setMinimumWidth(self._least_beside_px)
        elif is_narrow and self._shown.isChecked():
            self._show(False)
        elif not is_narrow and self._has_folded:
            self._show(True)

    def _show(self, on: bool) -> None:
        self._is_folding = True
        self._shown.setChecked(on)
        self._is_folding = False
        self._has_folded = not on

    def _wanted_px(self) -> int:
        sidebar = self._split.widget(0)
        assert sidebar is not None
        least_px = max(sidebar.minimumWidth(), sidebar.minimumSizeHint().width())
        return least_px + self._split.handleWidth() + self._least_beside_px

    def _on_shown_toggled(self, on: bool) -> None:
        if self._is_folding:
            return
        self._has_folded = False
        if on and self._split.width() < self._wanted_px():
            self._split.setMinimumWidth(0)
        elif not on:
            self._split.setMinimumWidth(self._least_beside_px)

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Fit whenever the splitter has another width."""
        if event.type() == QEvent.Type.Resize:
            self.fit()
        return super().eventFilter(watched, event)
