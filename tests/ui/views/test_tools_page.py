"""The settings' page of tools, and the question before a call."""

import json
from typing import Any, cast

import pytest
from PySide6.QtWidgets import QComboBox, QLabel, QMessageBox

from app.mcp.tool_servers import Permission, PermissionQuestion, ServerTool, ToolServer
from app.system.keys import KeyLocation
from tests.fakes.screens import Parts, Recorder, press
from ui.presenters.settings.programs import ToolsPresenter
from ui.presenters.tool_permission import ToolPermissionPresenter
from ui.views.settings.tools_page import ToolsPage
from ui.widgets.banner import Banner

_PATH = {"type": "string", "description": "Below the root."}
_SCHEMA = {"type": "object", "properties": {"of": {"properties": {"path": _PATH}}, "all": {}}}
TOOL = ServerTool("read", "Read a file.", json.dumps(_SCHEMA))
FILES = ToolServer("files", ("files-server", "--root", "/my notes"), tools=(TOOL,))


class Page:
    """The page with its presenter over a recorded service."""

    def __init__(self, parts: Parts, *servers: ToolServer) -> None:
        self.parts, self.view = parts, ToolsPage()
        self.service = Recorder(servers=servers, look_at=FILES, accept=KeyLocation.SESSION)
        ToolsPresenter(parts.bridge, cast(Any, self.service), self.view).show()
        self.view.show()

    def until_called(self, *call: object) -> None:
        self.parts.qtbot.waitUntil(lambda: call in self.service.calls)


def test_a_server_is_looked_at_only_after_its_whole_command_was_confirmed(parts: Parts) -> None:
    page = Page(parts)
    page.view.name.setText("files")
    page.view.command.setText('files-server --root "/my notes"')
    page.view.variables.setText("TOKEN, HOME")
    page.view.connect_button.click()
    (box,) = page.view.window().findChildren(QMessageBox)
    assert "files-server --root '/my notes'" in box.informativeText()
    assert "TOKEN, HOME" in box.informativeText()
    press("Cancel")
    assert page.service.calls == [("servers",)]
    page.view.connect_button.click()
    press("Start")
    typed = ToolServer("files", FILES.command, variables=("TOKEN", "HOME"))
    page.until_called("look_at", typed, "")


def test_a_command_with_an_open_quotation_mark_is_refused(parts: Parts) -> None:
    page = Page(parts)
    page.view.command.setText('files "')
    page.view.connect_button.click()
    assert page.view.outcome.property("tone") == "error"


def test_permission_of_a_tool_is_chosen_and_a_server_is_switched_off(parts: Parts) -> None:
    page = Page(parts, FILES)
    parts.qtbot.waitUntil(lambda: bool(page.view.findChildren(QComboBox)))
    (choice,) = page.view.findChildren(QComboBox)
    assert choice.currentData() == Permission.ASK
    choice.activated.emit(2)
    page.until_called("permit", "files", "read", Permission.ALWAYS)
    page.view.switched.emit("files", False)
    parts.qtbot.waitUntil(
        lambda: any(each[:2] == ("switch", "files") for each in page.service.calls)
    )
    page.view.removal_requested.emit("files")
    press("Remove")
    page.until_called("remove", "files")


@pytest.mark.parametrize("withdrawn", [True, False])
def test_calls_are_asked_for_one_by_one_and_withdrawn(parts: Parts, withdrawn: bool) -> None:
    service, banner = Recorder(), Banner()
    ToolPermissionPresenter(parts.bridge, cast(Any, service), banner)

    def boxes() -> list[QMessageBox]:
        return [box for box in banner.findChildren(QMessageBox) if box.isVisible()]

    def text() -> str:
        return boxes()[0].text() if boxes() else ""

    questions = [PermissionQuestion("files", name, json.dumps({"n": 1})) for name in ("a", "b")]
    for each in questions:
        service.ask(each)
    parts.qtbot.waitUntil(lambda: len(boxes()) == 1)
    if withdrawn:
        questions[0].decide(allowed=False)
        parts.qtbot.waitUntil(lambda: "“b”" in text())
    else:
        press("Allow once")
        assert questions[0].answer is True
        parts.qtbot.waitUntil(lambda: "“b”" in text())
    press("Always allow")
    assert questions[1].answer is True
    parts.qtbot.waitUntil(lambda: ("permit", "files", "b", Permission.ALWAYS) in service.calls)


def test_what_is_accepted_shows_all_that_the_server_says_to_the_model(parts: Parts) -> None:
    page = Page(parts)
    page.view.show_offer(FILES)
    shown = [each.text() for each in page.view.findChildren(QLabel)]
    assert {"Read a file.", "\n".join(TOOL.arguments)} <= set(shown)
