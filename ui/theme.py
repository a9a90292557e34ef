"""Colours by role, fonts and the style sheet; light and dark, switchable while the program runs.

What a widget looks like beyond colours, fonts and the common style sheet is the widget's business.
"""

import re
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

STYLE = "Fusion"
THEMES_DIR = Path(__file__).resolve().parents[1] / "resources" / "themes"
_READING_SCALE = 1.2
_PLACEHOLDER = re.compile(r"@(?:em\((?P<em>[0-9.]+)\)|(?P<role>[a-z_]+))")


class Choice(StrEnum):
    """The values of the setting `theme`."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True, slots=True)
class Colours:
    """Colours by role, each `#rrggbb`.

    Every text role keeps a contrast of at least 4.5 (WCAG 2.2, 1.4.3) on the grounds it is drawn
    on; a test measures the pairs.

    Attributes:
        window: The ground of everything. surface: panels and lists. raised: inputs, cards, menus.
        border: Hairlines. control_border: edges that tell a control from its ground (3:1).
        text, muted: Words, and words of second rank.
        accent: The one colour that says "here": links, focus, the primary button.
        on_accent: Words on accent. accent_soft: the ground of the user's words and of a selection.
        code_background: The ground of code. error, warning, success: words of that meaning; the
            `_soft` ones are grounds for them.
        highlight: The ground of a turn that was jumped to. mark, mark_current: found words.
        syntax_*: Colours of code, by kind of word.
    """

    window: str
    surface: str
    raised: str
    border: str
    control_border: str
    text: str
    muted: str
    accent: str
    on_accent: str
    accent_soft: str
    code_background: str
    error: str
    error_soft: str
    warning: str
    warning_soft: str
    success: str
    highlight: str
    mark: str
    mark_current: str
    syntax_keyword: str
    syntax_string: str
    syntax_comment: str
    syntax_number: str
    syntax_name: str
    syntax_type: str
    syntax_operator: str


LIGHT = Colours(
    window="#f6f4ef",
    surface="#faf8f4",
    raised="#ffffff",
    border="#e2ddd2",
    control_border="#928b7d",
    text="#24221d",
    muted="#676155",
    accent="#0b6963",
    on_accent="#ffffff",
    accent_soft="#dfeeea",
    code_background="#efece4",
    error="#a3231f",
    error_soft="#fbe9e6",
    warning="#7d5200",
    warning_soft="#fbf0d9",
    success="#1f6b36",
    highlight="#fbeec4",
    mark="#ffe08a",
    mark_current="#ffb454",
    syntax_keyword="#8a3c8f",
    syntax_string="#2f6b2a",
    syntax_comment="#6a6558",
    syntax_number="#9a4a10",
    syntax_name="#1f5a96",
    syntax_type="#0b6963",
    syntax_operator="#5c5649",
)
DARK = Colours(
    window="#1b1a18",
    surface="#201f1c",
    raised="#2a2825",
    border="#393631",
    control_border="#7d776c",
    text="#e8e4da",
    muted="#aaa496",
    accent="#67c7bc",
    on_accent="#0d2421",
    accent_soft="#233a37",
    code_background="#262421",
    error="#f19a8f",
    error_soft="#3f2522",
    warning="#e6bd6a",
    warning_soft="#3a2f1b",
    success="#8fce9a",
    highlight="#44391b",
    mark="#6a5718",
    mark_current="#8a5a12",
    syntax_keyword="#d7a3e0",
    syntax_string="#a9cf8e",
    syntax_comment="#9d978a",
    syntax_number="#eab287",
    syntax_name="#92bdf0",
    syntax_type="#7fd0c5",
    syntax_operator="#c0b9ab",
)


@dataclass(frozen=True, slots=True)
class Theme:
    """One look: colours, and fonts at one size. A value, so that rendering with it is pure.

    Attributes:
        dark: Whether `colours` are the dark ones.
        colours: By role.
        ui_px: Size of the controls' text in pixels. reading_px: of conversations' text.
        body_families, mono_families, math_families: Fonts, most wanted first.
    """

    dark: bool = False
    colours: Colours = LIGHT
    ui_px: int = 13
    reading_px: int = 15
    body_families: tuple[str, ...] = ("sans-serif",)
    mono_families: tuple[str, ...] = ("monospace",)
    math_families: tuple[str, ...] = ("STIX Two Text", "Cambria", "DejaVu Serif", "serif")

    def em(self, factor: float) -> float:
        """Return `factor` times the size of reading text, in pixels."""
        return self.reading_px * factor

    def reading_font(self) -> QFont:
        """Return the font of conversations' text."""
        return _font(self.body_families, self.reading_px)

    def ui_font(self) -> QFont:
        """Return the font of controls."""
        return _font(self.body_families, self.ui_px)

    def small_font(self) -> QFont:
        """Return the font of footers and labels of second rank."""
        return _font(self.body_families, max(9, round(self.ui_px * 0.92)))

    def mono_font(self) -> QFont:
        """Return the font of code; a little smaller, since its letters look larger."""
        font = _font(self.mono_families, max(8, round(self.reading_px * 0.9)))
        font.setStyleHint(QFont.StyleHint.Monospace)
        font.setFixedPitch(True)
        return font

    def math_font(self) -> QFont:
        """Return the font of mathematics."""
        return _font(self.math_families, round(self.reading_px * 1.06))


