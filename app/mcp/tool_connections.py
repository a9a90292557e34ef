"""Connections to tool servers over MCP, on a thread of their own: listing and calling tools."""

import asyncio
import contextlib
import logging
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, TypeVar

from app.domain.errors import KnownError
from app.domain.text import clean, one_line
from app.mcp import line_limit
from app.mcp.sdk import load_sdk
from app.providers.http.base_url import check_base_url
from app.providers.http.endpoint import Network
from app.system.keys import Secret

if TYPE_CHECKING:
    from mcp import Client

T = TypeVar("T")
CALL_LIMIT_S = 30.0
_START_LIMIT_S = 30.0
_LINE_BYTES = 4 << 20
_PAGES = 20
_MESSAGE_CHARS = 300
_REFUSES_KEY = (401, 403)
_log = logging.getLogger(__name__)


class ToolServerFailed(KnownError):
    """A tool server could not be started or reached, or did not answer as it should."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """How a server is reached: a command with its working folder and environment, or a URL with a key.

    `variables` are names of environment variables that the server may read beside PATH, HOME and the like.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    folder: str = ""
    variables: tuple[str, ...] = ()
    key: Secret | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool as its server describes it; `schema` is the JSON schema of its arguments. Untrusted."""

    name: str
    description: str
    schema: Mapping[str, Any]


class ToolConnections:
    """Connections, one at a time for each address. Thread-safe; calls block."""

    def __init__(self, network: Callable[[], Network]) -> None:
        """`network` returns the proxy and certificates for servers with a URL."""
        self._network = network
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False
        self._open: set[_Connection] = set()

    def tools(self, address: ServerAddress) -> tuple[ListedTool, ...]:
        """Return what a server offers, asked once for each connection. Raises ToolServerFailed."""
        return self._run(self._listed(address), _START_LIMIT_S + CALL_LIMIT_S, address)

    def call(
        self, address: ServerAddress, tool: str, arguments: Mapping[str, Any]
    ) -> tuple[str, bool]:
        """Return a tool's text and whether it is an error. Raises ToolServerFailed."""
        return self._run(self._called(address, tool, arguments), CALL_LIMIT_S, address)

    def disconnect(self, name: str) -> None:
        """Close the connections to the servers of a name; the next call connects again."""
        if self._loop is not None:
            self._submit(self._leave(name)).result(_START_LIMIT_S)

    def close(self) -> None:
        """Close all connections, end the servers that were started, and fail the calls that wait."""
        with self._lock:
            loop, self._loop, self._is_closed = self._loop, None, True
        if loop is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(self._leave(None), loop).result(_START_LIMIT_S)
            asyncio.run_coroutine_threadsafe(_cancel_others(), loop).result(_START_LIMIT_S)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()

    def _run(self, work: Coroutine[Any, Any, T], limit_s: float, address: ServerAddress) -> T:
        try:
            return self._submit(work, limit_s).result()
        except (TimeoutError, CancelledError) as error:
            if not self._is_closed:
                self._submit(self._leave(address.name))
            raise ToolServerFailed(
                f"The tool server '{address.name}' did not answer within {limit_s:g} s",
                "Continue without it, or ask for less.",
            ) from error

    def _submit(self, work: Coroutine[Any, Any, T], limit_s: float | None = None) -> "Future[T]":
        """Start `work` on the thread; raise CancelledError once the connections are closed."""
        with self._lock:
            if self._is_closed:
                work.close()
                raise CancelledError
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run_forever, args=(self._loop,), name="tool-servers", daemon=True
                )
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, limit_s), self._loop)

    # -- on the thread

    async def _listed(self, address: ServerAddress) -> tuple[ListedTool, ...]:
        connection = self._connection(address)
        if connection.tools is None:
            client = await self._ready(connection)
            found, cursor = [], None
            with self._failures(connection):
                for _ in range(_PAGES):
                    page = await client.list_tools(cursor=cursor, cache_mode="bypass")
                    found += [
                        ListedTool(each.name, each.description or "", each.input_schema)
                        for each in page.tools
                    ]
                    if (cursor := page.next_cursor) is None:
                        break
            connection.tools = tuple(found)
        return connection.tools

    async def _called(
        self, address: ServerAddress, tool: str, arguments: Mapping[str, Any]
    ) -> tuple[str, bool]:
        connection = self._connection(address)
        client = await self._ready(connection)
        with self._failures(connection):
            result = await client.call_tool(tool, dict(arguments))
        parts = [
            each.text if each.type == "text" else f"[{each.type}: not shown]"
            for each in result.content
        ]
        return "\n\n".join(parts), bool(result.is_error)

    def _connection(self, address: ServerAddress) -> "_Connection":
        for each in self._open:
            if each.address == address and not each.ends.is_set():
                return each
        connection = _Connection(address, self._network())
        self._open.add(connection)
        connection.task.add_done_callback(lambda _: self._open.discard(connection))
        return connection

    async def _ready(self, connection: "_Connection") -> "Client":
        return await asyncio.shield(connection.ready)

    @contextlib.contextmanager
    def _failures(self, connection: "_Connection") -> Iterator[None]:
        """Leave a connection that failed, since its server may have ended; the next call connects anew."""
        try:
            with _failures(connection):
                yield
        except ToolServerFailed:
            connection.ends.set()
            raise

    async def _leave(self, name: str | None) -> None:
        leaving = [each for each in self._open if name in (None, each.address.name)]
        await asyncio.gather(*(each.close() for each in leaving))


