"""A text becomes a document, in small steps: whole, page by page, or while it streams.

    composer = Composer(theme)
    composer.feed(text)
    composer.end()
    while composer.step():  # each step draws at most some 8,000 characters
        ...

While a text streams, `feed` what comes and call `refresh` as often as the screen is repainted:
only what is not yet closed is drawn again. Whatever the pieces it came in, the document ends up the
same; tests hold it to that.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

from ui.rendering.definitions import Definitions
from ui.rendering.document import ImageResolver, TranscriptDocument
from ui.rendering.formats import formats_of
from ui.rendering.highlight import colour_code
from ui.rendering.parser import MARKDOWN, Dialect
from ui.rendering.segments import (
    NO_CARRY,
    STEP_CHARS,
    Carry,
    Segmenter,
    closing_of_open_fence,
)
from ui.rendering.writer import CodeBlock, Writer, WriterMark
from ui.theme import Theme

PAGE_CHARS = 100_000
PAGE_ROWS = 500
PAGE_BLOCKS = 4000


@dataclass(slots=True)
class _OpenFence:
    """Code that is being written: what would end it, and up to where it is drawn and noted."""

    closing: re.Pattern[str]
    drawn_to: int
    noted_to: int


class Composer:
    r"""Draws one text into one document.

    Attributes:
        document: What it draws into; its owner sets the width.
        pages: How many pages may be drawn; a page is 100,000 characters, 500 rows of
            tables or 4,000 blocks, whichever is full first.
        source: All the text so far, with `\n` at the end of lines.
    """

    def __init__(
        self,
        theme: Theme,
        dialect: Dialect = MARKDOWN,
        resolver: ImageResolver | None = None,
        *,
        pages: int = 1,
    ) -> None:
        self.document = TranscriptDocument(theme, resolver)
        self.pages = pages
        self.source = ""
        self._formats = formats_of(theme)
        self._dialect = dialect
        self._definitions = Definitions()
        self._ended = False
        self._return_waits = False
        self._learnt_to = 0
        self._defined_late = False
        self._restart()

    @property
    def code_blocks(self) -> Sequence[CodeBlock]:
        """The code drawn so far; a block's `Property.CODE` is its place here."""
        return self._writer.code_blocks

    @property
    def blocks_written(self) -> int:
        """How many blocks and cells were drawn, those drawn anew too: what it cost."""
        return self._writer.blocks_written

    @property
    def has_more(self) -> bool:
        """Whether text waits beyond the pages that may be drawn."""
        return self._closed_to < len(self.source) and self._page_is_full

    @property
    def hidden_chars(self) -> int:
        """How many characters wait beyond the pages that may be drawn."""
        return len(self.source) - self._closed_to if self.has_more else 0

    def feed(self, text: str) -> None:
        """Take more text."""
        if self._return_waits:
            text = "\r" + text
        self._return_waits = text.endswith("\r")
        if self._return_waits:
            text = text[:-1]
        self.source += text.replace("\r\n", "\n").replace("\r", "\n")

    def end(self) -> None:
        """Say that all text was fed.

        If a definition came after the words that refer to it, drawing starts again from the top.
        """
        if self._return_waits:
            self._return_waits = False
            self.source += "\n"
        self._ended = True
        self._learn()
        if self._defined_late:
            self._defined_late = False
            self._restart()

    def step(self) -> bool:
        """Draw the next closed stretch, or colour some code; return whether there was any."""
        self._learn()
        return self._draw_closed() or self._colour()

    def refresh(self, budget_s: float = 0.012) -> bool:
        """Draw what has come, up to the last character, as it looks so far.

        Return False if time was up before all was drawn: then call it again, after other events.
        """
        until = perf_counter() + budget_s
        self._learn()
        while self._draw_closed():
            if perf_counter() >= until:
                return False
        if not self._page_is_full:
            self._draw_tail()
        if perf_counter() < until:
            self._colour()
        return True

    def finish(self) -> None:
        """Do all steps at once: for tests and short texts."""
        while self.step():
            pass

    @property
    def _page_is_full(self) -> bool:
        return (
            self._closed_to >= self.pages * PAGE_CHARS
            or self._closed_rows >= self.pages * PAGE_ROWS
            or self.document.blockCount() >= self.pages * PAGE_BLOCKS
        )

    def _restart(self) -> None:
        self.document.clear()
        self._writer = Writer(self.document, self._formats, self._definitions)
        self._segmenter = Segmenter(self._dialect, self._definitions)
        self._closed_to = 0
        self._closed_rows = 0
        self._carry: Carry = NO_CARRY
        self._in_vain: tuple[int, int, bool] | None = None
        self._tail: WriterMark | None = None
        self._open_fence: _OpenFence | None = None
        self._colouring: deque[Iterator[None]] = deque()

    def _learn(self) -> None:
        """Read the definitions in lines not read yet."""
        end = len(self.source) if self._ended else self.source.rfind("\n") + 1
        if end <= self._learnt_to or not self._dialect.has_definitions:
            return
        last_line = self.source.rfind("\n", 0, max(0, self._learnt_to - 1)) + 1
        self._learnt_to = end
        if self._definitions.learn(self.source[last_line:end]) and self._closed_to:
            self._defined_late = True

    def _draw_closed(self) -> bool:
        """Draw the next closed stretch; return whether there was one."""
        if self._page_is_full or self._closed_to >= len(self.source):
            return False
        unread = len(self.source) - self._closed_to
        known = (self.source.rfind("\n"), unread // STEP_CHARS, self._ended)
        if known == self._in_vain or self._still_in_fence():
            return False
        segment = self._segmenter.next_segment(
            self.source, self._closed_to, self._carry, ended=self._ended
        )
        if segment is None:
            self._in_vain = known
            return False
        self._drop_tail()
        code_before = len(self._writer.code_blocks)
        rows_before = self._writer.table_rows
        self._writer.write(segment.tokens, continues=self._carry.kind, number=self._carry.number)
        joined = self._carry.kind == "fence"
        self._closed_to, self._carry = segment.end, segment.carry
        self._closed_rows += self._writer.table_rows - rows_before
        self._plan_colours(code_before, joined=joined)
        return True

    def _still_in_fence(self) -> bool:
        """Whether the tail is code that nothing has ended yet: then nothing else can be closed."""
        fence = self._open_fence
        if fence is None or self._ended:
            return False
        line = self.source.rfind("\n", 0, fence.drawn_to) + 1
        if fence.closing.search(self.source, line):
            return False
        return len(self.source) - self._closed_to < STEP_CHARS

    def _draw_tail(self) -> None:
        """Draw what is not closed yet, in place of its last drawing."""
        if self._open_fence is not None and self._extend_fence(self._open_fence):
            return
        self._drop_tail()
        if self._closed_to >= len(self.source):
            return
        self._tail = self._writer.mark()
        tokens = self._segmenter.open_tail(self.source, self._closed_to, self._carry)
        self._writer.write(tokens, continues=self._carry.kind, number=self._carry.number)
        closing = closing_of_open_fence(self.source, self._closed_to, self._carry, tokens)
        if closing is not None and tokens[0].content:
            end = len(self.source)
            self._open_fence = _OpenFence(closing, end - self.source.endswith("\n"), end)

    def _extend_fence(self, fence: _OpenFence) -> bool:
        """Add what has come to the code at the end; return False if that is over."""
        line = self.source.rfind("\n", 0, fence.drawn_to) + 1
        if fence.closing.search(self.source, line):
            return False
        end = len(self.source)
        shown_to = max(end - self.source.endswith("\n"), fence.drawn_to)
        if end > fence.noted_to:
            shown = self.source[fence.drawn_to : shown_to]
            self._writer.extend_code(shown, self.source[fence.noted_to : end])
            fence.drawn_to, fence.noted_to = shown_to, end
        return True

    def _drop_tail(self) -> None:
        if self._tail is not None:
            self._writer.rewind(self._tail)
        self._tail = self._open_fence = None

    def _plan_colours(self, code_before: int, *, joined: bool) -> None:
        """Have the code that is now complete coloured; a fence that was cut is whole at its end."""
        first = code_before - 1 if joined else code_before
        blocks = self._writer.code_blocks[first:]
        if self._carry.kind == "fence":
            blocks = blocks[:-1]
        for block in blocks:
            self._colouring.append(
                colour_code(self.document, self._formats, block.first_block, block.language)
            )

    def _colour(self) -> bool:
        """Colour a slice of code; return whether there was any to do."""
        if not self._colouring:
            return False
        if next(self._colouring[0], True):  # a slice is None; True is the end of that code
            self._colouring.popleft()
        return True
