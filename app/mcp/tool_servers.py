"""Tool servers: programs that offer tools to models over MCP, what the user accepted of them, and permission.

A server is started, and its tools are offered, only as the user accepted them. What a tool returns is data.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any

from app.chat.tools.toolbox import Tool, ToolContext
from app.domain import codec
from app.domain.errors import InvalidInput, NotFound
from app.domain.text import clean, one_line
from app.mcp.tool_connections import ListedTool, ServerAddress, ToolConnections, ToolServerFailed
from app.providers.http.base_url import check_base_url
from app.storage.tables.settings import Settings
from app.system.keys import KeyLocation, KeyStore

_SETTING = "tool_servers"
_KEY_OWNER = "tool server {name}"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,23}")
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")
_TOOL_NAME_CHARS = 64
_TOOLS_MAX = 64
_DESCRIPTION_CHARS = 1000
_SCHEMA_CHARS = 20_000
_ITEM = "•"
_DEEPEST = 10  # indentation of what is shown of a schema
_POLL_S = 0.2


class Permission(StrEnum):
    """Whether a model may call a tool."""

    NEVER = "never"
    ASK = "ask"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool of a server as it was accepted; `schema_json` is the JSON schema of its arguments."""

    name: str
    description: str
    schema_json: str
    permission: Permission = Permission.ASK

    @property
    def offer(self) -> tuple[str, ...]:
        """What the user accepts: everything but the permission."""
        return (self.name, self.description, self.schema_json)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Everything that the server says of the arguments, in lines: all of it goes to the model."""
        return tuple(_outline(json.loads(self.schema_json)))


@dataclass(frozen=True, slots=True)
class ToolServer:
    """A server: a command, or a URL, and its tools.

    `folder` is the command's working folder, `variables` the names of the environment variables it may read.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    folder: str = ""
    variables: tuple[str, ...] = ()
    tools: tuple[ServerTool, ...] = ()
    is_on: bool = True

    @property
    def address(self) -> tuple[object, ...]:
        """How it is reached: a server at another address is another program."""
        return (self.name, self.command, self.url, self.folder, self.variables)

    @property
    def offer(self) -> tuple[object, ...]:
        """What the user accepts as a whole: the address, and every tool but its permission."""
        return (*self.address, tuple(each.offer for each in self.tools))


_Servers = tuple[ToolServer, ...]


@dataclass(slots=True, eq=False)
class PermissionQuestion:
    """A call that waits for the user: of which server, tool and with which arguments (JSON, indented).

    `on_decided` is called once it is answered, by the user or because the reply was stopped.
    """

    server: str
    tool: str
    arguments: str
    answer: bool | None = None
    answered: threading.Event = field(default_factory=threading.Event)
    on_decided: Callable[[], object] = lambda: None

    def decide(self, *, allowed: bool) -> None:
        """Let the call go on, or refuse it; the first answer counts."""
        if not self.answered.is_set():
            self.answer = allowed
            self.answered.set()
            self.on_decided()


