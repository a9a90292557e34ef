"""The inspector: its table of sources, what was sent, what changed, and plain words where nothing is."""

from dataclasses import replace
from datetime import timedelta

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QToolButton, QTreeView, QWidget
from pytestqt.qtbot import QtBot

from app.chat.inspecting import Contribution, Inspection, Source
from app.chat.prompt_difference import LineMark, PartDifference, PartState
from app.chat.sent import SentPart, SentPrompt
from app.domain.conversations import Conversation, Exchange, ExchangeStatus, TitleOrigin
from app.domain.ids import ConversationId, ExchangeId, PassageId
from app.domain.passages import PassageKind
from app.domain.recalls import (
    KeptPrompt,
    PlanPartKind,
    RecalledItem,
    RecalledPlace,
    RecallLayer,
    Verdict,
)
from app.domain.usage import Usage
from tests.fakes.stored import AT
from ui.controllers.recalling import sources_of, state_words
from ui.models.recalled import COLUMNS, RecalledModel
from ui.models.source_words import figures, opens_words, tip_words
from ui.theme import DARK, Theme
from ui.views.inspector import Inspector
from ui.views.recalled_pane import RecalledPane
from ui.views.sent_pane import SentPane, usage_words
from ui.widgets.part_panel import PartPanel

HERE = Conversation(ConversationId(1), "u", "Here", TitleOrigin.USER, "commonplace", AT, AT)
EXCHANGE = Exchange(
    ExchangeId(11), HERE.id, None, 3, 0, ExchangeStatus.COMPLETED, (), AT, AT, "friend:m",
    Usage(1000, 20, 600, 0.0042, "3 $ a million"),
)  # fmt: skip


def source(
    number: int,
    layer: RecallLayer = RecallLayer.HISTORY,
    *,
    talk: int = 7,
    injected: bool = True,
    cited: bool = False,
    verdict: Verdict | None = None,
) -> Source:
    """Return something recalled; its exchange is its number."""
    kind = PassageKind.FACT if layer is RecallLayer.FACT else PassageKind.TURN
    item = RecalledItem(
        layer, kind, PassageId(number), ConversationId(talk), ExchangeId(number), None, 0.873,
        0.6121, 0.8, 45, injected, "" if injected else "rag_min_similarity is 0.7",
    )  # fmt: skip
    place = RecalledPlace(item, "Tea", number, "Which tea is it?", ExchangeId(number), AT)
    return Source(place, 1, cited, verdict)


def prompt_of(**texts: str) -> SentPrompt:
    parts = tuple(
        SentPart(PlanPartKind(kind), text, 5, 0.25, kind == "system_prompt", 0)
        for kind, text in texts.items()
    )
    return SentPrompt(parts, "", "", 20, 0.5)


def inspection(*sources: Source, **more: object) -> Inspection:
    sent = prompt_of(system_prompt="Be kind.", related="tea", question="user: What?")
    kept = KeptPrompt(EXCHANGE.id, HERE.id, AT, "friend:m", 1000, 2000, (), ())
    runs = (AT, AT - timedelta(hours=1))
    values = {"runs": runs, "prompt": kept, "sent": sent, "sources": sources} | more
    return Inspection(EXCHANGE, HERE, "What?", **values)  # type: ignore[arg-type]


def words(widget: QWidget) -> str:
    labels = widget.findChildren(QLabel)
    return "\n".join(each.text() for each in labels if each.isVisibleTo(widget))


def button(widget: QWidget, text: str) -> QToolButton:
    return next(each for each in widget.findChildren(QToolButton) if text in each.text())


# the table


