"""What each kind of text looks like: character and block formats made from a theme.

Which text is of which kind is the writer's business; what is painted beneath is `decorations`'.
"""

from dataclasses import dataclass
from functools import cache

from PySide6.QtCore import Qt
from PySide6.QtGui import QBrush, QColor, QFont, QTextBlockFormat, QTextCharFormat, QTextFormat

from ui.rendering.properties import Property
from ui.theme import Theme

_LINE_HEIGHT_PERCENT = 142.0
_CODE_LINE_HEIGHT_PERCENT = 132.0
_HEADING_SCALES = (1.5, 1.28, 1.12, 1.0, 1.0, 0.95)
_PROPORTIONAL = QTextBlockFormat.LineHeightTypes.ProportionalHeight.value


@dataclass(frozen=True, slots=True)
class Style:
    """The kind of a run of characters; `heading` is 1-6, or 0; `link` a target, or empty."""

    bold: bool = False
    italic: bool = False
    struck: bool = False
    code: bool = False
    muted: bool = False
    raised: bool = False
    upright_math: bool = False
    italic_math: bool = False
    small: bool = False
    heading: int = 0
    link: str = ""


class Formats:
    """Formats of one theme, made once and shared by all documents drawn with it."""

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self._chars: dict[Style, QTextCharFormat] = {}
        self._syntax: dict[str, QTextCharFormat] = {}

    def char(self, style: Style) -> QTextCharFormat:
        """Return the format of `style`; linked ones carry their true target as anchor."""
        if (known := self._chars.get(style)) is not None:
            return known
        made = self._make(style)
        if not style.link:
            self._chars[style] = made
        return made

    def code_char(self) -> QTextCharFormat:
        """Return the format of a code block's words before colours."""
        return self.syntax("")

    def syntax(self, role: str) -> QTextCharFormat:
        """Return the format of a code word; `role` is a `syntax_` colour without that prefix."""
        if (known := self._syntax.get(role)) is not None:
            return known
        made = QTextCharFormat()
        _set_font(made, self.theme.mono_font())
        colours = self.theme.colours
        colour = getattr(colours, f"syntax_{role}") if role else colours.text
        made.setForeground(QBrush(QColor(colour)))
        self._syntax[role] = made
        return made

    def block(self, left_px: float, top_px: float, quotes: str = "") -> QTextBlockFormat:
        """Return the format of a paragraph that begins `top_px` below what stands before it."""
        made = QTextBlockFormat()
        made.setLeftMargin(round(left_px))
        made.setTopMargin(round(top_px))
        made.setLineHeight(_LINE_HEIGHT_PERCENT, _PROPORTIONAL)
        if quotes:
            made.setProperty(Property.QUOTES, quotes)
        return made

    def code_head(
        self, number: int, left_px: float, top_px: float, quotes: str
    ) -> QTextBlockFormat:
        """Return the format of the line above code, where its language stands."""
        made = self.block(left_px + self.code_padding, top_px, quotes)
        made.setLineHeight(self.code_header, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        made.setBottomMargin(round(self.theme.em(0.35)))
        made.setProperty(Property.CODE_HEAD, number)
        return made

    def code_block(self, number: int, left_px: float, quotes: str = "") -> QTextBlockFormat:
        """Return the format of a line in the code block `number`."""
        made = self.block(left_px + self.code_padding, 0, quotes)
        made.setRightMargin(round(self.code_padding))
        made.setLineHeight(_CODE_LINE_HEIGHT_PERCENT, _PROPORTIONAL)
        made.setProperty(Property.CODE, number)
        return made

    @property
    def code_padding(self) -> float:
        """Space between a code block's edge and its words, in pixels."""
        return self.theme.em(0.85)

    @property
    def code_header(self) -> float:
        """Height of the strip above code that holds language and Copy, in pixels."""
        return self.theme.em(1.75)

    def _make(self, style: Style) -> QTextCharFormat:
        theme, colours = self.theme, self.theme.colours
        made = QTextCharFormat()
        if style.code:
            _set_font(made, theme.mono_font())
            made.setProperty(Property.INLINE_CODE, True)
        elif style.upright_math or style.italic_math:
            _set_font(made, theme.math_font())
        if style.heading:
            size = theme.em(_HEADING_SCALES[style.heading - 1]) * (0.9 if style.code else 1)
            made.setProperty(QTextFormat.Property.FontPixelSize, round(size))
        elif style.small:
            made.setProperty(QTextFormat.Property.FontPixelSize, round(theme.em(0.88)))
        if style.bold or style.heading:
            made.setFontWeight(QFont.Weight.DemiBold)
        if style.italic or style.italic_math:
            made.setFontItalic(True)
        made.setFontStrikeOut(style.struck)
        if style.raised:
            made.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignSuperScript)
        made.setForeground(QBrush(QColor(colours.muted if style.muted else colours.text)))
        if style.link:
            made.setAnchor(True)
            made.setAnchorHref(style.link)
            made.setForeground(QBrush(QColor(colours.accent)))
            made.setUnderlineStyle(QTextCharFormat.UnderlineStyle.SingleUnderline)
            made.setUnderlineColor(_faint(colours.accent))
        return made


@cache
def formats_of(theme: Theme) -> Formats:
    """Return the formats of `theme`; themes are few, so they are all kept."""
    return Formats(theme)


def alignment(style_attribute: str) -> Qt.AlignmentFlag:
    """Return what markdown-it's `text-align:...` of a table cell means."""
    if style_attribute.endswith("right"):
        return Qt.AlignmentFlag.AlignRight
    if style_attribute.endswith("center"):
        return Qt.AlignmentFlag.AlignHCenter
    return Qt.AlignmentFlag.AlignLeft


def _set_font(made: QTextCharFormat, font: QFont) -> None:
    made.setFont(
        font, QTextCharFormat.FontPropertiesInheritanceBehavior.FontPropertiesSpecifiedOnly
    )


def _faint(colour: str) -> QColor:
    faint = QColor(colour)
    faint.setAlphaF(0.45)
    return faint
