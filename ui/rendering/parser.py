"""Text to markdown-it tokens: the Markdown of models, and the plainer text of people.

Raw HTML stays text in both. What tokens look like is the writer's business.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.parser_block import ParserBlock
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.tasklists import tasklists_plugin

from ui.rendering.definitions import Definitions

MAX_NESTING = 16
_MAX_MARKUP = 500
_MARKUP = re.compile(r"[*_~`$<\[\\!&]")
_MAX_COLUMNS = 60
_BLOCK_RULES = 2  # of the core chain: "normalize" and "block"; what follows reads words
_MATH_FENCES = {"$$": "$$", "\\[": "\\]"}
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*)$")


@dataclass(frozen=True, slots=True)
class Dialect:
    """A way to read text.

    Attributes:
        blocks: Returns the blocks of a text; the `map` of top-level ones counts lines from 0.
        words: Reads the words inside blocks, in place, and returns them; the costlier part.
        has_definitions: Whether links and footnotes may be defined apart from where they are used.
    """

    blocks: Callable[[str], list[Token]]
    words: Callable[[list[Token], Definitions], list[Token]]
    has_definitions: bool


def markdown_blocks(text: str) -> list[Token]:
    """Return the blocks of CommonMark with tables, tasks, footnotes and mathematics."""
    markdown = _markdown()
    state = StateCore(text, markdown, {})
    for rule in markdown.core.ruler.getRules("")[:_BLOCK_RULES]:
        rule(state)
    return state.tokens


def markdown_words(tokens: list[Token], definitions: Definitions) -> list[Token]:
    """Read emphasis, links, code, footnotes and mathematics in the text of `tokens`.

    Only `definitions` resolve references, so that the tokens of a block do not depend on what
    else was parsed with it. A block with over 500 signs of markup is no prose, and reading it
    would take time with the square of their number: it stays as it was written.
    """
    markdown = _markdown()
    for token in tokens:
        if token.type == "inline" and (token.meta or _is_no_prose(token.content)):
            token.type = "literal"
    footnotes = {"refs": dict.fromkeys(definitions.footnotes, -1), "list": {}}
    state = StateCore("", markdown, {"references": definitions.links, "footnotes": footnotes})
    state.tokens = tokens
    for rule in markdown.core.ruler.getRules("")[_BLOCK_RULES:]:
        rule(state)
    return tokens


def _is_no_prose(content: str) -> bool:
    return len(content) > _MAX_MARKUP and len(_MARKUP.findall(content)) > _MAX_MARKUP


def plain_blocks(text: str) -> list[Token]:
    """Return tokens of a person's text: fenced code, and all else in `plain` tokens, line by line."""
    tokens: list[Token] = []
    lines = text.split("\n")
    number, plain_from = 0, 0
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        if opening is None:
            number += 1
            continue
        _add_plain(tokens, lines, plain_from, number)
        end = _fence_end(lines, number + 1, opening[1])
        fence = Token("fence", "code", 0, info=opening[2].strip(), markup=opening[1])
        fence.content = "".join(line + "\n" for line in lines[number + 1 : end])
        fence.map = [number, min(end + 1, len(lines))]
        tokens.append(fence)
        number = plain_from = end + 1
    _add_plain(tokens, lines, plain_from, len(lines))
    return tokens


def plain_words(tokens: list[Token], _definitions: Definitions) -> list[Token]:
    """Return `tokens`: a person's lines are read as they are drawn."""
    return tokens


def _fence_end(lines: list[str], start: int, opening: str) -> int:
    closing = re.compile(rf" {{0,3}}{re.escape(opening[0])}{{{len(opening)},}}[ \t]*$")
    for number in range(start, len(lines)):
        if closing.match(lines[number]):
            return number
    return len(lines)


def _add_plain(tokens: list[Token], lines: list[str], start: int, end: int) -> None:
    """Add a token for each run of lines between blank ones."""
    number = start
    while number < end:
        if not lines[number].strip():
            number += 1
            continue
        first = number
        while number < end and lines[number].strip():
            number += 1
        token = Token("plain", "", 0, content="\n".join(lines[first:number]))
        token.map = [first, number]
        tokens.append(token)


MARKDOWN = Dialect(markdown_blocks, markdown_words, has_definitions=True)
PLAIN = Dialect(plain_blocks, plain_words, has_definitions=False)


