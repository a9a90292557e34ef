"""Character and block formats made from a theme, and the custom properties of documents."""

from dataclasses import dataclass
from enum import IntEnum
from functools import cache

from PySide6.QtCore import Qt
from PySide6.QtGui import QBrush, QColor, QFont, QTextBlockFormat, QTextCharFormat, QTextFormat

from ui.rendering.document import LINK
from ui.theme import Theme

_LINE_HEIGHT_PERCENT = 142.0
_CODE_LINE_HEIGHT_PERCENT = 132.0
_HEADING_SCALES = (1.5, 1.28, 1.12, 1.0, 1.0, 0.95)
_PROPORTIONAL = QTextBlockFormat.LineHeightTypes.ProportionalHeight.value

_FIRST = QTextFormat.Property.UserProperty.value + 1


class Property(IntEnum):
    """Keys for `QTextFormat.setProperty`.

    Of blocks:
        CODE: The number of a code block: its index in `Writer.code_blocks`.
        CODE_HEAD: The same, of the line above the code, with its language.
        QUOTES: The left edges of quote bars in pixels, separated by commas.
        MARKER: The bullet or number of a list item. TASK: Whether a task is done.
        RULE: A horizontal rule. FOOTNOTE: The number of the footnote that begins here.
        FOLD: The number of the `details` whose summary this is.
        PIECE: A continuation of the paragraph before, which was too long for one block.

    Of characters:
        INLINE_CODE: Code within a line. KEY: A key of the keyboard. TEX: The source of a formula, between its marks.
        IMAGE: The description of an image that is shown; the target of one that is not.
    """

    CODE = _FIRST
    QUOTES = _FIRST + 1
    MARKER = _FIRST + 2
    TASK = _FIRST + 3
    RULE = _FIRST + 4
    FOOTNOTE = _FIRST + 5
    PIECE = _FIRST + 6
    INLINE_CODE = _FIRST + 7
    TEX = _FIRST + 8
    IMAGE = _FIRST + 9
    CODE_HEAD = _FIRST + 10
    FOLD = _FIRST + 11
    KEY = _FIRST + 12


@dataclass(frozen=True, slots=True)
class Style:
    """The style of a run of characters; `heading` is 1-6, or 0; `link` a target, or "".

    A link that begins with `LINK` is the summary of a fold.
    """

    bold: bool = False
    italic: bool = False
    struck: bool = False
    code: bool = False
    muted: bool = False
    raised: bool = False
    lowered: bool = False
    underlined: bool = False
    marked: bool = False
    key: bool = False
    small: bool = False
    heading: int = 0
    link: str = ""