def test_the_table_says_what_was_measured_and_what_became_of_it(
    qtbot: QtBot, qtmodeltester: object
) -> None:
    model = RecalledModel()
    left_out = source(2, injected=False, verdict=Verdict.DOWN)
    model.show_sources([left_out, source(1, cited=True)])
    rows = model.rows(Source)
    cells = [
        [each.siblingAtColumn(column).data() for column in range(len(COLUMNS))] for each in rows
    ]
    assert [each[0][2:] for each in cells] == ["Tea, turn 1", "Tea, turn 2"]  # first what was sent
    assert cells[0][1:] == ["1", "87%", "0.61", "80%", "45", "cited"]
    assert cells[1][-1] == "\N{EN DASH} \N{BLACK DOWN-POINTING TRIANGLE}"
    assert (
        "left out: \u201cLeast relevance of related past\u201d is 0.7; you found it not useful"
        in figures(left_out)
    )
    model.show_sources([source(5, RecallLayer.EARLIER)])
    assert model.rows(Source)[0].data()[2:] == "turn 5: Which tea is it?", "its title is known"
    model.show_sources([source(3, RecallLayer.CONVERSATION), source(4, RecallLayer.EXCHANGE)])
    inner = model.rows(Source)[1]
    assert inner.data().strip()[2:] == "turn 4: Which tea is it?"
    assert inner.siblingAtColumn(1).data() == ""
    model.show_sources([left_out, source(1, cited=True)])
    spoken = model.rows(Source)[0].data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken.startswith("Turn: Tea, turn 1, rank 1")
    qtmodeltester.check(model)  # type: ignore[attr-defined]


def test_a_verdict_changes_a_row_in_place(qtbot: QtBot) -> None:
    model = RecalledModel()
    model.show_sources([source(1), source(2)])
    with qtbot.assertNotEmitted(model.modelReset), qtbot.waitSignal(model.dataChanged):
        model.show_sources([source(1), source(2, verdict=Verdict.UP)])
    with qtbot.waitSignal(model.modelReset):
        model.show_sources([source(3)])


def test_the_chosen_source_is_opened_and_judged(qtbot: QtBot) -> None:
    pane = RecalledPane()
    qtbot.addWidget(pane)
    shown = source(1)
    pane.show_sources((shown, source(2)), "")
    with qtbot.waitSignal(pane.open_requested) as wished:
        button(pane, "Open").click()
    assert wished.args == [shown]
    for text, verdict in (
        ("\N{BLACK UP-POINTING TRIANGLE}", Verdict.UP),
        ("Not useful", Verdict.DOWN),
        ("Don't use this again", Verdict.NEVER),
    ):
        with qtbot.waitSignal(pane.judged) as wished:
            button(pane, text).click()
        assert wished.args == [shown, verdict]
        assert not button(pane, text).isChecked()  # until it is kept


def test_what_the_user_thinks_is_seen_and_taken_back_where_it_was_said(qtbot: QtBot) -> None:
    pane = RecalledPane()
    qtbot.addWidget(pane)
    pane.show_sources((source(1), source(2)), "")
    assert button(pane, "Take back").isHidden()
    pane.show_sources((source(1, verdict=Verdict.NEVER), source(2)), "")
    assert "You asked never to use it again." in words(pane)
    never = button(pane, "Don't use this again")
    assert never.isChecked()
    for taken_back in (button(pane, "Take back"), never):
        with qtbot.waitSignal(pane.judged) as wished:
            taken_back.click()
        assert wished.args[1] is None
    pane.show_sources((source(1), source(2)), "")
    assert not never.isChecked()
    assert "You asked" not in words(pane)


