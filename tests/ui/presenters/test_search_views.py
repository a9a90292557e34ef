"""Views of a search: the sidebar, the dialogs that explain one, and the presenter of searches."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import UTC, datetime
from functools import wraps
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QItemSelectionModel, QPoint, QSignalBlocker, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QMenu, QPushButton, QTreeWidget

from app.domain.change_set import ChangeSet
from app.domain.diagnostics import (
    Explanation,
    FeatureScore,
    Obstacle,
    ObstacleCause,
    Probe,
    ProbeDetails,
    QueryWord,
)
from app.domain.errors import IndexUnavailable, InvalidInput
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import PassageKind
from app.domain.results import SearchResponse, SearchResult
from app.memory.search.coverage import EmbeddingCoverage
from tests.fakes.screens import LoopBridge, Parts, Recorder
from ui.presenters import search as search_module
from ui.presenters.search import SearchPresenter, completeness_of
from ui.views.dialogs.why_dialog import WhyDialog, figures, headline, matched_words
from ui.views.memory.questions_view import QuestionsView, summary
from ui.views.sidebar import Sidebar

NOW = datetime(2026, 3, 18, 15, 0, tzinfo=UTC)


def result(number: int, relevance: float = 0.9, *, weak: bool = False) -> SearchResult:
    return SearchResult(
        kind=PassageKind.TURN, passage_id=PassageId(number), source="commonplace",
        conversation_id=ConversationId(number), conversation_title=f"Talk <b>{number}</b>",
        archived=False, turn_number=0, exchange_id=ExchangeId(number), message_id=MessageId(number),
        relevance=relevance, is_weak=weak, cosine=None, user_question="What was it?",
        snippet="It was this.", marks=((0, 2),), created_at=NOW, model="openai:gpt-4o",
    )  # fmt: skip


def answer(query: str, *numbers: int, relevance: float = 0.9) -> SearchResponse:
    return SearchResponse(query, tuple(result(each, relevance) for each in numbers), 5.0)


@pytest.fixture
def sidebar() -> Sidebar:
    made = Sidebar()
    made.resize(300, 400)
    made.show()
    return made


def marked(sidebar: Sidebar) -> object:
    value = sidebar.results.value_at(sidebar.result_list.currentIndex())
    return value.passage_id if isinstance(value, SearchResult) else None


# -- the sidebar
def test_another_answer_to_the_same_query_keeps_selection_and_position(sidebar: Sidebar) -> None:
    sidebar.box.setText("bread")
    sidebar.show_answer(answer("bread", *range(1, 21)), is_final=False)
    touched: list[object] = []
    sidebar.results.rowsInserted.connect(lambda *_: touched.append("in"))
    sidebar.results.rowsRemoved.connect(lambda *_: touched.append("out"))
    sidebar.show_answer(answer("bread", *range(1, 21)))
    assert touched == []  # equal results are not drawn again
    sidebar.result_list.selectionModel().setCurrentIndex(
        sidebar.results.row_of(PassageId(7)), QItemSelectionModel.SelectionFlag.ClearAndSelect
    )
    sidebar.result_list.verticalScrollBar().setValue(200)
    sidebar.show_answer(answer("bread", 9, *range(1, 9), *range(10, 21), relevance=0.8))
    assert (marked(sidebar), sidebar.result_list.verticalScrollBar().value()) == (7, 200)
    sidebar.show_answer(answer("bread and butter", *range(1, 21)))
    assert (marked(sidebar), sidebar.result_list.verticalScrollBar().value()) == (None, 0)


@pytest.mark.parametrize(("is_early", "opened"), [(True, 2), (False, 1)])
def test_enter_opens_the_best_result_of_the_final_answer_or_of_the_one_on_screen(
    sidebar: Sidebar, is_early: bool, opened: int
) -> None:
    chosen: list[int] = []
    sidebar.result_list.result_chosen.connect(lambda each: chosen.append(each.passage_id))
    sidebar.box.setText("bread")
    for press in (is_early, not is_early):
        if press:
            QTest.keyClick(sidebar.box, Qt.Key.Key_Return)
        else:
            sidebar.show_answer(answer("bread", 1, 2), is_final=False)
    assert chosen == ([] if is_early else [1])
    sidebar.show_answer(answer("bread", 2, 1))
    assert chosen == [opened]


def test_texts_neither_format_nor_widen_the_sidebar(sidebar: Sidebar) -> None:
    narrowest = sidebar.minimumSizeHint().width()
    typed = "<img src='x'><b>" + "x" * 480
    sidebar.show_message(f"'{typed}' is not a date.")
    sidebar.show_note(typed)
    labels = [each for each in sidebar.findChildren(QLabel) if each.text()]
    assert {each.textFormat() for each in labels} == {Qt.TextFormat.PlainText}
    assert sidebar.minimumSizeHint().width() == narrowest


def test_back_shows_results_and_the_note_above_them(sidebar: Sidebar) -> None:
    assert not sidebar.back_to_results()
    sidebar.box.setText("bread")
    sidebar.show_answer(answer("bread", 1))
    sidebar.show_note("Text search only.")
    sidebar.box.clear()
    sidebar.show_conversations((), "Nothing yet.")
    assert sidebar.back_to_results()
    assert (sidebar.box.text(), sidebar.shows_results) == ("bread", True)
    assert sidebar._note.text() == "Text search only."


# -- the line under the box
@pytest.mark.parametrize(
    ("change", "coverage", "is_embedding", "shown", "will_change"),
    [({"by_meaning": True}, 1.0, True, "", False), ({}, None, True, "", False),
     ({"by_meaning": True, "covered_share": 0.874}, 1.0, True, "87%", True),
     ({"by_meaning": True, "covered_share": 0.9999}, 1.0, True, "99%", True),
     ({"notice": "The server is gone."}, 0.43, True, "The server is gone.", False),
     ({}, 0.43, True, "43%", True), ({}, 0.43, False, "43%", False),
     ({}, 1.0, True, "being loaded", True), ({"by_meaning": True}, 0.43, True, "43%", False),
     ({"by_meaning": True}, 0.43, False, "meaning is off", False)],
)  # fmt: skip
def test_the_line_under_the_box_shows_what_the_answer_leaves_out(
    change: dict[str, Any],
    coverage: float | None,
    is_embedding: bool,
    shown: str,
    will_change: bool,
) -> None:
    given = None if coverage is None else EmbeddingCoverage("space", coverage)
    found = replace(answer("bread", 1), **change)
    text, repeats = completeness_of(found, given, is_embedding=is_embedding)
    assert (repeats, bool(text)) == (will_change, bool(shown))
    assert shown in text


# -- why
def explained(**fields: object) -> Explanation:
    whole = Explanation(
        question="bread",
        exchange_id=ExchangeId(1),
        conversation_id=ConversationId(1),
        conversation_title="Baking <i>",
        turn_number=3,
        user_question="How is it done?",
        rank=4,
        ranked_count=1_072,
        message_id=MessageId(1),
        score=3.21,
        relevance=0.13,
        cosine=0.277,
        coverage=0.5,
        floor=0.7,
        points=(
            FeatureScore("words", "Words in it", 1.5, 2.0),
            FeatureScore("length", "Length", -0.5, None),
        ),
        words=(QueryWord("bread", is_present=True), QueryWord("winter", is_present=False)),
        obstacles=(Obstacle(ObstacleCause.LIMIT, "It is number 4.", "Ask better."),),
        by_meaning=True,
        notice="",
    )
    return replace(whole, **fields)  # type: ignore[arg-type]


def on_screen(dialog: WhyDialog | QuestionsView) -> str:
    words = [each.text() for each in dialog.findChildren(QLabel) if each.isVisibleTo(dialog)]
    for table in dialog.findChildren(QTreeWidget):
        if table.isVisibleTo(dialog):
            for number in range(table.topLevelItemCount()):
                row = table.topLevelItem(number)
                words.append(" | ".join(row.text(at) for at in range(table.columnCount())))
    return "\n".join(words)


def button(dialog: WhyDialog | QuestionsView, words: str) -> QPushButton:
    return next(each for each in dialog.findChildren(QPushButton) if each.text() == words)


def test_the_dialog_shows_what_explains_a_place_and_asks_what_is_in_the_box() -> None:
    dialog = WhyDialog("Baking, turn 3", "bread")
    dialog.show_explanation(explained())
    shown = on_screen(dialog)
    for words in (
        "Baking <i>, turn 4: How is it done?",
        "It is number 4 of 1,072 results.",
        "Relevance 13%, cosine 0.277, 3.21 points in all.",
        "• It is number 4. Ask better.",
        "It contains: bread\nIt does not contain: winter",
        "Words in it | +1.50 | +2.00",
        "Length | -0.50 | ",
    ):
        assert words in shown
    dialog.show_error(InvalidInput("The query '' is too short", "Type 2 to 500 characters."))
    assert "too short" in on_screen(dialog)
    assert "Words in it" not in on_screen(dialog)
    assert not button(dialog, "Keep as a test question").isEnabled()
    asked: list[str] = []
    dialog.asked.connect(asked.append)
    dialog.save_requested.connect(lambda words: asked.append(f"keep {words}"))
    dialog.begin()
    dialog.show_explanation(explained())
    button(dialog, "Keep as a test question").click()
    assert asked == ["bread", "keep bread"]
    empty = WhyDialog("Baking, turn 3", " ")
    empty.asked.connect(asked.append)
    empty.begin()
    assert asked == ["bread", "keep bread"]


def test_the_words_of_an_explanation_leave_out_what_is_not_known() -> None:
    assert headline(explained(rank=None)) == "It is not found."
    assert headline(explained(rank=1)) == "It is the first of 1,072 results."
    assert figures(explained(relevance=None)) == ""
    assert "no vector" in figures(explained(cosine=None))
    assert "text search only" in figures(explained(cosine=None, by_meaning=False))
    assert matched_words(explained(relevance=None)) == ""
    assert matched_words(explained(words=())) == ""


# -- test questions
def place(number: int, rank: int | None, before: int | None, problem: str = "") -> ProbeDetails:
    probe = Probe(f"question {number}", ExchangeId(number), rank, NOW, before, NOW, problem)
    return ProbeDetails(probe, ConversationId(number), f"Talk {number}", 0)


def test_the_probes_show_where_they_stand_and_are_opened_removed_and_run() -> None:
    dialog = QuestionsView()
    assert "There are no test questions yet." in on_screen(dialog)
    gone = ProbeDetails(Probe("old", ExchangeId(9), problem="It is gone"), None, "", None)
    dialog.show_places([place(1, 1, 5), place(2, None, 3), place(3, 2, 2), gone])
    assert on_screen(dialog).splitlines() == [
        "1 of 4 found first, 2 among the first ten. Since the previous run 1 rose and 1 fell.",
        "question 1 | Talk 1, turn 1 | 1 ↑ | 5", "question 2 | Talk 2, turn 1 | not found ↓ | 3",
        "question 3 | Talk 3, turn 1 | 2 | 2", "old | A deleted turn | cannot be asked | –",
    ]  # fmt: skip
    assert "nothing has moved" in summary([place(3, 2, 2)])
    wished: list[object] = []
    dialog.run_requested.connect(lambda: wished.append("run"))
    dialog.turn_requested.connect(wished.append)
    dialog.remove_requested.connect(wished.append)
    one, two = place(1, 1, 1), place(2, 2, 2)
    dialog.show_places([one, two])
    assert not button(dialog, "Remove").isEnabled()
    (table,) = dialog.findChildren(QTreeWidget)
    table.setCurrentIndex(table.model().index(1, 0))
    button(dialog, "Open the turn").click()
    dialog.show_places([one, two])  # the mark stays
    button(dialog, "Remove").click()
    button(dialog, "Ask all again").click()
    assert wished == [two, two.probe, "run"]
    dialog.show_progress(1, 2)
    assert not button(dialog, "Ask all again").isEnabled()
    dialog.show_error(InvalidInput("The index must be built anew", "Wait."))
    assert "must be built anew" in on_screen(dialog)
    assert button(dialog, "Ask all again").isEnabled()


# -- the presenter
class Search:
    """The presenter with a sidebar; searches wait until `answer` or `fail`."""

    def __init__(self, parts: Parts, typed: str = "") -> None:
        self.marked: list[Any] = []
        self.parts, self.sidebar, self.bridge = parts, Sidebar(), LoopBridge()
        self.set_text(typed)
        self.waiting: dict[bool, asyncio.Future[SearchResponse]] = {}
        self.asked = ""
        self.coverage = EmbeddingCoverage("space", 1.0)
        service = SimpleNamespace(search=self.search, parts_ranked=lambda *_: [1, 2])
        place = SimpleNamespace(kind=PassageKind.TURN, exchange_id=5)
        passages = Recorder(places=lambda ids: dict.fromkeys(ids, place), messages_of={})
        self.presenter = parts.make(
            SearchPresenter, bridge=self.bridge, search_service=service, passages=passages,
            vectors=SimpleNamespace(embedded=lambda: self.coverage), sidebar=self.sidebar,
            mark=self.marked.append,
            is_embedding=lambda: True,
        )  # fmt: skip

    def search(self, query: str, *, limit: int, by_meaning: bool = True) -> Any:
        assert limit == 20
        self.asked = query
        self.waiting[by_meaning] = asyncio.get_running_loop().create_future()
        return self.waiting[by_meaning]

    async def type(self, query: str) -> None:
        self.set_text(query)
        self.sidebar.query_changed.emit(query)
        await turns()

    def set_text(self, query: str) -> None:
        with QSignalBlocker(self.sidebar.box):  # the delay after a key is the sidebar's
            self.sidebar.box.setText(query)

    async def answer(self, by_meaning: bool, *numbers: int, **more: Any) -> None:
        found = answer(self.sidebar.query, *numbers)
        self.waiting.pop(by_meaning).set_result(replace(found, by_meaning=by_meaning, **more))
        await turns()

    @property
    def shown(self) -> list[int]:
        model = self.sidebar.results
        rows = (model.value_at(model.index(at, 0)) for at in range(model.rowCount()))
        return [int(each.passage_id) for each in rows if isinstance(each, SearchResult)]

    @property
    def message(self) -> str:
        return self.sidebar._message.text()


async def turns() -> None:
    """Let the tasks of the loop go as far as they can."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def search(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> Search:
    monkeypatch.setattr(search_module, "_GRACE_S", 0)
    monkeypatch.setattr(search_module, "_FINAL_AFTER_S", 0)
    return Search(parts)


