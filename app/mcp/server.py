"""The MCP server: on a pair of text streams, for one program at a time, several side by side; and over HTTP.

Memory over HTTP is for programs on this computer: a server with a key, off unless the user switches it on. Requests
from web pages and for other host names are refused (DNS rebinding). It runs with the window.
"""

import logging
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from app.domain.change_set import ChangeSet
from app.domain.translation import tr
from app.mcp.memory_tools import McpTools
from app.mcp.sdk import load_sdk
from app.storage.engine.store import Store
from app.storage.tables.settings import Settings
from app.system.keys import KeyStore

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

NAME, VERSION = "commonplace", "0.1.0"
INSTRUCTIONS = (
    "The user's memory: earlier conversations with language models, facts and saved texts. Search it "
    "before asking the user what was said or decided before. Quote with date and url."
)
_UNNAMED = "unnamed program"


def serve(reader: TextIO, writer: TextIO, tools: McpTools) -> None:
    """Answer a program until its stream ends. Blocking, on the caller's thread.

    Clients of 2026-07-28 are served without a session, older ones after `initialize`.
    """
    load_sdk()
    import anyio
    from mcp.server.stdio import stdio_server

    server = memory_server(tools)

    async def run() -> None:
        streams = stdio_server(anyio.wrap_file(reader), anyio.wrap_file(writer))
        async with streams as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(run)


def memory_server(tools: McpTools) -> Any:
    """Return the SDK's server with the tools, for any transport."""
    load_sdk()
    import mcp_types as types
    from anyio import to_thread
    from mcp.server.lowlevel import Server

    async def list_tools(
        _context: "ServerRequestContext[Any]", _params: Any
    ) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=each.name,
                    title=each.title,
                    description=each.description,
                    input_schema=dict(each.parameters),
                    annotations=types.ToolAnnotations(
                        read_only_hint=not each.writes, open_world_hint=False
                    ),
                )
                for each in tools.listed()
            ]
        )

    async def call_tool(
        context: "ServerRequestContext[Any]", params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        client = _client_of(context)
        result = await to_thread.run_sync(tools.call, params.name, params.arguments, client)
        content: list[types.ContentBlock] = [types.TextContent(type="text", text=result.text)]
        return types.CallToolResult(content=content, is_error=result.is_error)

    return Server(
        NAME,
        version=VERSION,
        title="Commonplace",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _client_of(context: "ServerRequestContext[Any]") -> str:
    params = context.session.client_params
    return params.client_info.name if params is not None else _UNNAMED


_SWITCH, _PORT = "mcp_http", "mcp_http_port"
_APPLY_S = 5.0
_OWNER = ("memory over http", "http://127.0.0.1")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HttpAccess:
    """How programs reach the server: its address and key; `problem` says why it does not run, "" for nothing."""

    url: str
    key: str
    problem: str = ""


class HttpServer:
    """The server; it follows its settings from `start` on. Thread-safe."""

    def __init__(self, store: Store, settings: Settings, keys: KeyStore, tools: McpTools) -> None:
        self._store, self._settings, self._keys, self._tools = store, settings, keys, tools
        self._lock = threading.Lock()
        self._running: _RunningServer | None = None
        self._problem = ""
        self._is_stopped = False
        self._applying: threading.Thread | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Serve while the setting is on."""
        self._unsubscribe = self._store.subscribe(self._on_changed)
        self._on_changed(ChangeSet(settings=frozenset({_SWITCH})))

    def stop(self) -> None:
        """End for good; blocking."""
        self._unsubscribe()
        with self._lock:
            self._is_stopped = True
            self._end()

    def switch(self, *, is_on: bool) -> None:
        """Serve from now on, or no more. Raises StorageError."""
        self._settings.set(_SWITCH, is_on)

    def access(self) -> HttpAccess | None:
        """Return how programs reach it, None while it is off.

        May block: it waits for a change of the settings to be applied, and the key is in the keyring.
        """
        if not self._settings.flag(_SWITCH):
            return None
        if (applying := self._applying) is not None:
            applying.join(_APPLY_S)
        port = self._settings.number(_PORT)
        return HttpAccess(f"http://127.0.0.1:{port}/mcp", self._key(), self._problem)

    def _key(self) -> str:
        with self._lock:
            found = self._keys.find(*_OWNER)
            if found is not None:
                return found.secret.reveal()
            made = secrets.token_urlsafe(32)
            self._keys.save(*_OWNER, made)
            return made

    def _on_changed(self, changed: ChangeSet) -> None:
        if {_SWITCH, _PORT} & changed.settings:
            applying = threading.Thread(target=self._apply, name="mcp-http-start", daemon=True)
            applying.start()
            # After it began: a thread that did not begin cannot be joined
            self._applying = applying

    def _apply(self) -> None:
        key = self._key() if self._settings.flag(_SWITCH) else ""
        with self._lock:
            self._end()
            self._problem = ""
            if key and not self._is_stopped:
                self._serve(self._settings.number(_PORT), key)

    def _serve(self, port: int, key: str) -> None:
        try:
            listening = socket.create_server(("127.0.0.1", port))
        except OSError as error:
            _log.warning("memory is not served by HTTP: %s", error.strerror)
            self._problem = tr("Port {port} cannot be used: {reason}").format(
                port=port, reason=error.strerror
            )
        else:
            self._running = _RunningServer(listening, key, self._tools)

    def _end(self) -> None:
        if self._running is not None:
            self._running.stop()
            self._running = None


class _RunningServer:
    """A server on a thread of its own."""

    def __init__(self, listening: socket.socket, key: str, tools: McpTools) -> None:
        self._listening, self._key, self._tools = listening, key, tools
        self._server: Any = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mcp-http", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it; blocking for at most a few seconds."""
        self._ended.set()
        if self._server is not None:
            self._server.should_exit = True
        self._thread.join()

    def _run(self) -> None:
        import uvicorn

        app = guarded(memory_server(self._tools).streamable_http_app(), self._key)
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=1
        )
        self._server = server = uvicorn.Server(config)
        try:
            if not self._ended.is_set():
                server.run(sockets=[self._listening])
        finally:
            self._listening.close()


def guarded(app: Callable[..., Awaitable[None]], key: str) -> Callable[..., Awaitable[None]]:
    """Return an ASGI application that answers requests with the key, and no others."""
    wanted = f"Bearer {key}".encode()

    async def run(scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not secrets.compare_digest(given, wanted):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body"})
                return
        await app(scope, receive, send)

    return run
