"""Document builder: renders a text into a document in small steps, complete or while it streams.

    builder = DocumentBuilder(theme)
    builder.feed(text)
    builder.end()
    while builder.step():  # each step renders at most some 8,000 characters
        ...

While a text streams, `feed` what has arrived and call `refresh` as often as the screen is
repainted: only the part that is not closed yet is rendered again. The resulting document does not
depend on the pieces the text came in; tests check that.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

from markdown_it.token import Token

from ui.rendering.blocks import Mark
from ui.rendering.definitions import Definitions
from ui.rendering.document import FoldedBlocks, ImageResolver, TranscriptDocument
from ui.rendering.formats import formats_of
from ui.rendering.formulas import formulas_of, typesetter
from ui.rendering.highlight import highlight_code
from ui.rendering.parser import MARKDOWN, Dialect
from ui.rendering.splitter import (
    NO_CARRY,
    STEP_CHARS,
    BlockSplitter,
    ClosedBlocks,
    Continuation,
    closing_of_open_fence,
)
from ui.rendering.writer import CodeBlock, Writer
from ui.theme import Theme

PAGE_CHARS = 100_000
PAGE_ROWS = 500
PAGE_BLOCKS = 4000
_WAIT_S = 0.004
_MOST_WAIT_S = 20.0


@dataclass(slots=True)
class _OpenFence:
    """An unclosed code block: what would close it, and how much of it is rendered and recorded."""

    closing: re.Pattern[str]
    rendered_to: int
    recorded_to: int


class DocumentBuilder:
    r"""Renders one text into one document.

    Attributes:
        document: The document; its owner sets the width.
        pages: How many pages may be rendered; a page is 100,000 characters, 500 table rows or
            4,000 blocks, whichever is reached first.
        writer: Has the code blocks, and counts what was rendered.
        source: The text so far, with `\n` at the end of lines.
    """

    def __init__(
        self,
        theme: Theme,
        dialect: Dialect = MARKDOWN,
        resolver: ImageResolver | None = None,
        *,
        pages: int = 1,
        collapses: bool = False,
    ) -> None:
        self.document = TranscriptDocument(theme, resolver)
        self.pages = pages
        self._collapses = collapses
        self.source = ""
        self._formats = formats_of(theme)
        self._dialect = dialect
        self._definitions = Definitions()
        self._ended = False
        self._ends_with_return = False
        self._defined_to = 0
        self._defined_late = False
        self._toggled: set[str] = set()  # folds
        self._waited_s = 0.0  # for formulas
        self._restart()

    @property
    def has_more(self) -> bool:
        """Whether there is text beyond the pages that may be rendered."""
        return self._closed_to < len(self.source) and self._page_is_full

    @property
    def hidden_chars(self) -> int:
        """The number of characters beyond the pages that may be rendered."""
        return len(self.source) - self._closed_to if self.has_more else 0

    def feed(self, text: str) -> None:
        if self._ends_with_return:
            text = "\r" + text
        self._ends_with_return = text.endswith("\r")
        if self._ends_with_return:
            text = text[:-1]
        self.source += text.replace("\r\n", "\n").replace("\r", "\n")

    def end(self) -> None:
        """End the text, and order its footnotes.

        These, and a definition that came after its references, render everything again.
        """
        if self._ends_with_return:
            self._ends_with_return = False
            self.source += "\n"
        self._ended = True
        self._read_definitions()
        ordered = self._definitions.in_order(self.source)
        if self._defined_late or ordered != self.source:
            self.source, self._defined_late = ordered, False
            self._restart()

    def step(self) -> bool:
        """Render the next closed part, or highlight some code; return whether there was any.

        A part appears with its formulas: while they are typeset a step waits for 4 ms, 20 s in all.
        """
        self._read_definitions()
        return self._render_closed() or self._highlight()

    def refresh(self, budget_s: float = 0.012) -> bool:
        """Render everything that has arrived, up to the last character.

        Return False if time was up before; then call it again after other events.
        """
        until = perf_counter() + budget_s
        self._read_definitions()
        while self._render_closed():
            if perf_counter() >= until:
                return False
        if not self._page_is_full and not self._render_tail():
            return False
        if perf_counter() < until:
            self._highlight()
        return True

    def finish(self) -> None:
        """Do all steps at once, for tests and short texts."""
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
        self.writer = Writer(
            self.document,
            self._formats,
            self._definitions,
            self._toggled,
            collapses=self._collapses,
        )
        self._splitter = BlockSplitter(self._dialect, self._definitions)
        self._closed_to = 0
        self._closed_rows = 0
        self._carry: Continuation = NO_CARRY
        self._nothing_closed_at: tuple[int, int, bool] | None = None
        self._tail: tuple[Mark, list[CodeBlock], dict[str, FoldedBlocks]] | None = None
        self._open_fence: _OpenFence | None = None
        self._held: ClosedBlocks | None = None  # until its formulas are typeset
        self._highlighting: deque[Iterator[None]] = deque()

    def _read_definitions(self) -> None:
        end = len(self.source) if self._ended else self.source.rfind("\n") + 1
        if end <= self._defined_to or not self._dialect.has_definitions:
            return
        begin, self._defined_to = self._defined_to, end
        if self._definitions.read(self.source[begin:end]) and self._closed_to:
            self._defined_late = True

    def _render_closed(self) -> bool:
        """Render the next closed part, or wait for its formulas; return whether there was one."""
        if self._page_is_full or self._closed_to >= len(self.source):
            return False
        unread = len(self.source) - self._closed_to
        known = (self.source.rfind("\n"), unread // STEP_CHARS, self._ended)
        if known == self._nothing_closed_at or self._still_in_fence():
            return False
        segment = self._held or self._splitter.next_segment(
            self.source, self._closed_to, self._carry, ended=self._ended
        )
        if segment is None:
            self._nothing_closed_at = known
            return False
        self._held = segment
        if not self._has_formulas(segment.tokens):
            return True
        self._held = None
        self._drop_tail()
        code_before = len(self.writer.code_blocks)
        rows_before = self.writer.table_rows
        self.writer.write(segment.tokens, continues=self._carry.kind, number=self._carry.number)
        joined = self._carry.kind == "fence"
        self._closed_to, self._carry = segment.end, segment.carry
        self._closed_rows += self.writer.table_rows - rows_before
        self._schedule_highlighting(code_before, joined=joined)
        return True

    def _has_formulas(self, tokens: list[Token]) -> bool:
        """Wait a little for the formulas in `tokens`; return whether to wait no more."""
        formulas = formulas_of(tokens)
        if not formulas or self._waited_s >= _MOST_WAIT_S:
            return True
        started = perf_counter()
        if typesetter().prepare(formulas, _WAIT_S):
            return True
        self._waited_s += perf_counter() - started
        if self._waited_s >= _MOST_WAIT_S:
            typesetter().cancel()
        return False

    def _still_in_fence(self) -> bool:
        """Whether the tail is an unclosed code block: then nothing else can be closed."""
        fence = self._open_fence
        if fence is None or self._ended:
            return False
        line = self.source.rfind("\n", 0, fence.rendered_to) + 1
        if fence.closing.search(self.source, line):
            return False
        return len(self.source) - self._closed_to < STEP_CHARS

    def _render_tail(self) -> bool:
        """Render what is not closed yet, in place of its last rendering; False: not yet."""
        if self._open_fence is not None and self._extend_fence(self._open_fence):
            return True
        tokens: list[Token] = []
        if self._closed_to < len(self.source):
            tokens = self._splitter.open_tail(self.source, self._closed_to, self._carry)
            if not self._has_formulas(tokens):
                return False
        self._drop_tail()
        if not tokens:
            return True
        writer = self.writer
        self._tail = writer.mark(), list(writer.code_blocks), dict(writer.folds)
        self.writer.write(tokens, continues=self._carry.kind, number=self._carry.number)
        closing = closing_of_open_fence(self.source, self._closed_to, self._carry, tokens)
        if closing is not None and tokens[0].content:
            end = len(self.source)
            self._open_fence = _OpenFence(closing, end - self.source.endswith("\n"), end)
        return True

    def _extend_fence(self, fence: _OpenFence) -> bool:
        """Add what has arrived to the code at the end; return False if the code is closed."""
        line = self.source.rfind("\n", 0, fence.rendered_to) + 1
        if fence.closing.search(self.source, line):
            return False
        end = len(self.source)
        shown_to = max(end - self.source.endswith("\n"), fence.rendered_to)
        if end > fence.recorded_to:
            shown = self.source[fence.rendered_to : shown_to]
            self.writer.extend_code(shown, self.source[fence.recorded_to : end])
            fence.rendered_to, fence.recorded_to = shown_to, end
        return True

    def _drop_tail(self) -> None:
        if self._tail is not None:
            mark, self.writer.code_blocks, self.writer.folds = self._tail
            self.writer.rewind(mark)
        self._tail = self._open_fence = None

    def _schedule_highlighting(self, code_before: int, *, joined: bool) -> None:
        """Schedule highlighting of code that is complete; a fence that was cut is so at its end."""
        first = code_before - 1 if joined else code_before
        blocks = self.writer.code_blocks[first:]
        if self._carry.kind == "fence":
            blocks = blocks[:-1]
        for block in blocks:
            self._highlighting.append(
                highlight_code(self.document, self._formats, block.first_block, block.language)
            )

    def _highlight(self) -> bool:
        """Highlight a slice of code; return whether there was any."""
        if not self._highlighting:
            return False
        if next(self._highlighting[0], True):  # a slice is None; True is the end of that code
            self._highlighting.popleft()
        return True