def test_groups_stand_under_their_names_and_what_was_not_sent_is_folded(qtbot: QtBot) -> None:
    pane = RecalledPane()
    qtbot.addWidget(pane)
    pane.show()
    left_out = [source(each, RecallLayer.FACT, injected=False) for each in (2, 3)]
    pane.show_sources(
        (source(5), *left_out, source(4, RecallLayer.FACT), source(6, RecallLayer.EARLIER, injected=False)),
        "",
    )  # fmt: skip
    assert lines(pane.table) == [
        "Facts and saved memories \N{MIDDLE DOT} 1 of 3 sent",
        "\N{BLACK FOUR POINTED STAR} Which tea is it?",
        "2 more were looked at",
        "Single turns of all history \N{MIDDLE DOT} 1 of 1 sent",
        "\N{HEAVY DOUBLE TURNED COMMA QUOTATION MARK ORNAMENT} Tea, turn 5",
        "Earlier in this conversation \N{MIDDLE DOT} 0 of 1 sent",
        "1 was looked at",
    ]
    assert "Fact: Which tea is it?" in words(pane)
    for step in (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Down):
        QTest.keyClick(pane.table, step)
    assert "left out: \u201cLeast relevance of related past\u201d is 0.7" in words(pane)
    assert len(lines(pane.table)) == 9
    QTest.keyClick(pane.table, Qt.Key.Key_Up)
    assert words(pane).startswith("Press Enter, or click, to see what was looked at")
    QTest.keyClick(pane.table, Qt.Key.Key_Space)
    assert len(lines(pane.table)) == 7
    pane.table.setCurrentIndex(pane.model.index(0, 0))
    assert words(pane) == "Choose a row to see more of it."


def test_with_nothing_sent_the_first_fold_is_chosen(qtbot: QtBot) -> None:
    pane = RecalledPane()
    qtbot.addWidget(pane)
    pane.show_sources((source(5, injected=False),), "")
    assert pane.table.currentIndex().data() == "1 was looked at"


def lines(tree: QTreeView) -> list[str]:
    """Return the rows of a tree that are not folded away."""
    found, index = [], tree.model().index(0, 0)
    while index.isValid():
        found.append(str(index.data()))
        index = tree.indexBelow(index)
    return found


def test_a_narrow_table_leaves_out_what_the_details_say(qtbot: QtBot) -> None:
    pane = RecalledPane()
    qtbot.addWidget(pane)
    pane.show()
    pane.show_sources((source(1),), "")
    pane.resize(1200, 500)
    assert not any(pane.table.isColumnHidden(column) for column in range(len(COLUMNS)))
    pane.resize(300, 500)
    hidden = {column for column in range(len(COLUMNS)) if pane.table.isColumnHidden(column)}
    assert hidden == {3, 4, 5}
    assert "cosine 0.612" in words(pane)


# what was sent


def test_parts_stand_in_their_order_with_their_tokens(qtbot: QtBot) -> None:
    pane = SentPane(Theme())
    qtbot.addWidget(pane)
    pane.show_inspection(inspection(), "")
    panels = pane.findChildren(PartPanel)
    assert [each.accessibleName() for each in panels] == [
        "System prompt", "Related past", "Your message",
    ]  # fmt: skip
    assert panels[0].text.toPlainText() == "Be kind."
    assert "about 20 of 1,000 tokens (2%)" in words(pane)
    assert "600 of them from its cache (60%), 20 out" in words(pane)
    assert "$0.0042 (3 $ a million)" in words(pane)
    pane.copy.click()
    copied = QGuiApplication.clipboard().text()
    assert copied.startswith("[System prompt, about 5 tokens]\nBe kind.\n\n[Related past")
    pane.show_inspection(inspection(run=1), "")
    assert "The provider counted" not in words(pane)  # it counted the last run alone


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        (Usage(10, 2), "The provider counted 10 in, 2 out  ·  cost unknown"),
        (Usage(10, 2, cost_usd=0.0), "The provider counted 10 in, 2 out  ·  no cost"),
        (
            Usage(10, 2, estimated=True),
            "The provider counted nothing; about 10 in, 2 out  ·  cost unknown",
        ),
    ],
)
def test_what_is_not_known_of_the_cost_is_said(usage: Usage, said: str) -> None:
    assert usage_words(usage) == said


