"""Table model of documents: what the user added as folders, then all files, sorted and filtered."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.domain.records.documents import AddedPath, DocumentState, DocumentStatus
from app.domain.translation import format_number, format_size, tr, translate_filled, trn
from app.workers.followed import nearest_path
from ui.icons import Ink, icon

_NOWHERE = QModelIndex()
_Index = QModelIndex | QPersistentModelIndex
_ASCENDING, _DESCENDING = Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder
_AT_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_STATES = {
    DocumentState.READ: tr("Read"),
    DocumentState.SKIPPED: tr("Skipped"),
    DocumentState.WAITING: tr("Found, not read yet"),
    DocumentState.CHANGED: tr("Changed, to be read again"),
}
_IN_PART = "in part"
_GONE = tr("Gone")


class DocumentColumn(IntEnum):
    """The columns."""

    NAME = 0
    STATE = 1
    PAGES = 2
    SIZE = 3
    PROJECT = 4


_TITLES = (tr("Document"), tr("State"), tr("Pages"), tr("Size"), tr("Project"))
_NUMBERS = (DocumentColumn.PAGES, DocumentColumn.SIZE)


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A file, or with `is_folder` an added folder with the sums of its files, or an added path that is gone.

    `project` is a name, "" for the library. One without passages `can_open` is False: it has no text.
    """

    path: str
    name: str
    state: str
    is_folder: bool
    can_open: bool
    pages: int
    size_bytes: int
    project: str

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        pages = format_number(self.pages) if self.pages else ""
        size = format_size(self.size_bytes) if self.size_bytes else ""
        return self.name, self.state, pages, size, self.project

    @property
    def sort_keys(self) -> tuple[Any, ...]:
        """What the rows are sorted by, by column."""
        return self.path.casefold(), self.state, self.pages, self.size_bytes, self.project


def rows_of(
    added: Sequence[AddedPath], statuses: Sequence[DocumentStatus], projects: Mapping[str, str]
) -> list[DocumentRow]:
    """Return the rows of added paths and files; `projects` are names by uid."""
    roots = {each.path: each for each in added}
    below: dict[str, list[DocumentStatus]] = {each: [] for each in roots}
    files = []
    for status in statuses:
        root = nearest_path(status.name, roots)
        if root is not None:
            below[root].append(status)
        files.append(_file_row(status, roots.get(root or ""), projects))
    listed = {each.name for each in statuses}
    folders = [
        _folder_row(each, below[each.path], projects) for each in added if each.path not in listed
    ]
    return folders + files


def summary_text(statuses: Sequence[DocumentStatus]) -> str:
    """Return how many documents there are and what became of them."""
    total = trn("{count} document", "{count} documents", len(statuses))
    return f"{total}: {_counted(statuses)}"


def _counted(statuses: Sequence[DocumentStatus]) -> str:
    counts = Counter(
        _IN_PART if each.why and each.state is DocumentState.READ else each.state
        for each in statuses
    )
    texts = {
        DocumentState.READ: tr("{count} read"),
        _IN_PART: tr("{count} read in part"),
        DocumentState.SKIPPED: tr("{count} skipped"),
        DocumentState.WAITING: tr("{count} not read yet"),
        DocumentState.CHANGED: tr("{count} changed"),
    }
    return ", ".join(
        text.format(count=format_number(counts[state]))
        for state, text in texts.items()
        if counts[state]
    )


def _folder_row(
    added: AddedPath, statuses: Sequence[DocumentStatus], projects: Mapping[str, str]
) -> DocumentRow:
    state = _counted(statuses) or tr("Nothing found yet")
    return DocumentRow(
        added.path, added.path, state if added.is_there else _GONE, added.is_folder or not added.is_there, False,
        sum(each.pages or 0 for each in statuses), sum(each.size_bytes or 0 for each in statuses),
        projects.get(added.project or "", ""),
    )  # fmt: skip


def _file_row(
    status: DocumentStatus, root: AddedPath | None, projects: Mapping[str, str]
) -> DocumentRow:
    state = _STATES[status.state]
    if root is not None and not root.is_there:
        state = _GONE
    elif status.why and status.state in (DocumentState.READ, DocumentState.SKIPPED):
        is_read = status.state is DocumentState.READ
        state = f"{tr('Read in part') if is_read else state}: {translate_filled(status.why)}"
    above = (
        "" if root is None or root.path == status.name else f"{root.path.rstrip(os.sep)}{os.sep}"
    )
    return DocumentRow(
        status.name, status.name.removeprefix(above), state, False, bool(status.passages),
        status.pages or 0, status.size_bytes or 0, projects.get(status.project or "", ""),
    )  # fmt: skip


class DocumentTableModel(QAbstractTableModel):
    """The rows that contain all words of a filter, in the order of a column, folders first."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._all: Sequence[DocumentRow] = ()
        self._rows: list[DocumentRow] = []
        self._words: list[str] = []
        self._column, self._order = int(DocumentColumn.NAME), _ASCENDING

    def show_documents(self, rows: Sequence[DocumentRow]) -> None:
        """Show other rows; where only their contents differ, the selection stays."""
        self._all = rows
        self._arrange()

    def set_filter(self, text: str) -> None:
        """Show the rows whose path, state or project contain all words of a text."""
        self._words = text.casefold().split()
        self._arrange()

    def row_at(self, index: _Index) -> DocumentRow | None:
        return self._rows[index.row()] if index.isValid() else None

    def index_of(self, path: str) -> QModelIndex:
        """Return the index of a path, an invalid one if it is not shown."""
        found = (number for number, each in enumerate(self._rows) if each.path == path)
        return self.index(next(found, -1), 0)

    def _arrange(self) -> None:
        shown = [each for each in self._all if self._matches(each)]
        column = self._column
        shown.sort(key=lambda each: each.sort_keys[column], reverse=self._order is _DESCENDING)
        shown.sort(key=lambda each: not each.is_folder)
        if [each.path for each in shown] == [each.path for each in self._rows]:
            self._rows = shown
            if shown:
                self.dataChanged.emit(
                    self.index(0, 0), self.index(len(shown) - 1, len(_TITLES) - 1)
                )
            return
        self.beginResetModel()
        self._rows = shown
        self.endResetModel()

    def _matches(self, row: DocumentRow) -> bool:
        text = f"{row.path} {row.state} {row.project}".casefold()
        return all(each in text for each in self._words)

    # Qt overrides

    def rowCount(self, parent: _Index = _NOWHERE) -> int:
        """Return the number of rows that are shown."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: _Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(_TITLES)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return _TITLES[section]
        if role == Qt.ItemDataRole.TextAlignmentRole and section in _NUMBERS:
            return _AT_RIGHT
        return super().headerData(section, orientation, role)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return a cell's text, the path and state as tool tip, the icon of a folder."""
        if (row := self.row_at(index)) is None:
            return None
        column = index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return row.cells[column]
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{row.path}\n{row.state}"
        if role == Qt.ItemDataRole.AccessibleTextRole:
            title = tr("Folder") if row.is_folder and not column else _TITLES[column]
            return f"{title}: {row.cells[column]}"
        if role == Qt.ItemDataRole.DecorationRole and row.is_folder and not column:
            return icon("folder", Ink.Text)
        if role == Qt.ItemDataRole.TextAlignmentRole and column in _NUMBERS:
            return _AT_RIGHT
        return None

    def sort(self, column: int, order: Qt.SortOrder = _ASCENDING) -> None:
        self._column, self._order = max(0, column), order
        self._arrange()
