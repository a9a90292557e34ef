"""What the sidebar shows of a search, and the dialogs that explain one."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from PySide6.QtCore import QItemSelectionModel, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton, QTreeWidget
from pytestqt.qtbot import QtBot

from app.domain.explanations import AskedWord, Cause, Explanation, Obstacle, Points
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import PassageKind, SearchAnswer, SearchResult
from app.domain.probes import Probe, ProbePlace
from app.memory.overview import Embedded
from ui.controllers.searching import State, state_of
from ui.models.results import ResultListModel, origin_words, relevance_words
from ui.theme import Theme
from ui.views.probes_dialog import ProbesDialog, summary
from ui.views.rows import with_first_mark
from ui.views.sidebar import Sidebar
from ui.views.why_dialog import WhyDialog, figures, headline, words_held

NOW = datetime(2026, 3, 18, 15, 0, tzinfo=UTC)


def result(number: int, relevance: float = 0.9, *, weak: bool = False) -> SearchResult:
    return SearchResult(
        kind=PassageKind.TURN,
        passage_id=PassageId(number),
        source="commonplace",
        conversation_id=ConversationId(number),
        conversation_title=f"Talk <b>{number}</b>",
        archived=False,
        turn_number=0,
        exchange_id=ExchangeId(number),
        message_id=MessageId(number),
        relevance=relevance,
        is_weak=weak,
        cosine=None,
        user_question="What was it?",
        snippet="It was this.",
        marks=((0, 2),),
        created_at=NOW,
        model="openai:gpt-4o",
    )


def answer(query: str, *numbers: int, relevance: float = 0.9) -> SearchAnswer:
    return SearchAnswer(query, tuple(result(each, relevance) for each in numbers), 5.0)


@pytest.fixture
def sidebar(qtbot: QtBot) -> Sidebar:
    made = Sidebar(Theme())
    qtbot.addWidget(made)
    made.resize(300, 400)
    made.show()
    return made


def marked(sidebar: Sidebar) -> object:
    value = sidebar.results.value_at(sidebar.result_list.currentIndex())
    return value.passage_id if isinstance(value, SearchResult) else None


# -- the sidebar


def test_a_weak_match_is_told_by_words_and_not_by_colour_alone(qtbot: QtBot) -> None:
    model = ResultListModel()
    weak = result(1, 0.13, weak=True)
    model.show_results([weak])
    index = model.index(1)
    assert relevance_words(weak) == "weak · 13%"
    assert relevance_words(result(2, 0.001, weak=True)) == "weak · < 1%"
    assert relevance_words(result(3)) == "90%"
    assert "a weak match" in str(model.data(index, Qt.ItemDataRole.AccessibleTextRole))
    tip = str(model.data(index, Qt.ItemDataRole.ToolTipRole))
    assert "Weak match" in tip
    assert "&lt;b&gt;" in tip, "a title is no markup"
    assert origin_words(weak) == "18 Mar 2026 · gpt-4o"


def test_a_snippet_that_is_too_long_for_its_row_is_cut_to_its_first_mark() -> None:
    text = "The landlord keeps a part of the money, the deposit of 480 for a scratch, a deposit"
    at = text.index("deposit")
    last = text.rindex("deposit")
    found = replace(result(1), snippet=text, marks=((at, at + 7), (last, last + 7)))
    assert with_first_mark(found, 60) == (text, found.marks)
    cut, marks = with_first_mark(found, 30)
    assert cut.startswith("…the money, the deposit of 480")
    assert [cut[start:end] for start, end in marks] == ["deposit", "deposit"]
    word = replace(result(1), snippet="x" * 50 + " deposit", marks=((51, 58),))
    cut, ((start, end),) = with_first_mark(word, 20)
    assert (cut, cut[start:end]) == ("…deposit", "deposit")
    unbroken = replace(result(1), snippet="x" * 50, marks=((40, 50),))
    cut, ((start, end),) = with_first_mark(unbroken, 20)
    assert cut[start:end] == "x" * 10


def test_another_answer_to_the_same_words_keeps_mark_and_place(sidebar: Sidebar) -> None:
    sidebar.box.setText("bread")
    sidebar.show_answer(answer("bread", *range(1, 21)), is_final=False)
    sidebar.result_list.selectionModel().setCurrentIndex(
        sidebar.results.row_of(PassageId(7)), QItemSelectionModel.SelectionFlag.ClearAndSelect
    )
    sidebar.result_list.verticalScrollBar().setValue(200)
    sidebar.show_answer(answer("bread", 9, *range(1, 9), *range(10, 21), relevance=0.8))
    assert marked(sidebar) == 7
    assert sidebar.result_list.verticalScrollBar().value() == 200

    sidebar.show_answer(answer("bread and butter", *range(1, 21)))
    assert marked(sidebar) is None
    assert sidebar.result_list.verticalScrollBar().value() == 0


def test_the_same_results_are_not_drawn_again(sidebar: Sidebar) -> None:
    sidebar.show_answer(answer("bread", 1, 2, 3), is_final=False)
    touched: list[object] = []
    sidebar.results.rowsInserted.connect(lambda *_: touched.append("in"))
    sidebar.results.rowsRemoved.connect(lambda *_: touched.append("out"))
    sidebar.show_answer(answer("bread", 1, 2, 3))
    assert touched == []


def test_enter_pressed_early_waits_for_the_final_answer(sidebar: Sidebar, qtbot: QtBot) -> None:
    chosen: list[int] = []
    sidebar.result_chosen.connect(lambda each: chosen.append(each.passage_id))
    sidebar.box.setText("bread")
    QTest.keyClick(sidebar.box, Qt.Key.Key_Return)
    sidebar.show_answer(answer("bread", 1, 2), is_final=False)
    assert chosen == []
    sidebar.show_answer(answer("bread", 2, 1))
    assert chosen == [2]


def test_enter_opens_the_first_of_what_is_on_screen(sidebar: Sidebar) -> None:
    chosen: list[int] = []
    sidebar.result_chosen.connect(lambda each: chosen.append(each.passage_id))
    sidebar.box.setText("bread")
    sidebar.show_answer(answer("bread", 1, 2), is_final=False)
    QTest.keyClick(sidebar.box, Qt.Key.Key_Return)
    assert chosen == [1]


def test_what_was_typed_neither_formats_nor_widens_the_sidebar(sidebar: Sidebar) -> None:
    narrowest = sidebar.minimumSizeHint().width()
    typed = "<img src='x'><b>" + "x" * 480
    sidebar.show_message(f"'{typed}' names no date.")
    sidebar.show_note(typed)
    labels = [each for each in sidebar.findChildren(QLabel) if each.text()]
    assert {each.textFormat() for each in labels} == {Qt.TextFormat.PlainText}
    assert sidebar.minimumSizeHint().width() == narrowest


def test_back_shows_results_and_the_line_above_them(sidebar: Sidebar) -> None:
    sidebar.box.setText("bread")
    sidebar.show_answer(answer("bread", 1))
    sidebar.show_note("By words only.")
    sidebar.box.clear()
    sidebar.show_conversations((), "Nothing yet.")
    assert sidebar.back_to_results()
    assert sidebar.box.text() == "bread"
    assert "By words only." in [each.text() for each in sidebar.findChildren(QLabel)]
    assert sidebar.shows_results


# -- the line under the box


def test_the_line_under_the_box_says_what_the_answer_could_not_know() -> None:
    whole = replace(answer("bread", 1), by_meaning=True)
    words = answer("bread", 1)
    full, part = Embedded("space", 1.0), Embedded("space", 0.43)
    assert state_of(whole, full, is_embedding=True) == State()
    assert state_of(words, None, is_embedding=True) == State()
    rebuilt = state_of(replace(whole, covered_share=0.874), full, is_embedding=True)
    assert rebuilt == State("Searching 87% of your history so far.", will_change=True)
    almost = state_of(replace(whole, covered_share=0.9999), full, is_embedding=True)
    assert "99%" in almost.words
    gone = state_of(replace(words, notice="The server is gone."), part, is_embedding=True)
    assert gone == State("By words only. The server is gone.")
    waiting = state_of(words, part, is_embedding=True)
    assert waiting == State("By words only: the rest is being embedded (43%).", will_change=True)
    off = state_of(words, part, is_embedding=False)
    assert off == State("By words only: the embedding pipeline is off (43% is embedded).")
    assert state_of(words, full, is_embedding=True).will_change
    assert state_of(whole, part, is_embedding=True) == State("By meaning so far: 43% is embedded.")
    assert "pipeline is off" in state_of(whole, part, is_embedding=False).words


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
        points=(Points("words", "Words in it", 1.5, 2.0), Points("length", "Length", -0.5, None)),
        words=(AskedWord("bread", is_held=True), AskedWord("winter", is_held=False)),
        obstacles=(Obstacle(Cause.LIMIT, "It is number 4.", "Ask better."),),
        by_meaning=True,
        notice="",
    )
    return replace(whole, **fields)  # type: ignore[arg-type]


def on_screen(dialog: WhyDialog | ProbesDialog) -> str:
    words = [each.text() for each in dialog.findChildren(QLabel) if each.isVisibleTo(dialog)]
    for table in dialog.findChildren(QTreeWidget):
        if table.isVisibleTo(dialog):
            for number in range(table.topLevelItemCount()):
                row = table.topLevelItem(number)
                assert row is not None
                words.append(" | ".join(row.text(at) for at in range(table.columnCount())))
    return "\n".join(words)


def button(dialog: WhyDialog | ProbesDialog, words: str) -> QPushButton:
    return next(each for each in dialog.findChildren(QPushButton) if each.text() == words)


def test_the_dialog_shows_place_points_words_and_causes(qtbot: QtBot) -> None:
    dialog = WhyDialog("Baking, turn 3", "bread")
    qtbot.addWidget(dialog)
    dialog.show_explanation(explained())
    shown = on_screen(dialog)
    for words in (
        "Baking <i>, turn 3: How is it done?",
        "It is number 4 of 1,072 results.",
        "Relevance 13%, cosine 0.277, 3.21 points in all.",
        "• It is number 4. Ask better.",
        "It says: bread\nIt does not say: winter",
        "Words in it | +1.50 | +2.00",
        "Length | -0.50 | ",
    ):
        assert words in shown
    dialog.show_error("The query '' is too short", "Type 2 to 500 characters.")
    assert "too short" in on_screen(dialog)
    assert "Words in it" not in on_screen(dialog)
    assert not button(dialog, "Keep as a probe question").isEnabled()


def test_the_dialog_asks_what_is_in_the_box_and_keeps_it(qtbot: QtBot) -> None:
    dialog = WhyDialog("Baking, turn 3", "bread")
    qtbot.addWidget(dialog)
    asked: list[str] = []
    dialog.asked.connect(asked.append)
    dialog.save_requested.connect(lambda words: asked.append(f"keep {words}"))
    dialog.begin()
    dialog.show_explanation(explained())
    button(dialog, "Keep as a probe question").click()
    assert asked == ["bread", "keep bread"]
    empty = WhyDialog("Baking, turn 3", " ")
    qtbot.addWidget(empty)
    empty.asked.connect(asked.append)
    empty.begin()
    assert asked == ["bread", "keep bread"]


def test_the_words_of_an_explanation_leave_out_what_is_not_known() -> None:
    assert headline(explained(rank=None)) == "It is not found."
    assert headline(explained(rank=1)) == "It is the first of 1,072 results."
    assert figures(explained(relevance=None)) == ""
    assert "no vector" in figures(explained(cosine=None))
    assert "by words only" in figures(explained(cosine=None, by_meaning=False))
    assert words_held(explained(relevance=None)) == ""
    assert words_held(explained(words=())) == ""


# -- probe questions


def place(number: int, rank: int | None, before: int | None, problem: str = "") -> ProbePlace:
    probe = Probe(f"question {number}", ExchangeId(number), rank, NOW, before, NOW, problem)
    return ProbePlace(probe, ConversationId(number), f"Talk {number}", 0)


def test_the_probes_show_where_they_stand_and_stood(qtbot: QtBot) -> None:
    dialog = ProbesDialog()
    qtbot.addWidget(dialog)
    assert "No probe questions are kept yet." in on_screen(dialog)
    gone = ProbePlace(Probe("old", ExchangeId(9), problem="It is gone"), None, "", None)
    dialog.show_places([place(1, 1, 5), place(2, None, 3), place(3, 2, 2), gone])
    assert on_screen(dialog).splitlines() == [
        "1 of 4 found first, 2 among the first ten. Since the time before 1 rose and 1 fell.",
        "question 1 | Talk 1, turn 0 | 1 ↑ | 5",
        "question 2 | Talk 2, turn 0 | not found ↓ | 3",
        "question 3 | Talk 3, turn 0 | 2 | 2",
        "old | A turn that is gone | cannot be asked | –",
    ]
    assert "nothing has moved" in summary([place(3, 2, 2)])


def test_a_probe_is_opened_removed_and_run(qtbot: QtBot) -> None:
    dialog = ProbesDialog()
    qtbot.addWidget(dialog)
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
    dialog.show_error("The index must be built anew", "Wait.")
    assert "must be built anew" in on_screen(dialog)
    assert button(dialog, "Ask all again").isEnabled()
