"""Inline tokens to runs of characters: emphasis, code, links, pictures, mathematics, bare addresses.

Which block they stand in is the writer's business.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from html import escape

from markdown_it.token import Token
from PySide6.QtGui import QTextCharFormat

from app.domain.text import clean
from ui.rendering.formats import Formats, Style
from ui.rendering.properties import Property
from ui.rendering.tex import tex_to_runs

LINE_BREAK = "\u2028"
_ADDRESS = re.compile(r"\bhttps?://[^\s<>\"'`\u0000-\u001f]{1,2000}")
_TRAILING = ".,;:!?*_~'\""
_UNDRAWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffc\u2028\u2029]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_MAX_TARGET_SHOWN = 120
_TICKS = re.compile("`+")

Emit = Callable[[str, QTextCharFormat], None]
"""Takes characters without line ends (`LINE_BREAK` apart) and their format."""


def drawable(text: str) -> str:
    """Return `text` with nothing in it that a document would take for structure or hide."""
    text = clean(text)
    if _UNDRAWABLE.search(text):
        text = _UNDRAWABLE.sub(_shown, text)
    return text


def exposed(target: str) -> str:
    """Return a link's target as it may be shown: one line, directional controls by their codes."""
    text = _BIDI.sub(lambda match: f"[U+{ord(match[0]):04X}]", drawable(target))
    text = " ".join(text.split())
    return text if len(text) <= _MAX_TARGET_SHOWN else text[: _MAX_TARGET_SHOWN - 1] + "…"


def tip_of(text: str) -> str:
    """Return `text` for a tool tip, where Qt would take it for rich text if it looked like it."""
    return f"<qt>{escape(drawable(text))}</qt>"


