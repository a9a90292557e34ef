"""Words of any origin stay words: no label or question takes them for rich text."""

import re
from pathlib import Path

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from ui.widgets.banner import Banner
from ui.widgets.plain_label import PlainLabel

UI = Path(__file__).parents[2] / "ui"
MADE_BY_QT = re.compile(r"(?<![\w.])(?:QLabel|QMessageBox)\((?!\):)")
# A report of ours with fixed words; the label below all others; two boxes with fixed words.
FIXED = {"errors.py": 1, "program.py": 2}


def test_no_label_and_no_question_takes_words_for_rich_text() -> None:
    for path in UI.rglob("*.py"):
        source = path.read_text()
        made = len(MADE_BY_QT.findall(re.sub(r"^class .*$", "", source, flags=re.MULTILINE)))
        plain = source.count("setTextFormat(Qt.TextFormat.PlainText)")
        assert made - plain <= FIXED.get(path.name, 0), path


def test_a_title_in_a_banner_is_shown_as_it_is(qtbot: QtBot) -> None:
    banner = Banner()
    qtbot.addWidget(banner)
    banner.tell("'<img src=\"file:///etc/hostname\">' was archived.", brief=True)
    (label,) = banner.findChildren(PlainLabel)
    assert label.textFormat() is Qt.TextFormat.PlainText
    assert "<img" in label.text()
