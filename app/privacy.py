"""Privacy: every connection that the program can make or accept, why, when, and whether it is on now.

`KINDS` is the only list; a test compares the modules that it names with those that open connections in the code.
There is nothing else: no telemetry, no search for updates; prices of models come with the program.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.chat.models import ModelDirectory, ProviderState
from app.domain.chat import ModelRef
from app.domain.errors import KnownError
from app.domain.translation import tr
from app.domain.turns import RECALL_MODEL
from app.mcp.tool_servers import ToolServers
from app.providers.http.base_url import check_base_url
from app.providers.vendors.local_servers import USUAL_PORTS
from app.storage.tables.settings import Settings


class ConnectionState(StrEnum):
    """Whether a connection is made: by itself, only by an action of the user, or not at all."""

    ON = "on"
    ON_REQUEST = "on_request"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class ConnectionKind:
    """One kind of connection; `opened_by` are the modules with the code that opens it, and no other."""

    name: str
    title: str
    when: str
    what: str
    opened_by: tuple[str, ...]


KINDS: Sequence[ConnectionKind] = (
    ConnectionKind(
        "model_server",
        tr("Model server"),
        tr("When you send a message, test it or list its models, and for the work named here."),
        tr(
            "The prompt as 'What was sent' shows it, with the instructions of preset and project, attached files, and "
            "your key. For background work, messages and titles."
        ),
        (
            "app.providers.http.client", "app.providers.http.connection",
            "app.providers.vendors.model_list",
        ),
    ),
    ConnectionKind(
        "local_servers",
        tr("Look for model servers on this computer"),
        tr("While the welcome page shows and no model is chosen, and when you look in Settings, Models."),
        tr("The question which models they have; nothing of yours."),
        ("app.providers.vendors.local_servers",),
    ),
    ConnectionKind(
        "tool_server",
        tr("Tool server"),
        tr("When a model may use its tools, as you allowed in Settings, Tools."),
        tr("What a model passes to a tool. A command may connect elsewhere by itself."),
        ("app.mcp.tool_connections", "app.mcp.line_limit"),
    ),
    ConnectionKind(
        "memory_over_http",
        tr("Memory for other programs over HTTP"),
        tr("While it is on, programs on this computer that have its key may ask."),
        tr("What they search for in your memory, without private conversations."),
        ("app.mcp.server",),
    ),
    ConnectionKind(
        "data_directory",
        tr("Other commands of Commonplace, and programs over MCP"),
        tr("While the program runs, through a socket in the data folder that only you can open."),
        tr("Commands and their output; to MCP programs only what you allowed them."),
        ("app.__main__", "app.cli.remote", "app.index.document_writer", "app.mcp.relay"),
    ),
    ConnectionKind(
        "desktop",
        tr("Your desktop"),
        tr("At the start, for keys, for manual pages, and when you open a file, a folder or a link."),
        tr("Keys to the keyring, and to your browser the address of a link after you agreed to it."),
        (
            "app.system.process", "ui.presenters.maintenance",
            "ui.presenters.memory.documents", "ui.presenters.conversation.attach", "ui.presenters.conversation.navigation",
        ),
    ),
)  # fmt: skip
_KINDS = {each.name: each for each in KINDS}


@dataclass(frozen=True, slots=True)
class ConnectionRow:
    """A connection as it is configured now.

    `leaves_computer` is whether its other end is another computer; of a command that is not known.
    """

    kind: str
    title: str
    address: str
    when: str
    what: str
    state: ConnectionState
    leaves_computer: bool


class PrivacyService:
    """Reads the connections from the settings. Blocking."""

    def __init__(self, settings: Settings, models: ModelDirectory, tools: ToolServers) -> None:
        self._settings = settings
        self._models = models
        self._tools = tools

    def connections(self) -> tuple[ConnectionRow, ...]:
        """Return all connections, those that leave the computer first."""
        rows = (
            *map(self._model_server, self._models.providers()),
            *self._tool_servers(),
            *self._local(),
        )
        return tuple(sorted(rows, key=lambda row: not row.leaves_computer))

    def _model_server(self, provider: ProviderState) -> ConnectionRow:
        name = provider.config.name
        uses = [
            use
            for key, use in (
                ("default_model", tr("your messages")),
                ("background_model", tr("summaries, facts and names of topics")),
                ("embedder", tr("search by meaning")),
            )
            if ModelRef.parse(self._settings.text(key)).provider == name
        ]
        leaves = _leaves(provider.base_url)
        if uses:
            state = ConnectionState.ON
        elif provider.has_key or not leaves or provider.config.vendor.base_url != provider.base_url:
            state = ConnectionState.ON_REQUEST
        else:
            state = ConnectionState.OFF  # without a key nothing is sent
        used = tr("Used for: {uses}.").format(uses=", ".join(uses)) if uses else ""
        return _row("model_server", provider.base_url, state, leaves, name=name, more=used)

    def _tool_servers(self) -> Iterator[ConnectionRow]:
        for server in self._tools.servers():
            state = ConnectionState.ON if server.is_on else ConnectionState.OFF
            address = server.url or " ".join(server.command)
            leaves = not server.url or _leaves(server.url)
            yield _row("tool_server", address, state, leaves, name=server.name)

    def _local(self) -> Iterator[ConnectionRow]:
        ports = ", ".join(str(port) for _, port in USUAL_PORTS)
        is_welcome = self._settings.text("default_model") == RECALL_MODEL
        looks = ConnectionState.ON if is_welcome else ConnectionState.ON_REQUEST
        yield _row("local_servers", f"127.0.0.1: {ports}", looks)
        is_on = self._settings.flag("mcp_http")
        address = f"127.0.0.1:{self._settings.number('mcp_http_port')}"
        state = ConnectionState.ON if is_on else ConnectionState.OFF
        yield _row("memory_over_http", address, state)
        yield _row("data_directory", "", ConnectionState.ON)
        yield _row("desktop", "", ConnectionState.ON_REQUEST)


def _row(
    kind: str,
    address: str,
    state: ConnectionState,
    leaves_computer: bool = False,
    name: str = "",
    more: str = "",
) -> ConnectionRow:
    known = _KINDS[kind]
    title = f"{known.title}: {name}" if name else known.title
    when = f"{known.when} {more}".rstrip()
    return ConnectionRow(kind, title, address, when, known.what, state, leaves_computer)


def _leaves(url: str) -> bool:
    try:
        return not check_base_url(url, allow_plain_http=True).is_loopback
    except KnownError:
        return True
