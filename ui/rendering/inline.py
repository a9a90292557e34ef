"""Inline tokens to runs of characters: emphasis, code, links, images, formulas, bare addresses."""

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from markdown_it.token import Token
from PySide6.QtGui import QTextCharFormat

from app.domain.links import parse_document
from app.domain.text import clean
from app.domain.translation import tr
from ui.rendering.document import TranscriptDocument
from ui.rendering.formats import Formats, Property, Style
from ui.rendering.formulas import Key, key_of, typesetter

LINE_BREAK = "\u2028"
OBJECT = "\ufffc"
_ADDRESS = re.compile(r"\b(?:https?|commonplace)://[^\s<>\"'`\u0000-\u001f]{1,2000}")
_OPENING = {")": "(", "]": "[", "}": "{"}
_TRAILING = ".,;:!?*_~'\""
_UNDRAWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffc\u2028\u2029]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_MAX_TARGET_SHOWN = 120
_TIP_LINE = 90  # characters
_MARKUP: dict[str, dict[str, Any]] = {
    "strong_open": {"bold": True},
    "em_open": {"italic": True},
    "s_open": {"struck": True},
    "sub_open": {"lowered": True},
    "sup_open": {"raised": True},
    "u_open": {"underlined": True},
    "mark_open": {"marked": True},
    "kbd_open": {"code": True, "key": True},
}

Emit = Callable[[str, QTextCharFormat], None]
"""Receives characters without line ends, except `LINE_BREAK`, or an `OBJECT`, and their format."""


def sanitize(text: str) -> str:
    """Return `text` without characters that a document would hide or treat as structure."""
    text = clean(text)
    if _UNDRAWABLE.search(text):
        text = _UNDRAWABLE.sub(_shown, text)
    return text


def displayable_target(target: str) -> str:
    """Return a link's target for display: one short line, directional controls as their codes."""
    text = _BIDI.sub(lambda match: f"[U+{ord(match[0]):04X}]", sanitize(target))
    text = " ".join(text.split())
    return text if len(text) <= _MAX_TARGET_SHOWN else text[: _MAX_TARGET_SHOWN - 1] + "…"


def tooltip_text(text: str) -> str:
    """Return `text` in short lines for a tool tip; the style sheet makes it plain text."""
    lines = sanitize(text).splitlines()
    return "\n".join(textwrap.fill(each, _TIP_LINE, replace_whitespace=False) for each in lines)


def _shown(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return " " if code in (0x2028, 0x2029) else "\ufffd"


class InlineWriter:
    """Emits the runs of one text after another, for `document`.

    Attributes:
        task: Whether the last text was a task that is done; None if it was no task.
    """

    def __init__(
        self, formats: Formats, footnotes: Mapping[str, int], document: TranscriptDocument
    ) -> None:
        self._formats = formats
        self._document = document
        self.footnotes = footnotes
        self.task: bool | None = None
        self._after_box = False

    def write(self, tokens: Iterable[Token], style: Style, emit: Emit) -> None:
        """Emit `tokens`, beginning with `style`."""
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

    def formula(self, key: Key, style: Style, emit: Emit) -> bool:
        """Emit a formula or, if it is not typeset, its source; return whether it is typeset."""
        source, is_display = key
        mark = "$$" if is_display else "$"
        written = f"{mark}{source}{mark}"
        typeset = typesetter().find(key)
        if typeset is None:
            shown = sanitize(written).replace("\n", LINE_BREAK)
            emit(shown, self._formats.char(replace(style, code=True)))
            return False
        color = self._formats.char(style).foreground().color().name()
        format_ = self._document.formula_format(typeset, self._formats.em_px(style), color)
        format_.setProperty(Property.TEX, written)
        format_.setToolTip(tooltip_text(source[:1000]))
        if style.link:
            format_.setAnchor(True)
            format_.setAnchorHref(style.link)
        emit(OBJECT, format_)
        return True

    def _opened(self, token: Token, style: Style) -> Style:
        if token.type == "link_open":
            return replace(style, link=str(token.attrs.get("href", "")))
        return replace(style, **_MARKUP[token.type]) if token.type in _MARKUP else style

    def _leaf(self, token: Token, style: Style, emit: Emit) -> None:
        if token.type == "text":
            text = token.content.lstrip() if self._after_box else token.content
            self._after_box = False
            self._text(text, style, emit)
        elif token.type == "code_inline":
            emit(sanitize(token.content), self._formats.char(replace(style, code=True)))
        elif token.type == "softbreak":
            emit(" ", self._formats.char(style))
        elif token.type == "hardbreak":
            emit(LINE_BREAK, self._formats.char(style))
        elif token.type == "image":
            self._image(token, style, emit)
        elif token.type.startswith("math_inline"):
            self.formula(key_of(token), style, emit)
        elif token.type == "footnote_ref":
            self._footnote(token, style, emit)
        elif token.type == "html_inline":  # the checkbox that the task list plugin inserts
            self.task = "checked=" in token.content
            self._after_box = True
        else:
            self._text(token.content, style, emit)

    def _text(self, text: str, style: Style, emit: Emit) -> None:
        if style.link and (passage := parse_document(style.link)) is not None:
            text = text.removesuffix(f" · document {passage}")  # it is for `deletion.redaction`
        at = 0
        for match in _ADDRESS.finditer(text) if not style.link and "://" in text else ():
            address = _without_trailing(match[0])
            emit(sanitize(text[at : match.start()]), self._formats.char(style))
            emit(sanitize(address), self._formats.char(replace(style, link=address)))
            at = match.start() + len(address)
        emit(sanitize(text[at:]), self._formats.char(style))

    def _image(self, token: Token, style: Style, emit: Emit) -> None:
        """Emit an attached image; label and target of others, which are never fetched."""
        target = str(token.attrs.get("src", ""))
        label = " ".join(sanitize(_plain_text(token)).split()) or "image"
        if (image := self._document.image_format(target)) is not None:
            image.setProperty(Property.IMAGE, label[:300])
            image.setToolTip(tooltip_text(label[:300]))
            image.setAnchor(True)
            image.setAnchorHref(style.link or target)
            emit(OBJECT, image)
            return
        kind = replace(style, muted=True, link=style.link or target)
        format_ = QTextCharFormat(self._formats.char(kind))
        format_.setProperty(Property.IMAGE, target)
        emit(
            tr("[image: {label} — {displayable_target}]").format(
                label=label[:300], displayable_target=displayable_target(target)
            ),
            format_,
        )

    def _footnote(self, token: Token, style: Style, emit: Emit) -> None:
        number = self.footnotes.get(":" + str(token.meta.get("label", "")), 0)
        emit(f"{number}", self._formats.char(replace(style, raised=True, link=f"#{number}")))


def _without_trailing(address: str) -> str:
    """Drop final punctuation, and a closing bracket that is not opened inside the address."""
    while address:
        last = address[-1]
        opening = _OPENING.get(last)
        if last not in _TRAILING and (
            opening is None or address.count(last) <= address.count(opening)
        ):
            break
        address = address[:-1]
    return address


def _plain_text(token: Token) -> str:
    """Return an image's description without markup."""
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
