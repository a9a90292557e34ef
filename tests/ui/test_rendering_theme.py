"""Colours that can be read, and a look that changes while the program runs."""

from collections.abc import Iterator
from dataclasses import fields

import pytest
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QComboBox, QLineEdit, QPlainTextEdit, QWidget
from pytestqt.qtbot import QtBot

from ui.theme import DARK, LIGHT, THEMES_DIR, Appearance, Choice, Colours, style_sheet, theme_for

GROUNDS = ("window", "surface", "raised")
ON_ANY_GROUND = ("text", "muted", "accent", "error", "warning", "success")
SYNTAX = tuple(each.name for each in fields(Colours) if each.name.startswith("syntax_"))


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    seen = QColor(colour)
    parts = [seen.redF(), seen.greenF(), seen.blueF()]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.fixture
def appearance(qapp: QApplication) -> Iterator[Appearance]:
    font, palette = qapp.font(), qapp.palette()
    made = Appearance(qapp, Choice.LIGHT)
    yield made
    made.choose(Choice.SYSTEM, 100)
    made.setParent(None)
    made.deleteLater()
    qapp.setStyleSheet("")
    qapp.setFont(font)
    qapp.setPalette(palette)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_words_can_be_read_on_every_ground_they_stand_on(colours: Colours) -> None:
    pairs = [(word, ground) for word in ON_ANY_GROUND for ground in GROUNDS]
    pairs += [(name, "code_background") for name in (*SYNTAX, "text", "muted")]
    pairs += [("text", ground) for ground in ("accent_soft", "highlight", "mark", "mark_current")]
    pairs += [("muted", "accent_soft"), ("muted", "error_soft"), ("muted", "warning_soft")]
    pairs += [("error", "error_soft"), ("warning", "warning_soft"), ("on_accent", "accent")]
    pairs += [("accent", "accent_soft")]
    weak = {
        pair: round(found, 2)
        for pair in pairs
        if (found := contrast(getattr(colours, pair[0]), getattr(colours, pair[1]))) < 4.5
    }
    assert not weak


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_edges_of_controls_and_the_focus_can_be_seen(colours: Colours) -> None:
    for ground in GROUNDS:
        assert contrast(colours.control_border, getattr(colours, ground)) >= 3
        assert contrast(colours.accent, getattr(colours, ground)) >= 3


@pytest.mark.parametrize("kind", [QLineEdit, QPlainTextEdit, QComboBox])
def test_what_an_empty_field_hints_at_can_be_read(
    appearance: Appearance, qtbot: QtBot, kind: type[QWidget]
) -> None:
    field = kind()
    qtbot.addWidget(field)
    field.ensurePolished()
    for choice, colours in ((Choice.LIGHT, LIGHT), (Choice.DARK, DARK)):
        appearance.choose(choice, 100)
        hint = field.palette().color(QPalette.ColorRole.PlaceholderText)
        assert hint == QColor(colours.muted), choice


def test_the_style_sheet_is_filled_in_and_its_pictures_exist(qapp: QApplication) -> None:
    for choice in (Choice.LIGHT, Choice.DARK):
        sheet = style_sheet(theme_for(choice, 100, False, qapp.font()))
        assert "@" not in sheet
        for part in sheet.split('url("')[1:]:
            assert (THEMES_DIR / part.split('"')[0]).is_file()


def test_the_system_decides_unless_it_is_overruled(qapp: QApplication) -> None:
    for system_is_dark in (True, False):
        assert theme_for(Choice.SYSTEM, 100, system_is_dark, qapp.font()).dark is system_is_dark
        assert theme_for(Choice.DARK, 100, system_is_dark, qapp.font()).dark
        assert not theme_for(Choice.LIGHT, 100, system_is_dark, qapp.font()).dark


def test_text_grows_with_its_setting(qapp: QApplication) -> None:
    sizes = [
        theme_for(Choice.LIGHT, size, False, qapp.font()).reading_px for size in (60, 100, 250)
    ]
    assert sizes == sorted(set(sizes))


def test_another_look_applies_at_once(appearance: Appearance, qapp: QApplication) -> None:
    told: list[object] = []
    appearance.theme_changed.connect(told.append)
    appearance.choose(Choice.DARK, 150)
    assert told == [appearance.theme]
    assert appearance.theme.dark
    assert DARK.window in qapp.styleSheet()
    assert qapp.palette().color(QPalette.ColorRole.Window) == QColor(DARK.window)
    appearance.choose(Choice.DARK, 150)
    assert len(told) == 1
