"""Block splitter: cuts a text into closed parts, so that it can be rendered in small steps.

A top-level block is closed as soon as a whole line of the next one is known: CommonMark decides
its block structure line by line. Lists, tables and fenced code are also cut between items, rows
and lines, which is not visible. Only larger blocks (long paragraphs, quotations) are cut where it
is visible, at positions that depend on their own text alone. So a text rendered while it streams
ends up like one rendered at once.
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
_TEXT_TYPES = frozenset({"paragraph_open", "heading_open", "plain"})
_LISTS = {"ordered_list_open": "ordered_list", "bullet_list_open": "bullet_list"}


@dataclass(frozen=True, slots=True)
class Continuation:
    """How the text continues after a cut inside a block.

    `kind` is "fence", "table", "list", "text" or "" for a cut between blocks; `prefix` are the
    lines that make the rest parse as that kind; `number` is the next number of an ordered list.
    """

    kind: str = ""
    prefix: str = ""
    number: int = 0


NO_CARRY = Continuation()


@dataclass(frozen=True, slots=True)
class ClosedBlocks:
    """A closed part of a text: its tokens, where the next part starts, and how that continues."""

    tokens: list[Token]
    end: int
    carry: Continuation = NO_CARRY


_Block = tuple[int, int]
"""A top-level block: the indexes of its first and last token."""


@dataclass(frozen=True, slots=True)
class _Chunk:
    """What one step parses: `text` at `start` of the whole text, with the prefix of `carry`.

    `is_rest` says that nothing will follow.
    """

    text: str
    start: int
    carry: Continuation
    is_rest: bool

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def parsed(self) -> str:
        return self.carry.prefix + self.text

    def offset(self, line: int) -> int:
        """Return the index in the whole text where line `line` of `parsed` begins."""
        lines = self.parsed.split("\n", line)
        return self.end - (len(lines[-1]) if len(lines) > line else 0)


class BlockSplitter:
    """Cuts one text into closed parts."""

    def __init__(self, dialect: Dialect, definitions: Definitions) -> None:
        self._dialect = dialect
        self._definitions = definitions
        self._ready: deque[ClosedBlocks] = deque()
        self._ready_from = 0

    def next_segment(
        self, text: str, start: int, carry: Continuation, *, ended: bool
    ) -> ClosedBlocks | None:
        """Return the next closed part from `start`; None when more text must be known first.

        `ended` says that `text` is complete: then None means its end.
        """
        if self._ready and self._ready_from == start:
            found: ClosedBlocks | None = self._ready.popleft()
        else:
            self._ready.clear()
            found = self._find(text, start, carry, ended=ended)
        if found is not None:
            self._ready_from = found.end
            self._dialect.inline(found.tokens, self._definitions, False)
        return found

    def open_tail(self, text: str, start: int, carry: Continuation) -> list[Token]:
        """Return the tokens of what is not closed yet."""
        tokens = self._dialect.blocks(carry.prefix + text[start:])
        return self._dialect.inline(tokens, self._definitions, True)

    def _find(
        self, text: str, start: int, carry: Continuation, *, ended: bool
    ) -> ClosedBlocks | None:
        """Return what `next_segment` returns, without parsing inline markup."""
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

    def _choose(self, chunk: _Chunk, *, widened: bool) -> ClosedBlocks | None:
        """Return the closed part of `chunk`.

        A step that was widened for a large block returns that block alone: what follows must be
        cut as it is when the text streams.
        """
        if not chunk.text.strip("\n"):
            return ClosedBlocks([], chunk.end) if chunk.is_rest else None
        tokens = self._dialect.blocks(chunk.parsed)
        blocks = list(_top_level(tokens))
        if blocks and (inside := _cut_inside(tokens, blocks[0], len(blocks), chunk)) is not None:
            return inside
        closed = len(blocks) if chunk.is_rest else len(blocks) - 1
        closed = min(closed, 1) if widened else closed
        if not blocks:
            return ClosedBlocks([], chunk.end) if chunk.is_rest else None
        self._ready.extend(_segments(tokens, blocks, closed, chunk))
        return self._ready.popleft() if self._ready else None

    def _forced(self, chunk: _Chunk, seen: str, size: int) -> ClosedBlocks | None:
        """Return a cut inside a block too large for one step, or None to widen the step.

        `seen` is all text of the step, `chunk` its whole lines.
        """
        is_inside_line = not chunk.text
        if is_inside_line:
            cut = seen.rfind(" ", len(seen) // 2) + 1 or len(seen)
            chunk = replace(chunk, text=seen[:cut])
        tokens = self._dialect.blocks(chunk.parsed)
        kind = tokens[0].type if tokens else ""
        if kind == "fence":
            prefix = chunk.carry.prefix or _opening_line(chunk.text)
            return ClosedBlocks(tokens, chunk.end, Continuation("fence", prefix))
        if kind in _TEXT_TYPES:
            return ClosedBlocks(tokens, chunk.end, Continuation("text"))
        if not kind or is_inside_line or size >= MAX_BLOCK_CHARS:
            return ClosedBlocks(tokens, chunk.end)
        return None


def _segments(
    tokens: list[Token], blocks: Sequence[_Block], closed: int, chunk: _Chunk
) -> Iterator[ClosedBlocks]:
    """Yield the first `closed` blocks in parts small enough for one step each."""
    for first in range(0, closed, BLOCKS_IN_STEP):
        after = min(first + BLOCKS_IN_STEP, closed)
        is_last = after == len(blocks)
        last_token = len(tokens) if is_last else blocks[after][0]
        end = chunk.end if is_last else chunk.offset(_first_line(tokens[last_token]))
        yield ClosedBlocks(tokens[blocks[first][0] : last_token], end)


def closing_of_open_fence(
    text: str, start: int, carry: Continuation, tokens: Sequence[Token]
) -> re.Pattern[str] | None:
    """Return what would close the fence, if all of `text` from `start` is inside one.

    Only a fence at the left edge counts: its lines are rendered unchanged.
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
    """Return where a step of `size` ends; each line counts as at least 16 characters."""
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
            yield first, number


