"""Facts dialog, fact pane, versions and summaries dialog: what they show and request."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QTextBrowser
from pytestqt.qtbot import QtBot

from app.domain.errors import StorageError
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.records.facts import BY_PATTERNS, BY_USER, Fact, FactCategory, FactVersion
from app.memory.summaries import SummaryTarget
from app.storage.tables.facts import KnownFact
from app.storage.tables.summaries import Summary
from ui.models.facts import FactListModel, maker_text, source_text, subtitle_text, validity_text
from ui.theme import Theme
from ui.views.memory.facts_view import FactQuery, FactsView
from ui.views.memory.knowledge_view import KnowledgeView
from ui.views.memory.summaries_pane import SummariesPane, SummarizedText
from ui.views.memory.versions import ShownVersion, VersionsView, diff_html
from ui.views.rows import first_lines

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
def dialog() -> FactsView:
    made = FactsView()
    made.show()
    return made


def words(dialog: FactsView | SummariesPane) -> str:
    return "\n".join(each.text() for each in dialog.findChildren(QLabel) if each.isVisible())


def button(dialog: FactsView | SummariesPane, text: str) -> QPushButton:
    return next(each for each in dialog.findChildren(QPushButton) if each.text() == text)


def test_the_list_groups_pinned_facts(qtmodeltester: object) -> None:
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


def test_lines_of_a_fact_end_between_words_also_after_an_emoji() -> None:
    text = "\N{CAT FACE}" * 3 + " one two three four five six seven eight nine ten"
    first, rest = first_lines(text, QFont(), 150)
    assert f"{first} {rest}" == text


def test_texts_about_a_fact() -> None:
    plain = known(1)
    assert subtitle_text(plain) == "Plan \N{MIDDLE DOT} 18 Mar 2026 \N{MIDDLE DOT} Of <i>boats</i>"
    assert validity_text(plain) == "Said on 18 Mar 2026; current."
    assert "turn 3; written by rules without a model." in source_text(plain)
    ended = known(1, valid_until=AT + timedelta(days=2))
    assert "until 20 Mar 2026" in subtitle_text(ended)
    assert validity_text(ended) == "Ended on 20 Mar 2026."
    assert validity_text(replace(ended, successor="So.")).endswith("superseded by: So.")
    own = known(1, conversation_id=None, model=BY_USER)
    assert source_text(own) == "You wrote it on 18 Mar 2026."
    assert subtitle_text(own).endswith("yours")
    assert "(archived)" in source_text(replace(plain, archived=True))
    assert [maker_text(each) for each in (BY_USER, "extractive", "openai:m")] == [
        "you", "key sentences", "openai:m",
    ]  # fmt: skip


def test_filters_are_sent_together_and_a_fact_is_added(dialog: FactsView, qtbot: QtBot) -> None:
    queries: list[FactQuery] = []
    dialog.list_requested.connect(queries.append)
    with qtbot.waitSignal(dialog.list_requested):
        dialog.box.setText(" tea ")
    dialog.category.setCurrentIndex(dialog.category.findText("Plan"))
    dialog.category.activated.emit(dialog.category.currentIndex())
    dialog.ended.click()
    dialog.here.click()
    assert queries[-1] == FactQuery("tea", FactCategory.PLAN, ended=True, here=True)
    assert not button(dialog, "Add").isEnabled()
    dialog.new.returnPressed.emit()  # an empty text is not added
    dialog.new.setText(" I live in Graz. ")
    with qtbot.waitSignal(dialog.add_requested) as added:
        button(dialog, "Add").click()
    assert added.args == ["I live in Graz."]


def test_the_list_shows_its_size_and_keeps_the_selection(dialog: FactsView) -> None:
    selected: list[int] = []
    dialog.selected.connect(selected.append)
    dialog.show_facts((), 0)
    assert "There are no facts yet." in words(dialog)
    assert not button(dialog, "Save").isVisible()
    dialog.show_facts([known(1), known(2), known(3)], 3)
    assert "3 facts" in words(dialog)
    dialog.list.setCurrentIndex(dialog.facts.row_of(2))
    dialog.show_facts([known(3), known(2, "Anew."), known(1)], 900)
    assert ("The first 3 of 900" in words(dialog), selected[-1]) == (True, 2)
    dialog.select_when_listed(1)
    dialog.show_facts([known(3), known(2), known(1)], 3)
    assert selected[-1] == 1
    dialog.ended.click()
    dialog.show_facts((), 0)
    assert "No facts found." in words(dialog)
    dialog.category.setCurrentIndex(dialog.category.findText("Plan"))
    dialog.show_facts((), 0)
    assert "No facts found." not in words(dialog), "there are no words to change"
    dialog.show_error(StorageError("It failed", "Try again."))
    assert "It failed. Try again." in words(dialog)


def test_a_fact_is_edited_and_its_buttons_name_it(dialog: FactsView, qtbot: QtBot) -> None:
    pane, save = dialog.pane, button(dialog, "Save")
    pane.show_fact(known(1, "Old."), versions("Old."))
    assert (pane.fact_id, save.isEnabled()) == (1, False)
    pane.text.setPlainText("New.")
    pane.show_fact(known(1, "Old."), versions("Old."))
    assert pane.text.toPlainText() == "New."
    with qtbot.waitSignal(pane.save_requested) as saved:
        save.click()
    assert saved.args == [1, "New.", FactCategory.PLAN]
    pane.text.setPlainText("  ")
    assert not save.isEnabled()
    pane.show_fact(known(1, "Old."), versions("Old."), replaces_edit=True)
    assert pane.text.toPlainText() == "Old."

    ended = known(7, valid_until=AT)
    pane.show_fact(ended, versions("Now.", "Before."))
    with qtbot.waitSignal(pane.pin_requested) as pinned:
        pane.pinned.click()
    assert pinned.args == [7, True]
    for name, signal, expected in (
        ("Open the turn", pane.source_requested, [ended]),
        ("Forget\u2026", pane.forget_requested, [ended]),
        ("Mark as current", pane.reinstate_requested, [7]),
        ("Restore this version", pane.restore_requested, [7, AT - timedelta(days=1)]),
    ):
        with qtbot.waitSignal(signal) as request:
            button(dialog, name).click()
        assert request.args == expected
    pane.show_fact(known(8, conversation_id=None), versions("Now."))
    assert not button(dialog, "Open the turn").isVisible()
    assert not button(dialog, "Mark as current").isVisible()


def test_a_comparison_escapes_markup() -> None:
    html = diff_html("<b>old</b>", "<i>new</i>", Theme())
    assert "<b>" not in html
    assert "&lt;" in html
    assert "line-through" in html
    assert "underline" in html


def test_a_new_version_is_compared_with_the_one_before_it() -> None:
    view = VersionsView()
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
    assert "text" in diff.toPlainText()
    view.show_versions(shown[:1])
    assert not restore.isVisible()


def summaries(*texts: str) -> Sequence[Summary]:
    return [Summary(1, text, "extractive", AT - timedelta(days=n)) for n, text in enumerate(texts)]


def test_the_summary_of_a_source_is_shown_saved_and_restored(qtbot: QtBot) -> None:
    pane = SummariesPane()
    pane.show()
    whole = SummarizedText(SummaryTarget.CONVERSATION, 1, "The whole conversation")
    turn = SummarizedText(SummaryTarget.EXCHANGE, 2, "Turn 0")
    with qtbot.waitSignal(pane.source_chosen) as chosen:
        pane.show_sources("Of boats", [whole, turn])
    assert chosen.args == [whole]
    pane.show_versions(())
    assert "There is no summary yet." in words(pane)
    pane.show_versions(summaries("New.", "Old."))
    assert "key sentences" in words(pane)
    save = button(pane, "Save")
    assert not save.isEnabled()
    pane.text.setPlainText("Mine.")
    with qtbot.waitSignal(pane.save_requested) as saved:
        save.click()
    assert saved.args == [whole, "Mine."]
    with qtbot.waitSignal(pane.restore_requested) as restored:
        button(pane, "Restore this version").click()
    assert restored.args == [whole, AT - timedelta(days=1)]
    pane.show_error(StorageError("It failed", "Try again."))
    assert "It failed. Try again." in words(pane)


def test_a_narrow_place_stacks_what_has_no_room_beside_each_other(qtbot: QtBot) -> None:
    view = FactsView()
    qtbot.addWidget(view)
    view.show()
    view.resize(700, 600)
    assert view.here.y() == view.ended.y()
    view.resize(220, 600)
    assert view.width() == 220, "the memory pane gives way to the conversation"
    qtbot.waitUntil(lambda: view.here.y() > view.ended.y())


def test_a_low_window_shows_a_part_of_a_fact_instead_of_growing() -> None:
    view = KnowledgeView()
    before = view.minimumSizeHint().height()
    view.facts.pane.show_fact(known(1), ())
    view.show()
    QApplication.processEvents()
    assert view.facts.minimumSizeHint().height() > before
    assert view.minimumSizeHint().height() == before


def test_a_page_that_is_chosen_is_refreshed(qtbot: QtBot) -> None:
    """Facts are read only while they are visible, so also when another page was opened first."""
    view = KnowledgeView()
    view.show_page("profile")
    view.show()
    with qtbot.waitSignal(view.shown):
        view.show_page("facts")
    assert view.facts.isVisible()
