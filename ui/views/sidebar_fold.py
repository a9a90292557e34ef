"""Automatic hiding of the sidebar in a narrow window."""

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QSplitter


class SidebarFold(QObject):
    """Unchecks the sidebar's action while the splitter is too narrow, as with a dock open.

    If the user shows the sidebar anyway, the window becomes wider.
    """

    def __init__(self, split: QSplitter, shown: QAction, least_beside_px: int) -> None:
        super().__init__(split)
        self._split = split
        self._shown = shown
        self._least_beside_px = least_beside_px
        self._is_auto_hidden = False
        self._is_adjusting = False
        split.setMinimumWidth(least_beside_px)  # otherwise it would never become too narrow
        split.installEventFilter(self)
        shown.toggled.connect(self._on_shown_toggled)

    def fit(self) -> None:
        """Hide or show the sidebar, depending on the width."""
        is_narrow = self._split.width() < self._wanted_px()
        if self._split.minimumWidth() == 0:  # the user shows it anyway
            if not is_narrow:
                self._split.setMinimumWidth(self._least_beside_px)
        elif is_narrow and self._shown.isChecked():
            self._show(False)
        elif not is_narrow and self._is_auto_hidden:
            self._show(True)

    def _show(self, on: bool) -> None:
        self._is_adjusting = True
        self._shown.setChecked(on)
        self._is_adjusting = False
        self._is_auto_hidden = not on

    def _wanted_px(self) -> int:
        sidebar = self._split.widget(0)
        assert sidebar is not None
        least_px = max(sidebar.minimumWidth(), sidebar.minimumSizeHint().width())
        return least_px + self._split.handleWidth() + self._least_beside_px

    def _on_shown_toggled(self, on: bool) -> None:
        if self._is_adjusting:
            return
        self._is_auto_hidden = False
        if on and self._split.width() < self._wanted_px():
            self._split.setMinimumWidth(0)
        elif not on:
            self._split.setMinimumWidth(self._least_beside_px)

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Adjust to each new width."""
        if event.type() == QEvent.Type.Resize:
            self.fit()
        return super().eventFilter(watched, event)
