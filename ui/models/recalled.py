"""What was retrieved for an answer as a table, and how a source is called in words."""

from collections.abc import Sequence

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.chat.inspecting import Source
from app.domain.passages import PassageKind
from app.domain.recalls import RecalledPlace, RecallLayer, Verdict
from app.domain.text import one_line
from ui.models.conversations import day_words
from ui.rendering.inline import tip_of

Index = QModelIndex | QPersistentModelIndex
_NOWHERE = QModelIndex()
_DASH = "\N{EN DASH}"
_DOT = " \N{MIDDLE DOT} "
_TITLE_CHARS = 36
_TEXT_CHARS = 44
_SOURCE_CHARS = 90
_TIP_CHARS = 300
_LAYERS = {
    RecallLayer.FACT: ("\N{BLACK FOUR POINTED STAR}", "Fact"),
    RecallLayer.CONVERSATION: ("\N{IDENTICAL TO}", "Conversation"),
    RecallLayer.EXCHANGE: ("\N{HEAVY DOUBLE TURNED COMMA QUOTATION MARK ORNAMENT}", "Turn of it"),
    RecallLayer.HISTORY: ("\N{HEAVY DOUBLE TURNED COMMA QUOTATION MARK ORNAMENT}", "Turn"),
    RecallLayer.EARLIER: ("\N{UPWARDS ARROW}", "Earlier in this conversation"),
}
_MEMORY = ("\N{LOWER RIGHT PENCIL}", "Memory")
VERDICT_WORDS = {
    Verdict.UP: ("\N{BLACK UP-POINTING TRIANGLE}", "you found it useful"),
    Verdict.DOWN: ("\N{BLACK DOWN-POINTING TRIANGLE}", "you found it not useful"),
    Verdict.NEVER: ("\N{MULTIPLICATION SIGN}", "you asked never to use it again"),
}
COLUMNS = ("#", "Source", "Rel.", "Cos.", "Words", "Tok.", "Used")
_COLUMN_TIPS = (
    "Rank among those found in the same way",
    "What was retrieved",
    "Relevance: means the same for every model",
    "Cosine of its vector and the question's",
    "Share of the question's words that it holds",
    "Tokens it takes, or would take",
    "Whether it was sent, and whether the answer cites it",
)
SOURCE_COLUMN = 1