class Formats:
    """Formats of one theme, shared by all documents rendered with it."""

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self._chars: dict[Style, QTextCharFormat] = {}
        self._syntax: dict[str, QTextCharFormat] = {}

    def char(self, style: Style) -> QTextCharFormat:
        """Return the format of `style`; a link's anchor is its target as written."""
        if (known := self._chars.get(style)) is not None:
            return known
        made = self._make(style)
        if not style.link:
            self._chars[style] = made
        return made

    def syntax(self, role: str) -> QTextCharFormat:
        """Return the format of a token of code; `role` is a `syntax_` color without prefix, or ""."""
        if (known := self._syntax.get(role)) is not None:
            return known
        made = QTextCharFormat()
        _set_font(made, self.theme.mono_font())
        colors = self.theme.colors
        color = getattr(colors, f"syntax_{role}") if role else colors.text
        made.setForeground(QBrush(QColor(color)))
        self._syntax[role] = made
        return made

    def block(self, left_px: float, top_px: float, quotes: str = "") -> QTextBlockFormat:
        """Return the format of a paragraph with a space of `top_px` above it."""
        made = QTextBlockFormat()
        made.setLeftMargin(round(left_px))
        made.setTopMargin(round(top_px))
        made.setLineHeight(_LINE_HEIGHT_PERCENT, _PROPORTIONAL)
        if quotes:
            made.setProperty(Property.QUOTES, quotes)
        return made

    def formula_block(self, paragraph: QTextBlockFormat) -> QTextBlockFormat:
        """Return the format of a displayed formula in place of a paragraph's."""
        made = QTextBlockFormat(paragraph)
        made.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        made.setLineHeight(100.0, _PROPORTIONAL)
        made.setTopMargin(max(made.topMargin(), round(self.theme.em(0.95))))
        made.setBottomMargin(round(self.theme.em(0.95)))
        return made

    def em_px(self, style: Style) -> float:
        """Return the size of text in `style`, in pixels."""
        if style.heading:
            return self.theme.em(_HEADING_SCALES[style.heading - 1])
        return self.theme.em(0.88 if style.small else 1.0)

    def code_head(
        self, number: int, left_px: float, top_px: float, quotes: str, *, has_language: bool
    ) -> QTextBlockFormat:
        """Return the format of the line above code, with its language."""
        made = self.block(left_px + self.code_padding, top_px, quotes)
        height = self.code_head_height(has_language=has_language)
        made.setLineHeight(height, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        made.setBottomMargin(round(self.theme.em(0.35)))
        made.setProperty(Property.CODE_HEAD, number)
        return made

    def code_block(self, number: int, left_px: float, quotes: str = "") -> QTextBlockFormat:
        """Return the format of a line in the code block `number`."""
        made = self.block(left_px + self.code_padding, 0, quotes)
        made.setRightMargin(round(self.code_padding))
        made.setLineHeight(_CODE_LINE_HEIGHT_PERCENT, _PROPORTIONAL)
        made.setProperty(Property.CODE, number)
        made.setNonBreakableLines(True)
        made.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        return made

    @property
    def code_padding(self) -> float:
        """The space between a code block's edge and its text, in pixels."""
        return self.theme.em(0.85)

    @property
    def code_more(self) -> float:
        """The height of the button below code that is shown in part, in pixels."""
        return self.theme.em(2.0)

    @property
    def code_header(self) -> float:
        """The height of the line above code with language and buttons, in pixels."""
        return self.theme.em(1.75)

    def code_head_height(self, *, has_language: bool) -> float:
        """Return the height of what is above code, in pixels: little without a language."""
        return self.code_header if has_language else self.theme.em(0.4)

    def _make(self, style: Style) -> QTextCharFormat:
        theme, colors = self.theme, self.theme.colors
        made = QTextCharFormat()
        if style.code:
            _set_font(made, theme.mono_font())
            made.setProperty(Property.INLINE_CODE, True)
        if style.key:
            made.setProperty(Property.KEY, True)
            made.setFontLetterSpacingType(QFont.SpacingType.AbsoluteSpacing)
            made.setFontLetterSpacing(theme.em(0.12))  # after the last letter too
        if style.heading or style.small:
            size = self.em_px(style) * (0.9 if style.code else 1)
            made.setProperty(QTextFormat.Property.FontPixelSize, round(size))
        if style.bold or style.heading:
            made.setFontWeight(QFont.Weight.DemiBold)
        if style.italic:
            made.setFontItalic(True)
        made.setFontStrikeOut(style.struck)
        if style.raised:
            made.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignSuperScript)
        if style.lowered:
            made.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignSubScript)
        if style.underlined:
            made.setFontUnderline(True)
        if style.marked:
            made.setBackground(QBrush(QColor(colors.mark)))
        made.setForeground(QBrush(QColor(colors.muted if style.muted else colors.text)))
        if style.link:
            made.setAnchor(True)
            made.setAnchorHref(style.link)
        if style.link.startswith(LINK):
            made.setFontWeight(QFont.Weight.DemiBold)
        elif style.link:
            made.setForeground(QBrush(QColor(colors.accent)))
            made.setUnderlineStyle(QTextCharFormat.UnderlineStyle.SingleUnderline)
            made.setUnderlineColor(_faint(colors.accent))
        return made


@cache
def formats_of(theme: Theme) -> Formats:
    """Return the formats of `theme`, cached."""
    return Formats(theme)


def _set_font(made: QTextCharFormat, font: QFont) -> None:
    made.setFont(
        font, QTextCharFormat.FontPropertiesInheritanceBehavior.FontPropertiesSpecifiedOnly
    )


def _faint(color: str) -> QColor:
    faint = QColor(color)
    faint.setAlphaF(0.45)
    return faint
