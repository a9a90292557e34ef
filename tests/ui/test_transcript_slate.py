"""The line below the last turn that says a clean slate begins with the next message."""

import pytest
from PySide6.QtCore import QPoint
from pytestqt.qtbot import QtBot

from tests.fakes.transcripts import Shown, asked, head, turn
from ui.theme import DARK, Theme
from ui.widgets.transcript.panels import CLEAN_SLATE, Divider
from ui.widgets.transcript.view import TranscriptView

WORDS = "Some words that fill a line or two of the transcript. " * 20


@pytest.fixture
def shown(qtbot: QtBot) -> Shown:
    made = Shown([turn(at, f"Question {at}", WORDS) for at in range(6)])
    qtbot.addWidget(made.view)
    qtbot.waitUntil(lambda: made.view.is_settled)
    return made


def slates(view: TranscriptView) -> list[Divider]:
    """Return the lines there are; those about to go are left out."""
    lines = view.findChildren(Divider)
    return [each for each in lines if each.accessibleName() == CLEAN_SLATE and each.isVisible()]


def test_it_stands_below_the_last_turn_and_in_sight(shown: Shown, qtbot: QtBot) -> None:
    view = shown.view
    view.scroll_to_turn(0)
    qtbot.waitUntil(lambda: view.is_settled)
    view.show_slate(True, goes_there=True)
    qtbot.waitUntil(lambda: view.is_settled and len(slates(view)) == 1)
    (line,) = slates(view)
    last = view.turn_widget(5)
    assert last is not None
    assert line.parentWidget() is last
    assert line.geometry().bottom() <= last.height()
    assert line.mapTo(view.viewport(), QPoint(0, line.height())).y() <= view.viewport().height()
    view.show_slate(True)
    assert len(slates(view)) == 1
    view.show_slate(False)
    assert not slates(view)


def test_it_outlives_another_look_and_a_reply_that_ends(shown: Shown, qtbot: QtBot) -> None:
    view = shown.view
    view.show_slate(True)
    view.set_theme(Theme(dark=True, colours=DARK))
    qtbot.waitUntil(lambda: view.is_settled and len(slates(view)) == 1)
    view.provide(5, turn(5, "Question 5", "Another answer"))
    qtbot.waitUntil(lambda: view.is_settled)
    assert len(slates(view)) == 1


def test_it_goes_with_the_next_message_and_with_another_conversation(
    shown: Shown, qtbot: QtBot
) -> None:
    view = shown.view
    view.show_slate(True)
    qtbot.waitUntil(lambda: view.is_settled and len(slates(view)) == 1)
    view.add_turn(head(6, asked(6)), asked(6))
    qtbot.waitUntil(lambda: view.is_settled and not slates(view))
    view.show_slate(True)
    view.show_conversation(shown.heads)
    qtbot.waitUntil(lambda: view.is_settled)
    assert not slates(view)


def test_where_nothing_was_said_there_is_none(qtbot: QtBot) -> None:
    made = Shown([])
    qtbot.addWidget(made.view)
    made.view.show_slate(True, goes_there=True)
    assert not slates(made.view)