class _BoundedBlocks(ParserBlock):
    """The block parser, except that what is nested too deep becomes text instead of vanishing."""

    def tokenize(self, state: StateBlock, startLine: int, endLine: int) -> None:  # noqa: N803
        """Parse the lines, or take them as one paragraph of text beyond the depth limit."""
        if state.level < MAX_NESTING:
            super().tokenize(state, startLine, endLine)
            return
        state.push("paragraph_open", "p", 1).map = [startLine, endLine]
        token = state.push("inline", "", 0)
        token.content = state.getLines(startLine, endLine, state.blkIndent, False)
        token.map = [startLine, endLine]
        token.children = []
        token.meta = {"literal": True}
        state.push("paragraph_close", "p", -1)
        state.line = endLine


class _Markdown(MarkdownIt):
    """The parser, except that link targets stay as they were written: the gate judges them."""

    def normalizeLink(self, url: str) -> str:
        """Return `url` unchanged."""
        return url

    def normalizeLinkText(self, link: str) -> str:
        """Return `link` unchanged."""
        return link


@cache
def _markdown() -> MarkdownIt:
    """Return the parser; it keeps no state between texts."""
    markdown = _Markdown("commonmark", {"html": False, "maxNesting": MAX_NESTING + 4})
    markdown.block = _BoundedBlocks()
    markdown.enable(["table", "strikethrough"])
    markdown.disable(["html_block", "html_inline"])
    footnote_plugin(markdown, inline=False, move_to_end=False)
    tasklists_plugin(markdown)
    dollarmath_plugin(markdown, allow_space=False, allow_digits=False, allow_labels=False)
    markdown.block.ruler.disable("math_block")
    markdown.block.ruler.before(
        "fence", "display_math", _display_math, {"alt": ["paragraph", "reference"]}
    )
    markdown.inline.ruler.before("escape", "bracket_math", _bracket_math)
    markdown.block.ruler.at("table", _narrow_table, {"alt": ["paragraph", "reference"]})
    return markdown


def _narrow_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Take a table, unless it has more columns than anyone can read."""
    if state.src.count("|", state.bMarks[start], state.eMarks[start]) > _MAX_COLUMNS:
        return False
    return table(state, start, end, silent)


def _display_math(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    r"""Take `$$ ... $$` or `\[ ... \]` on lines of their own, up to the first blank line at most.

    Without its end it is a paragraph of the same lines: so its extent never depends on what
    follows, and a block that was once complete stays what it was.
    """
    if state.is_code_block(start):
        return False
    first = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]].rstrip()
    closing = _MATH_FENCES.get(first[:2])
    if closing is None or first[2:3] == "$":
        return False
    rest = first[2:]
    if closing in rest:
        if not rest.endswith(closing) or rest.count(closing) > 1:
            return False
        last, closed = start, True
    else:
        last, closed = _math_end(state, start, end, closing)
    if silent:
        return True
    body = state.getLines(start, last + 1, state.blkIndent, False).strip()
    if closed:
        token = state.push("math_block", "math", 0)
        token.content = body[2:-2].strip()
        token.map = [start, last + 1]
    else:
        _push_paragraph(state, body, [start, last + 1])
    state.line = last + 1
    return True


def _math_end(state: StateBlock, start: int, end: int, closing: str) -> tuple[int, bool]:
    """Return the last line of the block and whether it ends with `closing`."""
    line = start + 1
    while line < end and not state.isEmpty(line) and state.sCount[line] >= state.blkIndent:
        if state.src[state.bMarks[line] : state.eMarks[line]].rstrip().endswith(closing):
            return line, True
        line += 1
    return line - 1, False


def _push_paragraph(state: StateBlock, content: str, lines: list[int]) -> None:
    state.push("paragraph_open", "p", 1).map = lines
    token = state.push("inline", "", 0)
    token.content, token.map, token.children = content, lines, []
    state.push("paragraph_close", "p", -1)


def _bracket_math(state: StateInline, silent: bool) -> bool:
    r"""Take `\( ... \)` and `\[ ... \]` within a line as mathematics."""
    opening = state.src[state.pos : state.pos + 2]
    if opening not in ("\\(", "\\["):
        return False
    closing = "\\)" if opening == "\\(" else "\\]"
    end = state.src.find(closing, state.pos + 2, state.pos + 2000)
    if end < 0 or end + 2 > state.posMax or not state.src[state.pos + 2 : end].strip():
        return False
    if not silent:
        token = state.push("math_inline", "math", 0)
        token.content = state.src[state.pos + 2 : end].strip()
    state.pos = end + 2
    return True
