"""Formulas: LaTeX typeset as SVG by ziamath, on a thread of its own, and drawn as images.

Typesetting takes 2-50 ms of Python, the first formula 300 ms more. What cannot be typeset has no
`Formula`, and its source is shown.
"""

import re
import threading
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any

from markdown_it.token import Token
from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetrics, QGuiApplication, QImage, QPainter, QTextImageFormat
from PySide6.QtSvg import QSvgRenderer

from app.domain.text import clean

MAX_CHARS = 2000
_MAX_COST = 4000  # 1 s
_MAX_EM = 200.0
_MAX_KEPT_BYTES = 16_000_000
_MAX_QUEUED = 2000
_UNITS_PER_EM = 20
_SCALE = 1.08  # so that its letters are as high as those of common interface fonts
_TOKEN = re.compile(r"\\(?:[A-Za-z]+|.)|[^\s\\]", re.DOTALL)
_DEPTHS = {"{": 1, "}": -1, "\\left": 1, "\\right": -1, "\\begin": 1, "\\end": -1}
_CASES = re.compile(r"\\(begin|end)\s*\{d?cases\*?\}")  # cost four times as much, not twice
_DROPPED = re.compile(
    r"\\(?:label|require)\s*\{[^{}]*\}|\\(?:notag|nonumber|allowbreak)(?![A-Za-z])"
)
_TAG = re.compile(r"\\tag\*?\s*\{([^{}]*)\}")
_ENVIRONMENT = re.compile(r"\\(begin|end)\s*\{[^{}]*\}(\s*[_^])?")
_MARKUP = re.compile(r"<[^>]*>|&#x[0-9A-Fa-f]+;")
_ENTITY = re.compile(r"&#x([0-9A-Fa-f]+);")
_VIEW_BOX = re.compile(
    r'width="[^"]*" height="[^"]*" viewBox="([-.\d]+) ([-.\d]+) ([-.\d]+) ([-.\d]+)"'
)
_INVISIBLE = re.compile("[\\s\u2061-\u2064\u200b]")

Key = tuple[str, bool]
"""The LaTeX source, and whether it is displayed rather than in a line."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A typeset formula: SVG whose ink is black, and its extent in em.

    `descent` is below the baseline, and never negative.
    """

    svg: str
    width: float
    ascent: float
    descent: float


def formulas_of(tokens: Iterable[Token]) -> list[Key]:
    """Return the formulas in block tokens, inline ones included, in order."""
    found: list[Key] = []
    for token in tokens:
        if token.type == "math_block":
            found.append((token.content, True))
        elif token.children:
            found += formulas_of(token.children)
        elif token.type.startswith("math_inline"):
            found.append(key_of(token))
    return found


def key_of(token: Token) -> Key:
    return token.content, token.type == "math_inline_double"


class Typesetter:
    """Typesets formulas on a thread that lives while there is work, and keeps those used last."""

    def __init__(self) -> None:
        self._known: OrderedDict[Key, Formula | None] = OrderedDict()
        self._kept_bytes = 0
        self._queue: OrderedDict[Key, None] = OrderedDict()
        self._changed = threading.Condition()
        self._is_running = False

    def prepare(self, keys: Sequence[Key], wait_s: float) -> bool:
        """Return whether all are typeset, or never will be; wait so long for that at most."""
        until = perf_counter() + wait_s
        with self._changed:
            while missing := [key for key in keys if key not in self._known]:
                self._queue.update(dict.fromkeys(missing))
                while len(self._queue) > _MAX_QUEUED:
                    self._queue.popitem(last=False)
                if not self._is_running:
                    self._is_running = True
                    threading.Thread(target=self._run, name="formulas", daemon=True).start()
                if not self._changed.wait(max(0.0, until - perf_counter())):
                    return False
        return True

    def cancel(self) -> None:
        """Drop what is not typeset yet."""
        with self._changed:
            self._queue.clear()

    def find(self, key: Key) -> Formula | None:
        with self._changed:
            if key not in self._known:
                return None
            self._known.move_to_end(key)
            return self._known[key]

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._queue:
                    self._is_running = False
                    return
                key, _ = self._queue.popitem(last=False)
            formula = typeset(*key)
            with self._changed:
                self._known[key] = formula
                self._kept_bytes += _bytes_of(key, formula)
                while self._kept_bytes > _MAX_KEPT_BYTES and len(self._known) > 1:
                    self._kept_bytes -= _bytes_of(*self._known.popitem(last=False))
                self._changed.notify_all()


@cache
def typesetter() -> Typesetter:
    return Typesetter()


def preload() -> None:
    """Load the library and its font before the first formula; blocking, on any thread."""
    typeset("x", False)


def _bytes_of(key: Key, formula: Formula | None) -> int:
    return 200 + 4 * len(key[0]) + (len(formula.svg) if formula is not None else 0)


def typeset(source: str, is_display: bool) -> Formula | None:
    """Return a formula; None if it is wrong, too long, or has a command or letter that is unknown."""
    if len(source) > MAX_CHARS:
        return None
    source = _with_groups(source)
    if not _is_bounded(source):
        return None
    try:
        return _typeset(clean(source), is_display)
    except Exception:  # noqa: BLE001 - whatever the two libraries raise at input that they do not understand
        return None


