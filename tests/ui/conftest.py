"""Fixtures of the window's tests."""

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from tests.fakes.screens import Parts
from ui.theme import Appearance, Theme, ThemeChoice, _current


@pytest.fixture
def parts(qtbot: QtBot) -> Parts:
    return Parts(qtbot)


@pytest.fixture(autouse=True)
def usual_theme() -> Iterator[None]:
    yield
    _current[0] = Theme()


@pytest.fixture(autouse=True)
def closed_windows(qapp: QApplication) -> Iterator[None]:
    yield
    for window in qapp.topLevelWidgets():
        if window.parent() is None:
            window.close()
            window.deleteLater()


@pytest.fixture
def appearance(qapp: QApplication) -> Iterator[Appearance]:
    font, palette = qapp.font(), qapp.palette()
    made = Appearance(qapp, ThemeChoice.LIGHT)
    yield made
    made.choose(ThemeChoice.SYSTEM, 100)
    made.setParent(None)
    made.deleteLater()
    qapp.setStyleSheet("")
    qapp.setFont(font)
    qapp.setPalette(palette)
