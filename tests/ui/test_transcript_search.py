"""Landing on what a search found: its content at the first paint, the passage in view, words marked."""

from functools import partial

import pytest
from PySide6.QtCore import QPoint
from pytestqt.qtbot import QtBot

from app.domain.conversations import Role
from app.domain.passages import SearchQuery
from app.index.snippets import marks_in
from tests.fakes.transcripts import WORDS, Shown, turn

LINES = "\n".join(f"- Line {number} of the log" for number in range(200))
LONG = f"{LINES}\n\nThe zebra fuse of the substation blew.\n\n{LINES}"
FIND = partial(marks_in, query=SearchQuery(words="zebra substation"))


@pytest.fixture
def shown(qtbot: QtBot) -> Shown:
    """A conversation whose turn 9 is much taller than the window."""
    turns = [turn(at, WORDS, f"Answer {at}\n\n{WORDS * 9}") for at in range(20)]
    turns[9] = turn(9, "What does the log say about the zebra?", LONG)
    return Shown(qtbot, turns).settle()


def open_at(shown: Shown, index: int) -> None:
    """Open the conversation at the answer of a turn, with the contents around it."""
    answer = next(each for each in shown.contents[index].messages if each.role is Role.ASSISTANT)
    near = range(max(0, index - 4), min(len(shown.contents), index + 5))
    shown.view.mark_search(FIND)
    shown.view.show_conversation(
        shown.heads,
        turn=index,
        message_id=answer.id,
        contents={at: shown.contents[at] for at in near},
    )


def marks(shown: Shown, index: int) -> list[str]:
    widget = shown.view.turn_widget(index)
    assert widget is not None
    return [
        each.cursor.selectedText()
        for text in widget.texts()
        for each in text.view.extraSelections()
    ]


def test_the_passage_is_in_view_before_anything_is_painted(shown: Shown) -> None:
    shown.requested.clear()
    open_at(shown, 9)
    widget, view = shown.view.turn_widget(9), shown.view
    assert widget is not None
    assert widget.is_highlighted
    assert widget.height() > 4 * view.viewport().height()
    text = widget.texts()[-1]
    at = text.builder.document.find("zebra")
    y = text.view.mapTo(view.viewport(), QPoint(0, text.view.y_of(at.position()))).y()
    assert 0 <= y <= view.viewport().height() // 2
    for index in range(view.visible_items[0], view.visible_items[1] + 1):
        near = view.turn_widget(index)
        assert near is not None
        assert near.content is not None
    assert shown.requested == [], "nothing had to be asked for"
    shown.settle()
    after = text.view.mapTo(view.viewport(), QPoint(0, text.view.y_of(at.position()))).y()
    assert abs(after - y) <= 2, "it stays there"


def test_words_are_marked_in_every_turn_until_the_search_is_closed(shown: Shown) -> None:
    open_at(shown, 9)
    shown.settle()
    assert marks(shown, 9) == ["zebra", "zebra", "substation"]
    shown.view.mark_search(None)
    assert marks(shown, 9) == []


def test_a_passage_that_is_visible_leaves_its_turn_centered(shown: Shown) -> None:
    shown.contents[3] = turn(3, "Where is the zebra?", "At the substation.")
    open_at(shown, 3)
    shown.settle()
    widget, view = shown.view.turn_widget(3), shown.view.viewport()
    assert widget is not None
    middle = widget.mapTo(view, QPoint(0, widget.height() // 2)).y()
    assert abs(middle - view.height() // 2) <= 2
    assert marks(shown, 3) == ["zebra", "substation"]
