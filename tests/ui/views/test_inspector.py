"""The inspector: the tree of sources, the parts of a prompt, notes where there is nothing; chips."""

from dataclasses import replace
from datetime import timedelta

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QToolButton, QTreeView, QWidget
from pytestqt.qtbot import QtBot

from app.chat.inspector import Contribution, Inspection, Source
from app.chat.sent_prompt import LineMark, PartDifference, PartState, SentPart, SentPrompt
from app.domain.conversations import Conversation, Exchange, ExchangeStatus, TitleOrigin, Usage
from app.domain.ids import ConversationId, ExchangeId, PassageId
from app.domain.passages import PassageKind
from app.domain.recall import (
    PlanPartKind,
    RecalledItem,
    RecalledItemDetails,
    RecallLayer,
    StoredPrompt,
    Verdict,
)
from tests.fakes.stored import AT
from ui.models.labels import figures, opens_text, tip_text
from ui.models.recalled import COLUMNS, RecalledModel
from ui.presenters.conversation.recall import sources_of, status_text
from ui.theme import DARK, Appearance, ThemeChoice
from ui.views.memory.inspector import InspectorView
from ui.views.memory.recalled_pane import RecalledPane
from ui.views.memory.sent_pane import SentPane, usage_text
from ui.widgets.prompt_part import PromptPartPanel

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
    place = RecalledItemDetails(item, "Tea", number, "Which tea is it?", ExchangeId(number), AT)
    return Source(place, 1, cited, verdict)


def prompt_of(**texts: str) -> SentPrompt:
    parts = tuple(
        SentPart(PlanPartKind(kind), text, 5, 0.25, kind == "system_prompt", 0)
        for kind, text in texts.items()
    )
    return SentPrompt(parts, "", "", "", 20, 0.5)


def inspection(*sources: Source, **more: object) -> Inspection:
    sent = prompt_of(system_prompt="Be kind.", related="tea", question="user: What?")
    kept = StoredPrompt(EXCHANGE.id, HERE.id, AT, "friend:m", 1000, 2000, (), ())
    runs = (AT, AT - timedelta(hours=1))
    values = {"runs": runs, "prompt": kept, "sent": sent, "sources": sources} | more
    return Inspection(EXCHANGE, HERE, "What?", **values)  # type: ignore[arg-type]


def words(widget: QWidget) -> str:
    labels = widget.findChildren(QLabel)
    return "\n".join(each.text() for each in labels if each.isVisibleTo(widget))


def button(widget: QWidget, text: str) -> QToolButton:
    return next(each for each in widget.findChildren(QToolButton) if text in each.text())


def pane_of(*sources: Source) -> RecalledPane:
    pane = RecalledPane()
    pane.show()
    pane.show_sources(sources, "")
    return pane


# -- recalled
def test_the_tree_shows_measures_and_outcome(qtbot: QtBot, qtmodeltester: object) -> None:
    model = RecalledModel()
    left_out = source(2, injected=False, verdict=Verdict.DOWN)
    model.show_sources([left_out, source(1, cited=True)])
    rows = model.rows(Source)
    cells = [
        [each.siblingAtColumn(column).data() for column in range(len(COLUMNS))] for each in rows
    ]
    assert [each[0] for each in cells] == ["Tea, turn 2", "Tea, turn 3"]  # sent ones first
    assert cells[0][1:] == ["1", "87%", "0.61", "80%", "45", "cited"]
    assert cells[1][-1] == "\N{EN DASH}"
    verdict = rows[1].siblingAtColumn(len(COLUMNS) - 1).data(Qt.ItemDataRole.DecorationRole)
    assert not verdict.isNull()
    reason = "not sent: \u201cMinimum relevance\u201d is 70%; you rated it not useful"
    assert reason in figures(left_out)
    assert rows[0].data(Qt.ItemDataRole.AccessibleTextRole).startswith("Turn: Tea, turn 2, rank 1")
    qtmodeltester.check(model)  # type: ignore[attr-defined]
    model.show_sources([source(5, RecallLayer.EARLIER)])
    assert model.rows(Source)[0].data() == "turn 6: Which tea is it?"
    model.show_sources([source(3, RecallLayer.CONVERSATION), source(4, RecallLayer.EXCHANGE)])
    inner = model.rows(Source)[1]
    assert inner.data().strip() == "turn 5: Which tea is it?"
    assert inner.siblingAtColumn(1).data() == ""
    with qtbot.assertNotEmitted(model.modelReset), qtbot.waitSignal(model.dataChanged):
        model.show_sources(
            [
                source(3, RecallLayer.CONVERSATION),
                source(4, RecallLayer.EXCHANGE, verdict=Verdict.UP),
            ]
        )
    rated = model.rows(Source)[1].siblingAtColumn(len(COLUMNS) - 1)
    assert not rated.data(Qt.ItemDataRole.DecorationRole).isNull()
    model.show_sources([source(3, RecallLayer.CONVERSATION), source(4, RecallLayer.EXCHANGE)])
    assert rated.data(Qt.ItemDataRole.DecorationRole).isNull()  # its rating was removed
    with qtbot.waitSignal(model.modelReset):
        model.show_sources([source(3)])


