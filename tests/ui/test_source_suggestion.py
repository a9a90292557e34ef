"""The suggestion to follow a program whose sessions are on this computer."""

from typing import Any, cast

import pytest
from PySide6.QtWidgets import QAbstractButton

from app.domain.sources import SourceName, SourceState
from tests.fakes.screens import Parts, Recorder
from ui.presenters.source_suggestion import SourceSuggestionPresenter
from ui.widgets.banner import Banner

FOUND = SourceState(SourceName.CLAUDE_CODE, False, "/home/me/.claude", 1120, 60_000_000, 0, 0)


@pytest.mark.parametrize(
    ("button", "calls"),
    [
        ("Import and follow", [("note_suggested", FOUND.name), ("switch", FOUND.name)]),
        ("Dismiss", [("note_suggested", FOUND.name)]),
    ],
)
def test_a_source_is_followed_only_when_asked_for(
    parts: Parts, button: str, calls: list[Any]
) -> None:
    service, banner = Recorder(suggestion=FOUND), Banner()
    parts.qtbot.addWidget(banner)
    presenter = SourceSuggestionPresenter(parts.bridge, cast(Any, service), banner, 1)
    parts.qtbot.waitUntil(lambda: not banner.isHidden())
    assert "1,120" in banner.text
    (found,) = (
        each
        for each in banner.findChildren(QAbstractButton)
        if button in (each.text(), each.accessibleName())
    )
    found.click()
    parts.qtbot.waitUntil(lambda: len(service.calls) > len(calls))
    assert [each[: len(calls[0])] for each in service.calls[1:]] == calls
    assert not presenter._refresh.isActive()
