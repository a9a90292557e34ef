"""The pages about other programs: those that read memory or are followed, and servers with tools for models."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtGui import QGuiApplication

from app.domain.errors import InvalidInput, KnownError
from app.domain.links import Link, parse_commonplace_link
from app.domain.records.sources import SourceName
from app.domain.translation import tr
from app.mcp.access import Access, McpAccess
from app.mcp.clients import configurations
from app.mcp.server import HttpServer
from app.mcp.tool_servers import ToolServer, ToolServers
from app.system.keys import KeyLocation
from app.workers.followed import FollowedSources
from ui.presenters.presenter import Presenter
from ui.views.dialogs.confirm import Confirmation, confirm, confirm_removal
from ui.views.settings.programs_page import ProgramsPage, ProgramsShown
from ui.views.settings.tools_page import ToolServerFields, ToolsPage, address_text

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
        self._bridge.load("programs page", self._read, self._page.show_programs)

    def _read(self) -> ProgramsShown:
        installed = Path(sys.executable).with_name(_PROGRAM)
        program = str(installed) if installed.exists() else _PROGRAM
        command = (program, "mcp", "--data-dir", str(self._sources.paths.root))
        return ProgramsShown(
            self._sources.states(),
            list(self._access.decisions().items()),
            self._access.readings(_READINGS),
            configurations(command),
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


@dataclass(frozen=True, slots=True)
class _Offer:
    """A server as it was looked at, and the key that was typed for it."""

    server: ToolServer
    key: str


class ToolsPresenter(Presenter):
    """Keeps the page and what is stored in step. Nothing starts before its whole command was confirmed."""

    _servers: ToolServers
    _page: ToolsPage

    def _set_up(self) -> None:
        self._offer: _Offer | None = None
        self._bridge.subscribe(lambda _: self._show_servers(), "tool_servers")
        page = self._page
        page.connect_requested.connect(self._on_connect_requested)
        page.refresh_requested.connect(self._on_refresh_requested)
        page.accepted.connect(self._on_accepted)
        page.discarded.connect(lambda: self._show_offer(None))
        page.removal_requested.connect(self._on_removal_requested)
        page.switched.connect(
            lambda name, on: self._bridge.save(
                lambda: self._servers.switch(name, is_on=on), on_error=self._on_error
            )
        )
        page.permitted.connect(
            lambda name, tool, permission: self._bridge.save(
                lambda: self._servers.permit(name, tool, permission), on_error=self._on_error
            )
        )

    def show(self) -> None:
        self._show_offer(None)
        self._show_servers()

    def _show_servers(self) -> None:
        self._bridge.load("tools page", self._servers.servers, self._page.show_servers)

    def _show_offer(self, offer: _Offer | None) -> None:
        self._offer = offer
        self._page.show_offer(offer.server if offer else None)

    # -- slots

    def _on_connect_requested(self, fields: ToolServerFields) -> None:
        try:
            self._ask_to_look(_server_of(fields), fields.key.strip())
        except KnownError as error:
            self._on_error(error)

    def _on_refresh_requested(self, name: str) -> None:
        self._bridge.load(
            "tool server",
            lambda: next(each for each in self._servers.servers() if each.name == name),
            lambda server: self._ask_to_look(server, ""),
        )

    def _ask_to_look(self, server: ToolServer, key: str) -> None:
        is_command = bool(server.command)
        details = [address_text(server)]
        if server.folder:
            details.append(tr("Working folder: {folder}").format(folder=server.folder))
        if server.variables:
            names = ", ".join(server.variables)
            details.append(tr("It can read these variables: {names}").format(names=names))
        if is_command:
            details.append(tr("It runs with all your rights on this computer."))
        texts = Confirmation(
            tr("Connect a tool server"),
            tr("Start this program?") if is_command else tr("Connect to this address?"),
            "\n\n".join(details),
            tr("Start") if is_command else tr("Connect"),
        )
        confirm(self._page.window(), texts, lambda: self._look(server, key))

    def _look(self, server: ToolServer, key: str) -> None:
        self._page.show_outcome(tr("Connecting\u2026"), "small")
        self._bridge.load(
            "tool server",
            lambda: self._servers.look_at(server, key),
            lambda found: self._show_offer(_Offer(found, key)),
            self._on_error,
        )

    def _on_accepted(self) -> None:
        offer = self._offer
        if offer is not None:
            self._bridge.save(
                lambda: self._servers.accept(offer.server, offer.key),
                self._after_accepting,
                self._on_error,
            )

    def _after_accepting(self, place: KeyLocation | None) -> None:
        self._page.clear()
        self._show_offer(None)
        if place is KeyLocation.SESSION:
            self._page.show_outcome(
                tr("Without a keyring the key is kept until you quit."), "muted"
            )

    def _on_removal_requested(self, name: str) -> None:
        confirm_removal(
            self._page.window(),
            tr("Remove"),
            tr("Remove “{name}”?").format(name=name),
            tr("Its tools are not offered any more, and its key is deleted."),
            lambda: self._bridge.save(lambda: self._servers.remove(name), on_error=self._on_error),
        )

    def _on_error(self, error: KnownError) -> None:
        self._page.show_outcome(error.display_text, "error")


def _server_of(fields: ToolServerFields) -> ToolServer:
    """Return the server that was typed; raise InvalidInput for a command that cannot be read."""
    try:
        command = tuple(shlex.split(fields.command))
    except ValueError as error:
        raise InvalidInput("The command cannot be read", "Check its quotation marks.") from error
    home = [str(Path(each).expanduser()) if each.startswith("~") else each for each in command]
    folder = fields.folder.strip()
    return ToolServer(
        fields.name,
        tuple(home),
        fields.url,
        str(Path(folder).expanduser()) if folder else "",
        tuple(fields.variables.replace(",", " ").split()),
    )
