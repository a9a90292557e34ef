"""The HTML that is rendered: a few tags that models write; all other HTML stays text.

In a line `br sub sup kbd u mark`, as blocks `details` with its `summary`. Attributes are dropped, but
for `open`. A tag that is never closed is text, unless the text is still arriving.
"""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

from app.domain.translation import tr

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
