"""What was retrieved for an answer as a tree: by group, what was sent first, the rest folded."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QFont

from app.chat.inspecting import Source
from app.domain.recalls import RecallLayer
from ui.models.previewed import GROUPS
from ui.models.source_words import (
    VERDICT_WORDS,
    figures,
    inner_words,
    kind_words,
    sign_of,
    source_words,
    used_words,
)
from ui.rendering.inline import tip_of

Index = QModelIndex | QPersistentModelIndex
_NOWHERE = QModelIndex()
_DASH = "\N{EN DASH}"
_DOT = " \N{MIDDLE DOT} "
_TIP_CHARS = 300
COLUMNS = ("Source", "#", "Rel.", "Cos.", "Words", "Tok.", "Used")
_COLUMN_TIPS = (
    "What was retrieved",
    "Rank among those found in the same way",
    "Relevance: means the same for every model",
    "Cosine of its vector and the question's",
    "Share of the question's words that it holds",
    "Tokens it takes, or would take",
    "Whether it was sent, and whether the answer cites it",
)


@dataclass(frozen=True, slots=True)
class Group:
    """The heading of a group: its name, and how many of those `found` were `sent`."""

    name: str
    sent: int
    found: int


@dataclass(frozen=True, slots=True)
class Rest:
    """The line that what was not sent folds behind; `beside` sources of its group that were."""

    count: int
    beside: int


@dataclass(slots=True)
class _Node:
    """A row of the tree; its parent's and children's places in the list of all, -1 for the root."""

    value: Group | Rest | Source
    parent: int
    row: int
    children: list[int] = field(default_factory=list)


class RecalledModel(QAbstractItemModel):
    """The sources of one answer by group, as the prompt holds them: what was sent, then the rest.

    Of each group the sources that were sent stand in the order of the prompt, below them one line
    that has the others as its children.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._nodes: list[_Node] = []
        self._tops: list[int] = []

    def show_sources(self, sources: Sequence[Source]) -> None:
        """Show others; verdicts alone change in place, so that what is selected stays so."""
        before = [each.place.item for each in self._sources()]
        nodes, tops = _tree(sources)
        if before == [each.value.place.item for each in nodes if isinstance(each.value, Source)]:
            self._nodes = nodes
            for node in (None, *nodes):
                self._tell_changed(tops if node is None else node.children)
            return
        self.beginResetModel()
        self._nodes, self._tops = nodes, tops
        self.endResetModel()

    def source_at(self, index: Index) -> Source | None:
        """Return the source of a row; None for a heading, a fold and no row."""
        value = self.value_at(index)
        return value if isinstance(value, Source) else None

    def value_at(self, index: Index) -> Group | Rest | Source | None:
        """Return what a row is; None for no row."""
        return self._nodes[index.internalId()].value if index.isValid() else None

    def rows(self, kind: type[Group | Rest | Source]) -> list[QModelIndex]:
        """Return the rows of a kind, top to bottom, folded ones too."""
        return [
            self._index(at) for at, node in enumerate(self._nodes) if isinstance(node.value, kind)
        ]

    def _sources(self) -> list[Source]:
        return [node.value for node in self._nodes if isinstance(node.value, Source)]

    def _index(self, at: int, column: int = 0) -> QModelIndex:
        return self.createIndex(self._nodes[at].row, column, at)

    def _tell_changed(self, siblings: Sequence[int]) -> None:
        if siblings:
            last = self._index(siblings[-1], len(COLUMNS) - 1)
            self.dataChanged.emit(self._index(siblings[0]), last)

    def _children(self, parent: Index) -> list[int]:
        if not parent.isValid():
            return self._tops
        return self._nodes[parent.internalId()].children if parent.column() == 0 else []

    # Qt overrides

    def index(self, row: int, column: int, parent: Index = _NOWHERE) -> QModelIndex:
        """Return the index of a cell; none beyond the ends."""
        children = self._children(parent)
        if not 0 <= row < len(children) or not 0 <= column < len(COLUMNS):
            return QModelIndex()
        return self._index(children[row], column)

    def parent(self, index: Index = _NOWHERE) -> QModelIndex:  # type: ignore[override]
        """Return the row that a row stands below."""
        above = self._nodes[index.internalId()].parent if index.isValid() else -1
        return QModelIndex() if above < 0 else self._index(above)

    def rowCount(self, parent: Index = _NOWHERE) -> int:
        """Return how many rows stand directly below one."""
        return len(self._children(parent))

    def columnCount(self, _parent: Index = _NOWHERE) -> int:
        """Return the number of columns."""
        return len(COLUMNS)

    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> object:
        """Return a column's name, or what it means."""
        if orientation is not Qt.Orientation.Horizontal or not 0 <= section < len(COLUMNS):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section]
        if role == Qt.ItemDataRole.ToolTipRole:
            return _COLUMN_TIPS[section]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return a cell's words, its alignment, or the whole source for who hears it."""
        value = self.value_at(index)
        if role == Qt.ItemDataRole.TextAlignmentRole and value is not None:
            return _alignment(index.column())
        if isinstance(value, Source):
            return _of_source(value, index.column(), role)
        if value is None or index.column():
            return None
        if role == Qt.ItemDataRole.FontRole and isinstance(value, Group):
            font = QFont()
            font.setWeight(QFont.Weight.DemiBold)
            return font
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return _line(value)
        return None


