"""What tests of the window share."""

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from tests.fakes.screens import Parts
from ui.theme import Appearance


@pytest.fixture
def parts(qtbot: QtBot) -> Parts:
    return Parts(qtbot)


@pytest.fixture
def appearance(qapp: QApplication) -> Iterator[Appearance]:
    made = Appearance(qapp)
    yield made
    made.deleteLater()