def test_what_changed_is_marked_line_by_line(qtbot: QtBot) -> None:
    pane = SentPane(Theme())
    qtbot.addWidget(pane)
    assert not pane.compare.isChecked()
    pane.show_inspection(inspection(), "")
    assert not pane.compare.isEnabled()
    compared = (
        PartDifference(PlanPartKind.SYSTEM_PROMPT, PartState.SAME),
        PartDifference(
            PlanPartKind.QUESTION,
            PartState.CHANGED,
            ((LineMark.GONE, "old"), (LineMark.ADDED, "new")),
        ),
    )
    pane.show_inspection(inspection(compared=compared), "")
    pane.compare.click()
    pane.set_theme(Theme(dark=True, colours=DARK))
    same, changed = (each for each in pane.findChildren(PartPanel) if not each.isHidden())
    assert not same.head.isEnabled()
    assert changed.text.toPlainText() == "- old\n+ new"
    block = changed.text.document().findBlockByNumber(1)
    assert block.blockFormat().background().color().name() == DARK.accent_soft
    assert pane.compare.isChecked()


def test_a_part_is_as_high_as_its_lines_are_where_they_wrap(qtbot: QtBot) -> None:
    pane = SentPane(Theme())
    qtbot.addWidget(pane)
    pane.resize(400, 900)
    pane.show()
    long = "\n".join(
        "words that wrap more than once in a narrow pane " * count for count in (9, 1, 1, 1, 4)
    )
    marked = tuple((LineMark.ADDED, line) for line in long.split("\n"))
    changed = PartDifference(PlanPartKind.FACTS, PartState.CHANGED, marked)
    pane.show_inspection(inspection(sent=prompt_of(facts=long), compared=(changed,)), "")
    for width in (400, 340):
        pane.resize(width, 900)
        qtbot.waitUntil(lambda: any(each.text.isVisible() for each in pane.findChildren(PartPanel)))
        text = next(each.text for each in pane.findChildren(PartPanel) if each.text.isVisible())
        qtbot.waitUntil(lambda text=text: is_all_shown(text))  # type: ignore[misc]
        pane.compare.click()


def is_all_shown(text: QPlainTextEdit) -> bool:
    """Return whether a text is as high as its words, and no higher."""
    end = QTextCursor(text.document())
    end.movePosition(QTextCursor.MoveOperation.End)
    return 0.6 < text.cursorRect(end).bottom() / text.viewport().height() <= 1


def test_a_long_part_begins_folded_and_a_very_long_one_is_cut(qtbot: QtBot) -> None:
    host = QWidget()
    qtbot.addWidget(host)
    panel = PartPanel("Tools", "9 tokens", Theme(), host)
    host.show()
    panel.show_words("x" * 300_000)
    assert panel.text.isHidden()
    assert panel.text.toPlainText() == ""
    panel.head.click()
    assert panel.text.toPlainText().endswith("[100,000 more characters; Copy has them all]")
    assert panel.head.accessibleName() == "Tools, 9 tokens, open"


# the whole


def shown_in(qtbot: QtBot, what: Inspection, *, is_on: bool = True) -> Inspector:
    view = Inspector(Theme())
    qtbot.addWidget(view)
    view.show_inspection(what, 1, 3, is_on=is_on)
    return view


def test_an_answer_that_ran_again_offers_its_older_runs(qtbot: QtBot) -> None:
    view = shown_in(qtbot, inspection(source(1)))
    assert view.runs.count() == 2
    assert view.tabs.tabText(0) == "Recalled (1)"
    with qtbot.waitSignal(view.run_chosen) as chosen:
        view.runs.activated.emit(1)
    assert chosen.args == [1]
    with qtbot.waitSignal(view.stepped) as stepped:
        button(view, "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}").click()
    assert stepped.args == [-1]


