"""Writer: adds tokens to the end of a document as blocks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from markdown_it.token import Token
from PySide6.QtGui import QTextBlockFormat, QTextCursor

from ui.rendering.blocks import BlockWriter, mirror
from ui.rendering.definitions import Definitions
from ui.rendering.document import (
    LINK,
    FoldedBlocks,
    TranscriptDocument,
    closed_of,
    code_key,
    detail_key,
    hide_closed,
    toggle,
)
from ui.rendering.formats import Formats, Property, Style
from ui.rendering.inline import InlineWriter, sanitize
from ui.rendering.tables import TableWriter

_BULLETS = ("•", "◦", "▪")
_INDENTS = {"list": 17, "quote": 11}  # tenths of an em
_DEEPEST_INDENT = 160
_GAP_EM = {
    "paragraph": 0.75,
    "quote": 1.15,  # above it: the line below may be its source
    "in_item": 0.45,
    "item": 0.22,
    "code": 0.75,
    "below_code": 0.6,
    "heading": 1.3,
    "row": 0.2,
    "none": 0.0,
}
_MAX_LANGUAGE_CHARS = 40
MOST_CODE_LINES, SHOWN_CODE_LINES = 40, 30


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A code block.

    Attributes:
        language: As named in the text, or "". source: What Copy copies.
        first_block: The block number of its first line.
    """

    language: str
    source: str
    first_block: int


@dataclass(slots=True)
class _State:
    """The state of the next block.

    Attributes:
        indent: The left edge in tenths of an em. quotes: left edges of open quote bars in pixels.
        lists: For each open list its next number, or None for bullets.
        marker: The marker of the next block. opens_item, opens_quote: It is the first of one.
        joins: It continues the text of the last block, without a gap.
        footnote: The number of the footnote it begins, or 0.
        folds: The `details` that it is in, by key, the outermost first.
    """

    indent: int = 0
    quotes: tuple[int, ...] = ()
    lists: list[int | None] = field(default_factory=list)
    marker: str = ""
    opens_item: bool = False
    opens_quote: bool = False
    joins: bool = False
    footnote: int = 0
    folds: list[tuple[str, FoldedBlocks]] = field(default_factory=list)
    style: Style = field(default_factory=Style)


