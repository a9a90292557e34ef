"""Tokens to blocks at the end of a document, kind by kind.

Where a text is cut into tokens is `segments`' business, how Qt is told `blocks`', what runs within
a line look like `inline`'s, tables `tables`'.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from markdown_it.token import Token
from PySide6.QtCore import QSizeF, Qt

from ui.rendering.blocks import BlockWriter, Mark
from ui.rendering.definitions import Definitions
from ui.rendering.document import TranscriptDocument
from ui.rendering.formats import Formats, Style
from ui.rendering.inline import LINE_BREAK, InlineWriter, drawable
from ui.rendering.tables import TableWriter

_BULLETS = ("•", "◦", "▪")
_INDENTS = {"list": 17, "quote": 11}  # tenths of an em
_DEEPEST_INDENT = 160
_GAP_EM = {
    "paragraph": 0.75,
    "in_item": 0.45,
    "item": 0.22,
    "code": 0.75,
    "below_code": 0.6,
    "heading": 1.3,
    "row": 0.2,
    "none": 0.0,
}
_MAX_LANGUAGE_CHARS = 40


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A block of code as it stands in the text.

    Attributes:
        language: As named there, maybe empty. source: What Copy copies.
        first_block: The number of its first line among the document's blocks.
    """

    language: str
    source: str
    first_block: int


@dataclass(frozen=True, slots=True)
class WriterMark:
    """Where a writer was: the end of its document, and the code up to there."""

    end: Mark
    code_blocks: tuple[CodeBlock, ...]


@dataclass(slots=True)
class _Place:
    """Where the next block goes.

    Attributes:
        indent: The left edge, tenths of an em. quotes: left edges of open quotations' bars, pixels.
        lists: For each open list its next number, or None where it has bullets.
        marker: What the next block is to be marked with. opens_item: It is the first of an item.
        joins: It goes on with the words of the last one, without a gap.
        footnote: The number of the note it begins, or 0.
    """

    indent: int = 0
    quotes: tuple[int, ...] = ()
    lists: list[int | None] = field(default_factory=list)
    marker: str = ""
    opens_item: bool = False
    joins: bool = False
    footnote: int = 0
    style: Style = field(default_factory=Style)