def _shown(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return " " if code in (0x2028, 0x2029) else "\ufffd"


class InlineWriter:
    """Emits runs of one text after another.

    `draw_picture` draws the attachment a target names and says whether there is one.

    Attributes:
        task: Whether the last text began with a task's box, and was it ticked; None without box.
    """

    def __init__(
        self,
        formats: Formats,
        footnotes: Mapping[str, int],
        draw_picture: Callable[[str], bool],
    ) -> None:
        self._formats = formats
        self._draw_picture = draw_picture
        self.footnotes = footnotes
        self.task: bool | None = None
        self._after_box = False

    def write(self, tokens: Iterable[Token], style: Style, emit: Emit) -> None:
        """Emit `tokens` from first to last, beginning with `style`."""
        self.task, self._after_box = None, False
        styles = [style]
        for token in tokens:
            if token.nesting < 0:
                if len(styles) > 1:
                    styles.pop()
            elif token.nesting > 0:
                styles.append(self._opened(token, styles[-1]))
            else:
                self._leaf(token, styles[-1], emit)

    def write_plain(self, text: str, style: Style, emit: Emit) -> None:
        """Emit a person's line: code between backticks, addresses, else nothing special."""
        for part, is_code in _code_and_text(text):
            if is_code:
                emit(drawable(part), self._formats.char(replace(style, code=True)))
            else:
                self._text(part, style, emit)

    def math(self, source: str, style: Style, emit: Emit, row: int | None = None) -> int:
        """Emit mathematics in one line, or only its row number `row`; return the number of rows."""
        rows = tex_to_runs(source)
        shown = rows if row is None else rows[row : row + 1]
        for number, runs in enumerate(shown):
            if number:
                emit("; ", self._formats.char(style))
            for run in runs:
                kind = replace(style, italic_math=run.italic, upright_math=not run.italic)
                format_ = QTextCharFormat(self._formats.char(kind))
                format_.setProperty(Property.TEX, source)
                format_.setToolTip(tip_of(source[:1000]))
                emit(drawable(run.text), format_)
        return len(rows)

    def _opened(self, token: Token, style: Style) -> Style:
        if token.type == "strong_open":
            return replace(style, bold=True)
        if token.type == "em_open":
            return replace(style, italic=True)
        if token.type == "s_open":
            return replace(style, struck=True)
        if token.type == "link_open":
            return replace(style, link=str(token.attrs.get("href", "")))
        return style

    def _leaf(self, token: Token, style: Style, emit: Emit) -> None:
        if token.type == "text":
            text = token.content.lstrip() if self._after_box else token.content
            self._after_box = False
            self._text(text, style, emit)
        elif token.type == "code_inline":
            emit(drawable(token.content), self._formats.char(replace(style, code=True)))
        elif token.type == "softbreak":
            emit(" ", self._formats.char(style))
        elif token.type == "hardbreak":
            emit(LINE_BREAK, self._formats.char(style))
        elif token.type == "image":
            self._image(token, style, emit)
        elif token.type.startswith("math_inline"):
            self.math(token.content, style, emit)
        elif token.type == "footnote_ref":
            self._footnote(token, style, emit)
        elif token.type == "html_inline":  # the box that the task list plugin puts first
            self.task = "checked=" in token.content
            self._after_box = True
        else:
            self._text(token.content, style, emit)

    def _text(self, text: str, style: Style, emit: Emit) -> None:
        if style.link or "://" not in text:
            if text:
                emit(drawable(text), self._formats.char(style))
            return
        at = 0
        for match in _ADDRESS.finditer(text):
            address = _without_trailing(match[0])
            self._plain(text[at : match.start()], style, emit)
            self._plain(address, replace(style, link=address), emit)
            at = match.start() + len(address)
        self._plain(text[at:], style, emit)

    def _plain(self, text: str, style: Style, emit: Emit) -> None:
        if text:
            emit(drawable(text), self._formats.char(style))

    def _image(self, token: Token, style: Style, emit: Emit) -> None:
        """Draw an attachment; else emit a label and the target, for pictures are never fetched."""
        target = str(token.attrs.get("src", ""))
        if self._draw_picture(target):
            return
        label = " ".join(drawable(_plain_text(token)).split()) or "picture"
        kind = replace(style, muted=True, link=style.link or target)
        format_ = QTextCharFormat(self._formats.char(kind))
        format_.setProperty(Property.IMAGE, target)
        emit(f"[picture: {label[:300]} — {exposed(target)}]", format_)

    def _footnote(self, token: Token, style: Style, emit: Emit) -> None:
        number = self.footnotes.get(":" + str(token.meta.get("label", "")), 0)
        emit(f"{number}", self._formats.char(replace(style, raised=True, link=f"#{number}")))


def _code_and_text(line: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a line and whether each is code: what stands between equal backticks."""
    ticks = list(_TICKS.finditer(line)) if "`" in line else []
    ends: dict[int, list[int]] = {}
    for number, run in enumerate(ticks):
        ends.setdefault(len(run[0]), []).append(number)
    at = number = 0
    while number < len(ticks):
        opening = ticks[number]
        same = ends[len(opening[0])]
        after = bisect_right(same, number)
        if after < len(same):
            closing = ticks[same[after]]
            yield line[at : opening.start()], False
            yield line[opening.end() : closing.start()], True
            at, number = closing.end(), same[after]
        number += 1
    yield line[at:], False


def _without_trailing(address: str) -> str:
    """Drop what belongs to the sentence: final stops, and a bracket that was not opened inside."""
    while address and (address[-1] in _TRAILING or _closes_outside(address)):
        address = address[:-1]
    return address


def _closes_outside(address: str) -> bool:
    opening = {")": "(", "]": "[", "}": "{"}.get(address[-1])
    return opening is not None and address.count(address[-1]) > address.count(opening)


def _plain_text(token: Token) -> str:
    """Return the words of a picture's description without its markup."""
    parts: list[str] = []
    waiting = list(token.children or [])[:200]
    while waiting:
        child = waiting.pop(0)
        if child.children:
            waiting = list(child.children)[:200] + waiting
        elif child.content:
            parts.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
    return "".join(parts)