def _is_bounded(source: str) -> bool:
    """Return whether typesetting takes at most a second.

    ziamath lays out what is inside a group twice, and so on inward: a token costs 0.25 ms times two
    to the power of its depth.
    """
    if not source.strip():
        return False
    depth = cost = 0
    for token in _TOKEN.findall(_CASES.sub(r"\\\1{\\\1", source)):
        depth += _DEPTHS.get(token, 0)
        cost += 1 << min(30, max(0, depth))
    return cost <= _MAX_COST


def _with_groups(source: str) -> str:
    """Return a formula with braces around matrices that have a sub- or superscript.

    Without them the library reads the script as part of the environment.
    """
    begins: list[int] = []
    braces: list[tuple[int, str]] = []
    for found in _ENVIRONMENT.finditer(source):
        if found[1] == "begin":
            begins.append(found.start())
        elif begins:
            begin = begins.pop()
            if found[2]:
                braces += [(begin, "{"), (found.start(2), "}")]
    for place, brace in sorted(braces, reverse=True):
        source = source[:place] + brace + source[place:]
    return source


def _typeset(source: str, is_display: bool) -> Formula | None:
    ziamath = _ziamath()
    source = _TAG.sub(r"\\qquad\\text{(\1)}", _DROPPED.sub("", source))
    mathml = ziamath.tex.tex2mml(source, inline=not is_display)
    if "\\" in _MARKUP.sub("", mathml):  # an unknown command is passed on as text
        return None
    made = ziamath.Math(mathml, size=_UNITS_PER_EM, margin=0)
    if any(not made.font.glyphindex(letter) for letter in _letters(mathml)):
        return None
    svg = made.svg()
    box = _VIEW_BOX.search(svg)
    if box is None:
        return None
    left, top, width, height = map(float, box.groups())
    ascent, descent = max(0.0, -top), max(0.0, top + height)
    most = _MAX_EM * _UNITS_PER_EM
    if not (0 < width <= most and 0 < ascent + descent <= most):
        return None
    frame = f'viewBox="{left} {-ascent} {width} {ascent + descent}"'
    svg = svg.replace(box[0], frame, 1)
    em = _UNITS_PER_EM / _SCALE
    return Formula(svg, width / em, ascent / em, descent / em)


@cache
def _ziamath() -> Any:
    """Import the library: 0.2 s."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in its source
        import ziamath
        import ziamath.tex
        from ziamath.config import config

    config.svg2 = False  # Qt draws SVG Tiny
    config.precision = 2
    return ziamath


def _letters(mathml: str) -> set[str]:
    """Return the visible characters of MathML."""
    text = re.sub(r"<[^>]*>", "", mathml)
    text = _ENTITY.sub(lambda match: chr(int(match[1], 16)), text)
    return set(_INVISIBLE.sub("", text))


# drawing


def image_format(formula: Formula, name: str, em_px: float, font: QFont) -> QTextImageFormat:
    """Return the format of an inline image that stands on the baseline of its line.

    Qt moves a `AlignBaseline` image down by the descent of its format's font, so that font is one
    whose descent is the formula's.
    """
    ascent, descent = _rounded(formula, em_px)
    made = QTextImageFormat()
    made.setName(name)
    made.setWidth(max(1, round(formula.width * em_px)))
    made.setHeight(ascent + descent)
    made.setFont(_font_with_descent(font.family(), descent))
    made.setVerticalAlignment(QTextImageFormat.VerticalAlignment.AlignBaseline)
    return made


def draw(formula: Formula, em_px: float, color: str) -> QImage:
    """Return the formula's image, at the resolution of the finest screen."""
    ascent, descent = _rounded(formula, em_px)
    ratio = QGuiApplication.instance().devicePixelRatio()  # type: ignore[union-attr]
    width, height = max(1, round(formula.width * em_px)), max(1, ascent + descent)
    image = QImage(
        round(width * ratio), round(height * ratio), QImage.Format.Format_ARGB32_Premultiplied
    )
    image.setDevicePixelRatio(ratio)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    svg = formula.svg.replace('fill="black"', f'fill="{color}"').replace("black", color)
    area = QRectF(
        0, ascent - formula.ascent * em_px, width, (formula.ascent + formula.descent) * em_px
    )
    QSvgRenderer(QByteArray(svg.encode())).render(painter, area)
    painter.end()
    return image


def _rounded(formula: Formula, em_px: float) -> tuple[int, int]:
    """Return ascent and descent in whole pixels."""
    return _ceil(formula.ascent * em_px), _ceil(formula.descent * em_px)


def _ceil(value: float) -> int:
    return int(value) + (value > int(value))


@cache
def _font_with_descent(family: str, descent: int) -> QFont:
    """Return a font whose descent in pixels is this or, if there is none, just above."""
    font, size = QFont(family), 1
    font.setPixelSize(size)
    while QFontMetrics(font).descent() < descent:
        size += 1
        font.setPixelSize(size)
    return font
