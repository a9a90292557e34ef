"""The conversation list: rows grouped by what people remember of time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.domain.conversations import Conversation

Index = QModelIndex | QPersistentModelIndex
_NOWHERE = QModelIndex()
_PAGE_ROWS = 100


class ListRole(IntEnum):
    """Roles beyond Qt's own, shared by the lists of the sidebar.

    HEADING: bool, a row that names the group below. VALUE: the row's value. SUBTITLE: the second
    line. ASIDE: what stands at the right end.
    """

    HEADING = Qt.ItemDataRole.UserRole + 1
    VALUE = Qt.ItemDataRole.UserRole + 2
    SUBTITLE = Qt.ItemDataRole.UserRole + 3
    ASIDE = Qt.ItemDataRole.UserRole + 4


@dataclass(frozen=True, slots=True)
class Heading:
    """The name of a group of rows."""

    text: str


class GroupedListModel(QAbstractListModel):
    """Rows that are values or headings; replaced as a whole, kept when nothing changed.

    A view gets them a page at a time, as it is scrolled: a list view asks for the size of every
    row it knows whenever one is added, 0.17 ms each.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[object] = []
        self._beyond: list[object] = []

    def show_rows(self, rows: Sequence[object]) -> None:
        """Replace all rows; equal rows at the start and the end stay as they are."""
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
        """Return the value of a row; None for headings and no row."""
        if not index.isValid() or isinstance(self._rows[index.row()], Heading):
            return None
        return self._rows[index.row()]

    def row_of(self, wanted: object) -> QModelIndex:
        """Return the index of the row whose identity (`identity_of`) is `wanted`, else none."""
        for number, row in enumerate((*self._rows, *self._beyond)):
            if not isinstance(row, Heading) and self.identity_of(row) == wanted:
                self._take_from_beyond(number + 1 - len(self._rows))
                return self.index(number)
        return QModelIndex()

    def identity_of(self, row: object) -> object:
        """Return what tells a row from others whatever else of it changes."""
        return row

    def text_of(self, row: object, role: int) -> object:
        """Return a row's data for a role; headings are answered before."""
        raise NotImplementedError

    def _replace(self, start: int, end: int, rows: list[object]) -> None:
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
        """Return whether there are rows the view does not know yet."""
        return bool(self._beyond) and not parent.isValid()

    def fetchMore(self, _parent: Index) -> None:
        """Let the view know one more page."""
        self._take_from_beyond(_PAGE_ROWS)

    def rowCount(self, parent: Index = _NOWHERE) -> int:
        """Return the number of rows a view may know, headings among them."""
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return a heading's words, the value itself, or what `text_of` says."""
        if not index.isValid() or not 0 <= index.row() < len(self._rows):
            return None
        row = self._rows[index.row()]
        if role == ListRole.HEADING:
            return isinstance(row, Heading)
        if isinstance(row, Heading):
            return row.text if role == Qt.ItemDataRole.DisplayRole else None
        if role == ListRole.VALUE:
            return row
        return self.text_of(row, role)

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Return what can be done to a row: a heading can neither be chosen nor reached."""
        if not index.isValid():
            return Qt.ItemFlag.NoItemFlags
        if isinstance(self._rows[index.row()], Heading):
            return Qt.ItemFlag.ItemNeverHasChildren
        return (
            Qt.ItemFlag.ItemIsEnabled
            | Qt.ItemFlag.ItemIsSelectable
            | Qt.ItemFlag.ItemNeverHasChildren
        )


class ConversationListModel(GroupedListModel):
    """Conversations, pinned first, then by the day of their last change."""

    def show_conversations(
        self, conversations: Sequence[Conversation], now: datetime, *, grouped: bool = True
    ) -> None:
        """Show conversations, given in the order of the list; `now` is local and aware."""
        rows: list[object] = []
        last = None
        for conversation in conversations:
            group = group_of(conversation, now) if grouped else None
            if group is not None and group != last:
                rows.append(Heading(group))
                last = group
            rows.append(conversation)
        self.show_rows(rows)

    def identity_of(self, row: object) -> object:
        """Return the conversation's id."""
        assert isinstance(row, Conversation)
        return row.id

    def text_of(self, row: object, role: int) -> object:
        """Return title and, for a screen reader, what the marks say."""
        assert isinstance(row, Conversation)
        if role == Qt.ItemDataRole.DisplayRole:
            return row.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{row.title}\n{day_words(row.updated_at)}, {row.updated_at.astimezone():%H:%M}"
        if role == Qt.ItemDataRole.AccessibleTextRole:
            marks = [", pinned"] * row.pinned + [", private"] * row.private
            return f"{row.title}, {day_words(row.updated_at)}{''.join(marks)}"
        if role == ListRole.ASIDE:
            return aside_of(row)
        return None


def aside_of(conversation: Conversation) -> str:
    """Return the marks at the right end of a conversation's row."""
    return "\N{LOCK}" if conversation.private else ""


def day_words(moment: datetime) -> str:
    """Return the local day of a time as people write it, whatever the locale: 3 May 2026."""
    local = moment.astimezone()
    return f"{local.day} {local:%b %Y}"


def group_of(conversation: Conversation, now: datetime) -> str:
    """Return the heading a conversation stands under."""
    if conversation.pinned:
        return "Pinned"
    day = conversation.updated_at.astimezone(now.tzinfo).date()
    today = now.date()
    if day >= today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    if day > today - timedelta(days=7):
        return "This week"
    if (day.year, day.month) == (today.year, today.month):
        return "This month"
    return f"{day:%B}" if day.year == today.year else f"{day.year}"
