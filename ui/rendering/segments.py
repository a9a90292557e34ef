"""Where a text may be cut, so that it can be drawn in small steps that never need to be undone.

A top-level block is closed as soon as a whole line of the next one is known: CommonMark decides
its block structure line by line. What is cut here does not depend on how much of the text is known
beyond the lines that decide, so a text drawn as it streams ends up as one drawn at once. Blocks
too large for one step are cut inside, at places that depend on their own text alone.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markdown_it.token import Token

from ui.rendering.definitions import Definitions
from ui.rendering.parser import Dialect
from ui.rendering.tables import MAX_ROWS

STEP_CHARS = 8192
LIST_STEP_CHARS = 6144
MAX_BLOCK_CHARS = 50_000
_OPENING = re.compile(r" {0,3}(?P<marks>`{3,}|~{3,})[^\n]*")
_WORDS = frozenset({"paragraph_open", "heading_open", "plain"})


@dataclass(frozen=True, slots=True)
class Carry:
    """How the text goes on after a cut inside a block.

    `kind` is "fence", "table", "list", "words" or "" for a cut between blocks; `prefix` are the lines that
    make the rest parse as what it is; `number` is what an ordered list counts on from.
    """

    kind: str = ""
    prefix: str = ""
    number: int = 0


NO_CARRY = Carry()


@dataclass(frozen=True, slots=True)
class Segment:
    """A closed stretch of text: its tokens, where the next one starts, and how that goes on."""

    tokens: list[Token]
    end: int
    carry: Carry = NO_CARRY


@dataclass(frozen=True, slots=True)
class _Block:
    """A top-level block: its tokens' places, its first line and the line after it."""

    first: int
    last: int
    line: int
    end_line: int


