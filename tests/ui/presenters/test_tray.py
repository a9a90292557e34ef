"""The tray: asked once when the window is closed, then it hides or ends the program."""

from typing import Any

import pytest
from PySide6.QtWidgets import QSystemTrayIcon

from app.domain.change_set import ChangeSet
from tests.fakes.screens import Parts, press
from ui.presenters.tray import SWITCH, TrayPresenter
from ui.views.main_window import MainWindow


class Tray:
    """The presenter with a window, on a desktop that has a tray."""

    def __init__(self, parts: Parts, switch: str) -> None:
        self.parts, self.values = parts, {SWITCH: switch}
        self.text, self.set = self.values.__getitem__, self.values.__setitem__
        self.window = MainWindow()
        self.window.show()
        self.left: list[bool] = []
        self.presenter = parts.make(
            TrayPresenter, settings=self, window=self.window,
            quick_find=lambda: None,
        )  # fmt: skip

    def close(self) -> None:
        self.presenter.close(lambda: self.left.append(True))

    def tell(self) -> None:
        self.parts.bridge.changed.emit(ChangeSet(settings=frozenset({SWITCH})))


@pytest.fixture
def has_tray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", lambda: True)


@pytest.mark.usefixtures("has_tray")
@pytest.mark.parametrize(
    ("button", "value", "hidden", "left"),
    [("Keep running", "on", True, []), ("Quit", "off", False, [True]),
     ("Cancel", "ask", False, [])],
)  # fmt: skip
def test_closing_asks_once(
    parts: Parts, button: str, value: str, hidden: bool, left: list[bool]
) -> None:
    tray = Tray(parts, "ask")
    tray.close()
    press(button)
    assert tray.values[SWITCH] == value
    assert (tray.window.isHidden(), tray.left) == (hidden, left)


@pytest.mark.usefixtures("has_tray")
def test_with_the_icon_closing_hides_and_the_icon_brings_it_back(parts: Parts) -> None:
    tray = Tray(parts, "on")
    tray.close()
    assert tray.window.isHidden()
    icon: Any = tray.presenter.icon
    icon.activated.emit(QSystemTrayIcon.ActivationReason.Trigger)
    assert tray.window.isVisible()
    tray.values[SWITCH] = "off"
    tray.tell()
    assert tray.presenter.icon is None
    tray.close()
    assert tray.left == [True]


def test_without_a_tray_closing_is_the_end(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", lambda: False)
    tray = Tray(parts, "on")
    tray.close()
    assert tray.left == [True]
