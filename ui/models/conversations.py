"""List models of the sidebar: grouped rows, and conversations by date."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from operator import attrgetter
from typing import Any, ClassVar, Protocol

from PySide6.QtCore import (
    QAbstractListModel,
    QMimeData,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    Signal,
)

from app.domain.conversations import OWN_SOURCE, SAMPLE_SOURCE, Conversation
from app.domain.ids import ConversationId
from app.domain.records.sources import SOURCES
from app.domain.translation import format_day, format_moment, month_name, tr
from app.storage.safety.maintenance import TRASH_KEPT_FOR

Index = QModelIndex | QPersistentModelIndex
_RUNNING = "\N{BLACK CIRCLE}"
_DRAGGED = "application/x-commonplace-conversations"
_NOWHERE = QModelIndex()
_PAGE_ROWS = 100


class ListRole(IntEnum):
    """Roles shared by the lists of the sidebar.

    HEADING: bool, whether a row is the heading of a group. VALUE: the row's value. SUBTITLE: the
    second line. TRAILING: the text at the right end.
    """

    HEADING = Qt.ItemDataRole.UserRole + 1
    VALUE = Qt.ItemDataRole.UserRole + 2
    SUBTITLE = Qt.ItemDataRole.UserRole + 3
    TRAILING = Qt.ItemDataRole.UserRole + 4


class Identity(Protocol):
    """What identifies a row when its other data changes; no method of a model."""

    def __call__(self, row: Any, /) -> object:
        """Return what is the same in every version of a row, and in no other row."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of a group of rows."""

    text: str


class GroupedListModel(QAbstractListModel):
    """Rows that are values or headings; only changed rows are replaced.

    Subclasses set `identity`, which returns what identifies a row when its other data changes, and
    `texts`, which return a row's data by role.

    A view gets them a page at a time, as it is scrolled: a list view measures every row it knows
    whenever one is added, 0.17 ms each.
    """

    identity: ClassVar[Identity]
    texts: ClassVar[Mapping[int, Callable[[Any], object]]]

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[object] = []
        self._beyond: list[object] = []

    def show_rows(self, rows: Sequence[object]) -> None:
        """Replace all rows, keeping equal rows at the start and the end."""
        count = max(_PAGE_ROWS, len(self._rows))
        new, self._beyond = list(rows[:count]), list(rows[count:])
        head = 0
        while head < min(len(new), len(self._rows)) and new[head] == self._rows[head]:
            head += 1
        tail = 0
        while (
            tail < min(len(new), len(self._rows)) - head and new[-1 - tail] == self._rows[-1 - tail]
        ):
            tail += 1
        self._replace(head, len(self._rows) - tail, new[head : len(new) - tail])

    def value_at(self, index: Index) -> object | None:
        """Return the value of a row; None for a heading or an invalid index."""
        if not index.isValid() or isinstance(self._rows[index.row()], Heading):
            return None
        return self._rows[index.row()]

    def row_of(self, wanted: object) -> QModelIndex:
        """Return the index of the row whose identity is `wanted`, else none."""
        for number, row in enumerate((*self._rows, *self._beyond)):
            if not isinstance(row, Heading) and self.identity(row) == wanted:
                self._take_from_beyond(number + 1 - len(self._rows))
                return self.index(number)
        return QModelIndex()

    def _replace(self, start: int, end: int, rows: list[object]) -> None:
        """Replace rows; rows whose data alone has changed stay selected."""
        before, now = (
            [each if isinstance(each, Heading) else self.identity(each) for each in some]
            for some in (self._rows[start:end], rows)
        )
        if rows and before == now:
            self._rows[start:end] = rows
            self.dataChanged.emit(self.index(start), self.index(end - 1))
            return
        if end > start:
            self.beginRemoveRows(QModelIndex(), start, end - 1)
            del self._rows[start:end]
            self.endRemoveRows()
        if rows:
            self.beginInsertRows(QModelIndex(), start, start + len(rows) - 1)
            self._rows[start:start] = rows
            self.endInsertRows()

    def _take_from_beyond(self, count: int) -> None:
        if count > 0:
            taken, self._beyond = self._beyond[:count], self._beyond[count:]
            self._replace(len(self._rows), len(self._rows), taken)

    # Qt overrides

    def canFetchMore(self, parent: Index) -> bool:
        """Return whether there are more rows for the view."""
        return bool(self._beyond) and not parent.isValid()

    def fetchMore(self, _parent: Index) -> None:
        """Add one more page of rows."""
        self._take_from_beyond(_PAGE_ROWS)

    def rowCount(self, parent: Index = _NOWHERE) -> int:
        """Return the number of rows of the view, headings included."""
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return a heading's text, the value itself, or one of its `texts`."""
        if not index.isValid() or not 0 <= index.row() < len(self._rows):
            return None
        row = self._rows[index.row()]
        if role == ListRole.HEADING:
            return isinstance(row, Heading)
        if isinstance(row, Heading):
            return row.text if role == Qt.ItemDataRole.DisplayRole else None
        if role == ListRole.VALUE:
            return row
        return self.texts[role](row) if role in self.texts else None

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Return the flags of a row: a heading can neither be selected nor focused."""
        if not index.isValid():
            return Qt.ItemFlag.NoItemFlags
        if isinstance(self._rows[index.row()], Heading):
            return Qt.ItemFlag.ItemNeverHasChildren
        return (
            Qt.ItemFlag.ItemIsEnabled
            | Qt.ItemFlag.ItemIsSelectable
            | Qt.ItemFlag.ItemNeverHasChildren
        )


_SOURCES = {
    OWN_SOURCE: "", SAMPLE_SOURCE: tr("Sample"), "chatgpt": "ChatGPT", "deepseek": "DeepSeek",
    "librechat": "LibreChat", "llm": "llm", "lm_studio": "LM Studio", "open_webui": "Open WebUI",
    **{name.value: spec.title for name, spec in SOURCES.items()},
}  # fmt: skip


def source_title(source: str) -> str:
    """Return the program a conversation was imported from, "" for our own."""
    title = _SOURCES.get(source)
    return source.replace("-", " ").replace("_", " ").title() if title is None else title


def source_icon(source: str) -> str:
    """Return the icon of the kind of program a conversation was imported from, "" for our own."""
    if not source_title(source):
        return ""
    return "terminal" if source in SOURCES else "message-square"


def trailing_text(conversation: Conversation) -> str:
    """Return the text at the right end of a conversation's row: in the trash, how long it is kept."""
    if conversation.deleted_at is not None:
        return tr("until {day}").format(day=format_day(conversation.deleted_at + TRASH_KEPT_FOR))
    return ""


