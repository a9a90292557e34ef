"""Theme: legible colors, and an appearance that changes while the program runs."""

import os
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPalette
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QRadioButton,
    QToolButton,
    QToolTip,
    QWidget,
)
from pytestqt.qtbot import QtBot

import icons
from app.system.paths import store_state, stored_settings
from ui.icons import RESOURCES, set_icon
from ui.main.start import first_appearance
from ui.theme import (
    DARK,
    LIGHT,
    THEMES_DIR,
    Appearance,
    Colors,
    Theme,
    ThemeChoice,
    style_sheet,
    theme_for,
)
from ui.views.main_window import MainWindow
from ui.widgets.controls import tool_button

REPOSITORY = Path(__file__).resolve().parents[2]
GROUNDS = ("window", "surface", "raised")
SYNTAX = tuple(each.name for each in fields(Colors) if each.name.startswith("syntax_"))
READ_ON = {
    **dict.fromkeys(("text", "muted", "accent", "error", "warning", "success"), GROUNDS),
    **dict.fromkeys(SYNTAX, ("code_background",)),
}
READ_TOO = {
    "text": ("code_background", "accent_soft", "highlight", "mark", "mark_current"),
    "muted": ("code_background", "accent_soft", "error_soft", "warning_soft"),
    "error": ("error_soft",), "warning": ("warning_soft",), "on_accent": ("accent",),
    "accent": ("accent_soft",),
}  # fmt: skip


