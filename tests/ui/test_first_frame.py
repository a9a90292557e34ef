"""What the window's first frame waits for: Qt, and as little else as can be."""

import json
import subprocess
import sys
from pathlib import Path

from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.system.paths import DataPaths
from ui.main import first_window
from ui.theme import Appearance

_COMES_LATER = {"asyncio", "duckdb", "markdown_it", "pygments", "qasync", "tantivy", "ui.bridge"}


def test_the_window_is_imported_without_what_comes_after_its_first_frame() -> None:
    code = "import json, sys, ui.main; print(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not _COMES_LATER & set(json.loads(ran.stdout))


def test_the_sidebar_takes_the_place_that_was_kept_for_it(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path
) -> None:
    appearance = Appearance(qapp)
    window = first_window(DataPaths(tmp_path))
    qtbot.addWidget(window, before_close_func=lambda each: each.close_for_good())
    qtbot.waitExposed(window)
    window.split.setSizes([250, window.split.width() - 250])
    kept = window.split.sizes()
    place = window.split.widget(0)
    assert place is not None
    assert not place.isEnabled()

    window.furnish(appearance.theme, QWidget())

    assert window.split.sizes() == kept
    assert window.split.widget(0) is window.sidebar
    assert not window.sidebar.isEnabled()
    window.show_usable(True)
    assert window.sidebar.isEnabled()
    assert window.sidebar.isVisible()
    window.actions_by_name["sidebar"].trigger()
    assert not window.sidebar.isVisible()
    appearance.deleteLater()