def test_the_selected_source_is_opened_rated_and_its_rating_removed(qtbot: QtBot) -> None:
    shown = source(1)
    pane = pane_of(shown, source(2))
    with qtbot.waitSignal(pane.open_requested) as request:
        button(pane, "Open").click()
    assert request.args == [shown]
    ratings = {"Useful": Verdict.UP, "Not useful": Verdict.DOWN, "Don't use": Verdict.NEVER}
    for text, verdict in ratings.items():
        with qtbot.waitSignal(pane.judged) as request:
            button(pane, text).click()
        assert request.args == [shown, verdict]
        assert not button(pane, text).isChecked()  # until it is stored
    assert button(pane, "Remove rating").isHidden()
    pane.show_sources((source(1, verdict=Verdict.NEVER), source(2)), "")
    never = button(pane, "Don't use")
    assert ("You asked not to use it again." in words(pane), never.isChecked()) == (True, True)
    for remove in (button(pane, "Remove rating"), never):
        with qtbot.waitSignal(pane.judged) as request:
            remove.click()
        assert request.args[1] is None
    pane.show_sources((shown, source(2)), "")
    assert ("You asked" in words(pane), never.isChecked()) == (False, False)


def test_buttons_stand_below_each_other_where_their_texts_would_be_cut() -> None:
    pane = pane_of(source(5))
    pane.resize(800, 600)
    buttons = pane._buttons[:3]
    assert len({each.y() for each in buttons}) == 1
    pane.setMinimumWidth(1)  # as in the dock
    pane.resize(sum(each.sizeHint().width() for each in buttons) // 2, 600)
    QApplication.processEvents()
    assert len({each.y() for each in buttons}) == 3


def test_sources_are_grouped_and_those_not_sent_folded() -> None:
    left_out = [source(each, RecallLayer.FACT, injected=False) for each in (2, 3)]
    earlier = source(6, RecallLayer.EARLIER, injected=False)
    pane = pane_of(source(5), *left_out, source(4, RecallLayer.FACT), earlier)
    assert lines(pane.table) == [
        "Facts and saved memories \N{MIDDLE DOT} 1 of 3 sent", "Which tea is it?",
        "2 more were considered", "Single turns of all history \N{MIDDLE DOT} 1 of 1 sent",
        "Tea, turn 6", "Earlier in this conversation \N{MIDDLE DOT} 0 of 1 sent",
        "1 was considered",
    ]  # fmt: skip
    assert "Fact: Which tea is it?" in words(pane)
    for step in (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Down):
        QTest.keyClick(pane.table, step)
    assert "not sent: \u201cMinimum relevance\u201d is 70%" in words(pane)
    assert len(lines(pane.table)) == 9
    QTest.keyClick(pane.table, Qt.Key.Key_Up)
    assert words(pane).startswith("Press Enter or click to see the other sources")
    QTest.keyClick(pane.table, Qt.Key.Key_Space)
    assert len(lines(pane.table)) == 7
    pane.table.clicked.emit(pane.table.indexBelow(pane.table.indexBelow(pane.model.index(0, 0))))
    assert len(lines(pane.table)) == 9
    pane.table.setCurrentIndex(pane.model.index(0, 0))
    assert words(pane) == "Select a row to see its details."
    pane.show_sources((source(5, injected=False),), "")
    assert pane.table.currentIndex().data() == "1 was considered"


def lines(tree: QTreeView) -> list[str]:
    """Return the rows of a tree that are not folded."""
    found, index = [], tree.model().index(0, 0)
    while index.isValid():
        found.append(str(index.data()))
        index = tree.indexBelow(index)
    return found


def test_a_narrow_table_hides_columns_that_the_details_show() -> None:
    pane = pane_of(source(1))
    for width, expected in ((1200, set()), (300, {3, 4, 5})):
        pane.resize(width, 500)
        columns = range(len(COLUMNS))
        assert {each for each in columns if pane.table.isColumnHidden(each)} == expected
    assert "cosine 0.612" in words(pane)


# -- sent
def sent_pane(shown: Inspection) -> SentPane:
    pane = SentPane()
    pane.show_inspection(shown, "")
    return pane


def test_parts_are_listed_with_their_tokens_and_copied() -> None:
    pane = sent_pane(inspection())
    panels = pane.findChildren(PromptPartPanel)
    names = ["System prompt", "Related past", "Your message"]
    assert [each.accessibleName() for each in panels] == names
    assert panels[0].text.toPlainText() == "Be kind."
    for text in ("about 20 of 1,000 tokens (2%)", "600 of them from its cache (60%), 20 out",
                 "$0.0042 (3 $ a million)"):  # fmt: skip
        assert text in words(pane)
    pane.copy.click()
    copied = QGuiApplication.clipboard().text()
    assert copied.startswith("[System prompt, about 5 tokens]\nBe kind.\n\n[Related past")
    pane.show_inspection(inspection(run=1), "")
    assert "The provider counted" not in words(pane)  # it counted the last run alone


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(10, 2), "The provider counted 10 in, 2 out  ·  cost unknown"),
        (Usage(10, 2, cost_usd=0.0), "The provider counted 10 in, 2 out  ·  no cost"),
        (Usage(10, 2, estimated=True),
         "The provider counted nothing; about 10 in, 2 out  ·  cost unknown"),
    ],
)  # fmt: skip
def test_usage_names_what_is_not_known(usage: Usage, expected: str) -> None:
    assert usage_text(usage) == expected