class Segmenter:
    """Cuts one text; knows its dialect and its definitions, not how it is drawn."""

    def __init__(self, dialect: Dialect, definitions: Definitions) -> None:
        self._dialect = dialect
        self._definitions = definitions

    def next_segment(self, text: str, start: int, carry: Carry, *, ended: bool) -> Segment | None:
        """Return the next closed stretch from `start`; None when more text must be known first.

        `ended` says that `text` is all there will be: then None comes only at its end.
        """
        found = self._find(text, start, carry, ended=ended)
        if found is not None:
            self._dialect.words(found.tokens, self._definitions)
        return found

    def _find(self, text: str, start: int, carry: Carry, *, ended: bool) -> Segment | None:
        """Do the work of `next_segment` with blocks alone, whose words are not read yet."""
        size = STEP_CHARS
        while start < len(text):
            limit = min(start + size, len(text))
            whole = ended and limit == len(text)
            chunk = text[start : limit if whole else text.rfind("\n", start, limit) + 1]
            found = self._choose(chunk, start, carry, whole=whole) if chunk.strip("\n") else None
            if whole and found is None:
                return Segment([], limit)
            if found is not None:
                return found
            if limit < start + size:
                return None
            if (forced := self._forced(text[start:limit], chunk, start, carry)) is not None:
                return forced
            size = min(size * 2, MAX_BLOCK_CHARS)
        return None

    def open_tail(self, text: str, start: int, carry: Carry) -> list[Token]:
        """Return the tokens of what is not closed yet."""
        return self._dialect.words(self._blocks(text[start:], carry), self._definitions)

    def _blocks(self, chunk: str, carry: Carry) -> list[Token]:
        return self._dialect.blocks(carry.prefix + chunk)

    def _choose(self, chunk: str, start: int, carry: Carry, *, whole: bool) -> Segment | None:
        tokens = self._blocks(chunk, carry)
        blocks = list(_top_level(tokens))
        lines = _Lines(chunk, start, carry)
        closed = len(blocks) if whole else len(blocks) - 1
        for number, block in enumerate(blocks):
            if (row := _extra_row(tokens, block)) is None:
                continue
            if number == 0:
                return self._cut_table(tokens, block, row, lines)
            closed = min(closed, number)
            break
        if closed == len(blocks) and whole:
            return Segment(tokens, start + len(chunk))
        if closed > 0:
            return Segment(tokens[: blocks[closed].first], lines.offset(blocks[closed].line))
        if len(blocks) == 1 and tokens[0].type in ("bullet_list_open", "ordered_list_open"):
            return _cut_list(tokens, lines, start, carry)
        return None

    def _cut_table(self, tokens: list[Token], block: _Block, row: int, lines: "_Lines") -> Segment:
        """Return the table up to the row whose token is `row`; its head goes on above the rest."""
        row_lines = tokens[row].map
        assert row_lines is not None
        head = "\n".join(lines.lines[block.line : block.line + 2]) + "\n"
        kept = [*tokens[block.first : row], *_closing("tbody", "table")]
        return Segment(kept, lines.offset(row_lines[0]), Carry("table", head))

    def _forced(self, seen: str, chunk: str, start: int, carry: Carry) -> Segment | None:
        """Return a cut inside a block that is larger than a step can take, or None to look further.

        `seen` is all of the step, `chunk` its whole lines.
        """
        if not chunk:
            cut = seen.rfind(" ", len(seen) // 2) + 1 or len(seen)
            return self._cut(seen[:cut], start, carry)
        tokens = self._blocks(chunk, carry)
        if not tokens or len(seen) >= MAX_BLOCK_CHARS or tokens[0].type in _WORDS:
            return self._cut(chunk, start, carry)
        return None

    def _cut(self, chunk: str, start: int, carry: Carry) -> Segment:
        tokens = self._blocks(chunk, carry)
        going_on = NO_CARRY
        if tokens and tokens[-1].type == "fence":
            prefix = carry.prefix or _opening_line(chunk)
            going_on = Carry("fence", prefix) if prefix else NO_CARRY
        elif tokens and tokens[0].type in _WORDS:
            going_on = Carry("words")
        return Segment(tokens, start + len(chunk), going_on)


class _Lines:
    """The lines of a chunk, with the prefix of a carry before them, and where they begin."""

    def __init__(self, chunk: str, start: int, carry: Carry) -> None:
        self.lines = (carry.prefix + chunk).split("\n")
        self._origin = start - len(carry.prefix)

    def offset(self, number: int) -> int:
        """Return the place in the whole text where line `number` begins."""
        return self._origin + sum(len(line) + 1 for line in self.lines[:number])


def closing_of_open_fence(
    text: str, start: int, carry: Carry, tokens: Sequence[Token]
) -> re.Pattern[str] | None:
    """Return what would close the fence that all of `text` from `start` is inside of, if it is.

    Only a fence that begins at the left edge counts: its lines are drawn as they stand.
    """
    if len(tokens) != 1 or tokens[0].type != "fence" or tokens[0].map is None:
        return None
    opening_at = _Lines(text[start:], start, carry).offset(tokens[0].map[0])
    opening = _OPENING.match(carry.prefix or text[opening_at : opening_at + 1000])
    if opening is None or opening[0].startswith(" "):
        return None
    marks = opening["marks"]
    closing = re.compile(rf"^ {{0,3}}{re.escape(marks[0])}{{{len(marks)},}}[ \t]*$", re.MULTILINE)
    body = start if carry.prefix else text.find("\n", opening_at)
    return None if body < 0 or closing.search(text, body) else closing


def _opening_line(chunk: str) -> str:
    opening = _OPENING.match(chunk.lstrip("\n"))
    return opening[0] + "\n" if opening else ""


def _top_level(tokens: Sequence[Token]) -> Iterator[_Block]:
    first = 0
    for number, token in enumerate(tokens):
        if token.level == 0 and token.nesting >= 0:
            first = number
        if token.level == 0 and token.nesting <= 0:
            lines = tokens[first].map
            assert lines is not None
            yield _Block(first, number, lines[0], lines[1])


def _extra_row(tokens: Sequence[Token], block: _Block) -> int | None:
    """Return where the first row beyond the limit stands, if `block` is a table with that many."""
    if tokens[block.first].type != "table_open":
        return None
    rows = [at for at in range(block.first, block.last) if tokens[at].type == "tr_open"]
    return rows[MAX_ROWS + 1] if len(rows) > MAX_ROWS + 1 else None


def _cut_list(tokens: list[Token], lines: _Lines, start: int, carry: Carry) -> Segment | None:
    """Return the list up to the first item that begins a step further on, if there is one."""
    ordered = tokens[0].type == "ordered_list_open"
    number = int(tokens[0].attrs.get("start", 1)) if carry.kind != "list" else carry.number
    items = [at for at, each in enumerate(tokens) if each.level == 1 and each.nesting == 1]
    for count, at in enumerate(items):
        item_lines = tokens[at].map
        assert item_lines is not None
        offset = lines.offset(item_lines[0])
        if offset - start >= LIST_STEP_CHARS:
            kept = [*tokens[:at], *_closing("ordered_list" if ordered else "bullet_list")]
            return Segment(kept, offset, Carry("list", number=number + count))
    return None


def _closing(*kinds: str) -> list[Token]:
    return [Token(f"{kind}_close", "", -1) for kind in kinds]
