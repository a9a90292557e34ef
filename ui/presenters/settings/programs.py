"""The programs page of the settings: showing and switching sources, deciding who reads memory."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from PySide6.QtGui import QGuiApplication

from app.domain.links import Link, parse_commonplace_link
from app.domain.sources import SourceName
from app.mcp.access import Access, McpAccess
from app.mcp.http import HttpServer
from app.workers.sources import FollowedSources
from ui.presenters.presenter import Presenter
from ui.views.settings.programs_page import ProgramsPage, ProgramsShown

_READINGS = 50
_PROGRAM = "commonplace"


class ProgramsPresenter(Presenter):
    """Keeps the page and what is stored in step; `open_link` opens a turn."""

    _sources: FollowedSources
    _access: McpAccess
    _http: HttpServer
    _open_link: Callable[[Link], object]
    _page: ProgramsPage

    def _set_up(self) -> None:
        self._bridge.subscribe(lambda _: self.show(), "mcp_clients", "mcp_http")
        page = self._page
        page.source_switched.connect(self._switch)
        page.decided.connect(self._decide)
        page.http_switched.connect(
            lambda on: self._bridge.save(
                lambda: self._http.switch(is_on=on), on_error=self._page.show_error
            )
        )
        page.link_opened.connect(self._open)
        page.copy_requested.connect(lambda text: QGuiApplication.clipboard().setText(text))

    def show(self) -> None:
        """Show the page anew."""
        self._bridge.load("programs page", self._read, self._page.show_programs)

    def _read(self) -> ProgramsShown:
        arguments = ["mcp", "--data-dir", str(self._sources.paths.root)]
        program = Path(sys.executable).with_name(_PROGRAM)
        server = {"command": str(program) if program.exists() else _PROGRAM, "args": arguments}
        configuration = {"mcpServers": {"commonplace": server}}
        return ProgramsShown(
            self._sources.states(),
            list(self._access.decisions().items()),
            self._access.readings(_READINGS),
            json.dumps(configuration),
            self._http.access(),
        )

    def _switch(self, name: SourceName, on: bool) -> None:
        self._bridge.save(
            lambda: self._sources.switch(name, is_on=on),
            lambda _: self.show(),
            self._page.show_error,
        )

    def _decide(self, name: str, access: Access) -> None:
        self._bridge.save(lambda: self._access.decide(name, access), on_error=self._page.show_error)

    def _open(self, text: str) -> None:
        if (link := parse_commonplace_link(text)) is not None:
            self._page.window().close()
            self._open_link(link)