def test_changes_are_marked_line_by_line(appearance: Appearance) -> None:
    pane = sent_pane(inspection())
    assert not pane.compare.isEnabled()
    marked = ((LineMark.REMOVED, "old"), (LineMark.ADDED, "new"))
    compared = (
        PartDifference(PlanPartKind.SYSTEM_PROMPT, PartState.SAME),
        PartDifference(PlanPartKind.QUESTION, PartState.CHANGED, marked),
    )
    pane.show_inspection(inspection(compared=compared), "")
    pane.compare.click()
    pane.show()
    appearance.choose(ThemeChoice.DARK, 100)
    *_, same, changed = pane.findChildren(PromptPartPanel)
    assert not same.head.isEnabled()
    assert changed.text.toPlainText() == "- old\n+ new"
    block = changed.text.document().findBlockByNumber(1)
    assert block.blockFormat().background().color().name() == DARK.accent_soft
    pane.show_inspection(inspection(), "")
    assert not pane.compare.isChecked()


@pytest.mark.parametrize("compares", [False, True])
def test_a_part_is_as_high_as_its_wrapped_lines(qtbot: QtBot, compares: bool) -> None:
    pane = SentPane()
    pane.resize(340, 900)
    pane.show()
    phrase = "words that wrap more than once in a narrow pane "
    long = "\n".join(phrase * count for count in (9, 1, 1, 1, 4))
    marked = tuple((LineMark.ADDED, line) for line in long.split("\n"))
    changed = PartDifference(PlanPartKind.FACTS, PartState.CHANGED, marked)
    pane.show_inspection(inspection(sent=prompt_of(facts=long), compared=(changed,)), "")
    if compares:
        pane.compare.click()

    def is_all_shown() -> bool:
        shown = (each.text for each in pane.findChildren(PromptPartPanel) if each.text.isVisible())
        if (text := next(shown, None)) is None:
            return False
        end = QTextCursor(text.document())
        end.movePosition(QTextCursor.MoveOperation.End)
        return 0.6 < text.cursorRect(end).bottom() / text.viewport().height() <= 1

    qtbot.waitUntil(is_all_shown)


def test_a_long_part_is_folded_first_and_a_very_long_one_cut() -> None:
    host = QWidget()
    panel = PromptPartPanel("Tools", "9 tokens", host)
    host.show()
    panel.show_words("x" * 300_000)
    assert (panel.text.isHidden(), panel.text.toPlainText()) == (True, "")
    panel.head.click()
    assert panel.text.toPlainText().endswith("[100,000 more characters; Copy has them all]")
    assert panel.head.accessibleName() == "Tools, 9 tokens, open"


# -- the whole
def shown_in(what: Inspection, *, is_on: bool = True) -> InspectorView:
    view = InspectorView()
    view.show_inspection(what, 1, 3, is_on=is_on)
    return view


def test_what_the_built_in_model_quotes_is_listed_and_opened(qtbot: QtBot) -> None:
    links = (
        ("Bike, 3 May", "commonplace://7/2"),
        ("a.md · document 4", "commonplace://document/4"),
        ("Boat, 4 May", "commonplace://8/0"),
        ("Boat, 4 May", "commonplace://8/3"),
    )
    view = shown_in(replace(inspection(prompt=None, sent=None, runs=()), links=links))
    rows = view.quoted.list
    assert [rows.item(each).text() for each in range(rows.count())] == [
        "Bike, 3 May", "a.md", "Boat, 4 May, turn 1", "Boat, 4 May, turn 4",
    ]  # fmt: skip
    with qtbot.waitSignal(view.quoted.chosen) as chosen:
        rows.itemClicked.emit(rows.item(1))
    assert chosen.args == ["commonplace://document/4"]
    view.show_inspection(inspection(source(1)), 1, 3, is_on=True)
    assert view.quoted.isHidden()


