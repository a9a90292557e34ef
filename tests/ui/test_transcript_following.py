"""What moves while a reply streams: the end is followed, whoever has scrolled up is left alone."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint
from pytestqt.qtbot import QtBot

from tests.fakes.transcripts import Shown, asked, head, turn
from ui.widgets.transcript.anchor import AtEnd
from ui.widgets.transcript.values import SourceChip, Sources

WORDS = "Some words that fill a line or two of the transcript, as people and models write them. "
CHIPS = Sources(
    tuple(SourceChip(at, "*", "Turn", f"A talk of some length {at}") for at in range(4)), "It took long."
)  # fmt: skip
Growth = Callable[[QtBot, Shown, int], None]


@pytest.fixture
def shown(qtbot: QtBot) -> Shown:
    """Return a conversation whose last turn is being answered; each turn is taller than the view."""
    made = Shown([turn(at, f"Question {at}", (WORDS * 3 + "\n\n") * 14) for at in range(6)])
    qtbot.addWidget(made.view)
    made.contents.append(asked(6))
    made.view.add_turn(head(6, made.contents[6]), made.contents[6])
    made.view.begin_reply()
    made.view.append_text((WORDS * 3 + "\n\n") * 14)
    settle(qtbot, made)
    return made


def settle(qtbot: QtBot, made: Shown) -> None:
    qtbot.waitUntil(lambda: made.view.is_settled)


def chips(_qtbot: QtBot, made: Shown, at: int) -> None:
    made.view.show_sources(at, CHIPS)


def summary(_qtbot: QtBot, made: Shown, at: int) -> None:
    made.view.show_stand_in(at, WORDS)


def other_words(_qtbot: QtBot, made: Shown, at: int) -> None:
    made.view.provide(at, turn(at, WORDS * 9, WORDS * 60))


def more_words(qtbot: QtBot, made: Shown, _at: int) -> None:
    made.view.append_text("\n\n" + WORDS * 20 + "The end")
    qtbot.waitUntil(lambda: made.drawn(6).endswith("The end"))


def narrower(_qtbot: QtBot, made: Shown, _at: int) -> None:
    made.view.resize(640, 580)


GROWTHS = (chips, summary, more_words, other_words, narrower)


@pytest.mark.parametrize("grows", GROWTHS)
@pytest.mark.parametrize("at", [4, 5, 6])
def test_the_end_is_followed_whatever_grows_above_or_below(
    qtbot: QtBot, shown: Shown, grows: Growth, at: int
) -> None:
    bar = shown.view.verticalScrollBar()
    assert bar.value() == bar.maximum()
    grows(qtbot, shown, at)
    settle(qtbot, shown)
    assert isinstance(shown.view.anchor, AtEnd)
    assert bar.value() == bar.maximum()
    assert shown.view.visible_items[1] == 6


@pytest.mark.parametrize("grows", [chips, summary, more_words])
@pytest.mark.parametrize("at", [2, 3, 4, 6])
@pytest.mark.parametrize("up", [60, 700, 1400])
def test_who_has_scrolled_up_is_not_moved_by_what_grows(
    qtbot: QtBot, shown: Shown, grows: Growth, at: int, up: int
) -> None:
    shown.view.scroll_by(-up)
    settle(qtbot, shown)
    read = shown.view.childAt(QPoint(350, 20))
    assert read is not None
    before = read.mapTo(shown.view, QPoint(0, 0)).y()
    grows(qtbot, shown, at)
    settle(qtbot, shown)
    assert read.mapTo(shown.view, QPoint(0, 0)).y() == before