def luminance(color: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    seen = QColor(color)
    parts = [seen.redF(), seen.greenF(), seen.blueF()]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_edges_have_enough_contrast(colors: Colors) -> None:
    legible = [*READ_ON.items(), *READ_TOO.items()]
    pairs = {(name, ground): 4.5 for name, grounds in legible for ground in grounds}
    pairs |= {("control_border", ground): 3.0 for ground in GROUNDS}
    weak = {
        pair: round(found, 2)
        for pair, least in pairs.items()
        if (found := contrast(getattr(colors, pair[0]), getattr(colors, pair[1]))) < least
    }
    assert not weak


@pytest.mark.parametrize("kind", [QLineEdit, QPlainTextEdit, QComboBox])
def test_placeholders_are_legible(appearance: Appearance, kind: type[QWidget]) -> None:
    field = kind()
    field.ensurePolished()
    for choice, colors in ((ThemeChoice.LIGHT, LIGHT), (ThemeChoice.DARK, DARK)):
        appearance.choose(choice, 100)
        hint = field.palette().color(QPalette.ColorRole.PlaceholderText)
        assert hint == QColor(colors.muted), choice


@pytest.mark.parametrize("choice", [ThemeChoice.LIGHT, ThemeChoice.DARK])
def test_the_style_sheet_is_filled_with_images(qapp: QApplication, choice: ThemeChoice) -> None:
    sheet = style_sheet(theme_for(choice, 100, False, qapp.font()))
    assert "@" not in sheet
    for part in sheet.split('url("theme:')[1:]:
        assert (THEMES_DIR / part.split('"')[0]).is_file()
    assert sheet.count("url(") == sheet.count('url("theme:') > 3


def test_the_icons_of_style_sheets_have_the_palettes_colors() -> None:
    drawn = icons.colored()
    assert {name: (THEMES_DIR / name).read_text("utf-8") for name in drawn} == drawn


def test_icons_follow_palette_and_the_screens_resolution(appearance: Appearance) -> None:
    button = QToolButton()
    set_icon(button, "star", filled=True)
    for choice, colors in ((ThemeChoice.LIGHT, LIGHT), (ThemeChoice.DARK, DARK)):
        appearance.choose(choice, 100)
        for ratio in (1.0, 2.0):
            drawn = button.icon().pixmap(QSize(20, 20), ratio).toImage()
            assert drawn.width() == 20 * ratio
            middle = drawn.width() // 2
            assert drawn.pixelColor(middle, middle).name() == colors.text
    disabled = button.icon().pixmap(QSize(20, 20), 1.0, QIcon.Mode.Disabled).toImage()
    assert disabled.pixelColor(10, 10).name() == DARK.control_border


def test_an_icon_keeps_the_gap_before_a_text(qapp: QApplication) -> None:
    button = QToolButton()
    button.setText("Useful")
    set_icon(button, "star")
    size = button.iconSize()
    assert size.width() > size.height()
    for ratio in (1.0, 2.0):
        drawn = button.icon().pixmap(size, ratio)
        assert drawn.size() == size * ratio, "Qt draws the text right of it"


def test_an_icon_has_the_size_of_the_text_that_the_user_chose(appearance: Appearance) -> None:
    owner = QWidget()
    button = tool_button(owner, "Useful", icon="star")
    owner.show()
    before = button.iconSize()
    appearance.choose(ThemeChoice.LIGHT, 200)
    assert button.iconSize().height() == pytest.approx(2 * before.height(), abs=2)


def test_only_icons_in_use_are_shipped_with_their_license() -> None:
    folder = RESOURCES / "lucide"
    assert "ISC License" in (folder / "LICENSE").read_text("utf-8")
    code = "".join(path.read_text("utf-8") for path in (REPOSITORY / "ui").rglob("*.py"))
    of_sheets = {name for name, _ in icons.OF_STYLE_SHEETS.values()}
    shipped = {path.stem for path in folder.glob("*.svg")}
    assert {name for name in shipped - of_sheets if f'"{name}"' not in code} == set()


def test_the_first_frame_has_the_theme_and_text_size_of_last_time(
    appearance: Appearance, qapp: QApplication, tmp_path: Path
) -> None:
    file, usual_px = tmp_path / "window.json", appearance.theme.ui_px
    window = MainWindow()
    window.settings = {"theme": "dark", "text_size": 150}
    store_state(file, window.state_to_store())
    window.close_now()
    window.deleteLater()
    made = first_appearance(qapp, stored_settings(file))
    assert made.theme.dark
    assert made.theme.ui_px > usual_px
    made.choose(ThemeChoice.SYSTEM, 100)
    made.deleteLater()


@pytest.mark.parametrize("stored", ["", "[]", '{"settings": 3}', '{"settings": {"theme": 7}}'])
def test_a_damaged_state_gives_the_systems_theme(
    appearance: Appearance, qapp: QApplication, tmp_path: Path, stored: str
) -> None:
    file = tmp_path / "window.json"
    file.write_text(stored)
    made = first_appearance(qapp, stored_settings(file))
    assert made.theme.dark is False
    made.deleteLater()


@pytest.mark.parametrize("kind", [QCheckBox, QRadioButton])
def test_focused_check_boxes_are_whole(qtbot: QtBot, kind: type[QCheckBox | QRadioButton]) -> None:
    box = kind("Yes")
    box.setStyleSheet(style_sheet(Theme()))
    box.show()
    qtbot.waitExposed(box)
    box.setFocus()
    qtbot.waitUntil(box.hasFocus)
    assert box.grab().toImage().pixelColor(0, box.height() // 2).name() == Theme().colors.text


@pytest.mark.usefixtures("appearance")
def test_a_tool_tip_shows_markup_as_it_was_written(qtbot: QtBot, qapp: QApplication) -> None:
    QToolTip.showText(QPoint(0, 0), "<b>A title</b>")
    (tip,) = (
        each for each in qapp.topLevelWidgets() if each.metaObject().className() == "QTipLabel"
    )
    assert isinstance(tip, QLabel)
    assert tip.textFormat() is Qt.TextFormat.PlainText
    QToolTip.hideText()
    qtbot.waitUntil(lambda: not QToolTip.isVisible())


WINDOW_IN_THIS_FOLDER = """
import locale
from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QApplication, QCheckBox
from ui.main.start import use_language
from ui.theme import STYLE, Appearance, ThemeChoice
from ui.views.main_window import MainWindow

application = QApplication(["x", "-style", STYLE])
use_language(application)
Appearance(application, ThemeChoice.LIGHT)
window = MainWindow()
window.show()
box = QCheckBox(window)
box.setChecked(True)
image = box.grab().toImage()
pixels = [image.pixelColor(x, y).name() for x in range(20) for y in range(image.height())]
print(window.palette().window().color().name(), "#ffffff" in pixels, window.grab().isNull())
print(QLocale().monthName(5), QLocale().toString(1234), locale.setlocale(locale.LC_TIME))
"""


def test_the_window_has_style_in_any_folder_and_english_dates_anywhere(tmp_path: Path) -> None:
    root = tmp_path / "ü b'\"c"
    for part in ("app", "ui", "resources/themes", "resources/icons"):
        shutil.copytree(REPOSITORY / part, root / part, ignore=shutil.ignore_patterns("*.pyc"))
    environment = {"QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(root), "LC_ALL": "de_DE.UTF-8"}
    ran = subprocess.run(
        [sys.executable, "-c", WINDOW_IN_THIS_FOLDER], cwd=root, capture_output=True, text=True,
        env={**os.environ, **environment}, check=True,
    )  # fmt: skip
    assert ran.stdout.split() == [LIGHT.window, "True", "False", "May", "1,234", "C"]
    assert "stylesheet" not in ran.stderr


def test_the_system_decides_unless_it_is_overruled(qapp: QApplication) -> None:
    choices = (ThemeChoice.SYSTEM, ThemeChoice.DARK, ThemeChoice.LIGHT)
    for system_is_dark in (True, False):
        themes = [theme_for(each, 100, system_is_dark, qapp.font()) for each in choices]
        assert [each.dark for each in themes] == [system_is_dark, True, False]


def test_text_grows_with_its_setting(qapp: QApplication) -> None:
    themes = [theme_for(ThemeChoice.LIGHT, size, False, qapp.font()) for size in (60, 100, 250)]
    for sizes in ([each.reading_px for each in themes], [each.ui_px for each in themes]):
        assert sizes == sorted(set(sizes))


def test_another_theme_applies_at_once(appearance: Appearance, qapp: QApplication) -> None:
    changes: list[object] = []
    appearance.theme_changed.connect(changes.append)
    appearance.choose(ThemeChoice.DARK, 150)
    assert changes == [appearance.theme]
    assert appearance.theme.dark
    assert DARK.window in qapp.styleSheet()
    assert qapp.palette().color(QPalette.ColorRole.Window) == QColor(DARK.window)
    appearance.choose(ThemeChoice.DARK, 150)
    assert len(changes) == 1
