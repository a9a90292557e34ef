"""The question whether another program may read memory."""

from typing import Any, cast

import pytest
from PySide6.QtWidgets import QAbstractButton

from app.domain.changes import ChangeSet
from app.mcp.access import Access
from tests.fakes.screens import Parts, Recorder
from ui.presenters.mcp_consent import McpConsentPresenter
from ui.widgets.banner import Banner


@pytest.mark.parametrize(
    ("button", "decided"), [("Allow", Access.ALLOWED), ("Dismiss", Access.DENIED)]
)
def test_a_program_is_asked_for_once_and_what_is_pressed_is_decided(
    parts: Parts, button: str, decided: Access
) -> None:
    known = {"Old": Access.ALLOWED}
    service, banner = Recorder(decisions=known), Banner()
    parts.qtbot.addWidget(banner)
    McpConsentPresenter(parts.bridge, cast(Any, service), banner)
    assert banner.isHidden()
    known["Heron IDE"] = Access.ASK
    for _ in range(2):
        parts.bridge.changed.emit(ChangeSet(settings=frozenset({"mcp_clients"})))
    assert "Heron IDE" in banner.text
    (found,) = (
        each
        for each in banner.findChildren(QAbstractButton)
        if button in (each.text(), each.accessibleName())
    )
    found.click()
    parts.qtbot.waitUntil(lambda: ("decide", "Heron IDE", decided) in service.calls)
