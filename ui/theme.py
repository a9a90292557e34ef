"""Theme: colors by role, fonts and the application's style sheet, light and dark."""

import re
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from PySide6.QtCore import QDir, QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

STYLE = "Fusion"
THEMES_DIR = Path(__file__).resolve().parents[1] / "resources" / "themes"
READING_SCALE = 1.2  # of the text of controls
COLUMN_EM, PADDING_EM = 50.0, 1.5  # the width of the text and the space around it, in its size
_PLACEHOLDER = re.compile(r"@(?:em\((?P<em>[0-9.]+)\)|(?P<role>[a-z_]+))")


class ThemeChoice(StrEnum):
    """The values of the setting `theme`."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


def _shades(light: str, dark: str) -> Any:
    """Return a field whose default is the light color, with the dark one beside it."""
    return field(default=light, metadata={"dark": dark})


@dataclass(frozen=True, slots=True)
class Colors:
    """Colors by role, each `#rrggbb`.

    Every text color has a contrast of at least 4.5 (WCAG 2.2, 1.4.3) on the backgrounds it is drawn
    on; a test measures the pairs.

    Attributes:
        window: The background of windows. surface: panels and lists. raised: inputs, cards, menus.
        border: Hairlines. control_border: borders that distinguish a control (3:1).
        text, muted: Primary and secondary text.
        accent: Links, focus, the primary button.
        on_accent: Text on accent. accent_soft: the background of the user's messages and of a
            selected row.
        code_background: The background of code. error, warning, success: text of that meaning; the
            `_soft` ones are its backgrounds.
        highlight: The background of a turn that was jumped to. mark, mark_current: find matches.
        syntax_*: Code, by kind of token.
    """

    window: str = _shades("#f6f4ef", "#1b1a18")
    surface: str = _shades("#faf8f4", "#201f1c")
    raised: str = _shades("#ffffff", "#2a2825")
    border: str = _shades("#e2ddd2", "#393631")
    control_border: str = _shades("#928b7d", "#7d776c")
    text: str = _shades("#24221d", "#e8e4da")
    muted: str = _shades("#676155", "#aaa496")
    accent: str = _shades("#0b6963", "#67c7bc")
    on_accent: str = _shades("#ffffff", "#0d2421")
    accent_soft: str = _shades("#dfeeea", "#233a37")
    code_background: str = _shades("#efece4", "#262421")
    error: str = _shades("#a3231f", "#f19a8f")
    error_soft: str = _shades("#fbe9e6", "#3f2522")
    warning: str = _shades("#7d5200", "#e6bd6a")
    warning_soft: str = _shades("#fbf0d9", "#3a2f1b")
    success: str = _shades("#1f6b36", "#8fce9a")
    highlight: str = _shades("#fbeec4", "#44391b")
    mark: str = _shades("#ffe08a", "#6a5718")
    mark_current: str = _shades("#ffb454", "#8a5a12")
    syntax_keyword: str = _shades("#8a3c8f", "#d7a3e0")
    syntax_string: str = _shades("#2f6b2a", "#a9cf8e")
    syntax_comment: str = _shades("#6a6558", "#9d978a")
    syntax_number: str = _shades("#9a4a10", "#eab287")
    syntax_name: str = _shades("#1f5a96", "#92bdf0")
    syntax_type: str = _shades("#0b6963", "#7fd0c5")
    syntax_operator: str = _shades("#5c5649", "#c0b9ab")


LIGHT = Colors()
DARK = Colors(**{each.name: each.metadata["dark"] for each in fields(Colors)})


@dataclass(frozen=True, slots=True)
class Theme:
    """Colors, and fonts at one size.

    Attributes:
        dark: Whether `colors` are the dark ones.
        ui_px: Text size of controls in pixels. reading_px: of conversations.
        body_families, mono_families: Font families in order of preference.
        reduced_motion: Whether nothing may fade or move by itself.
    """

    dark: bool = False
    colors: Colors = LIGHT
    ui_px: int = 13
    reading_px: int = 15
    body_families: tuple[str, ...] = ("sans-serif",)
    mono_families: tuple[str, ...] = ("monospace",)
    reduced_motion: bool = False

    def em(self, factor: float) -> float:
        """Return `factor` times the size of reading text, in pixels."""
        return self.reading_px * factor

    def reading_font(self) -> QFont:
        """Return the font of conversations' text."""
        return _font(self.body_families, self.reading_px)

    def ui_font(self) -> QFont:
        return _font(self.body_families, self.ui_px)

    def small_font(self) -> QFont:
        """Return the font of footers and secondary labels."""
        return _font(self.body_families, max(9, round(self.ui_px * 0.92)))

    def mono_font(self) -> QFont:
        """Return the font of code: 90 % of the text size, since monospaced letters look larger."""
        font = _font(self.mono_families, max(8, round(self.reading_px * 0.9)))
        font.setStyleHint(QFont.StyleHint.Monospace)
        font.setFixedPitch(True)
        return font


_current = [Theme()]


def current_theme() -> Theme:
    """Return the theme of the application, as its `Appearance` has applied it.

    Widgets that were shown get a PaletteChange event when its colors change, and a StyleChange event.
    """
    return _current[0]


def _font(families: tuple[str, ...], size_px: int) -> QFont:
    font = QFont()
    font.setFamilies(list(families))
    font.setPixelSize(size_px)
    return font


