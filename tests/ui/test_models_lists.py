"""The lists of the sidebar as item models."""

from datetime import UTC, datetime, timedelta

import pytest
from PySide6.QtCore import QModelIndex, Qt
from pytestqt.qtbot import QtBot

from app.domain.conversations import Conversation, TitleOrigin
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import PassageKind, SearchResult
from ui.models.conversations import ConversationListModel, GroupedListModel, ListRole, group_of
from ui.models.results import ResultListModel

NOW = datetime(2026, 3, 18, 15, 0, tzinfo=UTC)


def conversation(number: int, changed: datetime = NOW, *, pinned: bool = False) -> Conversation:
    return Conversation(
        id=ConversationId(number),
        uid=str(number),
        title=f"Conversation {number}",
        title_origin=TitleOrigin.USER,
        source="commonplace",
        created_at=changed,
        updated_at=changed,
        pinned=pinned,
    )


def result(number: int, kind: PassageKind = PassageKind.TURN) -> SearchResult:
    return SearchResult(
        kind=kind,
        passage_id=PassageId(number),
        source="commonplace",
        conversation_id=ConversationId(number),
        conversation_title=f"Conversation {number}",
        archived=False,
        turn_number=0,
        exchange_id=ExchangeId(number),
        message_id=MessageId(number),
        relevance=0.75,
        is_weak=False,
        cosine=None,
        user_question="What was it?",
        snippet="It was this.",
        marks=((0, 2),),
        created_at=NOW,
        model=None,
    )


def shown(model: GroupedListModel) -> list[object]:
    return [model.data(model.index(row)) for row in range(model.rowCount())]


@pytest.mark.parametrize(
    ("age", "group"),
    [
        (timedelta(), "Today"),
        (timedelta(days=1), "Yesterday"),
        (timedelta(days=4), "This week"),
        (timedelta(days=12), "This month"),
        (timedelta(days=40), "February"),
        (timedelta(days=400), "2025"),
    ],
)
def test_conversations_are_grouped_by_what_people_remember_of_time(
    age: timedelta, group: str
) -> None:
    assert group_of(conversation(1, NOW - age), NOW) == group


def test_the_list_names_its_groups_and_pinned_ones_come_first(
    qtbot: QtBot, qtmodeltester: object
) -> None:
    model = ConversationListModel()
    model.show_conversations(
        [conversation(1, NOW - timedelta(days=30), pinned=True), conversation(2)], NOW
    )
    assert shown(model) == ["Pinned", "Conversation 1", "Today", "Conversation 2"]
    qtmodeltester.check(model)  # type: ignore[attr-defined]


def test_rows_that_stay_are_not_replaced(qtbot: QtBot) -> None:
    model = ConversationListModel()
    model.show_conversations([conversation(number) for number in range(5)], NOW)
    removed: list[tuple[int, int]] = []
    model.rowsRemoved.connect(lambda _parent, first, last: removed.append((first, last)))

    changed = [conversation(number) for number in (0, 1, 9, 3, 4)]
    model.show_conversations(changed, NOW)

    assert removed == [(3, 3)]
    assert shown(model)[3] == "Conversation 9"


def test_a_conversation_is_found_by_its_id_whatever_else_changed(qtbot: QtBot) -> None:
    model = ConversationListModel()
    model.show_conversations([conversation(7), conversation(8)], NOW)
    index = model.row_of(ConversationId(8))
    assert model.data(index) == "Conversation 8"
    assert not model.row_of(ConversationId(99)).isValid()


def test_headings_can_neither_be_chosen_nor_opened(qtbot: QtBot) -> None:
    model = ConversationListModel()
    model.show_conversations([conversation(1)], NOW)
    heading = model.index(0)
    assert model.data(heading, ListRole.HEADING) is True
    assert model.value_at(heading) is None
    assert not model.flags(heading) & Qt.ItemFlag.ItemIsSelectable
    assert model.value_at(QModelIndex()) is None


def test_results_are_grouped_by_kind_with_their_number(qtbot: QtBot, qtmodeltester: object) -> None:
    model = ResultListModel()
    model.show_results([result(1), result(2, PassageKind.CONVERSATION_SUMMARY), result(3)])
    assert shown(model) == [
        "Turns · 2",
        "Conversation 1",
        "Conversation 3",
        "Conversations · 1",
        "Conversation 2",
    ]
    assert model.data(model.index(1), ListRole.ASIDE) == "75%"
    qtmodeltester.check(model)  # type: ignore[attr-defined]


def test_a_long_list_comes_a_page_at_a_time(qtbot: QtBot, qtmodeltester: object) -> None:
    model = ConversationListModel()
    model.show_conversations([conversation(number) for number in range(1000)], NOW, grouped=False)
    assert model.rowCount() == 100
    model.fetchMore(QModelIndex())
    assert model.rowCount() == 200
    assert model.row_of(ConversationId(500)).row() == 500
    assert model.rowCount() == 501
    model.show_conversations([conversation(number) for number in range(600)], NOW, grouped=False)
    assert model.rowCount() == 501  # who has scrolled down stays there
    qtmodeltester.check(model)  # type: ignore[attr-defined]
    while model.canFetchMore(QModelIndex()):
        model.fetchMore(QModelIndex())
    assert model.rowCount() == 600
