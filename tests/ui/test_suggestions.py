"""Suggestions in the banner: an embedder, a program to follow, a program that asks to read memory."""

from functools import partial
from typing import Any, cast

import pytest
from PySide6.QtWidgets import QAbstractButton

from app.chat.projects import ProjectProposal
from app.domain.change_set import ChangeSet
from app.domain.records.sources import SourceName, SourceState
from app.mcp.access import Access
from app.memory.search.embedders import EmbedderSuggestion
from tests.fakes.screens import Parts, Recorder
from ui.presenters.suggestions import (
    McpConsentPresenter,
    SuggestionPresenter,
    embedder_suggestion,
    project_suggestion,
    source_suggestion,
)
from ui.views.welcome import Welcome
from ui.widgets.banner import Banner

EMBEDDER = EmbedderSuggestion("builtin-multilingual", "40 % of your messages are not in English.")
FOUND = SourceState(
    SourceName.CLAUDE_CODE, False, "/home/me/.claude", 1120, 60_000_000, 0, 0, 60_000
)
OTHER = SourceState(SourceName.GOOSE, False, "/home/me/goose", 1, 9_000, 0, 0)


class Suggested:
    """A banner with a presenter over what `make` makes of a service that returns `results`."""

    def __init__(
        self, parts: Parts, make: Any = embedder_suggestion, *more: Any, **results: Any
    ) -> None:
        self.parts, self.banner = parts, Banner()
        self.service = Recorder(**(results or {"read": EMBEDDER}))
        self.presenter = SuggestionPresenter(
            parts.bridge, self.banner, partial(make, self.service), 1, ("passages",), *more
        )

    def until_read(self, times: int = 1) -> None:
        self.parts.qtbot.waitUntil(lambda: len(self.service.calls) >= times)


def press(banner: Banner, name: str) -> None:
    buttons = banner.findChildren(QAbstractButton)
    (found,) = (each for each in buttons if name in (each.text(), each.accessibleName()))
    found.click()


@pytest.mark.parametrize(
    ("make", "results", "text", "button", "calls"),
    [
        (embedder_suggestion, {"read": EMBEDDER}, "40 %", "Switch", [("accept", EMBEDDER)]),
        (embedder_suggestion, {"read": EMBEDDER}, "40 %", "Dismiss", [("dismiss",)]),
        (
            source_suggestion, {"suggestions": (FOUND, OTHER)}, "60,000", "Import and follow",
            [("note_suggested", [FOUND.name, OTHER.name]), ("switch", FOUND.name, True),
             ("switch", OTHER.name, True)],
        ),
        (
            source_suggestion, {"suggestions": (FOUND, OTHER)}, "60,000", "Dismiss",
            [("note_suggested", [FOUND.name, OTHER.name])],
        ),
    ],
)  # fmt: skip
def test_it_is_shown_once_and_what_is_pressed_is_done(
    parts: Parts, make: Any, results: dict[str, Any], text: str, button: str, calls: list[Any]
) -> None:
    suggested = Suggested(parts, make, **results)
    suggested.until_read()
    assert text in suggested.banner.text
    suggested.banner.leave()
    assert not suggested.banner.isHidden(), "it stays while conversations are opened"
    press(suggested.banner, button)
    assert suggested.service.calls[1:] == calls
    assert suggested.banner.isHidden() is (button == "Dismiss")
    parts.bridge.changed.emit(ChangeSet(passages=True))
    assert not suggested.presenter._refresh.isActive()


@pytest.mark.parametrize("left", [(FOUND,), ()])
def test_the_welcome_page_offers_sessions_on_a_button_and_nothing_moves(
    parts: Parts, left: tuple[SourceState, ...]
) -> None:
    welcome = Welcome()
    more = lambda: None, welcome.invite
    suggested = Suggested(parts, source_suggestion, *more, suggestions=(FOUND,))
    parts.qtbot.addWidget(welcome)
    welcome.resize(700, 600)
    welcome.show()
    assert not welcome.drop_zone.isVisible(), "it is not known yet whom it greets"
    welcome.greet(is_newcomer=True)
    before = welcome.drop_zone.pos()
    suggested.until_read()
    parts.qtbot.waitUntil(welcome.sessions.isVisible)
    assert "Claude Code" in welcome.sessions.text()
    assert suggested.banner.isHidden()
    assert welcome.drop_zone.pos() == before
    suggested.service.results["suggestions"] = left  # another window may have imported them
    welcome.sessions.click()
    assert ("1,120" in suggested.banner.text) is bool(left)
    assert not suggested.banner.isHidden()
    assert welcome.sessions.isHidden()
    welcome.hide()
    assert not welcome.invite("", suggested.banner.hide), "nobody sees it"


def test_projects_are_suggested_once_and_lead_to_the_proposals(parts: Parts) -> None:
    heron = ProjectProposal("folder:heron", "heron", False, (), None)
    service, banner = Recorder(unannounced=(heron, heron)), Banner()
    read = partial(project_suggestion, cast(Any, service))
    SuggestionPresenter(parts.bridge, banner, read, 1, (), parts.go("proposals"))
    parts.qtbot.waitUntil(lambda: "heron" in banner.text)
    press(banner, "Show")
    assert service.calls[1:] == [("note_announced",)]
    assert parts.went == [("proposals",)]
    assert banner.isHidden()


def test_it_waits_until_the_banner_is_free(parts: Parts) -> None:
    suggested = Suggested(parts)
    suggested.banner.show_message("A backup was made.", brief=False)
    with pytest.raises(Exception, match="timed out"):
        parts.qtbot.waitUntil(lambda: bool(suggested.service.calls), timeout=50)
    suggested.banner.dismiss()
    suggested.until_read()
    assert suggested.banner.text == EMBEDDER.reason


def test_without_a_suggestion_it_is_looked_for_again_after_changes(parts: Parts) -> None:
    suggested = Suggested(parts, read=None)
    suggested.until_read()
    assert suggested.banner.isHidden()
    parts.bridge.changed.emit(ChangeSet(passages=True))
    suggested.until_read(2)


@pytest.mark.parametrize(
    ("button", "decided"), [("Allow", Access.ALLOWED), ("Dismiss", Access.DENIED)]
)
def test_what_is_pressed_is_decided_once(parts: Parts, button: str, decided: Access) -> None:
    known = {"Old": Access.ALLOWED}
    service, banner = Recorder(decisions=known), Banner()
    McpConsentPresenter(parts.bridge, cast(Any, service), banner)
    assert banner.isHidden()
    known["Heron IDE"] = Access.ASK
    for _ in range(2):
        parts.bridge.changed.emit(ChangeSet(settings=frozenset({"mcp_clients"})))
    assert "Heron IDE" in banner.text
    press(banner, button)
    assert service.calls[-1] == ("decide", "Heron IDE", decided)
