"""Parsing of Markdown, and of plain user text, to markdown-it tokens.

`definitions` finds those of links and footnotes ahead of parsing.

Of HTML a few tags are rendered that models write; all other HTML stays text. In a line `br sub sup kbd u mark`, as
blocks `details` with its `summary`. Attributes are dropped, but for `open`. A tag that is never closed is text, unless
the text is still arriving.
"""

import re
from collections.abc import Callable, Iterator
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

from app.domain.translation import tr
from ui.rendering.definitions import Definitions

OPEN_ENV = "is_open"
DEFAULT_SUMMARY = tr("Details")
_TAG = re.compile(r"<(/?)(br|sub|sup|kbd|u|mark)(?:\s[^<>]{0,200})?/?>", re.IGNORECASE)
_DETAILS = re.compile(r"<details(?:\s[^<>]{0,200})?>[ \t]*", re.IGNORECASE)
_SUMMARY = re.compile(
    r"[\s>]*<summary(?:\s[^<>]{0,200})?>(.{0,500}?)</summary>[ \t]*", re.IGNORECASE | re.DOTALL
)
_NESTING = re.compile(r"<(/?)details(?:\s[^<>]{0,200})?>", re.IGNORECASE)
_END = re.compile(r"\s{0,3}</details>\s*$", re.IGNORECASE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CODE_SPAN = re.compile(r"`[^`]*`")


def html_plugin(markdown: MarkdownIt) -> None:
    """Render the safe tags."""
    markdown.inline.ruler.before("autolink", "safe_tag", _inline_tag)
    markdown.block.ruler.before(
        "fence", "details", _details, {"alt": ["paragraph", "reference", "blockquote"]}
    )


def _inline_tag(state: StateInline, silent: bool) -> bool:
    """Parse a tag whose pair is in the same text."""
    found = _TAG.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    name, closes = found[2].lower(), bool(found[1])
    opened: list[str] = state.env.setdefault("opened_tags", [])
    if name == "br":
        token = None if silent else state.push("hardbreak", "br", 0)
    elif closes:
        if name not in opened:
            return False
        token = None if silent else state.push(f"{name}_close", name, -1)
    elif not (state.env.get(OPEN_ENV) or f"</{name}>" in state.src[found.end() :].lower()):
        return False
    else:
        token = None if silent else state.push(f"{name}_open", name, 1)
    if token is not None and name != "br":
        opened.remove(name) if closes else opened.append(name)
    state.pos = found.end()
    return True


def _details(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse `<details>` up to its end tag, or to the end; drop an end tag without a beginning."""
    if state.is_code_block(start):
        return False
    begin = state.bMarks[start] + state.tShift[start]
    if _END.match(state.src, begin, state.eMarks[start]):
        state.line = start + 1
        return True
    opening = _DETAILS.match(state.src, begin, state.eMarks[start])
    if opening is None:
        return False
    if silent:
        return True
    last, closes_at = _end_of(state, start, end)
    stop = closes_at if closes_at >= 0 else state.eMarks[last]
    summary = _SUMMARY.match(state.src, opening.end(), stop)
    token = state.push("details_open", "details", 1)
    token.map = [start, last + 1]
    token.meta = {"open": " open" in opening[0].lower()}
    title = state.push("inline", "", 0)
    title.content = " ".join(summary[1].split()) if summary is not None else DEFAULT_SUMMARY
    title.map, title.children = token.map, []
    state.push("summary_close", "summary", 0)
    _parse_inside(state, start, last, summary.end() if summary else opening.end(), stop)
    state.push("details_close", "details", -1)
    state.line = last + 1
    return True


def _end_of(state: StateBlock, start: int, end: int) -> tuple[int, int]:
    """Return the last line of the details that begin at `start`, and where their end tag is or -1."""
    depth, fence = 0, ""
    for line in range(start, end):
        begin = state.bMarks[line] + min(state.tShift[line], state.blkIndent)
        text = state.src[begin : state.eMarks[line]]
        marks = _FENCE.match(text)
        if marks is not None and (not fence or marks[1].startswith(fence)):
            fence = "" if fence else marks[1]
        if fence:
            continue
        for tag, at in _tags(text):
            depth += -1 if tag else 1
            if depth == 0:
                return line, begin + at
    return end - 1, -1


def _tags(line: str) -> Iterator[tuple[bool, int]]:
    """Yield whether each tag of details ends them, and where it is; those in code are none."""
    code = [match.span() for match in _CODE_SPAN.finditer(line)]
    for match in _NESTING.finditer(line):
        if not any(first <= match.start() < last for first, last in code):
            yield bool(match[1]), match.start()


def _parse_inside(state: StateBlock, start: int, last: int, begin: int, stop: int) -> None:
    """Parse the blocks between two places in the source, on the lines `start` to `last`."""
    first = start
    while first < last and state.eMarks[first] < begin:
        first += 1
    kept = state.bMarks[first], state.tShift[first], state.sCount[first], state.eMarks[last]
    line_max, parent = state.lineMax, state.parentType
    if begin > state.bMarks[first]:
        rest = state.src[begin : state.eMarks[first]]
        state.bMarks[first] = begin
        state.tShift[first] = len(rest) - len(rest.lstrip())
        state.sCount[first] = 0
    state.eMarks[last] = max(stop, state.bMarks[last])
    state.lineMax, state.parentType = last + 1, "details"
    state.md.block.tokenize(state, first, last + 1)
    state.lineMax, state.parentType = line_max, parent
    state.bMarks[first], state.tShift[first], state.sCount[first], state.eMarks[last] = kept


MAX_NESTING = 16
_MAX_MARKUP = 500
_MARKUP = re.compile(r"[*_~`$<\[\\!&]")
_MAX_COLUMNS = 60
_BLOCK_RULES = 2  # of the core chain: "normalize" and "block"; the rest parses inline markup
_MATH_FENCES = {"$$": "$$", "\\[": "\\]"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """A markup language.

    Attributes:
        blocks: Returns the blocks of a text; the `map` of top-level ones counts lines from 0.
        inline: Parses the inline markup of blocks, in place, and returns them; the slower part. The
            last argument says that the text goes on.
        has_definitions: Whether links and footnotes may be defined apart from their references.
    """

    blocks: Callable[[str], list[Token]]
    inline: Callable[[list[Token], Definitions, bool], list[Token]]
    has_definitions: bool


def markdown_blocks(text: str) -> list[Token]:
    """Return the blocks of CommonMark with tables, tasks, footnotes and formulas."""
    return _blocks(_markdown(), text)


def _blocks(markdown: MarkdownIt, text: str) -> list[Token]:
    """Return the blocks of a text, without parsing its inline markup."""
    state = StateCore(text, markdown, {})
    for rule in markdown.core.ruler.getRules("")[:_BLOCK_RULES]:
        rule(state)
    return state.tokens


def markdown_inline(
    tokens: list[Token], definitions: Definitions, is_open: bool = False
) -> list[Token]:
    """Parse emphasis, links, code, footnotes and formulas in the text of `tokens`.

    References are resolved by `definitions` alone, so that a block's tokens do not depend on what
    else was parsed with it. A block with over 500 markup characters is not prose, and parsing it
    would take quadratic time: it stays as written.
    """
    markdown = _markdown()
    for token in tokens:
        if token.type == "inline" and (token.meta or _is_not_prose(token.content)):
            token.type = "literal"
    footnotes = {"refs": dict.fromkeys(definitions.footnotes, -1), "list": {}}
    env = {"references": definitions.links, "footnotes": footnotes, OPEN_ENV: is_open}
    state = StateCore("", markdown, env)
    state.tokens = tokens
    for rule in markdown.core.ruler.getRules("")[_BLOCK_RULES:]:
        rule(state)
    return tokens


def _is_not_prose(content: str) -> bool:
    return len(content) > _MAX_MARKUP and len(_MARKUP.findall(content)) > _MAX_MARKUP


def plain_blocks(text: str) -> list[Token]:
    """Return the blocks of user text: fenced code, and everything else as `plain` tokens."""
    tokens: list[Token] = []
    lines = text.split("\n")
    for token in _blocks(_plain(), text):
        if token.type in {"paragraph_open", "code_block"} and token.map is not None:
            content = "\n".join(lines[token.map[0] : token.map[1]]).rstrip("\n")
            tokens.append(Token("plain", "", 0, content=content, map=token.map))
        elif token.type == "fence":
            tokens.append(token)
    return tokens


def plain_inline(
    tokens: list[Token], _definitions: Definitions, _is_open: bool = False
) -> list[Token]:
    """Parse code between backticks in the lines of user text, all of which are kept."""
    for token in tokens:
        if token.type == "plain":
            token.children = []
            for number, line in enumerate(token.content.split("\n")):
                if number:
                    token.children.append(Token("hardbreak", "br", 0))
                if "`" not in line:
                    token.children.append(Token("text", "", 0, content=line))
                    continue
                for inline in _plain_line().parseInline(line):
                    token.children += inline.children or []
    return tokens


MARKDOWN = Dialect(markdown_blocks, markdown_inline, has_definitions=True)
PLAIN = Dialect(plain_blocks, plain_inline, has_definitions=False)


class _BoundedBlocks(ParserBlock):
    """The block parser, except that content nested too deep becomes text instead of vanishing."""

    def tokenize(self, state: StateBlock, startLine: int, endLine: int) -> None:  # noqa: N803
        """Parse the lines; beyond the depth limit they are one paragraph of text."""
        if state.level < MAX_NESTING:
            super().tokenize(state, startLine, endLine)
            return
        content = state.getLines(startLine, endLine, state.blkIndent, False)
        _push_paragraph(state, content, [startLine, endLine]).meta = {"literal": True}
        state.line = endLine


class _Markdown(MarkdownIt):
    """The parser, except that link targets stay as written: `links` checks them."""

    def normalizeLink(self, url: str) -> str:
        """Return `url` unchanged."""
        return url

    def normalizeLinkText(self, link: str) -> str:
        """Return `link` unchanged."""
        return link


@cache
def _markdown() -> MarkdownIt:
    """Return the parser, which is stateless between texts."""
    options = {"html": False, "maxNesting": MAX_NESTING + 4, "strikethrough_single_tilde": True}
    markdown = _Markdown("commonmark", options)
    markdown.block = _BoundedBlocks()
    markdown.enable(["table", "strikethrough"])
    markdown.disable(["html_block", "html_inline"])
    footnote_plugin(markdown, inline=False, move_to_end=False)
    tasklists_plugin(markdown)
    html_plugin(markdown)
    dollarmath_plugin(
        markdown, allow_space=False, allow_digits=False, allow_labels=False, double_inline=True
    )
    markdown.block.ruler.disable("math_block")
    markdown.block.ruler.before(
        "fence", "display_math", _display_math, {"alt": ["paragraph", "reference"]}
    )
    markdown.inline.ruler.before("escape", "bracket_math", _bracket_math)
    markdown.block.ruler.at("table", _narrow_table, {"alt": ["paragraph", "reference"]})
    return markdown


@cache
def _plain() -> MarkdownIt:
    """Return the parser of user text's blocks; an indented fence is text, as in Markdown."""
    return MarkdownIt("zero").enable(["code", "fence"])


@cache
def _plain_line() -> MarkdownIt:
    """Return the parser of a line of user text."""
    return MarkdownIt("zero").enable("backticks")


def _narrow_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a table, unless it has too many columns to be readable."""
    if state.src.count("|", state.bMarks[start], state.eMarks[start]) > _MAX_COLUMNS:
        return False
    return table(state, start, end, silent)


def _display_math(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    r"""Parse `$$ ... $$` or `\[ ... \]` on lines of their own, up to the first blank line at most.

    Unclosed it is a paragraph of the same lines, so that a complete block does not depend on what
    follows.
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


def _push_paragraph(state: StateBlock, content: str, lines: list[int]) -> Token:
    state.push("paragraph_open", "p", 1).map = lines
    token = state.push("inline", "", 0)
    token.content, token.map, token.children = content, lines, []
    state.push("paragraph_close", "p", -1)
    return token


def _bracket_math(state: StateInline, silent: bool) -> bool:
    r"""Parse `\( ... \)` and `\[ ... \]` within a line as formulas."""
    opening = state.src[state.pos : state.pos + 2]
    if opening not in ("\\(", "\\["):
        return False
    closing = "\\)" if opening == "\\(" else "\\]"
    end = state.src.find(closing, state.pos + 2, state.pos + 2000)
    if end < 0 or end + 2 > state.posMax or not state.src[state.pos + 2 : end].strip():
        return False
    if not silent:
        kind = "math_inline" if opening == "\\(" else "math_inline_double"
        token = state.push(kind, "math", 0)
        token.content = state.src[state.pos + 2 : end].strip()
    state.pos = end + 2
    return True