@pytest.mark.parametrize(
    ("what", "is_on", "said"),
    [
        (inspection(), True, "Nothing in your past answers this question."),
        (inspection(source(1, injected=False)), True, "Nothing of what was found was sent"),
        (inspection(), False, "Recall is off."),
        (replace(inspection(), conversation=replace(HERE, recalls=False)), True,
         "Memory is off for this conversation."),
        (inspection(runs=(), prompt=None, sent=None), True,
         "This answer was asked before prompts were kept."),
        (replace(inspection(runs=(), prompt=None, sent=None),
                 conversation=replace(HERE, source="chatgpt")), True,
         "This answer was imported from chatgpt"),
        (replace(inspection(runs=(), prompt=None, sent=None),
                 exchange=replace(EXCHANGE, model="recall:")), True,
         "Recall answered from your own past"),
        (replace(inspection(runs=(), prompt=None, sent=None),
                 exchange=replace(EXCHANGE, status=ExchangeStatus.RUNNING)), True,
         "It is being prepared"),
        (replace(inspection(runs=(), prompt=None, sent=None),
                 exchange=replace(EXCHANGE, status=ExchangeStatus.FAILED)), True,
         "Nothing was sent for this answer."),
    ],
)  # fmt: skip
def test_where_there_is_nothing_plain_words_say_why(
    qtbot: QtBot, what: Inspection, is_on: bool, said: str
) -> None:
    assert said in words(shown_in(qtbot, what, is_on=is_on).recalled)


def test_without_an_answer_it_says_so(qtbot: QtBot) -> None:
    view = shown_in(qtbot, inspection())
    view.show_nothing()
    assert "Nothing has been answered here yet." in words(view)
    assert view.tabs.isHidden()


# chips


def test_a_conversation_and_its_turns_are_one_chip_for_each_turn() -> None:
    talk = source(4, RecallLayer.CONVERSATION)
    found = Contribution((talk, source(4, RecallLayer.EXCHANGE), source(5), source(4)), "slow")
    sources = sources_of(found)
    assert [(each.number, each.words) for each in sources.chips] == [
        (1, "Tea, turn 4"),
        (2, "Tea, turn 5"),
    ]
    assert sources.notice == "slow"


def test_a_conversation_that_alone_is_cited_keeps_its_chip() -> None:
    talk = source(4, RecallLayer.CONVERSATION, cited=True)
    numbers = [each.number for each in sources_of(Contribution((talk, source(5)))).chips]
    assert numbers == [0, 1]
    (chip,) = sources_of(Contribution((talk,))).chips
    assert chip.words == "Tea \N{MIDDLE DOT} 1 Mar 2026"
    assert chip.cited


def test_a_fact_is_called_by_its_words() -> None:
    fact = source(4, RecallLayer.FACT)
    (chip,) = sources_of(Contribution((fact,))).chips
    assert (chip.kind, chip.words) == ("Fact", "Which tea is it?")
    assert tip_words(fact).startswith(
        "Fact, 87% relevant, said in \N{LEFT DOUBLE QUOTATION MARK}Tea"
    )


def test_a_chip_says_what_it_opens() -> None:
    turn, fact = source(4), source(4, RecallLayer.FACT)
    assert tip_words(turn).endswith("Which tea is it? Opens the turn.")
    talk = replace(
        source(4, RecallLayer.CONVERSATION, cited=True).place, exchange_id=None, turn_number=None
    )
    assert tip_words(Source(talk, 1, True)).endswith(
        "Cited in the answer. It was found by its summary: opens the conversation."
    )
    nowhere = replace(fact.place.item, conversation_id=None)
    assert opens_words(replace(fact.place, item=nowhere, exchange_id=None)) == "Opens the fact."
    saved = replace(nowhere, kind=PassageKind.MEMORY)
    assert opens_words(replace(fact.place, item=saved, exchange_id=None)) == "Opens the text."
    gone = replace(turn.place, exchange_id=None)
    assert opens_words(gone) == "Opens the conversation."


def test_the_status_bar_says_whether_recall_is_on() -> None:
    assert state_words(is_on=False, is_on_here=True, notice="slow") == "Recall off"
    assert state_words(is_on=True, is_on_here=False, notice="slow") == "Recall off here"
    assert state_words(is_on=True, is_on_here=True, notice="") == "Recall on"
    assert state_words(is_on=True, is_on_here=True, notice="slow") == "Recall: slow"
