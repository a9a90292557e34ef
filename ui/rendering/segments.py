"""Where a text may be cut, so that it can be drawn in small steps that never need to be undone.

A top-level block is closed as soon as a whole line of the next one is known: CommonMark decides
its block structure line by line. Lists, tables and fenced code are also cut between items, rows
and lines; what is drawn shows nothing of that. Only larger things (long paragraphs, quotations)
are cut where it shows, at places that depend on their own text alone. So a text drawn as it
streams ends up as one drawn at once.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from markdown_it.token import Token

from ui.rendering.definitions import Definitions
from ui.rendering.parser import Dialect

STEP_CHARS = 8192
CHARS_A_LINE = 16
BLOCKS_IN_STEP = 16
ROWS_IN_STEP = 40
MAX_BLOCK_CHARS = 24_576
_OPENING = re.compile(r" {0,3}(?P<marks>`{3,}|~{3,})[^\n]*")
_WORDS = frozenset({"paragraph_open", "heading_open", "plain"})
_LISTS = {"ordered_list_open": "ordered_list", "bullet_list_open": "bullet_list"}


@dataclass(frozen=True, slots=True)
class Carry:
    """How the text goes on after a cut inside a block.

    `kind` is "fence", "table", "list", "words" or "" for a cut between blocks; `prefix` are the
    lines that make the rest parse as what it is; `number` is what an ordered list counts on from.
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
    """A top-level block: the places of its tokens, first and last, and its first line."""

    first: int
    last: int
    line: int


@dataclass(frozen=True, slots=True)
class _Chunk:
    """What is looked at in one step: `text` from `start` of the whole, `carry` before it.

    `is_rest` says that nothing will ever follow.
    """

    text: str
    start: int
    carry: Carry
    is_rest: bool

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def parsed(self) -> str:
        return self.carry.prefix + self.text

    def offset(self, line: int) -> int:
        """Return the place in the whole text where line `line` of `parsed` begins."""
        lines = self.parsed.split("\n", line)
        return self.end - (len(lines[-1]) if len(lines) > line else 0)


