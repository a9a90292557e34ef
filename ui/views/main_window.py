"""The main window: sidebar, conversation, memory pane, menus, status bar, and its stored state."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDragLeaveEvent, QDropEvent, QPaintEvent
from PySide6.QtWidgets import QDockWidget, QMainWindow, QSplitter, QWidget

from app.domain.translation import tr
from ui.views.actions import add_actions, follow_key
from ui.views.chat_pane import ChatPane
from ui.views.sidebar_fold import SidebarFold
from ui.widgets.banner import Offer
from ui.widgets.controls import ToolButton, column_in, row_of, tool_button
from ui.widgets.on_screen import resize_on_screen
from ui.widgets.plain_label import PlainLabel, plain_label

if TYPE_CHECKING:
    from ui.views.memory.knowledge_view import MemoryPane
    from ui.views.sidebar import Sidebar
    from ui.views.welcome import DropHint

_SIDEBAR_PX = 320
_LEAST_CHAT_PX = 320
_LEAST_SIDEBAR_PX = 200
_STATUS_GAP_PX = 6
_SLOW_MS = 2_000
_PAGES = (  # of the memory pane
    "sources", "sent", "facts", "summaries", "profile", "core", "saved", "questions", "activity",
)  # fmt: skip


class MainWindow(QMainWindow):
    """Everything the user sees.

    Created in two steps: the first frame, then by `build_panels` everything else.

    Signals:
        close_requested: The user wants to close the window; it stays until `close_now`.
        quit_requested: The user wants to end the program.
        restore_requested: The path of the backup to restore: the program closes and starts again.
        files_dropped: list of `Path`, dropped anywhere on the window.
        painted: Once, right after the first frame.

    Attributes:
        memory, drop_hint: Once built.
        offer: An offer in the status bar. recall_status: The status of recall, as a button.
        conversation_id: The open conversation, stored with the geometry.
        scroll_position: Where it is scrolled to; None is its end.
        settings: Those that the first frame needs, by key, stored with the geometry.
    """

    close_requested = Signal()
    quit_requested = Signal()
    restore_requested = Signal(object)
    files_dropped = Signal(list)
    painted = Signal()

    drop_hint: "DropHint"
    memory: "MemoryPane"

    def __init__(self) -> None:
        super().__init__()
        self.setWindowTitle("Commonplace")
        self.setObjectName("window")
        resize_on_screen(self, 1180, 780)
        self.setMinimumHeight(420)
        self.chat = ChatPane(self)
        self.chat.setMinimumWidth(_LEAST_CHAT_PX)  # beside sidebar and docks
        self.chat.titled.connect(lambda title: self.setWindowTitle(title or "Commonplace"))
        self.split = QSplitter(Qt.Orientation.Horizontal, self)
        self._left = QWidget(self)  # a placeholder, then the sidebar
        self._left.setMinimumWidth(_LEAST_SIDEBAR_PX)  # so that it is hidden where that will be
        self.split.addWidget(self._left)
        self.split.addWidget(self.chat)
        self.split.setStretchFactor(1, 1)
        self.split.setSizes([_SIDEBAR_PX, 860])
        self.split.setChildrenCollapsible(False)
        self.setCentralWidget(self.split)
        self.memory_dock = QDockWidget(tr("Memory"), self)
        self.memory_dock.setObjectName("memory")
        self.memory_dock.setTitleBarWidget(QWidget(self.memory_dock))  # until it is built: no title
        self.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, self.memory_dock)
        self.memory_dock.hide()
        self.offer = Offer(self)
        self.statusBar().addWidget(self.offer, 1)
        self.recall_status = ToolButton(self)
        self.statusBar().setSizeGripEnabled(False)
        self.statusBar().addPermanentWidget(self.recall_status)
        self.worker_status = PlainLabel(self)
        self.spend_status = PlainLabel(self)
        for label in (self.worker_status, self.spend_status):
            label.setContentsMargins(_STATUS_GAP_PX, 0, _STATUS_GAP_PX, 0)
            self.statusBar().addPermanentWidget(label)
        self.actions_by_name = add_actions(self)
        self._connect_actions()
        self._fold = SidebarFold(self.split, self.actions_by_name["sidebar"], _LEAST_CHAT_PX)
        self.chat.composer.box.setFocus()
        self._sidebar: Sidebar | None = None
        self._page = ""  # of the memory pane, last time
        self._early = ""  # the action that was triggered before the window is usable
        self._message = ""  # what was written when that was to search
        self._opening = QTimer(self, singleShot=True, interval=_SLOW_MS)
        self._opening.timeout.connect(self._on_opening_timeout)
        self._is_usable = True
        self._may_close = False
        self._is_painted = False
        self.conversation_id: int | None = None
        self.scroll_position: tuple[int, int] | None = None
        self.settings: Mapping[str, object] = {}

    @property
    def sidebar(self) -> "Sidebar":
        """The sidebar, once built."""
        assert self._sidebar is not None
        return self._sidebar

    def build_panels(self, transcript: QWidget) -> Iterator[None]:
        """Add everything that the first frame does not show, in steps that are short for the user."""
        from ui.views.memory.knowledge_view import KnowledgeView, MemoryPane
        from ui.views.welcome import DropHint
        from ui.widgets.on_screen import tab_through
        from ui.widgets.shortcut_guard import ShortcutGuard

        self._add_sidebar()
        yield
        self.chat.build_panels(transcript)
        self.drop_hint = DropHint(self.chat)
        self.setAcceptDrops(True)
        yield
        knowledge = KnowledgeView(self)
        yield
        self.memory = MemoryPane(knowledge, self)
        yield
        self._dock_memory()
        for name, show_key in (
            ("search", self.sidebar.search.show_key),
            ("new", self.sidebar.show_new_key),
            ("model", self.chat.model.show_key),
        ):
            follow_key(self.actions_by_name[name], show_key)
        tab_through((*self.sidebar.stops, *self.chat.stops, *self.offer.stops, self.recall_status))
        guard = ShortcutGuard(self.actions_by_name.values(), self)
        for editor in (self.sidebar.box, self.chat.title, self.chat.composer.box):
            guard.watch(editor)
            editor.setAcceptDrops(False)  # the window takes dropped files

    def restore_state(self, file: Path) -> None:
        """Restore the state of the last time; a missing or invalid file changes nothing."""
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
            geometry, layout, split = (
                QByteArray.fromBase64(stored.get(key, "").encode()) for key in _ENCODED
            )
            opened, place = stored.get("conversation"), stored.get("place")
            self._page = str(stored.get("page", ""))
            self.settings = dict(stored.get("settings", {}))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return
        self.restoreGeometry(geometry)
        self.restoreState(layout)
        self.split.restoreState(split)
        self.conversation_id = opened if isinstance(opened, int) else None
        match place:
            case [int(turn), int(offset)] if turn >= 0:
                self.scroll_position = (turn, offset)

    def state_to_store(self) -> str:
        """Return the geometry and what is open, as text for `store_state`."""
        layout = (self.saveGeometry(), self.saveState(), self.split.saveState())
        stored: dict[str, object] = {
            key: bytes(value.toBase64().data()).decode("ascii")
            for key, value in zip(_ENCODED, layout, strict=True)
        }
        stored["conversation"] = self.conversation_id
        stored["place"] = self.scroll_position
        stored["page"] = self._page
        stored["settings"] = dict(self.settings)
        return json.dumps(stored)

    def set_usable(self, usable: bool) -> None:
        """Enable the sidebar and the actions, or disable most of them until the library is open.

        That it is being opened is said where that takes long, unless something else is.
        """
        self._is_usable = usable
        if usable:
            self._opening.stop()
        else:
            self._opening.start()
        if self._sidebar is not None:
            self._sidebar.set_usable(usable)
        for name, action in self.actions_by_name.items():
            action.setEnabled(usable or name in _ALWAYS_USABLE or name in _EARLY)

    def drop_early_action(self) -> None:
        """Forget what was asked for: the library cannot be opened."""
        self._early = ""
        for name in _EARLY:
            self.actions_by_name[name].setEnabled(False)

    def begin(self) -> None:
        """Focus the message, unless the user searches, and do what was asked for too early."""
        if self.focusWidget() is not self.sidebar.box:
            self.chat.composer.box.setFocus()
        early, self._early = self._early, ""
        if early:
            self.actions_by_name[early].trigger()

    def show_recall(self, text: str, notice: str, is_on_here: bool, can_switch: bool) -> None:
        """Show the status of recall, a notice as its tip, and the switch of the open conversation."""
        from ui.rendering.inline import tooltip_text

        switch = self.actions_by_name["memory_here"]
        switch.setEnabled(can_switch)
        switch.setChecked(is_on_here)
        self.recall_status.setText(text)
        self.recall_status.setVisible(bool(text))
        tip = f"{notice or text}".rstrip(".")
        tip = tr("{tip}. Click to open the recall settings.").format(tip=tip)
        self.recall_status.setToolTip(tooltip_text(tip))
        self.recall_status.setAccessibleDescription(tip)

    def close_now(self) -> None:
        """Close without asking."""
        self._may_close = True
        self.close()

    def bring_to_front(self) -> None:
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def _connect_actions(self) -> None:
        actions = self.actions_by_name
        actions["sidebar"].setChecked(True)
        actions["sidebar"].toggled.connect(self._on_sidebar_toggled)
        for page in _PAGES:
            actions[page].triggered.connect(
                lambda wanted, page=page: self._show_page(page, wanted=wanted)
            )
        actions["focus_composer"].triggered.connect(self.chat.composer.box.setFocus)
        actions["quit"].triggered.connect(self.quit_requested)
        for name in _EARLY:
            actions[name].triggered.connect(lambda _=False, name=name: self._note_early(name))

    def _add_sidebar(self) -> None:
        from ui.views.sidebar import Sidebar

        placeholder = self._left
        self._left = self._sidebar = sidebar = Sidebar(self)
        sidebar.set_usable(self._is_usable)
        sidebar.conversation_list.typed.connect(self.chat.write)
        sidebar.setVisible(self.actions_by_name["sidebar"].isChecked())
        split = self.split.saveState()  # unlike sizes() it keeps the width of a hidden sidebar
        self.split.replaceWidget(0, sidebar)
        self.split.restoreState(split)
        placeholder.deleteLater()
        self._fold.fit()
        if self._early == "search":
            self._focus_search()

    def _dock_memory(self) -> None:
        self.memory_dock.setWidget(self.memory)
        self.memory_dock.setTitleBarWidget(self._memory_title())
        self.chat.memory_requested.connect(
            lambda: self._show_page(self.memory.page, wanted=self.memory_dock.isHidden())
        )
        self.memory.open_requested.connect(self._on_memory_requested)
        self.memory.page_changed.connect(self._check_page)
        self.memory_dock.visibilityChanged.connect(self._check_page)
        if self._page in _PAGES:
            self.memory.show_page(self._page)
        self._check_page()

    def _note_early(self, name: str) -> None:
        """Remember an action until the window is usable; a new conversation and the search box need not wait."""
        if self._is_usable:
            return
        before, self._early = self._early, name
        if name == "new":
            self._early, self.conversation_id, self.scroll_position = "", None, None
        elif name == "search":
            if before != "search":  # else what was typed since is for the search box
                self._message = self.chat.composer.text
            if self._sidebar is not None:
                self._focus_search()

    def _focus_search(self) -> None:
        """Focus the search box, with what was typed for it while there was none."""
        self._early, box = "", self.chat.composer.box
        self.actions_by_name["sidebar"].setChecked(True)
        self.sidebar.focus_search()
        typed = box.toPlainText()
        if typed != self._message and typed.startswith(self._message):
            box.setPlainText(self._message)
            self.sidebar.box.setText(typed.removeprefix(self._message))

    def _on_opening_timeout(self) -> None:
        if self.chat.notice.is_empty:
            self.chat.show_notice(tr("Opening your conversations\u2026"))

    def _on_sidebar_toggled(self, on: bool) -> None:
        if not on and self._left.isAncestorOf(self.focusWidget()):
            self.chat.composer.box.setFocus()  # Qt would pass it to the title, which can be edited
        self._left.setVisible(on)

    def _show_page(self, page: str, *, wanted: bool) -> None:
        """Open a page of the memory pane, or close the pane."""
        if wanted:
            self.memory.open_page(page)
            self.memory.knowledge.currentWidget().setFocus()
            return
        if self.memory_dock.isAncestorOf(self.focusWidget()):
            self.chat.composer.box.setFocus()  # Qt would pass it to the title, which can be edited
        self.memory_dock.hide()

    def _memory_title(self) -> QWidget:
        bar = QWidget(self.memory_dock)
        title = plain_label(bar, "heading", tr("Memory"), selectable=False)
        tip = tr("Close the memory pane")
        close = tool_button(bar, "", icon="x", tip=tip, name=tip)
        close.clicked.connect(lambda: self._show_page("", wanted=False))
        column_in(bar, row_of((title, 1), close), margins=(12, 10, 10, 2), spacing=0)
        return bar

    def _on_memory_requested(self) -> None:
        self.memory_dock.show()
        self.memory_dock.raise_()

    def _check_page(self, *_: object) -> None:
        """Check the action of the page that is open.

        `isHidden` is about the dock alone: that of a minimized window is invisible too, but stays open.
        """
        self._page = self.memory.page
        for page in _PAGES:
            is_open = not self.memory_dock.isHidden() and self.memory.page == page
            self.actions_by_name[page].setChecked(is_open)

    # Qt overrides

    def changeEvent(self, event: QEvent) -> None:
        """Focus the message if what had the focus has gone meanwhile, behind a dialog."""
        super().changeEvent(event)
        focused = self.focusWidget()
        if event.type() == QEvent.Type.ActivationChange and focused and focused.isHidden():
            self.chat.composer.box.setFocus()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Request the shutdown, which closes the window in the end."""
        if self._may_close:
            event.accept()
            return
        event.ignore()
        self.close_requested.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Emit `painted` after the first frame."""
        super().paintEvent(event)
        if not self._is_painted:
            self._is_painted = True
            QTimer.singleShot(0, self.painted.emit)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept files, and say what dropping them will do."""
        from ui.views.welcome import local_files

        if files := local_files(event):
            event.acceptProposedAction()
            self.drop_hint.show_for(files, can_attach=self.chat.composer.isEnabled())

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        """Hide what dropping would do."""
        super().dragLeaveEvent(event)
        self.drop_hint.hide()

    def dropEvent(self, event: QDropEvent) -> None:
        """Emit dropped files."""
        from ui.views.welcome import local_files

        self.drop_hint.hide()
        if files := local_files(event):
            event.acceptProposedAction()
            self.files_dropped.emit(files)


_ENCODED = ("geometry", "layout", "split_state")
_EARLY = (  # those that are remembered until the library is open
    "new", "search", "open_link", "import", "documents", "routines", "topics", "settings", "palette",
    "shortcuts",
)  # fmt: skip
_ALWAYS_USABLE = ("quit", "about", "focus_composer", "sidebar")