def theme_for(
    choice: ThemeChoice,
    text_percent: int,
    system_is_dark: bool,
    system_font: QFont,
    *,
    reduced_motion: bool = False,
) -> Theme:
    """Return the theme for these settings; `text_percent` is relative to the system's text size."""
    dark = choice is ThemeChoice.DARK or (choice is ThemeChoice.SYSTEM and system_is_dark)
    system_px = max(12, QFontInfo(system_font).pixelSize())
    mono = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()
    return Theme(
        dark=dark,
        colors=DARK if dark else LIGHT,
        ui_px=max(8, round(system_px * text_percent / 100)),
        reading_px=max(8, round(system_px * READING_SCALE * text_percent / 100)),
        body_families=tuple(dict.fromkeys((*system_font.families(), "sans-serif"))),
        mono_families=(mono, "monospace"),
        reduced_motion=reduced_motion,
    )


def style_sheet(theme: Theme) -> str:
    """Return the application's style sheet: `resources/themes/base.qss` with its placeholders filled.

    `@role` is a color, `@em(1.5)` a length in multiples of the controls' text size, `@shade` "light"
    or "dark", `@reading` the size of conversations' text. Images are named `theme:FILE`: a search path, since Qt's style sheet parser rejects
    quotation marks and letters beyond ASCII in a path.
    """
    QDir.setSearchPaths("theme", [str(THEMES_DIR)])
    values = {each.name: str(getattr(theme.colors, each.name)) for each in fields(theme.colors)}
    values["reading"] = f"{theme.reading_px}px"
    values["shade"] = "dark" if theme.dark else "light"

    def fill(match: re.Match[str]) -> str:
        if match["em"]:
            return f"{round(float(match['em']) * theme.ui_px)}px"
        return values[match["role"]]

    return _PLACEHOLDER.sub(fill, (THEMES_DIR / "base.qss").read_text(encoding="utf-8"))


def palette_of(theme: Theme) -> QPalette:
    """Return the palette, for what the style sheet does not cover."""
    colors, palette, role = theme.colors, QPalette(), QPalette.ColorRole
    for each, color in (
        (role.Window, colors.window),
        (role.WindowText, colors.text),
        (role.Base, colors.raised),
        (role.AlternateBase, colors.surface),
        (role.Text, colors.text),
        (role.Button, colors.raised),
        (role.ButtonText, colors.text),
        (role.BrightText, colors.error),
        (role.ToolTipBase, colors.raised),
        (role.ToolTipText, colors.text),
        (role.PlaceholderText, colors.muted),
        (role.Highlight, colors.accent),
        (role.HighlightedText, colors.on_accent),
        (role.Accent, colors.accent),
        (role.Link, colors.accent),
        (role.LinkVisited, colors.accent),
        (role.Light, colors.raised),
        (role.Midlight, colors.border),
        (role.Mid, colors.border),
        (role.Dark, colors.control_border),
    ):
        palette.setColor(each, QColor(color))
    for each in (role.Text, role.WindowText, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, each, QColor(colors.control_border))
    return palette


def _system_reduces_motion(application: QApplication) -> bool:
    """Return whether the desktop has turned animations off, where Qt knows it (KDE)."""
    from PySide6.QtWidgets import QStyle  # its enums take Python 7 ms to create

    hint = QStyle.StyleHint.SH_Widget_Animation_Duration
    return application.style().styleHint(hint) == 0


class Appearance(QObject):
    """Applies the theme to an application (made with `STYLE`) and follows settings and system.

    Attributes:
        theme: The current theme.

    Signals:
        theme_changed: The `Theme`, after style sheet, palette and font were set, for widgets that
            paint or hold documents.
    """

    theme_changed = Signal(object)

    def __init__(
        self,
        application: QApplication,
        choice: ThemeChoice = ThemeChoice.SYSTEM,
        text_percent: int = 100,
        *,
        reduced_motion: bool = False,
    ) -> None:
        super().__init__(application)
        self._application = application
        self._system_font = QFont(application.font())
        self._choice, self._text_percent = choice, text_percent
        self._reduced_motion = reduced_motion
        self._force_scheme()
        self.theme = self._current(asks_system=False)
        self._apply()
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._refresh)

    def choose(
        self, choice: ThemeChoice, text_percent: int, *, reduced_motion: bool = False
    ) -> None:
        """Apply new settings."""
        self._choice, self._text_percent = choice, text_percent
        self._reduced_motion = reduced_motion
        self._refresh()

    def _force_scheme(self) -> None:
        """Set the platform's color scheme, so that its own dialogs and title bars follow."""
        forced = {ThemeChoice.LIGHT: Qt.ColorScheme.Light, ThemeChoice.DARK: Qt.ColorScheme.Dark}
        QGuiApplication.styleHints().setColorScheme(
            forced.get(self._choice, Qt.ColorScheme.Unknown)
        )

    def _refresh(self, _scheme: object = None) -> None:
        self._force_scheme()
        if (theme := self._current()) == self.theme:
            return
        self.theme = theme
        self._apply()
        self.theme_changed.emit(theme)

    def _current(self, *, asks_system: bool = True) -> Theme:
        dark = QGuiApplication.styleHints().colorScheme() is Qt.ColorScheme.Dark
        reduced = self._reduced_motion or (
            asks_system and _system_reduces_motion(self._application)
        )
        return theme_for(
            self._choice, self._text_percent, dark, self._system_font, reduced_motion=reduced
        )

    def _apply(self) -> None:
        _current[0] = self.theme
        self._application.setPalette(palette_of(self.theme))
        self._application.setFont(self.theme.ui_font())
        self._application.setStyleSheet(style_sheet(self.theme))