def _spoken(conversation: Conversation) -> str:
    """Return the title and, for screen readers, whether it is pinned or private."""
    marks = [tr(", pinned")] * conversation.pinned + [tr(", private")] * conversation.private
    return f"{conversation.title}, {format_day(conversation.updated_at)}{''.join(marks)}"


class ConversationListModel(GroupedListModel):
    """Conversations, pinned first, then by the day of their last change; titles are edited in place.

    Signals:
        renamed: (a `Conversation`, its new title), which is not empty.
    """

    renamed = Signal(object, str)

    identity: ClassVar = attrgetter("id")
    texts: ClassVar = {
        Qt.ItemDataRole.DisplayRole: attrgetter("title"),
        Qt.ItemDataRole.EditRole: attrgetter("title"),
        Qt.ItemDataRole.ToolTipRole: lambda row: f"{row.title}\n{format_moment(row.updated_at)}",
        Qt.ItemDataRole.AccessibleTextRole: _spoken,
        ListRole.TRAILING: trailing_text,
    }

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._running: frozenset[int] = frozenset()

    def show_running(self, conversation_ids: frozenset[int]) -> None:
        """Mark the conversations in which a reply runs."""
        changed, self._running = self._running ^ conversation_ids, conversation_ids
        for index in map(self.row_of, changed):
            if index.isValid():
                self.dataChanged.emit(index, index)

    def show_conversations(self, conversations: Sequence[Conversation], now: datetime) -> None:
        """Show conversations in the given order; `now` is local and timezone-aware."""
        rows: list[object] = []
        last = None
        for conversation in conversations:
            group = group_heading(conversation, now)
            if group != last:
                rows.append(Heading(group))
                last = group
            rows.append(conversation)
        self.show_rows(rows)

    # Qt overrides

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Return the flags of a row: outside the trash its title can be edited, and it can be dragged."""
        value, flags = self.value_at(index), super().flags(index)
        if isinstance(value, Conversation) and value.deleted_at is None:
            flags |= Qt.ItemFlag.ItemIsEditable | Qt.ItemFlag.ItemIsDragEnabled
        return flags

    def mimeTypes(self) -> list[str]:
        return [_DRAGGED]

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:
        """Return the conversations that are dragged; see `dragged_conversations`."""
        found = (self.value_at(each) for each in indexes)
        ids = [str(each.id) for each in found if isinstance(each, Conversation)]
        data = QMimeData()
        data.setData(_DRAGGED, " ".join(ids).encode())
        return data

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Report a title that was typed; the row shows it once it is stored."""
        conversation, title = self.value_at(index), str(value).strip()
        if role != Qt.ItemDataRole.EditRole or not isinstance(conversation, Conversation):
            return False
        if title and title != conversation.title:
            self.renamed.emit(conversation, title)
        return True

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the data of a row, with a mark where a reply runs."""
        data, value = super().data(index, role), super().data(index, ListRole.VALUE)
        if isinstance(value, Conversation) and value.id in self._running:
            if role == ListRole.TRAILING:
                return _RUNNING
            if role == Qt.ItemDataRole.AccessibleTextRole:
                return tr("{data}, a reply is running").format(data=data)
        return data


def dragged_conversations(data: QMimeData) -> list[ConversationId]:
    """Return the conversations that are dragged from a list of this program; none for anything else."""
    return [ConversationId(int(each)) for each in bytes(data.data(_DRAGGED).data()).split()]


def group_heading(conversation: Conversation, now: datetime) -> str:
    if conversation.pinned:
        return tr("Pinned")
    day = conversation.updated_at.astimezone(now.tzinfo).date()
    today = now.date()
    if day >= today:
        return tr("Today")
    if day == today - timedelta(days=1):
        return tr("Yesterday")
    if day > today - timedelta(days=7):
        return tr("This week")
    if (day.year, day.month) == (today.year, today.month):
        return tr("This month")
    return month_name(day.month, long=True) if day.year == today.year else f"{day.year}"