class Writer(BlockWriter):
    """Writes at the end of one document.

    Attributes:
        code_blocks: All code blocks so far; `Property.CODE` is an index into them.
        folds: What can be hidden, by key. toggled: The keys of those that the user opened or closed.
        collapses: Whether long code is a fold.
        table_rows: The number of table rows ever written, removed ones included.
    """

    def __init__(
        self,
        document: TranscriptDocument,
        formats: Formats,
        definitions: Definitions,
        toggled: set[str],
        *,
        collapses: bool = False,
    ) -> None:
        super().__init__(document)
        self._formats = formats
        self._theme = formats.theme
        self._inline = InlineWriter(formats, definitions.footnotes, document)
        self._tables = TableWriter(formats, self._inline)
        self._state = _State()
        self._handlers = self._by_type()
        self.code_blocks: list[CodeBlock] = []
        self.folds: dict[str, FoldedBlocks] = {}
        self.toggled = toggled
        self.collapses = collapses
        self.table_rows = 0

    def write(self, tokens: Sequence[Token], *, continues: str = "", number: int = 0) -> None:
        """Add `tokens`. The first may continue the last block: "fence", "list", "table", "text".

        `number` is the next number of a continued ordered list.
        """
        self._state = _State(joins=continues == "text")
        self.to_end()
        self.cursor.beginEditBlock()
        at, first_block = 0, self.cursor.blockNumber()
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
        self.flush()
        self.cursor.endEditBlock()  # tables are in the document now
        mirror(self._document, first_block)
        if closed := closed_of(self.folds, self.toggled):
            hide_closed(self._document, closed, first_block, self._tables.resize)

    def toggle_fold(self, key: str) -> None:
        """Open a fold, or close it."""
        toggle(self._document, self.folds, self.toggled, key, self._tables.resize)
        if key in self.folds and key.startswith(code_key("")):
            self._make_room_below(key)

    def closed_around(self, number: int) -> list[str]:
        """Return the closed folds that hide the block with this number."""
        closed = closed_of(self.folds, self.toggled)
        return [key for key, fold in self.folds.items() if fold in closed and fold.hides(number)]

    def extend_code(self, shown: str, source: str) -> None:
        """Add `shown` to the code block at the end, and `source` to what its Copy copies."""
        self.to_end()
        self.cursor.beginEditBlock()
        self._code_lines(shown)
        self.cursor.endEditBlock()
        self._record_source(source)

    def _by_type(self) -> dict[str, Callable[[Token], None]]:
        """Return the handlers of tokens by type; tokens of other types write nothing."""
        return {
            "paragraph_open": lambda _: self._begin(
                "in_item" if self._state.lists else "paragraph"
            ),
            "inline": self._inline_text,
            "literal": self._literal,
            "plain": self._plain,
            "heading_open": self._heading_open,
            "heading_close": lambda _token: self._restyle(heading=0),
            "hr": lambda _token: self._begin("paragraph", RULE=True),
            "math_block": self._math,
            "code_block": self._indented_code,
            "blockquote_open": self._quote_open,
            "blockquote_close": self._quote_close,
            "bullet_list_open": self._bullet_list,
            "bullet_list_close": self._list_close,
            "ordered_list_close": self._list_close,
            "list_item_open": self._item_open,
            "list_item_close": self._item_close,
            "details_open": self._details_open,
            "summary_close": lambda _token: self._restyle(link=""),
            "details_close": self._details_close,
            "footnote_reference_open": self._footnote_open,
            "footnote_reference_close": self._footnote_close,
        }

    # the next block

    def _begin(self, gap: str, **properties: object) -> None:
        """Begin a block of text, `gap` below the last one."""
        state = self._state
        opened = "item" if state.opens_item else "quote" if state.opens_quote else gap
        gap = "none" if state.joins else opened
        gap_em = _GAP_EM[gap]
        top_px = 0.0 if self.at_start else self._theme.em(gap_em)
        made = self._formats.block(self._left_px, top_px, self._quotes)
        self.begin(made, self._formats.char(state.style))
        if state.marker:
            properties["MARKER"] = state.marker
        if state.footnote:
            properties["FOOTNOTE"] = state.footnote
        if properties:
            self.set_block(**properties)
        state.marker, state.footnote = "", 0
        state.opens_item = state.opens_quote = state.joins = False

    @property
    def _left_px(self) -> float:
        return self._theme.em(min(self._state.indent, _DEEPEST_INDENT) / 10)

    @property
    def _quotes(self) -> str:
        return ",".join(map(str, self._state.quotes))

    def _restyle(self, **changes: object) -> None:
        self._state.style = replace(self._state.style, **changes)  # type: ignore[arg-type]

    # text

    def _inline_text(self, token: Token) -> None:
        self._inline.write(token.children or (), self._state.style, self.emit)
        if self._inline.task is not None:
            self.set_block(MARKER=None, TASK=self._inline.task)

    def _literal(self, token: Token) -> None:
        text = sanitize(token.content.strip("\n").replace("\n", " "))
        self.emit(text, self._formats.char(self._state.style))

    def _plain(self, token: Token) -> None:
        self._begin("paragraph")
        self._inline_text(token)

    def _heading_open(self, token: Token) -> None:
        self._restyle(heading=int(token.tag[1:]))
        self._begin("heading")

    def _math(self, token: Token) -> None:
        self._begin("paragraph")
        if self._inline.formula((token.content, True), self._state.style, self.emit):
            self.flush()
            self.cursor.setBlockFormat(self._formats.formula_block(self.cursor.blockFormat()))

    # code

    def _fence(self, token: Token, *, joins: bool) -> None:
        if joins and self.code_blocks:
            if token.content:
                self._code_lines("\n" + token.content.removesuffix("\n"))
        else:
            words = sanitize(token.info).split()
            self._open_code(words[0][:_MAX_LANGUAGE_CHARS] if words else "")
            self._code_lines(token.content.removesuffix("\n"))
        self._record_source(token.content)

    def _indented_code(self, token: Token) -> None:
        self._open_code("")
        self._code_lines(token.content.removesuffix("\n"))
        self._record_source(token.content)

    def _open_code(self, language: str) -> None:
        """Write the line with the language, and begin the first line of code."""
        number, left_px, quotes = len(self.code_blocks), self._left_px, self._quotes
        state = self._state
        gap_px = 0.0 if self.at_start else self._theme.em(_GAP_EM["code"])
        head = self._formats.code_head(number, left_px, gap_px, quotes, has_language=bool(language))
        label = self._formats.char(Style(small=True, muted=True))
        self.begin(head, label)
        self.emit(language, label)
        if state.marker:
            self.set_block(MARKER=state.marker)
        state.marker, state.opens_item, state.joins = "", False, False
        made = self._formats.code_block(number, left_px, quotes)
        self.begin(made, self._formats.syntax(""))
        first = self.cursor.blockNumber()
        self.code_blocks.append(CodeBlock(language, "", first))

    def _code_lines(self, text: str) -> None:
        """Append to the last line of code, and add lines; the padding is below the last one."""
        self.set_bottom_margin(0)
        self.emit_lines(sanitize(text), self._formats.syntax(""))
        below_px = self._formats.code_padding + self._theme.em(_GAP_EM["below_code"])
        self.set_bottom_margin(round(below_px))

    def _record_source(self, text: str) -> None:
        last = self.code_blocks[-1]
        self.code_blocks[-1] = replace(last, source=last.source + text)
        end = self.cursor.blockNumber()
        if self.collapses and end - last.first_block >= MOST_CODE_LINES:
            key = code_key(len(self.code_blocks) - 1)
            self.folds[key] = FoldedBlocks(last.first_block + SHOWN_CODE_LINES, end)
            self._make_room_below(key)

    def _make_room_below(self, key: str) -> None:
        """Make room for a button below code, if it is folded; Qt takes hidden margins into account."""
        block = self._document.findBlockByNumber(self.folds[key].last)
        made = block.blockFormat()
        below = self._formats.code_padding + self._theme.em(_GAP_EM["below_code"])
        more = 0 if key in self.toggled else self._formats.code_more
        made.setBottomMargin(round(below + more))
        QTextCursor(block).setBlockFormat(made)

    def set_wrapped(self, number: int, is_wrapped: bool) -> None:
        """Wrap the lines of a code block, or let them be as long as they are."""
        block = self._document.findBlockByNumber(self.code_blocks[number].first_block)
        cursor = QTextCursor(block)
        while block.isValid() and block.blockFormat().property(Property.CODE) == number:
            cursor.setPosition(block.position(), QTextCursor.MoveMode.KeepAnchor)
            block = block.next()
        made = QTextBlockFormat()
        made.setNonBreakableLines(not is_wrapped)
        cursor.mergeBlockFormat(made)

    # containers of blocks

    def _quote_open(self, _token: Token) -> None:
        state = self._state
        state.quotes = (*state.quotes, round(self._left_px + self._theme.em(0.15)))
        state.indent += _INDENTS["quote"]
        state.opens_quote = True
        self._restyle(muted=True)

    def _quote_close(self, _token: Token) -> None:
        state = self._state
        state.quotes = state.quotes[:-1]
        state.indent -= _INDENTS["quote"]
        self._restyle(muted=bool(state.quotes))

    def _bullet_list(self, _token: Token) -> None:
        self._state.lists.append(None)
        self._state.indent += _INDENTS["list"]

    def _ordered_list(self, token: Token, counts_from: int | None) -> None:
        start = int(token.attrs.get("start", 1)) if counts_from is None else counts_from
        self._state.lists.append(start)
        self._state.indent += _INDENTS["list"]

    def _list_close(self, _token: Token) -> None:
        self._state.lists.pop()
        self._state.indent -= _INDENTS["list"]

    def _item_open(self, _token: Token) -> None:
        state = self._state
        state.opens_item = True
        if (number := state.lists[-1]) is None:
            depth = sum(each is None for each in state.lists)
            state.marker = _BULLETS[(depth - 1) % len(_BULLETS)]
        else:
            state.marker = f"{number}."
            state.lists[-1] = number + 1

    def _item_close(self, _token: Token) -> None:
        if self._state.opens_item:
            self._begin("item")

    def _details_open(self, token: Token) -> None:
        number = len(self._state.folds) + sum(not key.startswith("code") for key in self.folds)
        key = detail_key(number)
        self._state.indent += _INDENTS["list"]
        self._restyle(link=LINK + key)
        self._begin("paragraph", FOLD=number)
        first = self.cursor.blockNumber() + 1
        self._state.folds.append((key, FoldedBlocks(first, first, opens=token.meta["open"])))

    def _details_close(self, _token: Token) -> None:
        self._state.indent -= _INDENTS["list"]
        self.to_end()
        key, fold = self._state.folds.pop()
        self.folds[key] = replace(fold, last=self.cursor.blockNumber() - self.fresh)

    def _footnote_open(self, token: Token) -> None:
        number = self._inline.footnotes.get(":" + str(token.meta.get("label", "")), 0)
        self._state.indent += _INDENTS["list"]
        self._state.marker, self._state.footnote = f"{number}.", number
        self._restyle(small=True, muted=True)

    def _footnote_close(self, _token: Token) -> None:
        self._state.indent -= _INDENTS["list"]
        self._state.marker, self._state.footnote = "", 0
        self._restyle(small=False, muted=bool(self._state.quotes))

    def _table(self, tokens: Sequence[Token], at: int, *, joins: bool) -> int:
        """Write the table that begins at `at`; return the index of its last token."""
        end = at
        while tokens[end].type != "table_close":
            end += 1
        state = self._state
        state.marker, state.opens_item = "", False
        self.to_end()
        joined = self.last_table if joins else None
        table, left_over = self._tables.write(
            self.cursor, tokens[at : end + 1], self._left_px, joined
        )
        self.table_rows += self._tables.rows_of_last
        self.blocks_written += self._tables.rows_of_last * (table.columns() if table else 1)
        self.to_end()
        self.fresh, self.last_table = True, table
        for line in left_over:
            self._begin("row")
            self.emit(line, self._formats.char(state.style))
        return end
