"""Offers: an embedder, programs to follow, projects; and a program that asks to read memory."""

from functools import partial
from typing import Any, cast

import pytest
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.chat.projects import ProjectProposal
from app.domain.change_set import ChangeSet
from app.domain.records.profile import ProfileDiff, ProfileLine
from app.domain.records.sources import SourceName, SourceState
from app.mcp.access import Access
from app.memory.search.embedders import EmbedderSuggestion
from tests.fakes.screens import Parts, Recorder
from ui.presenters.suggestions import (
    McpConsentPresenter,
    SuggestionPresenter,
    embedder_suggestion,
    profile_suggestion,
    project_suggestion,
    source_suggestion,
)
from ui.views.welcome import Welcome
from ui.widgets import banner
from ui.widgets.banner import Banner, Offer

EMBEDDER = EmbedderSuggestion("builtin-multilingual", "40 % of your messages are not in English.")
FOUND = SourceState(
    SourceName.CLAUDE_CODE, False, "/home/me/.claude", 1120, 60_000_000, 0, 0, 60_000
)
OTHER = SourceState(SourceName.GOOSE, False, "/home/me/goose", 1, 9_000, 0, 0)


class Suggested:
    """An offer with a presenter over what `make` makes of a service that returns `results`."""

    def __init__(
        self,
        parts: Parts,
        make: Any = embedder_suggestion,
        *places: Any,
        is_withdrawn: bool = False,
        **results: Any,
    ) -> None:
        self.parts, self.banner, self.offer = parts, Banner(), Offer()
        self.service = Recorder(**(results or {"read": EMBEDDER}))
        self.presenter = SuggestionPresenter(
            parts.bridge, self.banner, [*places, self.offer.make], partial(make, self.service), 1,
            ("passages",), parts.go("followed"), self.offer.withdraw if is_withdrawn else None,
        )  # fmt: skip

    def until_offered(self) -> None:
        self.parts.qtbot.waitUntil(lambda: not self.offer.isHidden())

    @property
    def done(self) -> list[Any]:
        """The calls of the service beside its reads."""
        return [call for call in self.service.calls if len(call) > 1 or call[0] not in _READS]


_READS = ("read", "suggestions", "unannounced")


def press(place: QWidget, name: str) -> None:
    buttons = place.findChildren(QAbstractButton)
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
def test_it_is_offered_once_and_what_is_pressed_is_done(
    parts: Parts, make: Any, results: dict[str, Any], text: str, button: str, calls: list[Any]
) -> None:
    suggested = Suggested(parts, make, **results)
    suggested.until_offered()
    assert suggested.banner.isHidden(), "nothing is covered before it is asked for"
    suggested.offer.open.click()
    assert suggested.offer.isHidden()
    parts.qtbot.waitUntil(lambda: text in suggested.banner.text)
    suggested.banner.leave()
    assert not suggested.banner.isHidden(), "it stays while conversations are opened"
    press(suggested.banner, button)
    assert suggested.done == calls
    assert suggested.banner.isHidden() is (button == "Dismiss")
    parts.bridge.changed.emit(ChangeSet(passages=True))
    assert not suggested.presenter._refresh.isActive()


def test_an_offer_can_be_dismissed_where_it_is(parts: Parts) -> None:
    suggested = Suggested(parts)
    suggested.until_offered()
    press(suggested.offer, "Dismiss")
    assert suggested.done == [("dismiss",)]
    assert suggested.offer.isHidden()
    assert suggested.banner.isHidden()


@pytest.mark.parametrize("left", [(FOUND,), ()])
def test_the_welcome_page_offers_sessions_on_a_button_and_nothing_moves(
    parts: Parts, left: tuple[SourceState, ...]
) -> None:
    welcome = Welcome()
    place = welcome.offer_sessions
    suggested = Suggested(parts, source_suggestion, place, suggestions=(FOUND,))
    parts.qtbot.addWidget(welcome)
    welcome.resize(700, 600)
    welcome.show()
    assert not welcome.drop_zone.isVisible(), "it is not known yet whom it greets"
    welcome.greet(is_newcomer=True)
    before = welcome.drop_zone.pos()
    parts.qtbot.waitUntil(welcome.sessions.isVisible)
    assert "Claude Code" in welcome.sessions.text()
    assert suggested.banner.isHidden()
    assert suggested.offer.isHidden()
    assert welcome.drop_zone.pos() == before
    suggested.service.results["suggestions"] = left  # another window may have imported them
    welcome.sessions.click()
    parts.qtbot.waitUntil(lambda: not suggested.banner.isHidden())
    assert ("1,120" in suggested.banner.text) is bool(left)
    assert welcome.sessions.isHidden()
    welcome.hide()
    hide = suggested.banner.hide
    assert not welcome.offer_sessions("", hide, hide), "nobody sees it"


