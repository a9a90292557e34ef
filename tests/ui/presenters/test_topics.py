"""Topics in the window: the dialog, what it requests, and the trail above a conversation."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QInputDialog, QMenu, QWidget
from pytestqt.qtbot import QtBot

from app.domain.change_set import ChangeSet
from app.domain.errors import NotFound
from app.domain.ids import ConversationId
from app.domain.records.projects import Project
from app.domain.records.topics import Topic, TopicConversation, TopicId, Trail
from app.index.query import filters_in
from tests.fakes.fixtures import fixture_of
from tests.fakes.screens import Parts, Recorder, view_of
from ui.presenters.memory.topics import TopicsPresenter
from ui.views.chat_pane import ChatPane
from ui.views.memory.inspector import InspectorView, RelatedList
from ui.widgets.search_box import SearchBox

MARCH, JULY = datetime(2026, 3, 6, tzinfo=UTC), datetime(2026, 7, 9, tzinfo=UTC)
HERON = Topic(TopicId(1), "Heron gateway", 5, MARCH, JULY, TopicId(9), decision="Retry thrice")
CELLO = Topic(TopicId(2), "Cello", 6, MARCH, JULY)
WIDE = Topic(TopicId(9), "Servers", 9, MARCH, JULY)
EARLIER = tuple(
    TopicConversation(ConversationId(each), f"Talk {each}", MARCH, MARCH) for each in (3, 4)
)

_DARK = 140  # of 255: letters, but no background


class Screen:
    """The presenter over two topics, one of them below a wider one."""

    def __init__(self, parts: Parts) -> None:
        self.service = Recorder(topics=(CELLO, WIDE, HERON), trail=Trail(HERON, EARLIER))
        self.chat, self.talk = ChatPane(), parts.open
        self.related = RelatedList(self.chat)
        self.box = SearchBox(
            lambda text: [(each.start, each.end) for each in filters_in(text)], self.chat
        )
        self.bridge = parts.bridge
        self.projects = Recorder(save=Project("u1", "Strings"))
        self.presenter = parts.make(
            TopicsPresenter, topics=self.service, projects=self.projects, chat=self.chat,
            related=self.related, box=self.box,
        )  # fmt: skip

    def dialog(self, *selected: int) -> Any:
        dialog: Any = self.presenter.open()
        for each in selected:
            dialog.table.setCurrentItem(dialog.table.topLevelItem(each))
        return dialog

    def last_call(self) -> tuple[Any, ...]:
        return next(each for each in reversed(self.service.calls) if each[0] != "topics")


screen = fixture_of(Screen)


def test_topics_are_listed_below_wider_ones(screen: Screen) -> None:
    dialog = screen.dialog()
    top = dialog.table.topLevelItem(1)
    assert [top.text(each) for each in (0, 2)] == ["Servers", "9"]
    assert [top.child(0).text(each) for each in range(3)] == ["Heron gateway", "Retry thrice", "5"]
    dialog.box.setText("thrice")
    assert dialog.table.topLevelItem(0).isHidden()
    assert not top.isHidden()
    assert not top.child(0).isHidden()


def test_tab_into_the_list_selects_the_first_topic_shown(screen: Screen, qtbot: QtBot) -> None:
    dialog = screen.dialog()
    dialog.activateWindow()
    dialog.box.setFocus()
    qtbot.waitUntil(dialog.box.hasFocus)
    dialog.box.setText("Servers")
    assert not dialog.rename.isEnabled()
    dialog.table.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.waitUntil(dialog.rename.isEnabled)
    assert [each.name for each in dialog.table.selected] == ["Servers"]


def test_a_topic_is_hidden_and_its_conversations_are_shown(screen: Screen) -> None:
    dialog = screen.dialog(0)
    dialog.hide_topic.click()
    assert screen.last_call() == ("hide", 2, True)
    dialog.open_topic.click()
    assert screen.box.filters == ("topic:Cello",)


def test_topics_are_merged_into_the_one_selected_last(screen: Screen) -> None:
    dialog = screen.dialog(0)
    assert not dialog.merge.isEnabled()
    dialog.table.topLevelItem(1).child(0).setSelected(True)
    assert dialog.merge.isEnabled()
    assert not dialog.rename.isEnabled()
    dialog.merge.click()
    assert screen.last_call() == ("merge", [1], 2)


def test_merges_are_undone_where_there_are_some(screen: Screen) -> None:
    assert screen.dialog(0).split.isHidden()
    screen.service.results["topics"] = (replace(CELLO, has_merged=True), WIDE, HERON)
    dialog = screen.dialog(0)
    dialog.split.click()
    assert screen.last_call() == ("split", 2)


def test_a_topic_becomes_a_project_of_its_conversations_that_have_none(screen: Screen) -> None:
    screen.service.results["conversations"] = (
        *EARLIER, TopicConversation(ConversationId(5), "Talk 5", MARCH, MARCH, "other"),
    )  # fmt: skip
    dialog = screen.dialog(0)
    dialog.make_project.click()
    (question,) = dialog.findChildren(QInputDialog)
    assert (question.textValue(), screen.projects.calls) == ("Cello", [])
    question.setTextValue("Strings")
    question.accept()
    assert screen.projects.calls == [("save", Project("", "Strings")), ("move", [3, 4], "u1")]


def test_an_error_is_shown_in_the_dialog(screen: Screen) -> None:
    dialog = screen.dialog(0)
    screen.service.error = NotFound("Gone", "Look again.")
    dialog.hide_topic.click()
    assert dialog.status.text() == "Gone. Look again."


def test_a_trail_stands_above_a_conversation_and_lists_the_earlier_ones(screen: Screen) -> None:
    assert screen.chat.trail.isHidden()
    screen.talk.open_path(view_of(1))
    assert not screen.chat.trail.isHidden()
    assert "3" in screen.chat.trail.text()
    assert "Heron gateway" in screen.chat.trail.text()
    screen.chat.setMinimumWidth(200)  # else its layout would not let it be that narrow
    screen.chat.show()
    screen.chat.resize(200, 500)
    assert screen.chat.trail.text().endswith("\N{HORIZONTAL ELLIPSIS}")
    screen.chat.resize(1_000, 600)
    assert screen.chat.trail.text().endswith("2026")
    screen.chat.trail.click()
    (menu,) = screen.chat.trail.findChildren(QMenu)
    first, second, everything = menu.actions()
    second.trigger()
    assert screen.talk.shown == [(4,)]
    everything.trigger()
    assert screen.box.filters == ('topic:"Heron gateway"',)
    assert first.text().startswith("Talk 3")
    menu.close()
    QApplication.processEvents()


def test_related_past_work_is_listed_newest_first_and_opened(screen: Screen) -> None:
    assert screen.related.isHidden()
    screen.service.results["trail"] = Trail(HERON, (), EARLIER)
    screen.talk.open_path(view_of(1))
    assert screen.chat.trail.isHidden(), "nothing is earlier"
    rows = [screen.related.list.item(each) for each in range(screen.related.list.count())]
    assert [each.text().split(" \u00b7 ")[1] for each in rows] == ["Talk 4", "Talk 3"]
    screen.related.list.itemClicked.emit(rows[0])
    assert screen.talk.shown == [(4,)]
    screen.related.all.click()
    assert screen.box.filters == ('topic:"Heron gateway"',)
    screen.service.results["trail"] = None
    screen.talk.open_path(view_of(1))
    assert screen.related.isHidden()


def test_the_trail_leaves_with_its_conversation_and_its_topic(screen: Screen) -> None:
    screen.talk.open_path(view_of(1))
    screen.service.results["trail"] = None
    screen.bridge.changed.emit(ChangeSet(found_topics=True))
    assert screen.chat.trail.isHidden()
    screen.service.results["trail"] = Trail(HERON, EARLIER)
    screen.bridge.changed.emit(ChangeSet(found_topics=True))
    assert not screen.chat.trail.isHidden()
    screen.talk.open_path(None)
    assert screen.chat.trail.isHidden()


def test_the_trail_of_one_conversation_never_stands_above_another(screen: Screen) -> None:
    screen.talk.open_path(view_of(1))
    screen.bridge.hold()
    screen.talk.open_path(view_of(1))
    assert not screen.chat.trail.isHidden()
    screen.talk.open_path(view_of(1, number=8))
    assert screen.chat.trail.isHidden()
    assert screen.related.isHidden()
    screen.bridge.release()


def first_ink(part: QWidget) -> int:
    """The x of the first pixel of text in a widget, in its window."""
    window = part.window()
    image, at = window.grab().toImage(), part.mapTo(window, QPoint())
    rows = range(at.y() + 4, at.y() + part.height() - 4)
    columns = range(at.x(), at.x() + part.width())
    return next(x for x in columns if any(image.pixelColor(x, y).lightness() < _DARK for y in rows))


@pytest.mark.usefixtures("appearance")
def test_the_text_of_lists_and_quiet_buttons_is_below_the_heading() -> None:
    chat, inspector = ChatPane(), InspectorView()
    chat.show_title("Heron", private=False, editable=True)
    chat.show_trail("Heron")
    chat.show()
    chat.composer.box.setFocus()  # the field of a title has a frame with it
    related = inspector.related
    related.show_trail(Trail(HERON, (), EARLIER * 3))
    inspector.show()
    inspector.setFocus()  # the row with it has a frame
    QApplication.processEvents()
    assert first_ink(chat.trail) == pytest.approx(first_ink(chat.title), abs=2)
    for part in (related.list, related.all, inspector._question):
        assert first_ink(part) == pytest.approx(first_ink(related._heading), abs=2)