def test_answers_and_their_runs_are_stepped_through(qtbot: QtBot) -> None:
    view = shown_in(inspection(source(1)))
    assert view.runs.count() == 2
    assert view._before.isEnabled()
    assert view._after.isEnabled()
    with qtbot.waitSignal(view.run_chosen) as chosen:
        view.runs.activated.emit(1)
    assert chosen.args == [1]
    for name, step in (("The answer before", -1), ("The answer after", 1)):
        with qtbot.waitSignal(view.stepped) as stepped:
            buttons = view.findChildren(QToolButton)
            next(each for each in buttons if each.accessibleName() == name).click()
        assert stepped.args == [step]
    view.show_inspection(inspection(runs=(AT,)), 0, 1, is_on=True)
    assert (view._before.isEnabled(), view._after.isEnabled()) == (False, False)
    assert view.runs.isHidden()
    view.show_nothing()
    assert view.parts.isHidden()


NOT_KEPT = inspection(runs=(), prompt=None, sent=None)


@pytest.mark.parametrize(
    ("what", "is_on", "note"),
    [
        (inspection(), True, "Nothing in your history is relevant"),
        (inspection(source(1, injected=False)), True, "No source was sent"),
        (inspection(), False, "Recall is off."),
        (replace(inspection(), conversation=replace(HERE, recalls=False)), True, "Memory is off"),
        (NOT_KEPT, True, "older than the storing of prompts"),
        (replace(NOT_KEPT, conversation=replace(HERE, source="chatgpt")), True, "from ChatGPT"),
        (replace(NOT_KEPT, exchange=replace(EXCHANGE, model="recall:")), True, "Recall answered"),
        (replace(NOT_KEPT, exchange=replace(EXCHANGE, status=ExchangeStatus.RUNNING)), True,
         "being prepared"),
        (replace(NOT_KEPT, exchange=replace(EXCHANGE, status=ExchangeStatus.FAILED)), True,
         "Nothing was sent"),
    ],
)  # fmt: skip
def test_a_note_says_why_there_is_nothing(what: Inspection, is_on: bool, note: str) -> None:
    assert note in words(shown_in(what, is_on=is_on).recalled)


# -- chips and status


TURN, FACT = source(4), source(4, RecallLayer.FACT)
CONVERSATION = source(4, RecallLayer.CONVERSATION)
CITED = replace(CONVERSATION, cited=True)


@pytest.mark.parametrize(
    ("sources", "chips"),
    [
        ((CONVERSATION, source(4, RecallLayer.EXCHANGE), source(5), TURN),
         [(1, "Tea, turn 5"), (2, "Tea, turn 6")]),
        ((CITED, source(5)), [(0, "Tea"), (1, "Tea, turn 6")]),
        ((CITED, replace(source(5), cited=True)), [(1, "Tea \N{MIDDLE DOT} 1 Mar 2026")]),
        ((CITED,), [(0, "Tea \N{MIDDLE DOT} 1 Mar 2026")]),
        ((FACT,), [(0, "Which tea is it?")]),
    ],
    ids=["one per turn", "only citation", "turn cited", "conversation", "fact"],
)  # fmt: skip
def test_one_chip_per_place(sources: tuple[Source, ...], chips: list[tuple[int, str]]) -> None:
    shown = sources_of(Contribution(sources, "slow"))
    assert [(each.number, each.text) for each in shown.chips] == chips
    assert shown.notice == "slow."
    assert [each.cited for each in shown.chips] == [
        sources[each.number].cited for each in shown.chips
    ]


def test_a_chip_names_what_it_opens() -> None:
    talk = replace(CITED.place, exchange_id=None, turn_number=None)
    nowhere = replace(FACT.place.item, conversation_id=None)
    assert tip_text(FACT).startswith("Fact, 87% relevant, said in")
    assert tip_text(TURN).endswith("Which tea is it? Opens the turn.")
    assert "It was found by its summary. Opens the conversation." in tip_text(Source(talk, 1, True))
    for item, opens in ((nowhere, "fact"), (replace(nowhere, kind=PassageKind.MEMORY), "text")):
        assert opens_text(replace(FACT.place, item=item, exchange_id=None)) == f"Opens the {opens}."
    assert opens_text(replace(TURN.place, exchange_id=None)) == "Opens the conversation."


@pytest.mark.parametrize(
    ("is_on", "is_on_here", "notice", "text"),
    [(False, True, "slow", "Memory off"), (True, False, "slow", "Memory off here"),
     (True, True, "", ""), (True, True, "slow", "Memory incomplete")],
)  # fmt: skip
def test_the_status_of_recall(is_on: bool, is_on_here: bool, notice: str, text: str) -> None:
    assert status_text(is_on=is_on, is_on_here=is_on_here, is_whole=not notice) == text
