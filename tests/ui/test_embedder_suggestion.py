"""The suggestion of an embedder in the banner."""

from typing import Any, cast

import pytest
from PySide6.QtWidgets import QAbstractButton

from app.domain.changes import ChangeSet
from app.memory.embedder_suggestion import EmbedderSuggestion
from tests.fakes.screens import Parts, Recorder
from ui.presenters.embedder_suggestion import EmbedderSuggestionPresenter
from ui.widgets.banner import Banner

SUGGESTION = EmbedderSuggestion(
    "builtin-multilingual", 0.4, "40 % of your messages are not in English."
)


class Suggested:
    """The presenter over a banner and a service that has a suggestion, or none."""

    def __init__(self, parts: Parts, found: EmbedderSuggestion | None = SUGGESTION) -> None:
        self.parts, self.service, self.banner = parts, Recorder(read=found), Banner()
        parts.qtbot.addWidget(self.banner)
        self.presenter = EmbedderSuggestionPresenter(
            parts.bridge, cast(Any, self.service), self.banner, 1
        )

    def until_read(self, times: int = 1) -> None:
        self.parts.qtbot.waitUntil(lambda: self.service.calls.count(("read",)) >= times)

    def press(self, name: str) -> None:
        (found,) = (
            each for each in self.banner.findChildren(QAbstractButton)
            if name in (each.text(), each.accessibleName())
        )  # fmt: skip
        found.click()


def test_it_is_shown_once_and_its_button_switches(parts: Parts) -> None:
    suggested = Suggested(parts)
    suggested.until_read()
    assert suggested.banner.text == SUGGESTION.reason
    suggested.banner.leave()
    assert not suggested.banner.isHidden(), "it stays while conversations are opened"
    suggested.press("Switch")
    assert suggested.service.calls == [("read",), ("accept", SUGGESTION)]
    parts.bridge.changed.emit(ChangeSet(passages=True))
    assert not suggested.presenter._refresh.isActive()


def test_closing_it_dismisses_it_for_good(parts: Parts) -> None:
    suggested = Suggested(parts)
    suggested.until_read()
    suggested.press("Dismiss")
    assert suggested.service.calls == [("read",), ("dismiss",)]


def test_it_waits_until_the_banner_is_free(parts: Parts) -> None:
    suggested = Suggested(parts)
    suggested.banner.show_message("A backup was made.", brief=False)
    with pytest.raises(Exception, match="timed out"):
        parts.qtbot.waitUntil(lambda: bool(suggested.service.calls), timeout=50)
    suggested.banner.dismiss()
    suggested.until_read()
    assert suggested.banner.text == SUGGESTION.reason


def test_without_a_suggestion_it_is_looked_for_again_after_messages_were_added(
    parts: Parts,
) -> None:
    suggested = Suggested(parts, None)
    suggested.until_read()
    assert suggested.banner.isHidden()
    parts.bridge.changed.emit(ChangeSet(passages=True))
    suggested.until_read(2)