def _tree(sources: Sequence[Source]) -> tuple[list[_Node], list[int]]:
    """Return all rows, top to bottom, and which of them stand at the top."""
    nodes: list[_Node] = []
    tops: list[int] = []

    def add(value: Group | Rest | Source, parent: int) -> int:
        siblings = tops if parent < 0 else nodes[parent].children
        siblings.append(len(nodes))
        nodes.append(_Node(value, parent, len(siblings) - 1))
        return len(nodes) - 1

    for name, layers in GROUPS:
        group = [each for each in sources if each.place.item.layer in layers]
        sent = [each for each in group if each.place.item.injected]
        rest = [each for each in group if not each.place.item.injected]
        heading = add(Group(name, len(sent), len(group)), -1) if group else -1
        for each in sent:
            add(each, heading)
        fold = add(Rest(len(rest), len(sent)), heading) if rest else -1
        for each in rest:
            add(each, fold)
    return nodes, tops


def _line(value: Group | Rest) -> str:
    """Return what a heading or a fold says."""
    if isinstance(value, Group):
        return f"{value.name}{_DOT}{value.sent} of {value.found} sent"
    more = " more" if value.beside else ""
    return f"{value.count}{more} {'was' if value.count == 1 else 'were'} looked at"


def _of_source(source: Source, column: int, role: int) -> object:
    if role == Qt.ItemDataRole.DisplayRole:
        return _cells(source)[column]
    if role == Qt.ItemDataRole.ToolTipRole:
        is_last = column == len(COLUMNS) - 1
        return tip_of(used_words(source) if is_last else source_words(source.place, _TIP_CHARS))
    if role == Qt.ItemDataRole.AccessibleTextRole:
        return f"{kind_words(source.place)}: {source_words(source.place)}, {figures(source)}"
    return None


def _cells(source: Source) -> tuple[str, ...]:
    item = source.place.item
    used = "cited" if source.cited else "sent" if item.injected else _DASH
    if source.verdict is not None:
        used = f"{used} {VERDICT_WORDS[source.verdict][0]}"
    # Turns of a conversation stand below it: how many there were before says nothing.
    is_inner = item.layer is RecallLayer.EXCHANGE
    name = f"{sign_of(source.place)} {source_words(source.place)}"
    if item.layer is RecallLayer.EARLIER:  # the title is that of the open conversation
        name = f"{sign_of(source.place)} {inner_words(source.place)}"
    if is_inner and item.injected:
        name = f"\N{EM SPACE}{sign_of(source.place)} {inner_words(source.place)}"
    return (
        name,
        "" if is_inner else str(source.rank),
        f"{item.relevance:.0%}",
        _DASH if item.cosine is None else f"{item.cosine:.2f}",
        f"{item.coverage:.0%}",
        f"{item.tokens:,}",
        used,
    )


def _alignment(column: int) -> Qt.AlignmentFlag:
    is_words = column in (0, len(COLUMNS) - 1)
    side = Qt.AlignmentFlag.AlignLeft if is_words else Qt.AlignmentFlag.AlignRight
    return side | Qt.AlignmentFlag.AlignVCenter