class Writer:
    """Writes at the end of one document.

    Attributes:
        code_blocks: All code so far, in order; `Property.CODE` of a block is an index into it.
        table_rows: How many rows of tables were ever written, those taken back too.
    """

    def __init__(
        self, document: TranscriptDocument, formats: Formats, definitions: Definitions
    ) -> None:
        self._formats = formats
        self._theme = formats.theme
        self._blocks = BlockWriter(document)
        self._inline = InlineWriter(formats, definitions.footnotes, self._draw_picture)
        self._tables = TableWriter(formats, self._inline)
        self._place = _Place()
        self._handlers = self._by_type()
        self.code_blocks: list[CodeBlock] = []
        self.table_rows = 0

    @property
    def blocks_written(self) -> int:
        """How many blocks were ever begun: what drawing cost."""
        return self._blocks.blocks_written + self._tables.cells_written

    def write(self, tokens: Sequence[Token], *, continues: str = "", number: int = 0) -> None:
        """Add `tokens`. The first may continue the last block: "fence", "list", "table", "words".

        `number` is what a continued ordered list counts on from.
        """
        self._place = _Place(joins=continues == "words")
        self._blocks.to_end()
        self._blocks.cursor.beginEditBlock()
        at = 0
        while at < len(tokens):
            token, first = tokens[at], at == 0
            if token.type == "table_open":
                at = self._table(tokens, at, joins=first and continues == "table")
            elif token.type == "fence":
                self._fence(token, joins=first and continues == "fence")
            elif token.type == "ordered_list_open":
                self._ordered_list(token, number if first and continues == "list" else None)
            elif token.type in self._handlers:
                self._handlers[token.type](token)
            at += 1
        self._blocks.flush()
        self._blocks.cursor.endEditBlock()

    def extend_code(self, shown: str, source: str) -> None:
        """Add `shown` to the code block the document ends with, and `source` to what it copies."""
        self._blocks.to_end()
        self._blocks.cursor.beginEditBlock()
        self._code_lines(shown)
        self._blocks.cursor.endEditBlock()
        self._note_source(source)

    def mark(self) -> WriterMark:
        """Return the present end, for `rewind`."""
        return WriterMark(self._blocks.mark(), tuple(self.code_blocks))

    def rewind(self, mark: WriterMark) -> None:
        """Remove everything written since `mark`."""
        self._blocks.rewind(mark.end)
        self.code_blocks = list(mark.code_blocks)

    def _by_type(self) -> dict[str, Callable[[Token], None]]:
        """Return what is to be done for a token, by its type; other types are nothing to draw."""
        return {
            "paragraph_open": self._paragraph,
            "inline": self._words,
            "literal": self._literal,
            "plain": self._plain,
            "heading_open": self._heading_open,
            "heading_close": self._heading_close,
            "hr": self._rule,
            "math_block": self._math,
            "code_block": self._indented_code,
            "blockquote_open": self._quote_open,
            "blockquote_close": self._quote_close,
            "bullet_list_open": self._bullet_list,
            "bullet_list_close": self._list_close,
            "ordered_list_close": self._list_close,
            "list_item_open": self._item_open,
            "list_item_close": self._item_close,
            "footnote_reference_open": self._footnote_open,
            "footnote_reference_close": self._footnote_close,
        }

    # where the next block goes

    def _begin(self, gap: str, **properties: object) -> None:
        """Start a block of words, `gap` below the last one."""
        place = self._place
        gap = "none" if place.joins else "item" if place.opens_item else gap
        gap_em = _GAP_EM[gap]
        top_px = 0.0 if self._blocks.at_start else self._theme.em(gap_em)
        made = self._formats.block(self._left_px, top_px, self._quotes)
        self._blocks.begin(made, self._formats.char(place.style))
        if place.marker:
            properties["MARKER"] = place.marker
        if place.footnote:
            properties["FOOTNOTE"] = place.footnote
        if properties:
            self._blocks.set_block(**properties)
        place.marker, place.opens_item, place.joins, place.footnote = "", False, False, 0

    @property
    def _left_px(self) -> float:
        return self._theme.em(min(self._place.indent, _DEEPEST_INDENT) / 10)

    @property
    def _quotes(self) -> str:
        return ",".join(map(str, self._place.quotes))

    def _restyle(self, **changes: object) -> None:
        self._place.style = replace(self._place.style, **changes)  # type: ignore[arg-type]

    # words

    def _paragraph(self, _token: Token) -> None:
        self._begin("in_item" if self._place.lists else "paragraph")

    def _words(self, token: Token) -> None:
        self._inline.write(token.children or (), self._place.style, self._blocks.emit)
        if self._inline.task is not None:
            self._blocks.set_block(MARKER=None, TASK=self._inline.task)

    def _literal(self, token: Token) -> None:
        text = drawable(token.content.strip("\n").replace("\n", " "))
        self._blocks.emit(text, self._formats.char(self._place.style))

    def _plain(self, token: Token) -> None:
        self._begin("paragraph")
        style = self._place.style
        for number, line in enumerate(token.content.split("\n")):
            if number:
                self._blocks.emit(LINE_BREAK, self._formats.char(style))
            self._inline.write_plain(line, style, self._blocks.emit)

    def _heading_open(self, token: Token) -> None:
        self._restyle(heading=int(token.tag[1:]))
        self._begin("heading")

    def _heading_close(self, _token: Token) -> None:
        self._restyle(heading=0)

    def _rule(self, _token: Token) -> None:
        self._begin("paragraph", RULE=True)

    def _math(self, token: Token) -> None:
        row, rows = 0, 1
        while row < rows:
            self._begin("row" if row else "paragraph")
            made = self._blocks.cursor.blockFormat()
            made.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            self._blocks.cursor.setBlockFormat(made)
            rows = self._inline.math(token.content, self._place.style, self._blocks.emit, row)
            row += 1

    def _draw_picture(self, target: str) -> bool:
        limit = QSizeF(self._theme.em(32), self._theme.em(24))
        return self._blocks.draw_picture(target, limit)

    # code

    def _fence(self, token: Token, *, joins: bool) -> None:
        if joins and self.code_blocks:
            if token.content:
                self._code_lines("\n" + token.content.removesuffix("\n"))
        else:
            words = drawable(token.info).split()
            self._open_code(words[0][:_MAX_LANGUAGE_CHARS] if words else "")
            self._code_lines(token.content.removesuffix("\n"))
        self._note_source(token.content)

    def _indented_code(self, token: Token) -> None:
        self._open_code("")
        self._code_lines(token.content.removesuffix("\n"))
        self._note_source(token.content)

    def _open_code(self, language: str) -> None:
        """Write the line that names the language, and begin the first line of code."""
        number, left_px, quotes = len(self.code_blocks), self._left_px, self._quotes
        place = self._place
        gap_px = 0.0 if self._blocks.at_start else self._theme.em(_GAP_EM["code"])
        head = self._formats.code_head(number, left_px, gap_px, quotes)
        label = self._formats.char(Style(small=True, muted=True))
        self._blocks.begin(head, label)
        self._blocks.emit(language, label)
        if place.marker:
            self._blocks.set_block(MARKER=place.marker)
        place.marker, place.opens_item, place.joins = "", False, False
        made = self._formats.code_block(number, left_px, quotes)
        self._blocks.begin(made, self._formats.code_char())
        first = self._blocks.cursor.blockNumber()
        self.code_blocks.append(CodeBlock(language, "", first))

    def _code_lines(self, text: str) -> None:
        """Add to the last code line, and below it; the padding stands under the last one."""
        self._blocks.set_bottom_margin(0)
        self._blocks.emit_lines(drawable(text), self._formats.code_char())
        below_px = self._formats.code_padding + self._theme.em(_GAP_EM["below_code"])
        self._blocks.set_bottom_margin(round(below_px))

    def _note_source(self, text: str) -> None:
        last = self.code_blocks[-1]
        self.code_blocks[-1] = replace(last, source=last.source + text)

    # what contains blocks

    def _quote_open(self, _token: Token) -> None:
        place = self._place
        place.quotes = (*place.quotes, round(self._left_px + self._theme.em(0.15)))
        place.indent += _INDENTS["quote"]
        self._restyle(muted=True)

    def _quote_close(self, _token: Token) -> None:
        place = self._place
        place.quotes = place.quotes[:-1]
        place.indent -= _INDENTS["quote"]
        self._restyle(muted=bool(place.quotes))

    def _bullet_list(self, _token: Token) -> None:
        self._place.lists.append(None)
        self._place.indent += _INDENTS["list"]

    def _ordered_list(self, token: Token, counts_from: int | None) -> None:
        start = int(token.attrs.get("start", 1)) if counts_from is None else counts_from
        self._place.lists.append(start)
        self._place.indent += _INDENTS["list"]

    def _list_close(self, _token: Token) -> None:
        self._place.lists.pop()
        self._place.indent -= _INDENTS["list"]

    def _item_open(self, _token: Token) -> None:
        place = self._place
        place.opens_item = True
        if (number := place.lists[-1]) is None:
            depth = sum(each is None for each in place.lists)
            place.marker = _BULLETS[(depth - 1) % len(_BULLETS)]
        else:
            place.marker = f"{number}."
            place.lists[-1] = number + 1

    def _item_close(self, _token: Token) -> None:
        if self._place.opens_item:
            self._begin("item")

    def _footnote_open(self, token: Token) -> None:
        number = self._inline.footnotes.get(":" + str(token.meta.get("label", "")), 0)
        self._place.indent += _INDENTS["list"]
        self._place.marker, self._place.footnote = f"{number}.", number
        self._restyle(small=True, muted=True)

    def _footnote_close(self, _token: Token) -> None:
        self._place.indent -= _INDENTS["list"]
        self._place.marker, self._place.footnote = "", 0
        self._restyle(small=False, muted=bool(self._place.quotes))

    def _table(self, tokens: Sequence[Token], at: int, *, joins: bool) -> int:
        """Write the table that begins at `at`; return the place of its last token."""
        end = at
        while tokens[end].type != "table_close":
            end += 1
        place, blocks = self._place, self._blocks
        place.marker, place.opens_item = "", False
        blocks.to_end()
        joined = blocks.last_table if joins else None
        table, left_over = self._tables.write(
            blocks.cursor, tokens[at : end + 1], self._left_px, joined
        )
        self.table_rows += self._tables.rows_of_last
        blocks.to_end()
        blocks.fresh, blocks.last_table = True, table
        for line in left_over:
            self._begin("row")
            blocks.emit(line, self._formats.char(place.style))
        return end