def _font(families: tuple[str, ...], size_px: int) -> QFont:
    font = QFont()
    font.setFamilies(list(families))
    font.setPixelSize(size_px)
    return font


def theme_for(choice: Choice, text_percent: int, system_is_dark: bool, system_font: QFont) -> Theme:
    """Return the theme of these settings; `text_percent` is relative to the system's text."""
    dark = choice is Choice.DARK or (choice is Choice.SYSTEM and system_is_dark)
    system_px = max(12, QFontInfo(system_font).pixelSize())
    mono = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()
    return Theme(
        dark=dark,
        colours=DARK if dark else LIGHT,
        ui_px=max(8, round(system_px * text_percent / 100)),
        reading_px=max(8, round(system_px * _READING_SCALE * text_percent / 100)),
        body_families=tuple(dict.fromkeys((*system_font.families(), "sans-serif"))),
        mono_families=(mono, "monospace"),
    )


def style_sheet(theme: Theme) -> str:
    """Return the style sheet of the whole program: `resources/themes/base.qss`, filled in.

    There `@role` is a colour, `@em(1.5)` a length in sizes of the controls' text, and `@folder`
    the folder of the pictures beside it.
    """
    values = {each.name: str(getattr(theme.colours, each.name)) for each in fields(theme.colours)}
    values["folder"] = THEMES_DIR.as_posix()
    values["shade"] = "dark" if theme.dark else "light"

    def fill(match: re.Match[str]) -> str:
        if match["em"]:
            return f"{round(float(match['em']) * theme.ui_px)}px"
        return values[match["role"]]

    return _PLACEHOLDER.sub(fill, (THEMES_DIR / "base.qss").read_text(encoding="utf-8"))


def palette_of(theme: Theme) -> QPalette:
    """Return the palette for what the style sheet leaves to the platform's own drawing."""
    colours, palette, role = theme.colours, QPalette(), QPalette.ColorRole
    for each, colour in (
        (role.Window, colours.window),
        (role.WindowText, colours.text),
        (role.Base, colours.raised),
        (role.AlternateBase, colours.surface),
        (role.Text, colours.text),
        (role.Button, colours.raised),
        (role.ButtonText, colours.text),
        (role.BrightText, colours.error),
        (role.ToolTipBase, colours.raised),
        (role.ToolTipText, colours.text),
        (role.PlaceholderText, colours.muted),
        (role.Highlight, colours.accent),
        (role.HighlightedText, colours.on_accent),
        (role.Accent, colours.accent),
        (role.Link, colours.accent),
        (role.LinkVisited, colours.accent),
        (role.Light, colours.raised),
        (role.Midlight, colours.border),
        (role.Mid, colours.border),
        (role.Dark, colours.control_border),
    ):
        palette.setColor(each, QColor(colour))
    for each in (role.Text, role.WindowText, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, each, QColor(colours.control_border))
    return palette


class Appearance(QObject):
    """The look of the running program, kept in step with the settings and the system.

    The application is one that was made with `STYLE`.

    Attributes:
        theme: The theme that applies now.

    Signals:
        theme_changed: The `Theme`, after style sheet, palette and font were set; widgets that
            paint or hold documents take it from here.
    """

    theme_changed = Signal(object)

    def __init__(
        self,
        application: QApplication,
        choice: Choice = Choice.SYSTEM,
        text_percent: int = 100,
    ) -> None:
        super().__init__(application)
        self._application = application
        self._system_font = QFont(application.font())
        self._choice, self._text_percent = choice, text_percent
        self._force_scheme()
        self.theme = self._current()
        self._apply()
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_system_changed)

    def choose(self, choice: Choice, text_percent: int) -> None:
        """Take new settings and apply them at once."""
        self._choice, self._text_percent = choice, text_percent
        self._refresh()

    def _on_system_changed(self) -> None:
        self._refresh()

    def _force_scheme(self) -> None:
        """Tell the platform too, so that its own dialogs and title bars follow."""
        forced = {Choice.LIGHT: Qt.ColorScheme.Light, Choice.DARK: Qt.ColorScheme.Dark}
        QGuiApplication.styleHints().setColorScheme(
            forced.get(self._choice, Qt.ColorScheme.Unknown)
        )

    def _refresh(self) -> None:
        self._force_scheme()
        if (theme := self._current()) == self.theme:
            return
        self.theme = theme
        self._apply()
        self.theme_changed.emit(theme)

    def _current(self) -> Theme:
        dark = QGuiApplication.styleHints().colorScheme() is Qt.ColorScheme.Dark
        return theme_for(self._choice, self._text_percent, dark, self._system_font)

    def _apply(self) -> None:
        self._application.setPalette(palette_of(self.theme))
        self._application.setFont(self.theme.ui_font())
        self._application.setStyleSheet(style_sheet(self.theme))