def _first_line(token: Token) -> int:
    assert token.map is not None
    return token.map[0]


def _cut_inside(
    tokens: list[Token], block: _Block, blocks: int, chunk: _Chunk
) -> ClosedBlocks | None:
    """Return the first block up to its last known item or row, where a cut is not visible."""
    first, last = block
    kind = tokens[first].type
    is_open = blocks == 1 and not chunk.is_rest
    if kind in _LISTS:
        items = [
            at for at in range(first, last) if tokens[at].level == 1 and tokens[at].nesting == 1
        ]
        if is_open and len(items) > 1:
            return _cut_list(tokens, items, block, chunk)
    elif kind == "table_open":
        rows = [at for at in range(first, last) if tokens[at].type == "tr_open"]
        if len(rows) > ROWS_IN_STEP + 2:
            return _cut_table(tokens, rows[ROWS_IN_STEP + 1], block, chunk)
        if is_open and len(rows) > 2:
            return _cut_table(tokens, rows[-1], block, chunk)
    return None


def _cut_list(tokens: list[Token], items: list[int], block: _Block, chunk: _Chunk) -> ClosedBlocks:
    """Return the list without its last item, which is not closed."""
    opening, last = tokens[block[0]], items[-1]
    first_number = int(opening.attrs.get("start", 1))
    if chunk.carry.kind == "list":
        first_number = chunk.carry.number
    kept = [*tokens[:last], *_closing(_LISTS[opening.type])]
    carry = Continuation("list", number=first_number + len(items) - 1)
    return ClosedBlocks(kept, chunk.offset(_first_line(tokens[last])), carry)


def _cut_table(tokens: list[Token], row: int, block: _Block, chunk: _Chunk) -> ClosedBlocks:
    """Return the table above the row at token `row`; its head is the prefix of the rest."""
    line = _first_line(tokens[block[0]])
    head = "\n".join(chunk.parsed.split("\n", line + 2)[line : line + 2]) + "\n"
    kept = [*tokens[:row], *_closing("tbody", "table")]
    return ClosedBlocks(kept, chunk.offset(_first_line(tokens[row])), Continuation("table", head))


def _closing(*kinds: str) -> list[Token]:
    return [Token(f"{kind}_close", "", -1) for kind in kinds]
