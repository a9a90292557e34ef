"""The settings' page of other programs: sources are switched, access is decided, readings lead to turns."""

import json
import shlex
import tomllib
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QComboBox

from app.domain.links import Link
from app.domain.records.sources import SourceName, SourceState
from app.mcp.access import Access, Reading
from app.mcp.server import HttpAccess
from tests.fakes.screens import Parts, Recorder
from ui.presenters.settings.programs import ProgramsPresenter
from ui.views.settings.programs_page import ProgramsPage

STATE = SourceState(SourceName.CLAUDE_CODE, False, "/home/me/.claude", 12, 9_000, 3, 2)
READING = Reading(datetime(2026, 3, 4, tzinfo=UTC), "Heron IDE", "search", ("commonplace://7/2",))


class Page:
    """The page with its presenter over recorded services."""

    def __init__(self, parts: Parts) -> None:
        self.page, self.opened = ProgramsPage(), list[Link]()
        self.sources = Recorder(states=[STATE])
        self.sources.paths = SimpleNamespace(root="/data")  # type: ignore[attr-defined]
        self.access = Recorder(decisions={"Heron IDE": Access.ASK}, readings=(READING,))
        self.http = Recorder(access=HttpAccess("http://127.0.0.1:7316/mcp", "key-1"))
        presenter = ProgramsPresenter(
            parts.bridge, cast(Any, self.sources), cast(Any, self.access), cast(Any, self.http),
            self.opened.append, self.page,
        )  # fmt: skip
        presenter.show()
        parts.qtbot.waitUntil(lambda: self.page.log.count() == 1)


def test_the_page_switches_sources_decides_access_opens_turns_and_copies(parts: Parts) -> None:
    shown = Page(parts)
    (choice,) = (
        each for each in shown.page.findChildren(QComboBox) if each is not shown.page.program
    )
    assert choice.currentData() == Access.ASK
    choice.setCurrentIndex(1)
    choice.activated.emit(1)
    parts.qtbot.waitUntil(lambda: ("decide", "Heron IDE", Access.ALLOWED) in shown.access.calls)
    (switch,) = (each for each in shown.page.findChildren(QCheckBox) if each is not shown.page.http)
    switch.click()
    parts.qtbot.waitUntil(
        lambda: any(call[:2] == ("switch", STATE.name) for call in shown.sources.calls)
    )
    shown.page.log.itemActivated.emit(shown.page.log.item(0))
    assert shown.opened == [Link(7, 2)]  # type: ignore[arg-type]
    shown.page.copy.click()
    assert '"--data-dir", "/data"' in QGuiApplication.clipboard().text()
    assert shown.page.http.isChecked()
    assert shown.page.http_address.text() == "http://127.0.0.1:7316/mcp"
    assert shown.page.http_header.text().startswith("Authorization: Bearer")
    shown.page.copy_key.click()
    assert QGuiApplication.clipboard().text() == "key-1"
    shown.page.http.click()
    parts.qtbot.waitUntil(lambda: any(each[0] == "switch" for each in shown.http.calls))


def test_each_program_has_its_configuration_to_copy(parts: Parts) -> None:
    page = Page(parts).page
    copied = {}
    for at in range(page.program.count()):
        page.program.setCurrentIndex(at)
        page.copy.click()
        copied[page.program.itemText(at)] = QGuiApplication.clipboard().text()
    server = json.loads(copied["Cursor"])["mcpServers"]["commonplace"]
    assert tomllib.loads(copied["Codex"]) == {"mcp_servers": {"commonplace": server}}
    added = shlex.split(copied["Claude Code"])
    assert added[added.index("--") + 1 :] == [server["command"], *server["args"]]
    assert server["args"][0] == "mcp"