class RecalledModel(QAbstractTableModel):
    """The sources of one answer: first what was sent, in the order of the prompt, then what was not."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._sources: tuple[Source, ...] = ()

    def show_sources(self, sources: Sequence[Source]) -> None:
        """Show others; verdicts alone change in place, so that what is selected stays so."""
        new = tuple(sorted(sources, key=lambda each: not each.place.item.injected))
        if [each.place.item for each in new] == [each.place.item for each in self._sources]:
            self._sources = new
            if new:
                last = self.index(len(new) - 1, len(COLUMNS) - 1)
                self.dataChanged.emit(self.index(0, 0), last)
            return
        self.beginResetModel()
        self._sources = new
        self.endResetModel()

    def source_at(self, index: Index) -> Source | None:
        """Return the source of a row; None for no row."""
        return self._sources[index.row()] if index.isValid() else None

    # Qt overrides

    def rowCount(self, parent: Index = _NOWHERE) -> int:
        """Return how many sources there are."""
        return 0 if parent.isValid() else len(self._sources)

    def columnCount(self, parent: Index = _NOWHERE) -> int:
        """Return the number of columns."""
        return 0 if parent.isValid() else len(COLUMNS)

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
        source = self.source_at(index)
        if source is None:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return _cells(source)[index.column()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(index.column())
        if role == Qt.ItemDataRole.ToolTipRole:
            is_last = index.column() == len(COLUMNS) - 1
            return tip_of(used_words(source) if is_last else source_words(source.place, _TIP_CHARS))
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{kind_words(source.place)}: {source_words(source.place)}, {figures(source)}"
        return None


def sign_of(place: RecalledPlace) -> str:
    """Return the kind of a source in one character."""
    return _kind(place)[0]


def kind_words(place: RecalledPlace) -> str:
    """Return the kind of a source."""
    return _kind(place)[1]


def source_words(place: RecalledPlace, most_chars: int = _SOURCE_CHARS) -> str:
    """Return what a source is called: a fact by its text, a turn by its place."""
    if _is_text(place):
        return one_line(place.text or "a text that is gone", most_chars)
    title = one_line(place.title or "a conversation that is gone", most_chars)
    is_turn = place.item.layer is not RecallLayer.CONVERSATION and place.turn_number is not None
    return f"{title}, turn {place.turn_number}" if is_turn else title


def chip_words(place: RecalledPlace, *, with_turn: bool) -> str:
    """Return what a chip says: a fact's text; a conversation's title and the day, or the turn."""
    if _is_text(place):
        return source_words(place, _TEXT_CHARS)
    if place.item.layer is RecallLayer.EARLIER:
        return "Earlier here" if place.turn_number is None else f"Turn {place.turn_number}"
    title = one_line(place.title or "a conversation that is gone", _TITLE_CHARS)
    if with_turn:
        return source_words(place, _TITLE_CHARS)
    return title if place.said_at is None else f"{title}{_DOT}{day_words(place.said_at)}"


def tip_words(source: Source) -> str:
    """Return what a chip says when asked: kind, place, relevance, and the question that began it."""
    place = source.place
    parts = [f"{kind_words(place)}, {place.item.relevance:.0%} relevant"]
    if _is_text(place) and place.title:
        parts.append(
            f"said in \N{LEFT DOUBLE QUOTATION MARK}{place.title}\N{RIGHT DOUBLE QUOTATION MARK}"
        )
    elif not _is_text(place):
        parts.append(source_words(place))
    words = ", ".join(parts)
    if not _is_text(place) and place.text:
        words += f": {one_line(place.text, 160)}"
    return f"{words}. Cited in the answer." if source.cited else words


def figures(source: Source) -> str:
    """Return all that was measured of a source, in a line."""
    item = source.place.item
    cosine = "no vector" if item.cosine is None else f"cosine {item.cosine:.3f}"
    return _DOT.join(
        (
            f"rank {source.rank}",
            f"relevance {item.relevance:.0%}",
            cosine,
            f"{item.coverage:.0%} of the question's words",
            f"{item.tokens:,} tokens",
            used_words(source),
            f"passage {item.passage_id}",
        )
    )


def used_words(source: Source) -> str:
    """Return what became of a source, why not if it was not sent, and what the user thinks of it."""
    item = source.place.item
    if not item.injected:
        words = f"left out: {item.dropped_by}" if item.dropped_by else "left out"
    else:
        words = "sent and cited" if source.cited else "sent, not cited"
    return words if source.verdict is None else f"{words}; {VERDICT_WORDS[source.verdict][1]}"


def _cells(source: Source) -> tuple[str, ...]:
    item = source.place.item
    used = "cited" if source.cited else "sent" if item.injected else _DASH
    if source.verdict is not None:
        used = f"{used} {VERDICT_WORDS[source.verdict][0]}"
    return (
        str(source.rank),
        f"{sign_of(source.place)} {source_words(source.place)}",
        f"{item.relevance:.0%}",
        _DASH if item.cosine is None else f"{item.cosine:.2f}",
        f"{item.coverage:.0%}",
        f"{item.tokens:,}",
        used,
    )


def _kind(place: RecalledPlace) -> tuple[str, str]:
    return _MEMORY if place.item.kind is PassageKind.MEMORY else _LAYERS[place.item.layer]


def _is_text(place: RecalledPlace) -> bool:
    """Return whether it is known by its own words, not by where it was said."""
    return place.item.kind in (PassageKind.FACT, PassageKind.MEMORY)


def _alignment(column: int) -> Qt.AlignmentFlag:
    is_words = column in (SOURCE_COLUMN, len(COLUMNS) - 1)
    side = Qt.AlignmentFlag.AlignLeft if is_words else Qt.AlignmentFlag.AlignRight
    return side | Qt.AlignmentFlag.AlignVCenter
