"""Landing on what a search or find found: the passage in view at the first paint, words marked."""

from functools import partial

import pytest
from PySide6.QtCore import QPoint
from pytestqt.qtbot import QtBot

from app.domain.conversations import Role
from app.domain.passages import SearchQuery
from app.index.snippets import marks_in
from tests.fakes.transcripts import WORDS, Shown, turn
from ui.theme import Theme
from ui.widgets.transcript.values import FindMark, searchable_text

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
        shown.heads, turn=index, message_id=answer.id,
        contents={at: shown.contents[at] for at in near},
    )  # fmt: skip


def marks(shown: Shown, index: int) -> list[str]:
    widget = shown.view.turn_widget(index)
    return [
        each.cursor.selectedText()
        for text in widget.texts()
        for each in text.view.extraSelections()
    ]


def test_the_passage_is_in_view_before_anything_is_painted(shown: Shown) -> None:
    shown.requested.clear()
    open_at(shown, 9)
    widget, view = shown.view.turn_widget(9), shown.view
    assert widget.is_highlighted
    assert widget.height() > 4 * view.viewport().height()
    text = widget.texts()[-1]
    at = text.builder.document.find("zebra")
    y = text.view.mapTo(view.viewport(), QPoint(0, text.view.y_of(at.position()))).y()
    assert 0 <= y <= view.viewport().height() // 2
    for index in range(view.visible_items[0], view.visible_items[1] + 1):
        near = view.turn_widget(index)
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
    assert abs(widget.mapTo(view, QPoint(0, widget.height() // 2)).y() - view.height() // 2) <= 2
    assert marks(shown, 3) == ["zebra", "substation"]


def test_a_distant_match_is_marked_and_scrolled_to(qtbot: QtBot) -> None:
    contents = [turn(at, f"Question {at}", WORDS * 30 + f"**needle {at}**") for at in range(300)]
    shown = Shown(qtbot, contents)
    starts = [searchable_text(each.messages).index("needle") for each in contents]
    shown.view.set_find_marks([FindMark(at, s, s + 6) for at, s in enumerate(starts)])
    shown.view.show_find_mark(123)
    shown.view.show_find_mark(300)
    text = shown.settle().turn(123).texts()[-1].view
    selections = text.extraSelections()
    assert [each.cursor.selectedText() for each in selections] == ["needle"]
    assert selections[0].format.background().color().name() == Theme().colors.mark_current
    y = text.mapTo(shown.view.viewport(), QPoint(0, text.y_of(selections[0].cursor.position())))
    assert abs(y.y() - shown.view.viewport().height() / 3) < 30
    shown.view.set_find_marks([])
    assert text.extraSelections() == []


@pytest.mark.parametrize(
    ("question", "answer", "found"),
    [
        ("Cat?", "A cat, a **cat** and `CAT`: [cats](https://x.example).",
         ["Cat", "cat", "cat", "CAT", "cat"]),
        ("\N{GRINNING FACE}\N{GRINNING FACE} cat", "\N{ROCKET} a cat, a **cat**", ["cat"] * 3),
        ("none", "[link](https://cat.example)", []),
    ],
    ids=["markup", "emoji", "not rendered"],
)  # fmt: skip
def test_matches_are_marked_where_they_are_rendered(
    qtbot: QtBot, question: str, answer: str, found: list[str]
) -> None:
    shown = Shown(qtbot, [turn(0, question, answer)]).settle()
    source = searchable_text(shown.contents[0].messages).lower()
    starts = [at for at in range(len(source)) if source.startswith("cat", at)]
    shown.view.set_find_marks([FindMark(0, at, at + 3) for at in starts])
    texts = shown.turn(0).texts()
    selections = [each for text in texts for each in text.view.extraSelections()]
    assert [each.cursor.selectedText() for each in selections] == found
