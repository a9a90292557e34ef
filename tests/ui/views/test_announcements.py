"""Announcements to screen readers, and motion that can be turned off."""

from types import SimpleNamespace

import pytest
from PySide6 import QtGui
from pytestqt.qtbot import QtBot

from app.domain.results import SearchResponse
from tests.fakes.transcripts import Shown, turn
from ui.theme import Appearance, Theme, ThemeChoice
from ui.views.sidebar import Sidebar
from ui.widgets.banner import Banner, NoteCard


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    spy = SimpleNamespace(updateAccessibility=lambda event: texts.append(event.message()))
    monkeypatch.setattr(QtGui, "QAccessible", spy)
    return texts


def test_banners_notes_and_results_are_announced(said: list[str]) -> None:
    banner, note, sidebar = Banner(), NoteCard(), Sidebar()
    banner.show_message("It was saved.", brief=False)
    note.show_note("It waits.")
    note.show_note("It waits.")
    assert said == ["It was saved.", "It waits."]
    sidebar.show_answer(SearchResponse("nothing", (), 1.0))
    assert said[2].startswith("Nothing found.")
    sidebar.search.add_filter("tag:work")
    sidebar.show_answer(SearchResponse("tag:work nothing", (), 1.0))
    assert "filter" in said[-1]


def test_messages_are_read_as_they_are_drawn(qtbot: QtBot, said: list[str]) -> None:
    shown = Shown(qtbot, [turn(0, "Why **here**?", "> It *is* $x^2$.\n\n- one")]).settle()
    asked, answered = shown.turn(0).frames()
    for frame in (asked, answered):
        frame.setFocus()
    assert asked.accessibleDescription() == "Why **here**?"
    assert answered.accessibleDescription() == "It is $x^2$.\n- one"
    shown.add_reply()
    shown.stream("> **So** it is.")
    shown.finish()
    assert said[-1] == "Reply: So it is."


def test_a_highlight_fades_unless_motion_is_reduced(qtbot: QtBot) -> None:
    shown = Shown(qtbot, [turn(0, "Q", "A")])
    assert not shown.turn(0)._context.theme.reduced_motion
    shown.view.set_theme(Theme(reduced_motion=True))
    assert shown.turn(0)._context.theme.reduced_motion


def test_the_setting_reaches_the_theme(appearance: Appearance) -> None:
    appearance.choose(ThemeChoice.SYSTEM, 100, reduced_motion=True)
    assert appearance.theme.reduced_motion
    appearance.choose(ThemeChoice.SYSTEM, 100)
    assert not appearance.theme.reduced_motion
