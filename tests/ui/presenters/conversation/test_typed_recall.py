"""Recall while typing: the text in the composer is searched for after a pause, and the switch shows the result."""

from collections.abc import Callable

import shiboken6
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QCheckBox, QPlainTextEdit, QRadioButton

from app.chat.planner import NewConversation
from app.chat.typed_recall import TypedContribution, TypedItem
from app.domain.conversations import ANY_RECALL, Draft
from app.domain.ids import ConversationId, PassageId
from app.domain.passages import PassageKind
from app.domain.recall import RecalledItem, RecalledItemDetails, RecallLayer
from app.memory.recall.mentions import Mention
from tests.fakes.fixtures import fixture_of
from tests.fakes.screens import AT, TALK, Parts, view_of
from ui.presenters.conversation.composer import TypedRecallPresenter
from ui.widgets.composer.composer import Composer
from ui.widgets.composer.memory_switch import MemoryUse

TITLE = "Tea & cake on the terrace of a mill by the river in December"


def foreseen(
    passage: int, *, left_out: bool = False, sentence: str = "You like green."
) -> TypedItem:
    item = RecalledItem(
        RecallLayer.HISTORY, PassageKind.TURN, PassageId(passage), ConversationId(9), None, None,
        0.9, None, 0.9, 10, injected=not left_out, dropped_by="",
    )  # fmt: skip
    return TypedItem(RecalledItemDetails(item, TITLE, 3, "tea?", None, AT), sentence)


class Typing:
    """The presenter with a real composer, and what it asked for."""

    def __init__(self, parts: Parts) -> None:
        self.composer, self.open, self.qtbot = Composer(), parts.open, parts.qtbot
        self.open.open_path(view_of(1))
        self.asked: list[Draft] = []
        self.projects: list[str | None] = []
        self.cancelled: list[Callable[[], bool]] = []
        self.is_on = True
        self.sentence = "You like green."
        self.presenter = parts.make(
            TypedRecallPresenter, typed=self, composer=self.composer, is_on=lambda: self.is_on
        )
        self.presenter.setParent(self.composer)  # its timer ends with it
        self.presenter._pause.setInterval(20)

    def prepare(
        self, draft: Draft, where: int, is_cancelled: Callable[[], bool], project: str | None
    ) -> TypedContribution:
        assert where == TALK
        self.asked.append(draft)
        self.projects.append(project)
        self.cancelled.append(is_cancelled)
        if not draft.choice.is_on:
            return TypedContribution()
        out = draft.choice.left_out
        return TypedContribution(
            [foreseen(each, left_out=each in out, sentence=self.sentence) for each in (1, 2)],
            [Mention(0, 4, ConversationId(9))],
        )

    def type(self, text: str) -> None:
        self.composer.box.setPlainText(text)
        self.qtbot.waitUntil(lambda: not self.presenter._pause.isActive())


typing = fixture_of(Typing)


def test_the_switch_shows_what_memory_brings_and_marks_mentions(typing: Typing) -> None:
    memory = typing.composer.memory
    typing.type("@Tea and cake?")
    (first, _) = memory.items
    assert first.title.startswith("Tea & cake on the")
    assert ", turn 4 \u00b7 " in first.title
    assert len(first.title.partition(",")[0]) <= 34, "the list is not wider"
    assert first.sentence == "You like green."
    assert memory.text().startswith("2 ")
    (mark,) = typing.composer.box.extraSelections()
    assert mark.cursor.selectedText() == "@Tea"
    typing.type("")
    assert memory.items == ()
    assert typing.composer.box.extraSelections() == []


def test_another_project_of_a_new_conversation_is_searched_at_once(typing: Typing) -> None:
    typing.type("Which tea do I like?")
    typing.open.new = NewConversation(project="g")
    typing.open.project_chosen.emit()
    assert typing.projects == [None, "g"]


def test_a_row_of_a_table_is_shown_as_words(typing: Typing) -> None:
    typing.sentence = "| Green | | **45** |"
    typing.type("Which tea do I like?")
    assert typing.composer.memory.items[0].sentence == "Green, 45"


def test_a_click_on_the_switch_leaves_the_focus_in_the_text(typing: Typing) -> None:
    composer = typing.composer
    composer.show()
    composer.box.setFocus()
    typing.qtbot.waitUntil(composer.box.hasFocus)
    QTest.mouseClick(composer.memory, Qt.MouseButton.LeftButton)
    popup = composer.memory.findChild(QRadioButton).window()
    assert popup.isVisible()
    popup.hide()
    typing.qtbot.waitUntil(composer.box.hasFocus)


def test_what_had_the_focus_may_be_gone_when_the_list_closes(typing: Typing) -> None:
    composer = typing.composer
    read = QPlainTextEdit(composer)  # as the text of a turn, which the next one may replace
    composer.show()
    read.setFocus()
    typing.qtbot.waitUntil(read.hasFocus)
    composer.memory.open()
    shiboken6.delete(read)
    composer.memory.findChild(QRadioButton).window().hide()
    assert composer.isVisible()


def test_one_can_be_left_out_of_this_message_alone(typing: Typing) -> None:
    memory = typing.composer.memory
    typing.type("Which tea do I like?")
    memory.open()
    boxes = memory.findChildren(QCheckBox)
    assert [each.isChecked() for each in boxes] == [True, True]
    boxes[1].click()
    assert typing.asked[-1].choice.left_out == {2}
    assert memory.text().startswith("1 ")
    assert [each.isChecked() for each in boxes] == [True, False]
    assert typing.composer.draft.choice.left_out == {2}
    typing.composer.clear()
    assert memory.choice == ANY_RECALL


def test_memory_can_be_off_for_a_message_and_for_a_conversation(typing: Typing) -> None:
    memory = typing.composer.memory
    switched: list[bool] = []
    memory.here_switched.connect(switched.append)
    typing.type("Which tea do I like?")
    memory.open()
    on, not_now, not_here = memory.findChildren(QRadioButton)
    not_now.click()
    assert (memory.use, typing.composer.draft.choice.is_on) == (MemoryUse.NOT_NOW, False)
    assert memory.items == ()
    not_here.click()
    assert (memory.use, switched) == (MemoryUse.NOT_HERE, [False])
    on.click()
    assert (memory.use, switched) == (MemoryUse.ON, [False, True])
    assert len(memory.items) == 2
    typing.is_on = False
    typing.presenter.show_use()
    assert not any(each.isEnabled() for each in (on, not_now, not_here))


def test_a_narrow_composer_shows_the_number_alone(typing: Typing) -> None:
    typing.composer.resize(900, 120)
    typing.type("Which tea do I like?")
    words = typing.composer.memory.text()
    typing.composer.resize(450, 120)
    typing.composer.show()
    assert typing.composer.memory.text() == "2"
    assert typing.composer.memory.accessibleDescription() == words
    typing.composer.resize(900, 120)
    assert typing.composer.memory.text() == words


def test_a_draft_keeps_its_choice(typing: Typing) -> None:
    typing.composer.memory.choose(MemoryUse.NOT_NOW)
    typing.composer.box.setPlainText("Quietly")
    draft = typing.composer.draft
    typing.composer.show_draft(Draft("another"))
    assert typing.composer.memory.choice.is_on
    typing.composer.show_draft(draft)
    assert not typing.composer.memory.choice.is_on
