"""The dialog of documents: what was added, what became of each file, and adding and removing."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeView,
    QWidget,
)

from app.domain.errors import KnownError
from app.domain.records.projects import Project
from app.domain.translation import tr
from app.domain.workers import WorkerState, WorkerStatus
from app.workers.status_text import worker_text
from ui.models.documents import DocumentColumn, DocumentRow, DocumentTableModel
from ui.views.welcome import local_files
from ui.widgets.controls import button, closing_buttons, column_in, combo_box, line_edit, row_of
from ui.widgets.dialog import Dialog
from ui.widgets.plain_label import breakable, plain_label


class DocumentsDialog(Dialog):
    """Lists folders and files; what is dropped on it is added.

    Signals:
        files_requested, folder_requested: Choose what to add.
        dropped: list of `Path` to add.
        open_requested: The `DocumentRow` of a file whose text is to be shown.
        removal_requested: list of `Path` to remove.
        start_requested: Switch the worker on.
    """

    files_requested = Signal()
    folder_requested = Signal()
    dropped = Signal(list)
    open_requested = Signal(object)
    removal_requested = Signal(list)
    start_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Documents"), (860, 540), parent)
        self.setAcceptDrops(True)
        self.notice = plain_label(self, "warning")
        self.notice.hide()
        self.add_files = button(self, tr("Add files\u2026"), self.files_requested)
        self.add_folder = button(self, tr("Add folder\u2026"), self.folder_requested)
        self.target = combo_box(self, tr("Add to"), min_chars=14)
        self.target.setToolTip(
            tr("Documents of a project are recalled where its conversations are")
        )
        self.open_text = button(self, tr("Open"), self._on_open)
        self.remove = button(self, tr("Remove\u2026"), self._on_remove)
        self.filter = line_edit(self, tr("Filter by name, state or project"), clearable=True)
        self.model = DocumentTableModel(self)
        self.table = QTreeView(self)
        self.table.setModel(self.model)
        self._set_up_table()
        self.details = plain_label(self, "small")
        self.details.setMinimumWidth(1)  # else its longest word is
        self.work = plain_label(self, "small", selectable=False)
        self.start = button(self, tr("Read documents"), self.start_requested)
        adding = row_of(
            self.add_files, self.add_folder, self.target, None, self.open_text, self.remove
        )
        working = row_of((self.work, 1), self.start)
        column_in(
            self, self.status, self.notice, adding, self.filter, (self.table, 1), self.details, working,
            closing_buttons(self)[0],
        )  # fmt: skip
        self._connect()
        self.show_documents((), "", has_projects=False)

    @property
    def project(self) -> str | None:
        """The uid of the project that is added to, None for the library."""
        uid: str | None = self.target.currentData()
        return uid

    def show_documents(
        self, rows: Sequence[DocumentRow], summary: str, *, has_projects: bool
    ) -> None:
        """Show what was added and its files; the selection stays."""
        before = {each.path for each in self._selected()}
        self.model.show_documents(rows)
        self._select(before)
        self.table.setColumnHidden(DocumentColumn.PROJECT, not has_projects)
        self.status.setText(summary if rows else _WELCOME)
        for each in (self.table, self.filter, self.open_text, self.remove):
            each.setEnabled(bool(rows))
        self._on_selection_changed()

    def show_projects(self, projects: Sequence[Project], chosen: str | None) -> None:
        """Offer projects to add to; hidden while there are none."""
        self.target.clear()
        self.target.addItem(tr("To the library"), None)
        for each in projects:
            self.target.addItem(tr("To {project}").format(project=each.name), each.uid)
        self.target.setCurrentIndex(max(0, self.target.findData(chosen)))
        self.target.setVisible(bool(projects))

    def show_worker(self, status: WorkerStatus) -> None:
        """Show what the worker does; a button where it is off."""
        text = worker_text(status)
        lines = [text.current, text.blocked, text.error]
        if not status.enabled:
            lines = [tr("Documents are not read: reading is switched off.")]
        elif status.state is not WorkerState.RUNNING:
            lines.remove(text.current)
        self.work.setText(breakable("\n".join(filter(None, lines))))
        self.work.setVisible(any(lines))
        self.start.setVisible(not status.enabled)

    def show_error(self, error: KnownError) -> None:
        """Show why a request failed."""
        self.show_notice(error.display_text)

    def show_notice(self, text: str) -> None:
        """Show what happened until something else does, "" for nothing."""
        self.notice.setText(text)
        self.notice.setVisible(bool(text))

    def _set_up_table(self) -> None:
        table, header = self.table, self.table.header()
        table.setAccessibleName(tr("Documents"))
        table.setRootIsDecorated(False)
        table.setUniformRowHeights(True)
        table.setSelectionMode(QTreeView.SelectionMode.ExtendedSelection)
        table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        table.setItemDelegateForColumn(DocumentColumn.STATE, _StateDelegate(table))
        table.sortByColumn(DocumentColumn.NAME, Qt.SortOrder.AscendingOrder)
        table.setSortingEnabled(True)
        header.setStretchLastSection(False)
        header.setResizeContentsPrecision(0)  # of the rows that are shown: of all it takes 0.1 s
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        for column in (DocumentColumn.PAGES, DocumentColumn.SIZE, DocumentColumn.PROJECT):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)

    def _connect(self) -> None:
        self.filter.textChanged.connect(self._on_filter_changed)
        self.table.activated.connect(lambda _: self._on_open())
        self.table.selectionModel().selectionChanged.connect(
            lambda *_: self._on_selection_changed()
        )
        QShortcut(QKeySequence.StandardKey.Delete, self.table).activated.connect(self._on_remove)
        QShortcut(QKeySequence.StandardKey.Find, self).activated.connect(self.filter.setFocus)

    def _selected(self) -> list[DocumentRow]:
        found = map(self.model.row_at, self.table.selectionModel().selectedRows())
        return [each for each in found if each is not None]

    def _select(self, paths: set[str]) -> None:
        if {each.path for each in self._selected()} == paths:
            return
        for path in paths:
            if (index := self.model.index_of(path)).isValid():
                self._select_row(index)

    def _select_row(self, index: QModelIndex) -> None:
        selection = self.table.selectionModel()
        flags = selection.SelectionFlag.Select | selection.SelectionFlag.Rows
        selection.select(index, flags)
        if not self.table.currentIndex().isValid():
            selection.setCurrentIndex(index, selection.SelectionFlag.NoUpdate)

    def _on_filter_changed(self, text: str) -> None:
        before = {each.path for each in self._selected()}
        self.model.set_filter(text)
        self._select(before)
        self._on_selection_changed()

    def _on_selection_changed(self) -> None:
        rows = self._selected()
        self.remove.setEnabled(bool(rows))
        self.open_text.setEnabled(len(rows) == 1 and (rows[0].can_open or rows[0].is_folder))
        alone = f"{rows[0].path}\n{rows[0].state}" if len(rows) == 1 else ""
        self.details.setText(alone)
        self.details.setVisible(bool(alone))

    def _on_open(self) -> None:
        """Show a file's text, or only the files of a folder."""
        if self.open_text.isEnabled():
            (row,) = self._selected()
            if row.is_folder:
                self.filter.setText(row.path)
            else:
                self.open_requested.emit(row)

    def _on_remove(self) -> None:
        if rows := self._selected():
            self.removal_requested.emit([Path(each.path) for each in rows])

    # Qt overrides

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept files and folders."""
        if local_files(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Have what was dropped added."""
        if files := local_files(event):
            event.acceptProposedAction()
            self.dropped.emit(files)


class _StateDelegate(QStyledItemDelegate):
    """Cuts a long reason at its end, as a sentence is read."""

    # Qt overrides

    def initStyleOption(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Have the text cut at its end."""
        super().initStyleOption(option, index)
        option.textElideMode = Qt.TextElideMode.ElideRight


_WELCOME = tr(
    "Nothing was added yet. Add files or folders, or drop them here: text, Markdown, HTML, code, PDF, Office, RTF, "
    "EPUB and e-mail. They are read on this computer, searched with your conversations and quoted in answers. "
    "Folders are followed: what changes in them is read again."
)
