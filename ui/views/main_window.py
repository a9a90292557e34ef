"""The window: sidebar, conversation, inspector, worker dashboard, menus and status bar."""

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QPaintEvent
from PySide6.QtWidgets import (
    QDockWidget,
    QMainWindow,
    QSplitter,
    QToolButton,
    QWidget,
)

from ui.theme import Theme
from ui.views.actions import Actions
from ui.views.chat_pane import ChatPane
from ui.views.sidebar_fold import SidebarFold
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import PlainLabel

if TYPE_CHECKING:
    from ui.views.dashboard import Dashboard
    from ui.views.inspector import Inspector
    from ui.views.sidebar import Sidebar

_log = logging.getLogger(__name__)
_SIDEBAR_PX = 320
_LEAST_CHAT_PX = 320
_STATUS_GAP_PX = 6


class MainWindow(QMainWindow):
    """Everything the user sees; what it means is the controllers' business.

    Made in two steps: what the first frame shows, then, by `furnish`, all that hides behind it.

    Signals:
        close_requested: The user wants to leave; whoever listens closes the window in the end.
        files_dropped: list of `Path`, dropped anywhere on the window.
        painted: Once, right after the window was drawn for the first time.

    Attributes:
        sidebar, dashboard, inspector: Once furnished.
        recall_status: Says whether recall is on; who clicks it wants its settings.
        conversation_id: What was open, kept with the geometry for the next start.
        place: Where it was scrolled to, as the transcript says it; None is its end.
    """

    close_requested = Signal()
    files_dropped = Signal(list)
    painted = Signal()

    dashboard: "Dashboard"
    inspector: "Inspector"
    sidebar: "Sidebar"

    def __init__(self) -> None:
        super().__init__()
        self.setWindowTitle("Commonplace")
        self.setObjectName("window")
        self.setAcceptDrops(True)
        resize_on_screen(self, 1180, 780)
        self.setMinimumHeight(420)
        self.chat = ChatPane(self)
        self.chat.setMinimumWidth(_LEAST_CHAT_PX)  # beside sidebar and docks, else none can write
        self.chat.titled.connect(self._on_chat_titled)
        self.split = QSplitter(Qt.Orientation.Horizontal, self)
        self._left = QWidget(self)  # the sidebar's place, then the sidebar
        self.split.addWidget(self._left)
        self.split.addWidget(self.chat)
        self.split.setStretchFactor(1, 1)
        self.split.setSizes([_SIDEBAR_PX, 860])
        self.split.setChildrenCollapsible(False)
        self.setCentralWidget(self.split)
        self.dock = QDockWidget("Workers", self)
        self.dock.setObjectName("workers")
        self.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, self.dock)
        self.dock.hide()
        self.inspector_dock = QDockWidget("Inspector", self)
        self.inspector_dock.setObjectName("inspector")
        self.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, self.inspector_dock)
        self.inspector_dock.hide()
        self.recall_status = QToolButton(self)
        self.statusBar().addPermanentWidget(self.recall_status)
        self.search_status = PlainLabel(self)
        self.worker_status = PlainLabel(self)
        self.spend_status = PlainLabel(self)
        for label in (self.search_status, self.worker_status, self.spend_status):
            label.setContentsMargins(_STATUS_GAP_PX, 0, _STATUS_GAP_PX, 0)
            self.statusBar().addPermanentWidget(label)
        self.actions_by_name = Actions(self)
        self._wire_view_actions()
        self._fold = SidebarFold(self.split, self.actions_by_name["sidebar"], _LEAST_CHAT_PX)
        self.chat.composer.box.setFocus()
        self._may_close = False
        self._is_painted = False
        self.conversation_id: int | None = None
        self.place: tuple[int, int] | None = None

    def furnish(self, theme: Theme, transcript: QWidget) -> None:
        """Add what the first frame does not show; the transcript is made by whoever composes."""
        from ui.views.dashboard import Dashboard
        from ui.views.inspector import Inspector
        from ui.views.sidebar import Sidebar
        from ui.widgets.shortcut_guard import ShortcutGuard
        from ui.widgets.tab_order import tab_through

        self.sidebar = Sidebar(theme, self)
        self.sidebar.setEnabled(self._left.isEnabled())
        self.sidebar.setVisible(self.actions_by_name["sidebar"].isChecked())
        sizes = self.split.sizes()
        self.split.replaceWidget(0, self.sidebar)
        self.split.setSizes(sizes)
        self._left.deleteLater()
        self._left = self.sidebar
        self._fold.fit()
        self.chat.furnish(transcript)
        self.dashboard = Dashboard(self)
        self.dock.setWidget(self.dashboard)
        self.inspector = Inspector(theme, self)
        self.inspector_dock.setWidget(self.inspector)
        tab_through((*self.sidebar.stops, *self.chat.stops, self.recall_status))
        guard = ShortcutGuard(self.actions_by_name, self)
        for editor in (self.sidebar.box, self.chat.title, self.chat.composer.box):
            guard.watch(editor)
            editor.setAcceptDrops(False)  # files are for the window, which imports them

    def restore_state(self, file: Path) -> None:
        """Take the geometry of the last time; a missing or strange file changes nothing."""
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
            geometry, layout = (QByteArray.fromBase64(kept[key].encode()) for key in _KEPT)
            sizes = [int(size) for size in kept["split"]]
            opened, place = kept.get("conversation"), kept.get("place")
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return
        self.restoreGeometry(geometry)
        self.restoreState(layout)
        self.split.setSizes(sizes)
        self.conversation_id = opened if isinstance(opened, int) else None
        match place:
            case [int(turn), int(offset)] if turn >= 0:
                self.place = (turn, offset)

    def state_to_keep(self) -> str:
        """Return the geometry, and what is open, as text for `keep_state`."""
        layout = (self.saveGeometry(), self.saveState())
        kept: dict[str, object] = {
            key: bytes(value.toBase64().data()).decode("ascii")
            for key, value in zip(_KEPT, layout, strict=True)
        }
        kept["split"] = self.split.sizes()
        kept["conversation"] = self.conversation_id
        kept["place"] = self.place
        return json.dumps(kept)

    def show_usable(self, usable: bool) -> None:
        """Let lists and actions be used, or only looked at, while there is nothing behind them."""
        self._left.setEnabled(usable)
        for action in self.actions_by_name:
            action.setEnabled(usable or action.objectName() in _ALWAYS_USABLE)

    def close_for_good(self) -> None:
        """Close, whoever may object."""
        self._may_close = True
        self.close()

    def come_forward(self) -> None:
        """Be the window in front."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def _wire_view_actions(self) -> None:
        sidebar, dashboard = (self.actions_by_name[name] for name in ("sidebar", "dashboard"))
        sidebar.setChecked(True)
        sidebar.toggled.connect(self._on_sidebar_toggled)
        dashboard.toggled.connect(self._on_dashboard_toggled)
        self.dock.visibilityChanged.connect(self._on_dock_visibility_changed)
        inspector, closing = (
            self.actions_by_name["inspector"],
            self.inspector_dock.toggleViewAction(),
        )
        inspector.toggled.connect(self._on_inspector_toggled)
        closing.toggled.connect(inspector.setChecked)
        self.actions_by_name["focus_composer"].triggered.connect(self._on_focus_composer_triggered)
        self.actions_by_name["quit"].triggered.connect(self._on_quit_triggered)

    def _on_chat_titled(self, title: str) -> None:
        self.setWindowTitle(title or "Commonplace")

    def _on_sidebar_toggled(self, on: bool) -> None:
        self._left.setVisible(on)

    def _on_dashboard_toggled(self, on: bool) -> None:
        self.dock.setVisible(on)
        self._share_height()

    def _on_inspector_toggled(self, on: bool) -> None:
        self.inspector_dock.setVisible(on)
        self._share_height()

    def _share_height(self) -> None:
        """Give both docks the same height: Qt leaves a strip to the one that came later."""
        docks = [self.dock, self.inspector_dock]
        if not any(each.isHidden() or each.isFloating() for each in docks):
            self.resizeDocks(docks, [1, 1], Qt.Orientation.Vertical)

    def _on_dock_visibility_changed(self, visible: bool) -> None:
        self.actions_by_name["dashboard"].setChecked(visible)

    def _on_focus_composer_triggered(self) -> None:
        self.chat.composer.box.setFocus()

    def _on_quit_triggered(self) -> None:
        self.close()

    # Qt overrides

    def closeEvent(self, event: QCloseEvent) -> None:
        """Leave in order: the first wish to close only starts the goodbye."""
        if self._may_close:
            event.accept()
            return
        event.ignore()
        self.close_requested.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Tell of the first time."""
        super().paintEvent(event)
        if not self._is_painted:
            self._is_painted = True
            QTimer.singleShot(0, self.painted.emit)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take files from anywhere."""
        from ui.views.welcome import local_files

        if local_files(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Hand files on."""
        from ui.views.welcome import local_files

        if files := local_files(event):
            event.acceptProposedAction()
            self.files_dropped.emit(files)


_KEPT = ("geometry", "layout")
_ALWAYS_USABLE = ("quit", "about", "focus_composer", "sidebar")


def keep_state(file: Path, state: str) -> None:
    """Keep a window's state for the next start, whole or not at all; may block.

    A disk that refuses is no reason to fail: then the last state stays.
    """
    coming = file.with_suffix(".new")
    try:
        coming.write_text(state, encoding="utf-8")
        coming.replace(file)
    except OSError as error:
        _log.warning("the window's place could not be kept: %s", error)
