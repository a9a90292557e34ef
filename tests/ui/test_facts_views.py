"""The window of facts, a fact's pane, versions and summaries: what they show and what they ask for."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton, QTextBrowser
from pytestqt.qtbot import QtBot

from app.domain.facts import BY_PATTERNS, BY_USER, Fact, FactCategory, FactVersion
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.memory.summaries import SummaryOf
from app.storage.facts import KnownFact
from app.storage.summaries import Summary
from ui.models.facts import (
    FactListModel,
    maker_words,
    source_words,
    subtitle_words,
    validity_words,
)
from ui.theme import DARK, Theme
from ui.views.facts_dialog import FactQuestion, FactsDialog
from ui.views.summaries_dialog import SummariesDialog, SummaryPlace
from ui.widgets.versions import ShownVersion, VersionsView, diff_html

AT = datetime(2026, 3, 18, 15, 0, tzinfo=UTC)


def known(number: int, text: str = "", *, pinned: bool = False, **more: object) -> KnownFact:
    fact = Fact(
        PassageId(number), f"uid-{number}", text or f"Fact <b>{number}</b>", FactCategory.PLAN, "",
        ConversationId(1), ExchangeId(1), MessageId(1), AT, BY_PATTERNS, AT, pinned=pinned,
    )  # fmt: skip
    fact = replace(fact, **more)  # type: ignore[arg-type]
    title = "Of <i>boats</i>" if fact.conversation_id else ""
    return KnownFact(fact, title, False, 2 if fact.conversation_id else None, "", 1)


def versions(*texts: str) -> list[FactVersion]:
    return [
        FactVersion(
            PassageId(1), AT - timedelta(days=number), text, FactCategory.PLAN, BY_PATTERNS, None,
            None, None, AT,
        )
        for number, text in enumerate(texts)
    ]  # fmt: skip


@pytest.fixture
def dialog(qtbot: QtBot) -> FactsDialog:
    made = FactsDialog(Theme())
    qtbot.addWidget(made)
    made.show()
    return made


def words(dialog: FactsDialog | SummariesDialog) -> str:
    return "\n".join(each.text() for each in dialog.findChildren(QLabel) if each.isVisible())


def button(dialog: FactsDialog | SummariesDialog, text: str) -> QPushButton:
    return next(each for each in dialog.findChildren(QPushButton) if each.text() == text)


def test_the_list_is_a_sound_model_with_pinned_facts_apart(qtmodeltester: object) -> None:
    model = FactListModel()
    model.show_facts([known(2, pinned=True), known(1), known(3)])
    qtmodeltester.check(model)  # type: ignore[attr-defined]
    shown = [model.index(row, 0).data() for row in range(model.rowCount())]
    assert shown == ["Pinned", "Fact <b>2</b>", "All others", "Fact <b>1</b>", "Fact <b>3</b>"]
    model.show_facts([known(1), known(2, pinned=True)])
    qtmodeltester.check(model)  # type: ignore[attr-defined]
    assert model.rowCount() == 2
    model.show_facts([known(2, pinned=True)])
    assert model.rowCount() == 2
    spoken = model.index(1, 0).data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken.startswith("Fact <b>2</b> pinned, Plan")


def test_a_fact_is_told_in_words() -> None:
    plain = known(1)
    assert subtitle_words(plain) == "Plan \N{MIDDLE DOT} 18 Mar 2026 \N{MIDDLE DOT} Of <i>boats</i>"
    assert validity_words(plain) == "Said on 18 Mar 2026; it holds."
    assert "turn 2; worded by a pattern." in source_words(plain)
    ended = known(1, valid_until=AT + timedelta(days=2))
    assert "until 20 Mar 2026" in subtitle_words(ended)
    assert validity_words(ended) == "Was so until 20 Mar 2026."
    assert validity_words(replace(ended, successor="So.")).endswith("superseded by: So.")
    own = known(1, conversation_id=None, model=BY_USER)
    assert source_words(own) == "You wrote it on 18 Mar 2026."
    assert subtitle_words(own).endswith("yours")
    assert "(archived)" in source_words(replace(plain, archived=True))
    assert [maker_words(each) for each in (BY_USER, "extractive", "openai:m")] == [
        "you", "extracted", "openai:m",
    ]  # fmt: skip


def test_filters_are_asked_for_together(dialog: FactsDialog, qtbot: QtBot) -> None:
    asked: list[FactQuestion] = []
    dialog.asked.connect(asked.append)
    with qtbot.waitSignal(dialog.asked):
        dialog.box.setText(" tea ")
    dialog.category.setCurrentIndex(dialog.category.findText("Plan"))
    dialog.category.activated.emit(dialog.category.currentIndex())
    dialog.ended.click()
    assert asked[-1] == FactQuestion("tea", FactCategory.PLAN, ended=True)


def test_the_list_says_how_much_of_it_is_shown(dialog: FactsDialog) -> None:
    dialog.show_facts((), 0)
    assert "No facts are known yet." in words(dialog)
    assert not button(dialog, "Save").isVisible()
    dialog.show_facts([known(1), known(2)], 2)
    assert "2 facts" in words(dialog)
    dialog.show_facts([known(1)], 900)
    assert "The first 1 of 900" in words(dialog)
    dialog.ended.click()
    dialog.show_facts((), 0)
    assert "Nothing was found." in words(dialog)
    dialog.show_error("It failed", "Try again.")
    assert "It failed. Try again." in words(dialog)


def test_the_chosen_fact_stays_chosen_and_a_wanted_one_becomes_so(dialog: FactsDialog) -> None:
    chosen: list[int] = []
    dialog.chosen.connect(chosen.append)
    dialog.show_facts([known(1), known(2), known(3)], 3)
    dialog.list.setCurrentIndex(dialog.facts.row_of(2))
    dialog.show_facts([known(3), known(2, "Anew."), known(1)], 3)
    assert chosen[-1] == 2
    dialog.want(1)
    dialog.show_facts([known(3), known(2), known(1)], 3)
    assert chosen[-1] == 1
    dialog.set_theme(Theme(dark=True, colours=DARK))


def test_a_fact_is_edited_in_place(dialog: FactsDialog, qtbot: QtBot) -> None:
    pane = dialog.pane
    pane.show_fact(known(1, "Old."), versions("Old."))
    save = button(dialog, "Save")
    assert pane.fact_id == 1
    assert not save.isEnabled()
    pane.wording.setPlainText("New.")
    pane.show_fact(known(1, "Old."), versions("Old."))
    assert pane.wording.toPlainText() == "New."
    with qtbot.waitSignal(pane.save_requested) as saved:
        save.click()
    assert saved.args == [1, "New.", FactCategory.PLAN]
    pane.wording.setPlainText("  ")
    assert not save.isEnabled()
    pane.show_fact(known(1, "Old."), versions("Old."), anew=True)
    assert pane.wording.toPlainText() == "Old."


def test_wishes_name_the_fact(dialog: FactsDialog, qtbot: QtBot) -> None:
    pane = dialog.pane
    ended = known(7, valid_until=AT)
    pane.show_fact(ended, versions("Now.", "Before."))
    with qtbot.waitSignal(pane.pin_requested) as pinned:
        pane.pinned.click()
    assert pinned.args == [7, True]
    for name, signal, expected in (
        ("Open the turn", pane.source_requested, [ended]),
        ("Forget\u2026", pane.forget_requested, [ended]),
        ("It holds again", pane.reinstate_requested, [7]),
        ("Restore this version", pane.restore_requested, [7, AT - timedelta(days=1)]),
    ):
        with qtbot.waitSignal(signal) as wished:
            button(dialog, name).click()
        assert wished.args == expected
    pane.show_fact(known(8, conversation_id=None), versions("Now."))
    assert not button(dialog, "Open the turn").isVisible()
    assert not button(dialog, "It holds again").isVisible()


def test_a_fact_is_added_once_there_are_words(dialog: FactsDialog, qtbot: QtBot) -> None:
    assert not button(dialog, "Add").isEnabled()
    dialog.new.setText(" I live in Graz. ")
    with qtbot.waitSignal(dialog.add_requested) as added:
        button(dialog, "Add").click()
    assert added.args == ["I live in Graz."]
    dialog.clear_new()
    dialog.new.returnPressed.emit()
    assert dialog.new.text() == ""


def test_nothing_of_a_text_is_markup_in_a_comparison() -> None:
    html = diff_html("<b>old</b>", "<i>new</i>", Theme())
    assert "<b>" not in html
    assert "&lt;" in html
    assert "line-through" in html
    assert "underline" in html


def test_a_new_version_is_compared_with_the_one_before_it(qtbot: QtBot) -> None:
    view = VersionsView(Theme())
    qtbot.addWidget(view)
    view.show()
    shown = [ShownVersion(AT - timedelta(days=n), f"day {n}", f"text {n}") for n in range(4)]
    view.show_versions(shown[1:])
    restored: list[object] = []
    view.restore_requested.connect(restored.append)
    choice, restore = view._choice, view._restore
    choice.setCurrentIndex(1)
    restore.click()
    view.show_versions(shown[1:])
    restore.click()
    view.show_versions(shown)
    restore.click()
    assert restored == [shown[3].made_at, shown[3].made_at, shown[1].made_at]
    diff = view.findChild(QTextBrowser)
    assert diff is not None
    assert "text" in diff.toPlainText()
    view.show_versions(shown[:1])
    assert not restore.isVisible()


def summaries(*texts: str) -> Sequence[Summary]:
    return [Summary(1, text, "extractive", AT - timedelta(days=n)) for n, text in enumerate(texts)]


def test_summaries_are_shown_by_place_and_saved_by_hand(qtbot: QtBot) -> None:
    dialog = SummariesDialog("Of boats", Theme())
    qtbot.addWidget(dialog)
    dialog.show()
    whole = SummaryPlace(SummaryOf.CONVERSATION, 1, "The whole conversation")
    turn = SummaryPlace(SummaryOf.EXCHANGE, 2, "Turn 0")
    with qtbot.waitSignal(dialog.place_chosen) as chosen:
        dialog.show_places([whole, turn])
    assert chosen.args == [whole]
    dialog.show_versions(())
    assert "There is no summary yet." in words(dialog)
    dialog.show_versions(summaries("New.", "Old."))
    assert "extracted" in words(dialog)
    save = button(dialog, "Save")
    assert not save.isEnabled()
    dialog.text.setPlainText("Mine.")
    with qtbot.waitSignal(dialog.save_requested) as saved:
        save.click()
    assert saved.args == [whole, "Mine."]
    with qtbot.waitSignal(dialog.restore_requested) as restored:
        button(dialog, "Restore this version").click()
    assert restored.args == [whole, AT - timedelta(days=1)]
    dialog.show_error("It failed", "Try again.")
    assert "It failed. Try again." in words(dialog)
