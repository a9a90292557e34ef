"""The projects in the sidebar: a list that limits the conversations, and takes those dropped on it."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPoint, QSize, Qt, Signal
from PySide6.QtGui import (
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QFocusEvent,
    QKeyEvent,
)
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QWidget

from app.domain.records.projects import Project
from app.domain.text import sentences
from app.domain.translation import format_number, tr
from ui.icons import icon
from ui.models.conversations import dragged_conversations
from ui.widgets.project_labels import RULES, project_icon

_UID = Qt.ItemDataRole.UserRole
_MOST_ROWS = 6
_ICON_PX = 16


class ProjectList(QListWidget):
    """A row for all conversations, then one for each project; hidden while there are none.

    Signals:
        chosen: The uid of the project whose conversations are to be listed, "" for all.
        edit_requested: The uid of a project. menu_requested: (its uid, global position).
        dropped: (ids of conversations, the uid of the project to move them to, "" for none).
    """

    chosen = Signal(str)
    edit_requested = Signal(str)
    menu_requested = Signal(str, QPoint)
    dropped = Signal(list, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Projects"))
        self.setAcceptDrops(True)
        self.setUniformItemSizes(True)
        self.setIconSize(QSize(_ICON_PX, _ICON_PX))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._on_menu_requested)
        self.itemClicked.connect(lambda row: self.choose(row.data(_UID)))
        self.itemDoubleClicked.connect(lambda row: self._edit(row.data(_UID)))
        self._uid = ""
        self._shown: Sequence[tuple[Project, int]] = ()
        self.hide()

    @property
    def uid(self) -> str:
        """The uid of the project whose conversations are listed, "" for all."""
        return self._uid

    def show_projects(self, projects: Sequence[tuple[Project, int]]) -> None:
        """Show projects with the numbers of their conversations; a chosen one that is gone is left."""
        if projects == self._shown:
            return
        self._shown = projects
        self.clear()
        self._add(
            tr("All conversations"),
            "",
            tr("Drop conversations here to take them out of their project."),
        )
        self.item(0).setIcon(icon("message-square"))
        for project, count in projects:
            tip = sentences(project.name, *RULES[project.recall])
            row = self._add(f"{project.name} ({format_number(count)})", project.uid, tip)
            row.setIcon(project_icon(project.color))
        known = {project.uid for project, _ in projects}
        if self._uid and self._uid not in known:
            self.choose("")
        self._mark()
        self.setVisible(bool(projects))  # last: the focus it loses marks the chosen row
        self.setFixedHeight(self._height())

    def _add(self, text: str, uid: str, tip: str) -> QListWidgetItem:
        row = QListWidgetItem(text, self)
        row.setData(_UID, uid)
        row.setToolTip(tip)
        return row

    def choose(self, uid: str) -> None:
        if uid != self._uid:
            self._uid = uid
            self.chosen.emit(uid)
        self._mark()

    def _edit(self, uid: str) -> None:
        if uid:
            self.edit_requested.emit(uid)

    def _mark(self) -> None:
        rows = map(self.item, range(self.count()))
        self.setCurrentItem(next(row for row in rows if row.data(_UID) == self._uid))

    def _height(self) -> int:
        row = max(1, self.sizeHintForRow(0))
        return row * min(_MOST_ROWS, self.count()) + 2 * self.frameWidth()

    def _on_menu_requested(self, position: QPoint) -> None:
        row = self.itemAt(position)
        if row is not None and row.data(_UID):
            self.menu_requested.emit(row.data(_UID), self.viewport().mapToGlobal(position))

    # Qt overrides

    def changeEvent(self, event: QEvent) -> None:
        """Keep its height that of whole rows when the size of the text changes."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.StyleChange and self.count():
            self.setFixedHeight(self._height())

    def minimumSizeHint(self) -> QSize:
        """Never widen the sidebar."""
        return QSize(0, super().minimumSizeHint().height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Choose a project with Enter or Space, edit it with F2, and choose none with Esc."""
        row = self.currentItem()
        if row is not None and event.key() in (
            Qt.Key.Key_Return,
            Qt.Key.Key_Enter,
            Qt.Key.Key_Space,
        ):
            self.choose(row.data(_UID))
        elif row is not None and event.key() == Qt.Key.Key_F2:
            self._edit(row.data(_UID))
        elif event.key() == Qt.Key.Key_Escape and self._uid:
            self.choose("")
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Mark the chosen project again."""
        super().focusOutEvent(event)
        self._mark()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dragged_conversations(event.mimeData()):
            event.acceptProposedAction()

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        """Mark the row that would take the conversations."""
        row = self.itemAt(event.position().toPoint())
        if row is None:
            event.ignore()
            return
        self.setCurrentItem(row)
        event.acceptProposedAction()

    def dragLeaveEvent(self, _event: QDragLeaveEvent) -> None:
        """Mark the chosen project again."""
        self._mark()

    def dropEvent(self, event: QDropEvent) -> None:
        """Report the conversations that were dropped on a row."""
        row = self.itemAt(event.position().toPoint())
        ids = dragged_conversations(event.mimeData())
        if row is not None and ids:
            event.acceptProposedAction()
            self.dropped.emit(ids, row.data(_UID))
        self._mark()