class ToolServers:
    """The servers of a library. Thread-safe; blocking but for `servers`.

    Attributes:
        ask: Shows a question to the user; called on any thread. None where nobody can answer.
    """

    def __init__(self, settings: Settings, keys: KeyStore, connections: ToolConnections) -> None:
        self._settings, self._keys, self._connections = settings, keys, connections
        self._lock = threading.Lock()
        self.ask: Callable[[PermissionQuestion], object] | None = None

    # -- what the user decides

    def servers(self) -> tuple[ToolServer, ...]:
        """Return the servers that were accepted, in the order in which they were added."""
        stored: tuple[ToolServer, ...] = codec.loads(_Servers, self._settings.text(_SETTING))
        return stored

    def look_at(self, server: ToolServer, key: str = "") -> ToolServer:
        """Return a server with the tools that it offers; nothing is stored.

        This starts its command or connects to its URL: the user has agreed to just that. A tool that was
        accepted keeps its permission if nothing about it has changed; one that has changed is asked for
        again, but stays forbidden if it was. Raises InvalidInput, ToolServerFailed.
        """
        server = _checked(server)
        address = self._address(server)
        if key:
            address = replace(address, key=self._keys.session_key(key).secret)
        self._connections.disconnect(server.name)
        tools = self._connections.tools(address)
        known = next((each for each in self.servers() if each.name == server.name), server)
        return replace(
            server,
            tools=tuple(
                replace(each, permission=_permission(each, known, known.address == server.address))
                for each in _offered(tools)
            ),
        )

    def accept(self, server: ToolServer, key: str = "") -> KeyLocation | None:
        """Store a server as it was looked at; return where a new key went. Raises StorageError."""
        place = None
        if key and server.url:
            place = self._keys.save(*self._key_owner(server), key)
        self._put(server.name, server)
        return place

    def permit(self, name: str, tool: str, permission: Permission) -> None:
        """Set whether a tool may be called. Raises NotFound, StorageError."""
        server = self._server(name)
        tools = tuple(
            replace(each, permission=permission) if each.name == tool else each
            for each in server.tools
        )
        self._put(name, replace(server, tools=tools))

    def switch(self, name: str, *, is_on: bool) -> None:
        """Offer the tools of a server, or none of them and end it. Raises NotFound, StorageError."""
        self._put(name, replace(self._server(name), is_on=is_on))
        self._connections.disconnect(name)

    def remove(self, name: str) -> None:
        """Forget a server and its key, and end it. Raises StorageError."""
        server = self._server(name)
        if server.url:
            self._keys.forget(*self._key_owner(server))
        self._put(name, None)
        self._connections.disconnect(name)

    # -- what models are offered

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools of all servers that are on, but for those that are never called."""
        made: dict[str, Tool] = {}
        for server in self.servers():
            for tool in server.tools if server.is_on else ():
                if tool.permission is not Permission.NEVER:
                    name = _unique(f"mcp_{server.name}_{_UNFIT.sub('_', tool.name)}", made)
                    made[name] = Tool(
                        name,
                        tool.description,
                        json.loads(tool.schema_json),
                        partial(self._call, server.name, tool.name),
                        is_checked=False,
                        ask=partial(self._ask, server.name, tool.name)
                        if tool.permission is Permission.ASK
                        else None,
                    )
        return tuple(made.values())

    def _call(
        self, name: str, tool_name: str, arguments: Mapping[str, Any], _context: ToolContext
    ) -> str:
        server = self._server(name)
        tool = next((each for each in server.tools if each.name == tool_name), None)
        if tool is None or not server.is_on or tool.permission is Permission.NEVER:
            raise NotFound(f"'{tool_name}' of '{name}' is switched off", "Continue without it.")
        address = self._address(server)
        try:
            self._check_unchanged(server, address)
            text, is_error = self._connections.call(address, tool_name, arguments)
        except ToolServerFailed as error:
            raise InvalidInput(*error.args) from error  # with the server's words, which no log has
        if is_error:
            raise InvalidInput(text or "The tool failed and says nothing")
        return text

    def _ask(
        self, server: str, tool: str, arguments: Mapping[str, Any], context: ToolContext
    ) -> None:
        """Wait for the user's answer; raise InvalidInput, which the model reads, for a refusal."""
        given = json.dumps(arguments, ensure_ascii=False, indent=2)
        question = PermissionQuestion(server, tool, given)
        if self.ask is None:
            raise InvalidInput(
                f"Nobody can be asked whether '{tool}' may run",
                "The user can allow it always in the window, under Settings, Tools.",
            )
        self.ask(question)
        while not question.answered.wait(_POLL_S):
            if context.is_over():
                question.decide(allowed=False)
        if not question.answer:
            raise InvalidInput(
                f"The user refused this call of '{tool}'",
                "Do not repeat it. Continue without it, or ask the user what to do instead.",
            )

    def _check_unchanged(self, server: ToolServer, address: ServerAddress) -> None:
        """Raise InvalidInput if a server offers other tools than were accepted."""
        now = replace(server, tools=tuple(_offered(self._connections.tools(address))))
        if now.offer != server.offer:
            self._connections.disconnect(server.name)
            raise InvalidInput(
                f"The tools of '{server.name}' are not those that the user accepted",
                "The user has to look at them in Settings, Tools, before they can be used again.",
            )

    def _server(self, name: str) -> ToolServer:
        for each in self.servers():
            if each.name == name:
                return each
        raise NotFound(f"There is no tool server '{name}'", "Settings, Tools lists them.")

    def _put(self, name: str, server: ToolServer | None) -> None:
        """Replace the server of a name, or remove it; a new one is the last."""
        with self._lock:
            kept = {each.name: each for each in self.servers()}
            kept.pop(name, None) if server is None else kept.update({name: server})
            self._settings.set(_SETTING, json.dumps([asdict(each) for each in kept.values()]))

    def _address(self, server: ToolServer) -> ServerAddress:
        found = self._keys.find(*self._key_owner(server)) if server.url else None
        key = found.secret if found else None
        return ServerAddress(
            server.name, server.command, server.url, server.folder, server.variables, key
        )

    @staticmethod
    def _key_owner(server: ToolServer) -> tuple[str, str]:
        return _KEY_OWNER.format(name=server.name), check_base_url(server.url).origin