def test_projects_are_offered_once_and_lead_to_the_proposals(parts: Parts) -> None:
    heron = ProjectProposal("folder:heron", "heron", False, (), None)
    suggested = Suggested(parts, project_suggestion, unannounced=(heron, heron))
    suggested.until_offered()
    assert "heron" in suggested.offer.open.accessibleName()
    suggested.offer.open.click()
    parts.qtbot.waitUntil(lambda: parts.went == [("followed",)])
    assert suggested.done == [("note_announced",)]
    assert suggested.banner.isHidden()


def test_each_proposal_for_the_profile_is_offered_and_leads_to_it(parts: Parts) -> None:
    lines = tuple(map(ProfileLine, ("Always answer in German.", "I live in Rome.")))
    nothing = ProfileDiff((), ())
    suggested = Suggested(
        parts, profile_suggestion, is_withdrawn=True, unannounced=ProfileDiff(lines, ())
    )
    results = suggested.service.results
    results["note_announced"] = lambda: results.update(unannounced=nothing)
    suggested.until_offered()
    offered = "Add to your profile? “Always answer in German.” 1 more change."
    assert suggested.offer.open.accessibleName() == offered
    suggested.offer.open.click()
    parts.qtbot.waitUntil(lambda: parts.went == [("followed",)])
    parts.bridge.changed.emit(ChangeSet(passages=True))
    parts.qtbot.waitUntil(lambda: suggested.service.calls[-1] == ("unannounced",))
    assert suggested.offer.isHidden(), "it is the one that was announced"
    for decided in ("dismissed", "decided elsewhere", "opened", "proposed again"):
        results["unannounced"] = ProfileDiff((), (lines[1],))
        parts.bridge.changed.emit(ChangeSet(passages=True))
        suggested.until_offered()
        offered = "Remove from your profile? “I live in Rome.”"
        assert suggested.offer.open.accessibleName() == offered
        if decided == "decided elsewhere":
            results["unannounced"] = nothing
        press(suggested.offer, "Dismiss" if decided == "dismissed" else offered)
        parts.qtbot.waitUntil(lambda: results["unannounced"] is nothing)
    results["unannounced"] = ProfileDiff(lines[:1], ())
    parts.bridge.changed.emit(ChangeSet(passages=True))
    suggested.until_offered()
    assert suggested.offer.open.accessibleName().endswith("? “Always answer in German.”")
    results["unannounced"] = nothing
    parts.bridge.changed.emit(ChangeSet(passages=True))
    parts.qtbot.waitUntil(suggested.offer.isHidden)


def test_an_offer_that_does_not_stand_any_more_leaves_the_others(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer, said = Offer(), list[str]()
    monkeypatch.setattr(banner, "announce", lambda _, text: said.append(text))
    for name in ("first", "second", "third"):
        offer.make(name, lambda: None, lambda: None)
    offer.withdraw("third")
    offer.withdraw("unknown")
    assert (offer.isHidden(), said) == (False, ["first"]), "nothing is said again"
    offer.withdraw("first")
    assert (offer.open.accessibleName(), said) == ("second", ["first", "second"])
    offer.withdraw("second")
    assert offer.isHidden()


def test_one_offer_is_shown_at_a_time(parts: Parts) -> None:
    offer, done = Offer(), list[str]()
    for name in ("first", "second", "third"):
        offer.make(name, partial(done.append, f"show {name}"), partial(done.append, f"no {name}"))
    press(offer, "Dismiss")
    assert offer.open.accessibleName() == "second"
    offer.open.click()
    assert (done, offer.open.accessibleName()) == (["no first", "show second"], "third")
    press(offer, "Dismiss")
    assert offer.isHidden()


def test_a_long_offer_is_cut_to_the_room_there_is(parts: Parts) -> None:
    offer = Offer()
    parts.qtbot.addWidget(offer)
    offer.make("Import the sessions of many & programs " * 4, lambda: None, lambda: None)
    offer.resize(200, 30)
    parts.qtbot.waitUntil(lambda: offer.open.text().endswith("\u2026"))
    assert offer.minimumSizeHint().width() < 100


def test_a_longer_offer_after_a_short_one_is_shown_whole(parts: Parts) -> None:
    offer = Offer()
    parts.qtbot.addWidget(offer)
    offer.resize(900, 30)
    longer = "A new export is in Downloads: 214 new conversations"
    for text in ("Look here", longer):
        offer.make(text, lambda: None, lambda: None)
    offer.open.click()
    assert offer.open.text() == longer


def test_without_a_suggestion_it_is_looked_for_again_after_changes(parts: Parts) -> None:
    suggested = Suggested(parts, read=None)
    parts.qtbot.waitUntil(lambda: len(suggested.service.calls) == 1)
    parts.bridge.changed.emit(ChangeSet(passages=True))
    parts.qtbot.waitUntil(lambda: len(suggested.service.calls) == 2)
    assert suggested.offer.isHidden()


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