def story(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in an event loop."""
    return wraps(test)(lambda **given: asyncio.run(test(**given)))


@story
async def test_text_matches_are_replaced_by_the_ranked_answer(search: Search) -> None:
    await search.type("bread")
    assert set(search.waiting) == {False}
    await search.answer(False, 1)
    assert (set(search.waiting), search.shown) == ({True}, [1])
    await search.answer(True, 2, 1, took_ms=5.0)
    assert search.shown == [2, 1]
    await search.type("butter")  # ranked answers are fast: no text search before
    assert set(search.waiting) == {True}
    await search.answer(True, 3, took_ms=500.0)
    await search.type("jam")
    assert set(search.waiting) == {False}
    await search.answer(False)
    assert "by meaning" in search.message
    await search.answer(True)
    assert "Nothing found" in search.message


@story
async def test_what_was_typed_before_the_library_was_open_is_searched(parts: Parts) -> None:
    search = Search(parts, "bread")
    await turns()
    assert set(search.waiting) == {False}
    await search.answer(False)


@story
async def test_results_are_searched_again_once_their_source_has_changed(search: Search) -> None:
    change = ChangeSet(passages=True)
    search.bridge.changed.emit(change)
    search.presenter._on_repeat_timeout()
    await turns()
    assert search.waiting == {}, "nothing is searched"
    await search.type("bread")
    await search.answer(False, 1)
    await search.answer(True, 1)
    assert not search.presenter._repeat.isActive()
    search.bridge.changed.emit(change)
    assert search.presenter._repeat.isActive()
    search.presenter._on_repeat_timeout()
    await turns()
    await search.answer(True, 1, 2)
    assert search.shown == [1, 2]


@story
async def test_a_late_answer_and_an_emptied_box_show_nothing(search: Search) -> None:
    await search.type("bread")
    first = search.waiting.pop(False)
    await search.type("butter")
    assert search.waiting == {}  # one search at a time
    first.set_result(answer("bread", 1))
    await turns()
    assert search.shown == []
    await search.answer(False, 2)
    assert search.shown == [2]
    await search.type("")
    search.waiting.pop(True).set_result(answer("butter", 3))
    await turns()
    assert search.shown == [2]
    assert search.sidebar.query == ""


@story
async def test_a_filter_that_is_being_typed_is_left_out_until_it_has_a_value(
    search: Search,
) -> None:
    for typed in ("bread title:", 'bread title:"', "bread after:"):
        await search.type(typed)
        while search.waiting:
            await search.answer(min(search.waiting), 1)
        assert search.asked == "bread"
    for typed in ("title:", 'title:"'):
        await search.type(typed)
        search.presenter._on_repeat_timeout()
        await turns()
        assert (search.waiting, search.shown) == ({}, [1])
    await search.type("bread title:r")
    assert search.waiting != {}
    assert search.asked == "bread title:r"


@pytest.mark.parametrize("by_meaning", [False, True])
@pytest.mark.parametrize(
    ("error", "repeats"), [(InvalidInput("Bad query"), False), (IndexUnavailable("Later"), True)]
)
@story
async def test_a_failed_search_is_shown_and_repeated_if_it_may_succeed(
    search: Search, error: Exception, repeats: bool, by_meaning: bool
) -> None:
    await search.type("bread")
    if by_meaning:
        await search.answer(False, 1)
    search.waiting.pop(by_meaning).set_exception(error)
    await turns()
    assert str(error) in search.message
    assert search.presenter._repeat.isActive() is repeats
    search.presenter._on_repeat_timeout()
    await turns()
    await search.answer(True, 2)  # repeated without text matches first
    assert search.shown == [2]
    await search.type("")
    assert not search.presenter._repeat.isActive()


@story
async def test_an_incomplete_answer_is_noted_and_repeated(search: Search) -> None:
    await search.type("bread")
    await search.answer(False, 1)
    await search.answer(True, 1, covered_share=0.5)
    assert search.presenter._repeat.isActive()
    assert "50%" in search.sidebar._note.text()
    await search.type("is:archived")
    search.coverage = EmbeddingCoverage("space", 0.5)
    await search.answer(True, 1, is_list=True)  # it has no vector
    assert search.sidebar._note.text() == ""
    assert not search.presenter._repeat.isActive()


@pytest.mark.parametrize(
    ("kind", "more", "place"),
    [
        (PassageKind.TURN, {}, ("turn", 1, 1, 1)),
        (
            PassageKind.MAN_PAGE,
            {"conversation_id": None},
            ("page", "man:commonplace", "Talk <b>1</b>"),
        ),
        (PassageKind.DOCUMENT, {"conversation_id": None}, ("page", "document:1", "Talk <b>1</b>")),
        (PassageKind.FACT, {"exchange_id": None}, ("fact", 1)),
        (PassageKind.FACT, {}, ("turn", 1, 1, 1)),
        (PassageKind.MEMORY, {"exchange_id": None}, ("memory", 1)),
        (PassageKind.TURN, {"conversation_id": None}, None),
        (PassageKind.CONVERSATION_SUMMARY, {}, ("turn", 1, 5, None)),
    ],
)
@story
async def test_a_result_opens_what_it_is(
    search: Search, kind: PassageKind, more: dict[str, Any], place: tuple[Any, ...] | None
) -> None:
    search.set_text("bread")
    search.sidebar.result_list.result_chosen.emit(replace(result(1), kind=kind, **more))
    await turns()
    assert search.parts.went == ([place] if place else [])


def test_the_menu_of_a_result_opens_copies_and_explains(search: Search) -> None:
    sidebar, chosen = search.sidebar, result(1)
    search.set_text("bread")
    for text, shown in (("Open", chosen), ("Show in facts", replace(chosen, kind=PassageKind.FACT)),
                        ("Show in saved", replace(chosen, kind=PassageKind.MEMORY)),
                        ("Why", chosen), ("Copy", chosen)):  # fmt: skip
        sidebar.result_list.menu_requested.emit(shown, QPoint())
        search.parts.choose(text)
    assert search.parts.went == [
        ("turn", 1, 1, 1), ("fact", 1), ("memory", 1),
        ("explain", 1, "Talk <b>1</b>, turn 1", "bread"),
    ]  # fmt: skip
    assert QGuiApplication.clipboard().text() == "commonplace://1/0"
    sidebar.result_list.menu_requested.emit(replace(chosen, exchange_id=None), QPoint())
    (menu,) = search.parts.banner.findChildren(QMenu)
    assert len(menu.actions()) == 1
    menu.close()