class Segmenter:
    """Cuts one text; knows its dialect and its definitions, not how it is drawn."""

    def __init__(self, dialect: Dialect, definitions: Definitions) -> None:
        self._dialect = dialect
        self._definitions = definitions
        self._ready: deque[Segment] = deque()
        self._ready_from = 0

    def next_segment(self, text: str, start: int, carry: Carry, *, ended: bool) -> Segment | None:
        """Return the next closed stretch from `start`; None when more text must be known first.

        `ended` says that `text` is all there will be: then None comes only at its end.
        """
        if self._ready and self._ready_from == start:
            found: Segment | None = self._ready.popleft()
        else:
            self._ready.clear()
            found = self._find(text, start, carry, ended=ended)
        if found is not None:
            self._ready_from = found.end
            self._dialect.words(found.tokens, self._definitions)
        return found

    def open_tail(self, text: str, start: int, carry: Carry) -> list[Token]:
        """Return the tokens of what is not closed yet."""
        tokens = self._dialect.blocks(carry.prefix + text[start:])
        return self._dialect.words(tokens, self._definitions)

    def _find(self, text: str, start: int, carry: Carry, *, ended: bool) -> Segment | None:
        """Do the work of `next_segment` with blocks alone, whose words are not read yet."""
        size = STEP_CHARS
        while start < len(text):
            limit = _limit(text, start, size)
            is_rest = ended and limit == len(text)
            whole_lines = limit if is_rest else text.rfind("\n", start, limit) + 1
            chunk = _Chunk(text[start:whole_lines], start, carry, is_rest)
            if (found := self._choose(chunk, widened=size > STEP_CHARS)) is not None:
                return found
            if limit == len(text):
                return None
            if (forced := self._forced(chunk, text[start:limit], size)) is not None:
                return forced
            size = min(size * 2, MAX_BLOCK_CHARS)
        return None

    def _choose(self, chunk: _Chunk, *, widened: bool) -> Segment | None:
        """Return what of `chunk` is closed.

        In a step that was widened for a large block only that one is taken: what follows it must be
        judged by itself, as it is when the text streams.
        """
        if not chunk.text.strip("\n"):
            return Segment([], chunk.end) if chunk.is_rest else None
        tokens = self._dialect.blocks(chunk.parsed)
        blocks = list(_top_level(tokens))
        if blocks and (inside := _cut_inside(tokens, blocks[0], len(blocks), chunk)) is not None:
            return inside
        closed = len(blocks) if chunk.is_rest else len(blocks) - 1
        closed = min(closed, 1) if widened else closed
        if not blocks:
            return Segment([], chunk.end) if chunk.is_rest else None
        self._ready.extend(_segments(tokens, blocks, closed, chunk))
        return self._ready.popleft() if self._ready else None

    def _forced(self, chunk: _Chunk, seen: str, size: int) -> Segment | None:
        """Return a cut inside a block larger than a step can take, or None to look further.

        `seen` is all of the step, of which `chunk` has the whole lines.
        """
        is_inside_line = not chunk.text
        if is_inside_line:
            cut = seen.rfind(" ", len(seen) // 2) + 1 or len(seen)
            chunk = replace(chunk, text=seen[:cut])
        tokens = self._dialect.blocks(chunk.parsed)
        kind = tokens[0].type if tokens else ""
        if kind == "fence":
            prefix = chunk.carry.prefix or _opening_line(chunk.text)
            return Segment(tokens, chunk.end, Carry("fence", prefix))
        if kind in _WORDS:
            return Segment(tokens, chunk.end, Carry("words"))
        if not kind or is_inside_line or size >= MAX_BLOCK_CHARS:
            return Segment(tokens, chunk.end)
        return None


def _segments(
    tokens: list[Token], blocks: Sequence[_Block], closed: int, chunk: _Chunk
) -> Iterator[Segment]:
    """Yield the first `closed` blocks in stretches small enough for one step each."""
    for first in range(0, closed, BLOCKS_IN_STEP):
        after = min(first + BLOCKS_IN_STEP, closed)
        last_token = blocks[after].first if after < len(blocks) else len(tokens)
        end = chunk.offset(blocks[after].line) if after < len(blocks) else chunk.end
        yield Segment(tokens[blocks[first].first : last_token], end)


def closing_of_open_fence(
    text: str, start: int, carry: Carry, tokens: Sequence[Token]
) -> re.Pattern[str] | None:
    """Return what would close the fence that all of `text` from `start` is inside of, if it is.

    Only a fence that begins at the left edge counts: its lines are drawn as they stand.
    """
    if len(tokens) != 1 or tokens[0].type != "fence" or tokens[0].map is None:
        return None
    opening_at = _Chunk(text[start:], start, carry, is_rest=False).offset(tokens[0].map[0])
    opening = _OPENING.match(carry.prefix or text[opening_at : opening_at + 1000])
    if opening is None or opening[0].startswith(" "):
        return None
    marks = opening["marks"]
    closing = re.compile(rf"^ {{0,3}}{re.escape(marks[0])}{{{len(marks)},}}[ \t]*$", re.MULTILINE)
    body = start if carry.prefix else text.find("\n", opening_at)
    return None if body < 0 or closing.search(text, body) else closing


def _limit(text: str, start: int, size: int) -> int:
    """Return where a step of `size` ends: short lines cost more than their characters."""
    end = start
    for _line in range(max(1, size // CHARS_A_LINE)):
        newline = text.find("\n", end, start + size)
        if newline < 0:
            return min(start + size, len(text))
        end = newline + 1
    return end


def _opening_line(text: str) -> str:
    opening = _OPENING.match(text.lstrip("\n"))
    return opening[0] + "\n" if opening else "```\n"


def _top_level(tokens: Sequence[Token]) -> Iterator[_Block]:
    first = 0
    for number, token in enumerate(tokens):
        if token.level == 0 and token.nesting >= 0:
            first = number
        if token.level == 0 and token.nesting <= 0:
            yield _Block(first, number, _first_line(tokens[first]))


def _first_line(token: Token) -> int:
    assert token.map is not None
    return token.map[0]


def _cut_inside(tokens: list[Token], block: _Block, blocks: int, chunk: _Chunk) -> Segment | None:
    """Return the first block up to its last known item or row, where such a cut does not show."""
    kind = tokens[block.first].type
    is_open = blocks == 1 and not chunk.is_rest
    if kind in _LISTS:
        items = [at for at in range(block.first, block.last) if _is_item(tokens[at])]
        if is_open and len(items) > 1:
            return _cut_list(tokens, items, block, chunk)
    elif kind == "table_open":
        rows = [at for at in range(block.first, block.last) if tokens[at].type == "tr_open"]
        if len(rows) > ROWS_IN_STEP + 2:
            return _cut_table(tokens, rows[ROWS_IN_STEP + 1], block, chunk)
        if is_open and len(rows) > 2:
            return _cut_table(tokens, rows[-1], block, chunk)
    return None


def _is_item(token: Token) -> bool:
    return token.level == 1 and token.nesting == 1


def _cut_list(tokens: list[Token], items: list[int], block: _Block, chunk: _Chunk) -> Segment:
    """Return the list without its last item, which is still open."""
    opening, last = tokens[block.first], items[-1]
    first_number = int(opening.attrs.get("start", 1))
    if chunk.carry.kind == "list":
        first_number = chunk.carry.number
    kept = [*tokens[:last], *_closing(_LISTS[opening.type])]
    carry = Carry("list", number=first_number + len(items) - 1)
    return Segment(kept, chunk.offset(_first_line(tokens[last])), carry)


def _cut_table(tokens: list[Token], row: int, block: _Block, chunk: _Chunk) -> Segment:
    """Return the table above the row whose token is `row`; its head is put before the rest."""
    lines = chunk.parsed.split("\n", block.line + 2)
    head = "\n".join(lines[block.line : block.line + 2]) + "\n"
    kept = [*tokens[:row], *_closing("tbody", "table")]
    return Segment(kept, chunk.offset(_first_line(tokens[row])), Carry("table", head))


def _closing(*kinds: str) -> list[Token]:
    return [Token(f"{kind}_close", "", -1) for kind in kinds]
