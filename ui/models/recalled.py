"""The tree model of the sources of an answer: by group, sent ones first, the others folded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QFont, QIcon, QStandardItem, QStandardItemModel

from app.chat.inspector import Source
from app.domain.recall import RecallLayer
from app.domain.translation import format_number, format_percent, tr, trn
from ui.icons import Ink, icon
from ui.models.labels import (
    VERDICT_TEXTS,
    figures,
    icon_of,
    inner_text,
    kind_text,
    source_text,
    used_text,
)
from ui.models.preview import GROUPS
from ui.rendering.inline import tooltip_text

Index = QModelIndex | QPersistentModelIndex
_DASH = "\N{EN DASH}"
_DOT = " \N{MIDDLE DOT} "
_TIP_CHARS = 300
COLUMNS = (tr("Source"), "#", tr("Rel."), tr("Cos."), tr("Words"), tr("Tok."), tr("Used"))
_COLUMN_TIPS = (
    tr("What was retrieved"),
    tr("Rank within its group"),
    tr("Relevance; comparable between models"),
    tr("Cosine of its vector and the question's"),
    tr("Share of the question's words that it contains"),
    tr("Tokens it takes, or would take"),
    tr("Whether it was sent, and whether the answer cites it"),
)


@dataclass(frozen=True, slots=True)
class Group:
    """The heading of a group: its name, and how many of those `found` were `sent`."""

    name: str
    sent: int
    found: int


@dataclass(frozen=True, slots=True)
class Rest:
    """The fold of `count` sources that were not sent, beside `beside` sources that were."""

    count: int
    beside: int


_Row = Group | Rest | Source


class RecalledModel(QStandardItemModel):
    """The sources of one answer, by group.

    A group has the sources that were sent, in the order of the prompt, then one fold with the others
    as its children.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(0, len(COLUMNS), parent)
        self._rows: list[tuple[_Row, list[QStandardItem]]] = []  # top to bottom
        for column, (name, tip) in enumerate(zip(COLUMNS, _COLUMN_TIPS, strict=True)):
            header = QStandardItem(name)
            header.setToolTip(tip)
            header.setTextAlignment(_alignment(column))
            self.setHorizontalHeaderItem(column, header)

    def show_sources(self, sources: Sequence[Source]) -> None:
        """Show sources; changed ratings alone keep the selection."""
        rows = list(_tree(sources))
        if [_identity(row) for row, _ in rows] == [_identity(row) for row, _ in self._rows]:
            self._rows = [
                (row, items) for (row, _), (_, items) in zip(rows, self._rows, strict=True)
            ]
            for row, items in self._rows:
                _fill(items, row)
            return
        self.beginResetModel()
        self.blockSignals(True)
        self.removeRows(0, self.rowCount())
        self._rows = []
        parents = [self.invisibleRootItem()]
        for row, depth in rows:
            items = [QStandardItem() for _ in COLUMNS]
            _fill(items, row)
            parents[depth].appendRow(items)
            parents[depth + 1 :] = items[:1]
            self._rows.append((row, items))
        self.blockSignals(False)
        self.endResetModel()

    def source_at(self, index: QModelIndex) -> Source | None:
        """Return the source of a row; None for a heading, a fold and no row."""
        row = self.value_at(index)
        return row if isinstance(row, Source) else None

    def value_at(self, index: QModelIndex) -> _Row | None:
        first = self.itemFromIndex(index.siblingAtColumn(0))
        return next((row for row, items in self._rows if items[0] is first), None)

    def rows(self, kind: type[Group | Rest | Source]) -> list[QModelIndex]:
        """Return the rows of a kind, top to bottom, folded ones too."""
        return [items[0].index() for row, items in self._rows if isinstance(row, kind)]

    # Qt overrides

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Return the flags of a cell, which cannot be edited."""
        return super().flags(index) & ~Qt.ItemFlag.ItemIsEditable


def _tree(sources: Sequence[Source]) -> Iterator[tuple[_Row, int]]:
    """Yield all rows with their depth, top to bottom."""
    for name, layers in GROUPS:
        group = [each for each in sources if each.place.item.layer in layers]
        sent = [each for each in group if each.place.item.injected]
        rest = [each for each in group if not each.place.item.injected]
        if group:
            yield Group(name, len(sent), len(group)), 0
        yield from ((each, 1) for each in sent)
        if rest:
            yield Rest(len(rest), len(sent)), 1
        yield from ((each, 2) for each in rest)


def _identity(row: _Row) -> object:
    return row.place.item if isinstance(row, Source) else row


def _fill(items: Sequence[QStandardItem], row: _Row) -> None:
    """Set texts, alignment, tool tips, and the whole source for screen readers."""
    if not isinstance(row, Source):
        items[0].setText(_line(row))
        items[0].setAccessibleText(_line(row))
        if isinstance(row, Group):
            font = QFont()
            font.setWeight(QFont.Weight.DemiBold)
            items[0].setFont(font)
        return
    spoken = f"{kind_text(row.place)}: {source_text(row.place)}, {figures(row)}"
    for column, (item, text) in enumerate(zip(items, _cells(row), strict=True)):
        is_last = column == len(COLUMNS) - 1
        tip = used_text(row) if is_last else source_text(row.place, _TIP_CHARS)
        item.setText(text)
        verdict = VERDICT_TEXTS[row.verdict][0] if row.verdict is not None else ""
        name = verdict if is_last else icon_of(row.place) if column == 0 else ""
        item.setIcon(icon(name, Ink.PlaceholderText) if name else QIcon())
        item.setAccessibleText(spoken)
        item.setToolTip(tooltip_text(tip))
        item.setTextAlignment(_alignment(column))


def _line(value: Group | Rest) -> str:
    """Return the text of a heading or a fold."""
    if isinstance(value, Group):
        sent = tr("{sent} of {found} sent").format(sent=value.sent, found=value.found)
        return f"{value.name}{_DOT}{sent}"
    if value.beside:
        return trn("{count} more was considered", "{count} more were considered", value.count)
    return trn("{count} was considered", "{count} were considered", value.count)


def _cells(source: Source) -> tuple[str, ...]:
    item = source.place.item
    used = tr("cited") if source.cited else tr("sent") if item.injected else _DASH
    # The rank of a turn within its conversation says nothing.
    is_inner = item.layer is RecallLayer.EXCHANGE
    name = source_text(source.place)
    if item.layer is RecallLayer.EARLIER:  # its title is that of the open conversation
        name = inner_text(source.place)
    if is_inner and item.injected:
        name = f"\N{EM SPACE}{inner_text(source.place)}"
    return (
        name,
        "" if is_inner else str(source.rank),
        format_percent(item.relevance),
        _DASH if item.cosine is None else format_number(item.cosine, 2),
        format_percent(item.coverage),
        format_number(item.tokens),
        used,
    )


def _alignment(column: int) -> Qt.AlignmentFlag:
    is_words = column in (0, len(COLUMNS) - 1)
    side = Qt.AlignmentFlag.AlignLeft if is_words else Qt.AlignmentFlag.AlignRight
    return side | Qt.AlignmentFlag.AlignVCenter