def _outline(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield every name and value of a schema on lines of their own, indented by depth, uncut.

    Only the line of "properties" and the type "object" are left out, which say nothing.
    """
    rest: list[tuple[int, str, Any]] = [(0, "properties", schema)]
    while rest:
        depth, name, value = rest.pop()
        own = f"{'    ' * min(depth, _DEEPEST)}{_shown(name)}"
        if isinstance(value, dict | list) and value:
            if name != "properties":
                depth += 1
                yield own
            parts = value.items() if isinstance(value, dict) else ((_ITEM, each) for each in value)
            rest += reversed([(depth, key, each) for key, each in parts])
        elif (name, value) not in (("type", "object"), ("properties", {})):
            said = _shown(value if isinstance(value, str) else json.dumps(value))
            yield f"{own}{' ' if name == _ITEM else ': '}{said}"


def _shown(text: str) -> str:
    return " ".join(clean(text).split())


def _checked(server: ToolServer) -> ToolServer:
    """Return a server with a valid name, and a command or a URL; raise InvalidInput."""
    if not _NAME.fullmatch(server.name):
        raise InvalidInput(
            f"'{one_line(server.name, 40)}' cannot be the name of a tool server",
            "Use up to 24 letters, digits, _ and -.",
        )
    if bool(server.command) == bool(server.url):
        raise InvalidInput("A tool server has a command or an address", "Enter one of them.")
    if server.url:
        return replace(server, url=check_base_url(server.url).text)
    return server


def _offered(tools: Sequence[ListedTool]) -> Iterator[ServerTool]:
    """Yield tools in a form that can be shown, stored and sent; raise InvalidInput for too many."""
    if len(tools) > _TOOLS_MAX:
        raise InvalidInput(
            f"The server offers {len(tools)} tools; at most {_TOOLS_MAX} can be used",
            "Configure it to offer fewer.",
        )
    for each in sorted(tools, key=lambda tool: tool.name):
        schema = json.dumps(each.schema, ensure_ascii=False, sort_keys=True)
        if each.schema.get("type") != "object" or len(schema) > _SCHEMA_CHARS:
            raise InvalidInput(
                f"The arguments of '{one_line(each.name, 60)}' are not described as they must be",
                "The server has to give a JSON schema of an object, of at most 20,000 characters.",
            )
        name = one_line(clean(each.name), 200)
        description = one_line(clean(each.description), _DESCRIPTION_CHARS)
        yield ServerTool(name, description, schema)


def _permission(tool: ServerTool, known: ToolServer, is_same_address: bool) -> Permission:
    """Return what the user decided about a tool, as far as it still holds."""
    for each in known.tools:
        if each.name == tool.name:
            is_unchanged = is_same_address and each.offer == tool.offer
            if is_unchanged or each.permission is Permission.NEVER:
                return each.permission
    return Permission.ASK


def _unique(name: str, taken: Mapping[str, object]) -> str:
    """Return a name that models' providers accept, and that no other tool has."""
    short, number = name[:_TOOL_NAME_CHARS], 2
    while short in taken:
        short, number = f"{name[: _TOOL_NAME_CHARS - 3]}_{number}", number + 1
    return short