class _Connection:
    """A client in a task of its own: it must be left where it was entered.

    `ready` resolves to the client, `ends` makes it leave, `tools` is what the server listed, `refusal` how it
    refuses the key, of which the SDK says only that a request failed.
    """

    def __init__(self, address: ServerAddress, network: Network) -> None:
        self.address, self._network = address, network
        self.tools: tuple[ListedTool, ...] | None = None
        self.refusal = ""
        self.ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self.ends = asyncio.Event()
        self.task = asyncio.ensure_future(self._hold())

    async def close(self) -> None:
        """Disconnect; a server that was started ends within a few seconds."""
        self.ends.set()
        if not self.ready.done():
            self.task.cancel()
        await asyncio.wait([self.task], timeout=_START_LIMIT_S)

    async def _hold(self) -> None:
        with tempfile.TemporaryFile() as errors:  # what a program that ends has said last
            await self._connect(errors)

    async def _connect(self, errors: IO[bytes]) -> None:
        try:
            with _failures(self):
                load_sdk()
                from mcp import Client

                async with (
                    _transport(self.address, self._network, errors, self._note) as transport,
                    asyncio.timeout(_START_LIMIT_S) as limit,
                    Client(transport) as client,
                ):
                    limit.reschedule(None)
                    self.ready.set_result(client)
                    await self.ends.wait()
        except (KnownError, TimeoutError, asyncio.CancelledError) as error:
            self.ends.set()
            if not self.ready.done():
                is_known = isinstance(error, KnownError)
                failed = error if is_known else _not_started(self.address)
                errors.seek(0)
                if said := self.refusal or errors.read().decode(errors="replace").strip():
                    failed = _failed(self.address, said.splitlines()[-1])
                self.ready.set_exception(failed)
                self.ready.exception()  # nobody may wait for it any more

    async def _note(self, response: Any) -> None:
        if response.request.method == "POST":
            status = response.status_code
            self.refusal = f"it refuses the key (HTTP {status})" if status in _REFUSES_KEY else ""


async def _cancel_others() -> None:
    """Cancel every other task of the loop, so that nobody waits for one that cannot end."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for each in others:
        each.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _run_forever(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped, and close it."""
    loop.run_forever()
    loop.close()


@contextlib.asynccontextmanager
async def _transport(
    address: ServerAddress,
    network: Network,
    errors: IO[bytes],
    on_response: Callable[[Any], Coroutine[Any, Any, None]],
) -> AsyncIterator[Any]:
    """Yield the SDK's transport to a server; to `errors` goes what a program says last."""
    if address.url:
        from mcp.client.streamable_http import streamable_http_client

        from app.providers.http.client import service_client

        headers = {"Authorization": f"Bearer {address.key.reveal()}"} if address.key else {}
        base_url = check_base_url(address.url)
        async with service_client(base_url, network, headers, CALL_LIMIT_S) as http:
            http.event_hooks["response"].append(on_response)
            yield streamable_http_client(address.url, http_client=http)
        return
    program = shutil.which(address.command[0])
    if program is None:
        raise ToolServerFailed(
            f"The program '{one_line(address.command[0], _MESSAGE_CHARS)}' was not found",
            "Enter its whole path, or install it.",
        )
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    yield stdio_client(
        StdioServerParameters(
            command=sys.executable,
            args=["-I", "-S", line_limit.__file__, str(_LINE_BYTES), program, *address.command[1:]],
            env={name: os.environ[name] for name in address.variables if name in os.environ},
            cwd=address.folder or None,
            encoding_error_handler="replace",
        ),
        errlog=errors,  # type: ignore[arg-type]  # it goes to the process as it is
    )


@contextlib.contextmanager
def _failures(connection: _Connection) -> Iterator[None]:
    """Raise ToolServerFailed for whatever the SDK raises; a server's words are quoted, shortened."""
    try:
        yield
    except (KnownError, TimeoutError, asyncio.CancelledError):
        raise
    except Exception as error:
        address = connection.address
        _log.info("the tool server %s failed: %s", address.name, type(error).__name__)
        cause: BaseException = error
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        said = connection.refusal or str(cause) or type(cause).__name__
        raise _failed(address, said) from error


def _failed(address: ServerAddress, said: str) -> ToolServerFailed:
    return ToolServerFailed(
        f"The tool server '{address.name}' failed: {one_line(clean(said), _MESSAGE_CHARS)}",
        "Check it in Settings, Tools.",
        log_text=f"The tool server '{address.name}' failed",
    )


def _not_started(address: ServerAddress) -> ToolServerFailed:
    return ToolServerFailed(
        f"The tool server '{address.name}' could not be connected within {_START_LIMIT_S:g} s",
        "Check its command or address in Settings, Tools.",
    )
