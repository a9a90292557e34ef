"""The profile's page of the memory dialog and its presenter, with a scripted service."""

from dataclasses import replace
from datetime import timedelta

import pytest
from PySide6.QtCore import QUrl
from pytestqt.qtbot import QtBot

from app.domain.change_set import ChangeSet
from app.domain.errors import NotFound
from app.domain.ids import PassageId
from app.domain.records.profile import FactSource, Profile, ProfileLine, profile_diff
from app.memory.profile import ProfileState
from tests.fakes.fixtures import fixture_of
from tests.fakes.screens import AT, Parts, Recorder, press
from ui.presenters.memory.memories import ProfilePresenter
from ui.theme import Theme
from ui.views.memory.knowledge_view import KnowledgeView
from ui.views.memory.profile_pane import diff_html
from ui.widgets.transcript.values import WrittenLine

HOME = ProfileLine("I live in Rome", (FactSource(PassageId(7), AT),))
TEA = ProfileLine(
    "I prefer <b>tea</b>", (FactSource(PassageId(8), AT), FactSource(PassageId(9), AT))
)
TALL = ProfileLine("I am tall")
PROPOSED = AT + timedelta(days=1)


def state_of(*lines: ProfileLine, proposed: tuple[ProfileLine, ...] | None = None) -> ProfileState:
    proposal = None if proposed is None else Profile(proposed, "extractive", PROPOSED)
    return ProfileState(True, lines, proposal, profile_diff(lines, proposed or lines), 500)


class Page:
    def __init__(self, parts: Parts) -> None:
        self.parts, self.facts = parts, list[int]()
        self.state = state_of(HOME, TALL, proposed=(TEA, TALL))
        self.profile = Recorder(
            state=lambda: self.state, versions=lambda: (Profile(self.state.lines, "user", AT),)
        )
        self.view = KnowledgeView(parts.banner)
        self.presenter = parts.make(
            ProfilePresenter, profile=self.profile, view=self.view,
            open_page=self.view.show_page, open_fact=self.facts.append,
        )  # fmt: skip
        self.pane = self.view.profile
        self.view.show()
        self.presenter.refresh()

    def asked(self) -> list[tuple[object, ...]]:
        calls = [each for each in self.profile.calls if each[0] not in ("state", "versions")]
        self.profile.calls.clear()
        return calls

    def tab(self) -> str:
        return self.view.tabText(2)


page = fixture_of(Page, then="view.hide")


def test_a_proposal_is_shown_as_added_and_removed_lines_with_their_facts(page: Page) -> None:
    shown = page.pane.diff.toPlainText().splitlines()
    assert [line.partition("  Fact")[0] for line in shown] == [
        "\N{MINUS SIGN} I live in Rome", "+ I prefer <b>tea</b>"
    ]  # fmt: skip
    assert "<b>tea" not in diff_html(page.state.diff, Theme())
    assert page.tab() == "Profile (1)"
    for number in (8, 9):
        page.pane.diff.anchorClicked.emit(QUrl(f"fact:{number}"))
    page.pane.diff.anchorClicked.emit(QUrl("https://evil.example"))
    assert page.facts == [8, 9]


@pytest.mark.parametrize(("button", "call"), [("accept", "accept"), ("reject", "reject")])
def test_a_proposal_is_decided_by_its_time(page: Page, button: str, call: str) -> None:
    page.state = state_of(TEA, TALL)
    getattr(page.pane, button).click()
    assert page.asked() == [(call, PROPOSED)]
    assert not page.pane._proposal.isVisibleTo(page.pane)
    assert page.tab() == "Profile"
    getattr(page.pane, button).click()
    assert page.asked() == [], "nothing waits any more"


def test_an_edited_proposal_is_saved_as_a_decision_and_an_undone_one_is_not(page: Page) -> None:
    editor = page.pane.editor
    page.pane.edit.click()
    assert editor.text.toPlainText() == f"{TEA.text}\n{TALL.text}"
    editor.undo()
    editor.text.setPlainText("I am small")
    editor.save_requested.emit("I am small")
    assert page.asked() == [("set", "I am small", None)]
    page.pane.edit.click()
    assert not page.pane.accept.isEnabled()
    editor.save_requested.emit("I am small")
    assert page.asked() == [("set", "I am small", PROPOSED)]
    assert page.pane.accept.isEnabled()


def test_a_change_elsewhere_keeps_the_edit_and_an_error_is_shown_beside_it(page: Page) -> None:
    page.pane.editor.text.setPlainText("I am small")
    page.state = state_of(HOME)
    page.parts.bridge.changed.emit(ChangeSet(memory=True))
    assert page.pane.editor.text.toPlainText() == "I am small"
    page.profile.results["set"] = lambda *_: (_ for _ in ()).throw(NotFound("It is gone"))
    page.pane.editor.save_requested.emit("I am small")
    assert "It is gone" in page.pane.editor._problem.text()
    page.asked()
    page.view.hide()
    page.parts.bridge.changed.emit(ChangeSet(memory=True))
    assert page.profile.calls == [], "a hidden dialog reads nothing"


def test_it_is_switched_and_earlier_versions_are_restored(page: Page) -> None:
    page.pane.switch.click()
    page.pane.editor.restore_requested.emit(AT)
    assert page.asked() == [("turn", False), ("restore", AT)]
    page.state = replace(page.state, is_on=False)
    page.presenter.refresh()
    assert not page.pane.switch.isChecked()


@pytest.mark.parametrize(
    ("reply", "calls", "leaves"),
    [("Save", [("set", "I am small", None)], True), ("Discard", [], True), ("Cancel", [], False)],
)
def test_an_edited_profile_is_left_only_after_a_question(
    page: Page, reply: str, calls: list[tuple[object, ...]], leaves: bool
) -> None:
    left: list[int] = []
    page.presenter.ask_before_leaving(lambda: left.append(1))
    assert left == [1]
    page.pane.editor.text.setPlainText("I am small")
    page.presenter.ask_before_leaving(lambda: left.append(2))
    page.state = state_of(ProfileLine("I am small"))
    press(reply, page.view)
    assert page.asked() == calls
    assert (2 in left) is leaves


def test_proposals_of_models_are_rows_with_buttons(qtbot: QtBot) -> None:
    view = KnowledgeView()
    actions = (("keep", "Keep"), ("undo", "Remove"))
    view.show_proposals([WrittenLine(each, f"Save {each}?", actions, True) for each in "ab"])
    shown = view.proposals
    assert not shown.isHidden()
    assert "2" in view.tabText(3)
    buttons = {
        each.accessibleName() or each.text(): each
        for each in shown._rows[1].findChildren(type(view.profile.accept))
    }
    for name, args in (("Keep: Save b?", ["b", "keep"]), ("Remove: Save b?", ["b", "undo"])):
        with qtbot.waitSignal(shown.action_requested) as asked:
            buttons[name].click()
        assert asked.args == args
    with qtbot.waitSignal(shown.source_requested) as source:
        buttons["Open the turn"].click()
    assert source.args == ["b"]
    view.show_proposals([])
    assert shown.isHidden()
    assert view.tabText(3) == "Core"
