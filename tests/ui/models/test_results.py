"""Search results: rows by conversation, what is drawn of them, folds, and the box with its filters."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QImage, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QStyleOptionViewItem, QToolButton

from app.domain.ids import ConversationId, PassageId
from app.domain.passages import PassageKind
from app.domain.results import SearchResponse, SearchResult
from app.storage.tables.conversations import FilterValues
from tests.ui.presenters.test_search_views import result
from ui.icons import RESOURCES
from ui.models.conversations import GroupedListModel, ListRole, source_icon
from ui.models.results import (
    FoldRow,
    ResultGroup,
    ResultListModel,
    lead_text,
    origin_text,
    relevance_text,
)
from ui.views.filter_menu import filter_menu
from ui.views.results import ResultsPlace, fitted, with_first_mark
from ui.views.sidebar import Sidebar


@pytest.fixture
def sidebar() -> Sidebar:
    made = Sidebar()
    made.resize(300, 400)
    made.show()
    return made


def turn(number: int, talk: int = 1, **more: Any) -> SearchResult:
    given = {"conversation_id": ConversationId(talk), "conversation_title": f"Talk {talk}", **more}
    return replace(result(number), **given)


def response(query: str, *results: SearchResult, **more: Any) -> SearchResponse:
    return SearchResponse(query, results, 5.0, **more)


def rows(model: GroupedListModel) -> list[str]:
    """Return each row in short: a number is a result."""

    def short(value: object) -> str:
        match value:
            case ResultGroup():
                return f"{value.title} ({value.count})"
            case FoldRow():
                return f"fold {value.hidden}"
            case SearchResult():
                return str(value.passage_id)
        return "heading"

    return [short(model.value_at(model.index(row))) for row in range(model.rowCount())]


# -- the model


@pytest.mark.parametrize(
    ("source", "name", "sign"),
    [("claude_code", "Claude Code", "terminal"), ("open_webui", "Open WebUI", "message-square"),
     ("sample", "Sample", "message-square"), ("commonplace", "", "")],
)  # fmt: skip
def test_a_conversation_shows_the_kind_of_program_it_is_from(
    source: str, name: str, sign: str
) -> None:
    model = ResultListModel()
    model.show_results([turn(1, source=source)], is_list=False, is_same_query=False)
    listed = map(model.index, range(model.rowCount()))
    row = next(each for each in listed if isinstance(model.value_at(each), ResultGroup))
    assert source_icon(source) == sign
    for role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
        assert name in str(row.data(role))
    assert row.data(ListRole.TRAILING) == name
    assert bool(sign) is (RESOURCES / "lucide" / f"{sign}.svg").is_file()


@pytest.mark.parametrize(
    ("turn_is_weak", "document_is_weak", "shown"),
    [(True, False, ["2", "Talk 1 (1)", "1"]), (False, False, ["Talk 1 (1)", "1", "2"]),
     (True, True, ["Talk 1 (1)", "1", "2"])],
)  # fmt: skip
def test_a_document_leads_if_only_it_is_more_than_a_weak_match(
    turn_is_weak: bool, document_is_weak: bool, shown: list[str]
) -> None:
    model = ResultListModel()
    document = turn(2, kind=PassageKind.DOCUMENT, is_weak=document_is_weak)
    model.show_results([turn(1, is_weak=turn_is_weak), document])
    assert [row for row in rows(model) if row != "heading"] == shown


def test_a_document_stands_above_weak_matches_of_other_conversations() -> None:
    model = ResultListModel()
    weak = {"is_weak": True, "is_hint": True}
    document, fact = turn(3, kind=PassageKind.DOCUMENT), turn(4, kind=PassageKind.FACT, **weak)
    model.show_results([turn(1, talk=8), document, turn(2, talk=9, **weak), fact])
    first, second = ["Talk 8 (1)", "1"], ["Talk 9 (1)", "2"]
    assert rows(model) == ["heading", *first, "heading", "3", "heading", *second, "heading", "4"]
    model.show_results([turn(1, talk=8), turn(2, talk=9, **weak), fact])
    assert rows(model) == ["heading", *first, *second, "heading", "4"]


def test_results_are_grouped_by_conversation_in_order_of_the_best(qtmodeltester: object) -> None:
    model = ResultListModel()
    found = [
        turn(1, talk=8), turn(2, talk=9), turn(3, talk=8, is_weak=True),
        turn(4, talk=9, kind=PassageKind.CONVERSATION_SUMMARY, relevance=0.004, is_weak=True),
        turn(5, kind=PassageKind.FACT, conversation_title=""),
    ]  # fmt: skip
    assert model.show_results(found)
    assert rows(model) == [
        "heading", "Talk 8 (2)", "1", "3", "Talk 9 (2)", "2", "4", "heading", "5",
    ]  # fmt: skip
    trailing = [str(model.index(row).data(ListRole.TRAILING) or "") for row in range(9)]
    assert trailing == ["", "2", "90%", "weak · 90%", "2", "90%", "weak", "", "90%"]
    spoken = str(model.index(3).data(Qt.ItemDataRole.AccessibleTextRole))
    assert "What was it? It was this." in spoken
    assert ", a weak match" in spoken
    assert model.row_of(PassageId(4)).row() == 6
    qtmodeltester.check(model)  # type: ignore[attr-defined]


def test_more_than_three_results_of_a_conversation_fold(qtmodeltester: object) -> None:
    model = ResultListModel()
    found = [*(turn(each) for each in range(1, 6)), turn(9, talk=2)]
    model.show_results(found)
    assert rows(model)[1:] == ["Talk 1 (5)", "1", "2", "3", "fold 2", "Talk 2 (1)", "9"]
    model.set_expanded(1, expanded=True)
    assert rows(model)[1:8] == ["Talk 1 (5)", "1", "2", "3", "4", "5", "fold 0"]
    model.show_results(found, is_same_query=True)
    assert 1 in model._expanded
    qtmodeltester.check(model)  # type: ignore[attr-defined]
    model.show_results(found)
    assert rows(model)[5] == "fold 2", "another query begins collapsed"


def test_a_list_shows_no_relevance_and_a_row_says_that_it_is_weak_or_only_near() -> None:
    model = ResultListModel()
    model.show_results([turn(1, source="chatgpt"), turn(2)], is_list=True)
    trailing = [model.index(row).data(ListRole.TRAILING) for row in (1, 2, 3)]
    assert trailing == ["ChatGPT · 2", "", ""]
    weak = turn(1, conversation_title="<b>", relevance=0.13, is_weak=True)
    model.show_results([weak])
    assert relevance_text(weak) == "weak · 13%"
    assert relevance_text(turn(2, relevance=0.999)) == "99%"
    assert origin_text(weak) == "18 Mar 2026 · gpt-4o"
    assert origin_text(turn(3, kind=PassageKind.CONVERSATION_SUMMARY)).startswith("Summary · ")
    tip = str(model.index(2).data(Qt.ItemDataRole.ToolTipRole))
    assert "Weak match" in tip
    assert tip.startswith("<b>\n")
    near = turn(7, kind=PassageKind.FACT, is_weak=True, relevance=0.001, marks=())
    model.show_results([turn(1), near])
    assert rows(model)[1:] == ["Talk 1 (1)", "1", "fold 1"]
    model.set_expanded(-1, expanded=True)
    assert "7" in rows(model)
    assert model.show_results([near]) is False
    assert "7" in rows(model), "where nothing was found the nearest are shown"


def test_a_question_that_is_the_snippet_is_shown_once() -> None:
    asked = turn(1, question_marks=((0, 4),))
    assert lead_text(asked) == ("What was it?", ((0, 4),))
    assert lead_text(replace(asked, snippet=asked.user_question)) == ("", ())
    page = turn(2, kind=PassageKind.MAN_PAGE, conversation_title="ls - list", user_question="")
    assert lead_text(page) == ("ls - list", ())


@pytest.mark.parametrize(
    "found",
    [{"marks": ((0, 1),)}, {"question_marks": ((0, 1),)}, {"is_hint": True}, {"is_weak": False}],
    ids=str,
)
def test_a_word_a_hint_or_a_strong_match_is_a_result(found: dict[str, Any]) -> None:
    model = ResultListModel()
    near = [turn(each, each, relevance=0.001, is_weak=True, marks=()) for each in range(1, 9)]
    assert not model.show_results(near)
    assert len([each for each in rows(model) if each.isdigit()]) == 5, "only the nearest"
    assert model.show_results([*near, replace(near[0], passage_id=PassageId(90), **found)])
    if not found.keys() & {
        "is_hint",
        "is_weak",
    }:  # a word may be anywhere: the nearest may be better
        assert len([each for each in rows(model) if each.isdigit()]) == 9
        return
    assert rows(model)[1:] == ["Talk 1 (2)", "90", "fold 1", "fold 7"], "near ones on request"
    fold = model.value_at(model.index(model.rowCount() - 1))
    assert isinstance(fold, FoldRow)
    model.set_expanded(fold.conversation_id, expanded=True)
    model.set_expanded(1, expanded=True)
    assert len([each for each in rows(model) if each.isdigit()]) == 9


# -- what is drawn


def test_a_result_has_room_for_all_that_is_drawn(sidebar: Sidebar) -> None:
    long = turn(1, snippet="pg_stat_user_indexes jumps\u3042 " * 9, marks=(), model="gpt_4g")
    sidebar.show_answer(response("x", long))
    index = sidebar.results.row_of(PassageId(1))
    row = sidebar.result_list.visualRect(index)
    images = []
    for height in (row.height(), row.height() + 40):
        image = QImage(row.width(), height, QImage.Format.Format_RGB32)
        image.fill(sidebar.palette().window().color())
        painter = QPainter(image)
        option = QStyleOptionViewItem()
        option.rect = image.rect()
        sidebar.result_list.itemDelegate().paint(painter, option, index)
        painter.end()
        images.append(image)
    assert _ink(images[0]) == _ink(images[1])


def _ink(image: QImage) -> int:
    """Return the last line of an image that differs from its first one."""
    lines = [image.copy(0, y, image.width(), 1) for y in range(image.height())]
    return max(y for y, line in enumerate(lines) if line != lines[0])


def test_a_snippet_that_is_cut_says_so(qapp: QApplication) -> None:
    font, text = QFont("monospace", 10), "\U0001f600 some words " * 20
    width = QFontMetricsF(font).horizontalAdvance("x" * 30)
    assert fitted("short", font, width, 2) == "short"
    cut = fitted(text, font, width, 2)
    assert cut[-1] == "\u2026"
    assert 40 < len(cut) < 60
    assert text.startswith(cut[:-1])


def test_a_long_snippet_is_cut_to_its_first_mark() -> None:
    text = "The landlord keeps a part of the money, the deposit of 480 for a scratch, a deposit"
    at, last = text.index("deposit"), text.rindex("deposit")
    found = turn(1, snippet=text, marks=((at, at + 7), (last, last + 7)))
    assert with_first_mark(found, lambda shown: len(shown) <= 60) == (text, found.marks)
    cut, marks = with_first_mark(found, lambda shown: len(shown) <= 30)
    assert cut.startswith("…the money, the deposit of 480")
    assert [cut[start:end] for start, end in marks] == ["deposit", "deposit"]
    word = replace(found, snippet="x" * 50 + " deposit", marks=((51, 58),))
    cut, ((start, end),) = with_first_mark(word, lambda shown: len(shown) <= 20)
    assert (cut, cut[start:end]) == ("…deposit", "deposit")
    unbroken = replace(found, snippet="x" * 50, marks=((40, 50),))
    cut, ((start, end),) = with_first_mark(unbroken, lambda shown: len(shown) <= 20)
    assert cut[start:end] == "x" * 10
    chinese = replace(
        found, snippet="天气很好，我们去散步。" * 6 + "狗在海滩上跑。", marks=((68, 70),)
    )
    cut, ((start, end),) = with_first_mark(chinese, lambda shown: len(shown) <= 40)
    assert (cut[start:end], cut.startswith("…"), start) == ("海滩", True, 13)


# -- the list


def test_keys_fold_a_conversation_and_a_click_on_its_title_opens_the_best(sidebar: Sidebar) -> None:
    opened: list[int] = []
    sidebar.result_list.result_chosen.connect(lambda each: opened.append(each.passage_id))
    sidebar.show_answer(response("x", *map(turn, range(1, 7)), turn(9, talk=2)))
    view, model = sidebar.result_list, sidebar.results
    view.setCurrentIndex(model.row_of(PassageId(2)))
    QTest.keyClick(view, Qt.Key.Key_Right)
    assert model.row_of(PassageId(6)).isValid()
    assert model.value_at(view.currentIndex()) == turn(2)
    view.setCurrentIndex(model.row_of(PassageId(6)))
    QTest.keyClick(view, Qt.Key.Key_Left)
    assert isinstance(model.value_at(view.currentIndex()), FoldRow)
    QTest.keyClick(view, Qt.Key.Key_Return)
    assert model.row_of(PassageId(6)).isValid(), "Enter on a fold shows the rest"
    view.choose(model.index(1))
    view.choose(model.row_of(PassageId(9)))
    assert opened == [1, 9]


def test_results_come_back_with_selection_and_scroll_position(sidebar: Sidebar) -> None:
    many = [turn(each, talk=each) for each in range(1, 21)]
    sidebar.box.setText("bread")
    sidebar.show_answer(response("bread", *many))
    view = sidebar.result_list
    view.setCurrentIndex(sidebar.results.row_of(PassageId(7)))
    view.verticalScrollBar().setValue(300)
    place = sidebar.results_place
    assert place == ResultsPlace("bread", PassageId(7), 300)
    sidebar.box.setText("jam")
    sidebar.show_answer(response("jam", *many[:3]))
    assert sidebar.back_to_results(place)
    assert sidebar.query == "bread"
    sidebar.show_answer(response("bread", *many))
    assert (view.place, view.verticalScrollBar().value()) == (place, 300)


def test_enter_opens_nothing_that_was_not_found(sidebar: Sidebar) -> None:
    opened: list[object] = []
    sidebar.result_list.result_chosen.connect(opened.append)
    near = [turn(each, relevance=0.02, is_weak=True, marks=()) for each in range(1, 9)]
    sidebar.box.setText("zxqv")
    QTest.keyClick(sidebar.box, Qt.Key.Key_Return)
    sidebar.show_answer(response("zxqv", *near))
    assert "Nothing found" in str(sidebar.results.index(0).data())
    assert opened == []


# -- the box and its filters


def chips(sidebar: Sidebar) -> list[str]:
    made = sidebar.search.findChildren(QToolButton)
    return [each.text() for each in made if each.property("kind") == "chip" and each.isVisible()]


def test_a_finished_filter_becomes_a_chip_and_stays_in_the_query(sidebar: Sidebar) -> None:
    box = sidebar.search
    QTest.keyClicks(box.line, "rye tag:work")
    assert (box.filters, box.line.text()) == ((), "rye tag:work")
    QTest.keyClicks(box.line, " bread")
    assert (box.filters, box.line.text()) == (("tag:work",), "rye bread")
    QTest.keyClicks(box.line, ' title:"my trip" is:purple -tag:x tag:')
    assert box.filters == ("tag:work", 'title:"my trip"')
    assert box.line.text() == "rye bread is:purple -tag:x tag:"
    assert box.query == 'tag:work title:"my trip" rye bread is:purple -tag:x tag:'
    assert [each.split("  ")[0] for each in chips(sidebar)] == ["tag: work", "title: my trip"]
    box.remove_filter("tag:work")
    assert box.query.startswith('title:"my trip" rye')


def test_filters_are_taken_at_enter_and_removed_by_keys(sidebar: Sidebar) -> None:
    box = sidebar.search
    asked: list[str] = []
    sidebar.query_changed.connect(asked.append)
    QTest.keyClicks(box.line, "is:archived")
    QTest.keyClick(box.line, Qt.Key.Key_Return)
    assert (box.filters, box.line.text(), asked) == (("is:archived",), "", ["is:archived"])
    QTest.keyClick(box.line, Qt.Key.Key_Backspace)
    assert box.query == ""
    box.show_query("before:2025 rye tag:work")
    assert box.filters == ("before:2025", "tag:work")
    QTest.keyClick(box.line, Qt.Key.Key_Escape)
    assert (box.query, chips(sidebar)) == ("", [])


def entries(menu: QMenu) -> dict[str, Callable[[], None]]:
    """Return what each entry of a menu and its submenus does, by path."""
    found: dict[str, Callable[[], None]] = {}
    for action in menu.actions():
        below = action.menu()
        if isinstance(below, QMenu):
            found |= {f"{action.text()}/{key}": run for key, run in entries(below).items()}
        elif action.text():
            found[action.text()] = action.trigger
    return found


def test_the_menu_writes_filters(sidebar: Sidebar) -> None:
    box = sidebar.search
    values = FilterValues(
        tags=(("to read", 3), ("work", 2)), models=(("openai:gpt-5", 7), ("ollama:q", 1)),
        sources=(("commonplace", 5), ("chatgpt", 2)), projects=(("New house", 4),),
    )  # fmt: skip
    menu = filter_menu(box, values, (), date(2026, 5, 3))
    does = entries(menu)
    for each in (
        "Tag/to read\t3", "Tag/work\t2", "Model/gpt-5\t7", "Model/q\t1", "Source/ChatGPT\t2",
        "Project/New house\t4",
        "After/30 days ago", "After/Today", "Before/The beginning of this year", "Archived",
    ):  # fmt: skip
        does[each]()
    assert box.filters == (
        'tag:"to read"', "tag:work", "model:ollama:q", "source:chatgpt", 'project:"New house"',
        "after:2026-05-03", "before:2026-01-01", "is:archived",
    )  # fmt: skip
    again = entries(filter_menu(box, values, (), date(2026, 5, 3)))
    again["Archived"]()
    assert "is:archived" not in box.filters
    again["Remove all filters"]()
    again["Title contains…"]()
    assert box.query == "title:"
    empty = entries(filter_menu(box, FilterValues(), (), date(2026, 5, 3)))
    assert "Tag/No conversation has a tag." in empty
    menu.popup(QPoint(0, 0))
    menu.close()
