"""Find in conversation: the presenter with a real find bar, and fakes for everything else."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from tests.fakes.fixtures import fixture_of
from tests.fakes.screens import FakeBridge, FakeConversation, Parts
from tests.fakes.transcripts import turn
from ui.presenters.conversation.navigation import FindPresenter
from ui.widgets.search_box import FindBar
from ui.widgets.transcript.values import FindMark

TEXTS = ["A cat.", "No match.", "CAT, \N{CAT FACE} cat"]


class Library:
    def messages(self, exchanges: Sequence[Any]) -> dict[Any, Any]:
        return {each.id: turn(each.id, TEXTS[each.id], None).messages for each in exchanges}


class Transcript:
    def __init__(self) -> None:
        self.marks: Sequence[FindMark] = ()
        self.shown = -1
        self.focused = False

    def set_find_marks(self, marks: Sequence[FindMark]) -> None:
        self.marks = marks

    def show_find_mark(self, number: int) -> None:
        self.shown = number

    def setFocus(self) -> None:  # noqa: N802 - Qt's name
        self.focused = True


class Finding:
    """A presenter with its bar open; searches take until `finish`."""

    def __init__(self, parts: Parts) -> None:
        self.bar, self.bridge = FindBar(), FakeBridge()
        self.transcript, self.conversation = Transcript(), FakeConversation()
        self._qtbot = parts.qtbot
        path = [SimpleNamespace(id=at) for at in range(len(TEXTS))]
        self.conversation.view = cast("Any", SimpleNamespace(path=path))
        self.presenter = FindPresenter(
            self.bridge, cast("Any", Library()), self.bar, cast("Any", self.transcript),
            cast("Any", self.conversation),
        )  # fmt: skip
        self.presenter.open()
        self.bridge.hold()
        self.finish = self.bridge.release

    def type(self, words: str) -> None:
        """Type words and wait until the search for them has started."""
        with self._qtbot.waitSignal(self.bar.words_changed):
            self.bar.box.setText(words)


finding = fixture_of(Finding)


def test_every_match_is_marked_and_stepped_through(finding: Finding) -> None:
    finding.type("cat")
    finding.finish()
    assert finding.transcript.marks == [FindMark(0, 2, 5), FindMark(2, 0, 3), FindMark(2, 7, 10)]
    assert (finding.transcript.shown, finding.bar.count.text()) == (0, "1 of 3")
    QTest.keyClick(finding.bar.box, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert (finding.transcript.shown, finding.bar.count.text()) == (2, "3 of 3")
    QTest.keyClick(finding.bar.box, Qt.Key.Key_Return)
    assert finding.transcript.shown == 0


@pytest.mark.parametrize("words", ["", "  "])
def test_empty_words_remove_marks_also_of_a_running_search(finding: Finding, words: str) -> None:
    finding.type("cat")
    finding.type(words)
    finding.finish()
    assert finding.transcript.marks == []


def test_closing_the_bar_during_a_search_leaves_no_marks(finding: Finding) -> None:
    finding.type("cat")
    QTest.keyClick(finding.bar.box, Qt.Key.Key_Escape)
    finding.finish()
    assert finding.bar.isHidden()
    assert finding.transcript.marks == []
    assert finding.transcript.focused


def test_another_conversation_closes_the_bar_and_drops_the_search(finding: Finding) -> None:
    finding.type("cat")
    finding.conversation.open_path(None)
    assert finding.bar.isHidden()
    finding.finish()
    assert finding.transcript.marks == []
    finding.presenter.open()
    assert finding.bar.isHidden()
