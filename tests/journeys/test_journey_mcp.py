"""Other programs read memory over MCP: the official SDK's client, the relay, and a running window's library."""

import io
import json
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation

from app.bootstrap import RunMode, Services, build, locked
from app.cli import entry
from app.cli.remote import CommandServer, raise_window
from app.domain.changes import ConversationEdited
from app.domain.conversations import Conversation
from app.domain.errors import AlreadyOpen
from app.mcp.access import Access
from app.mcp.server import serve
from app.memory.recall.brief import most_tokens
from app.system.paths import DataPaths
from tests.fakes.jobs import until
from tests.fakes.stored import add_conversation, made, opened

_NAME = "Heron IDE"
_KEY = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"
_MODES = ["auto", "legacy"]


@contextmanager
def _open_library(root: Path) -> Iterator[Services]:
    """Open a library with public conversations and a private one, served at its socket."""
    with opened(made(root).root) as store:
        add_conversation(
            store, "How do I keep basil alive on a windowsill in winter", title="Herbs"
        )
        secret = add_conversation(store, "My secret basil recipe", title="Secret")
        store.save(_private(secret.conversation))
        add_conversation(store, f"The token of the Heron gateway is {_KEY}", title="Gateway")
    services = build(DataPaths(root), RunMode.WINDOW)
    server = CommandServer(
        services.paths, lambda argv, terminal: entry.execute(services, argv, terminal),
        lambda: True, services.serve_mcp,
    )  # fmt: skip
    services.index_sync.catch_up()
    yield services
    server.close()
    services.close()


@pytest.fixture
def library(data_dir: Path) -> Iterator[Services]:
    with _open_library(data_dir) as services:
        yield services


@pytest.fixture(scope="module")
def allowed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """A library that the program may read, for tests that write nothing."""
    with _open_library(tmp_path_factory.mktemp("allowed") / "data") as services:
        services.mcp_access.decide(_NAME, Access.ALLOWED)
        yield services


def _private(conversation: Conversation) -> Any:
    return ConversationEdited(conversation.id, private=True)


async def _with_client(data_dir: Path, mode: str, use: Any) -> Any:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "app", "mcp", "--data-dir", str(data_dir)]
    )
    info = Implementation(name=_NAME, version="1")
    async with Client(parameters, client_info=info, mode=mode) as client:
        return await use(client)


def _ask(data_dir: Path, tool: str, mode: str = "auto", **arguments: Any) -> Any:
    async def use(client: Client) -> Any:
        return await client.call_tool(tool, arguments)

    return anyio.run(_with_client, data_dir, mode, use)


def _value(result: Any) -> Any:
    assert not result.is_error, result.content[0].text
    return json.loads(result.content[0].text)


@pytest.mark.parametrize("mode", _MODES)
def test_a_program_reads_once_allowed_and_is_logged(library: Services, mode: str) -> None:
    refused = _ask(library.paths.root, "search", mode, query="basil in winter")
    assert refused.is_error
    assert library.mcp_access.decisions() == {_NAME: Access.ASK}
    library.mcp_access.decide(_NAME, Access.ALLOWED)

    async def read(client: Client) -> tuple[Any, Any]:
        results = await client.call_tool("search", {"query": "basil in winter"})
        first = _value(results)["results"][0]
        return first, _value(await client.call_tool("fetch", {"id": first["id"]}))

    found, whole = anyio.run(_with_client, library.paths.root, mode, read)
    assert "windowsill" in found["text"]
    assert "windowsill" in whole["text"]
    reading = library.mcp_access.readings(9)[0]
    assert (reading.client, reading.tool, reading.links) == (_NAME, "fetch", (found["url"],))


def test_tools_are_listed_in_the_same_order_and_only_say_what_they_may(library: Services) -> None:
    async def use(client: Client) -> Any:
        return list((await client.list_tools()).tools)

    listed = [anyio.run(_with_client, library.paths.root, mode, use) for mode in _MODES]
    names = [[tool.name for tool in tools] for tools in listed]
    assert names[0] == names[1]
    assert "remember" not in names[0]
    assert all(tool.annotations.read_only_hint for tool in listed[0])
    library.settings.set("mcp_remember", True)
    assert [each.name for each in library.mcp_tools.listed()][-1] == "remember"


def test_private_conversations_and_trash_are_never_read(allowed: Services) -> None:
    for tool, arguments in (
        ("search", {"query": "secret basil recipe"}),
        ("search_conversations", {"query": "secret basil recipe"}),
        ("recall", {"question": "What is my secret basil recipe?"}),
        ("fetch", {"id": "commonplace://2"}),
        ("fetch", {"id": "commonplace://2/0"}),
        ("get_turns", {"conversation": 2, "turn": 0}),
    ):
        result = allowed.mcp_tools.call(tool, arguments, _NAME)
        assert "secret" not in result.text.lower().replace(str(arguments).lower(), "").replace(
            "what is my secret basil recipe?", ""
        ), tool


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("nonsense", {}), ("search", None), ("search", {"query": 5}),
     ("search", {"query": "x" * 5000}), ("search", {"query": "basil", "more": 1}),
     ("fetch", {"id": "commonplace://999999/0"}), ("fetch", {"id": "fact:99999999999999999999"}),
     ("fetch", {"id": "../../etc/passwd"}), ("get_turns", {"conversation": 1, "turn": 99}),
     ("get_turns", {"conversation": -1, "turn": 0}),
     ("recall", {"question": "basil", "max_tokens": 0}),
     ("search_conversations", {"query": "basil", "after": "not a date"}),
     ("search_conversations", {"query": "basil", "project": "nowhere"}),
     ("remember", {"text": "I like basil"})],
)  # fmt: skip
def test_wrong_arguments_get_an_error(allowed: Services, tool: str, arguments: Any) -> None:
    assert allowed.mcp_tools.call(tool, arguments, _NAME).is_error


def test_a_program_that_was_denied_is_refused_for_good(library: Services) -> None:
    library.mcp_access.decide(_NAME, Access.DENIED)
    assert library.mcp_tools.call("search", {"query": "basil"}, _NAME).is_error
    assert library.mcp_access.decisions() == {_NAME: Access.DENIED}
    assert library.mcp_access.readings(9) == ()


def test_saving_is_possible_where_it_is_switched_on(library: Services) -> None:
    library.mcp_access.decide(_NAME, Access.ALLOWED)
    library.settings.set("mcp_remember", True)
    saved = library.mcp_tools.call("remember", {"text": "The user likes basil."}, _NAME)
    assert not saved.is_error
    assert [each.text for each in library.memories.listed()] == ["The user likes basil."]


@pytest.mark.parametrize("tokens", [150, 300, 2000])
def test_a_brief_has_no_more_tokens_than_asked_for(allowed: Services, tokens: int) -> None:
    text = allowed.briefs.write("How do I keep basil alive?", tokens)
    assert most_tokens(text) <= tokens
    assert "commonplace://1/0" in text
    long = ("Which dyke holds?", "The northern dyke holds until the herons leave. " * 30)
    add_conversation(allowed.store, long, title="Dykes")
    allowed.index_sync.catch_up()
    short = allowed.briefs.write("Which dyke holds?", 100)
    assert most_tokens(short) <= 100
    assert "until the herons" in short or "does not fit" in short
    assert "Nothing about this" in allowed.briefs.write("zebra xylophone quantum", tokens)


def _is_free(paths: DataPaths) -> bool:
    with suppress(AlreadyOpen):
        locked(paths).release()
        return True
    return False


def test_without_a_window_the_library_is_open_and_given_up_when_one_starts(data_dir: Path) -> None:
    paths = made(data_dir)
    assert _ask(data_dir, "search", query="basil").is_error, "nobody allowed it yet"
    with pytest.raises(AlreadyOpen):
        build(paths, RunMode.COMMAND_LINE)
    raise_window(paths)
    until(lambda: _is_free(paths))
    with closing(build(paths, RunMode.COMMAND_LINE)) as services:
        assert services.mcp_access.decisions() == {_NAME: Access.ASK}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("search", {"query": "token of the Heron gateway"}), ("fetch", {"id": "commonplace://3/0"}),
     ("get_turns", {"conversation": 3, "turn": 0}),
     ("recall", {"question": "token of the Heron gateway"}),
     ("search_conversations", {"query": "token of the Heron gateway"})],
)  # fmt: skip
def test_keys_in_memory_are_hidden(allowed: Services, tool: str, arguments: Any) -> None:
    result = allowed.mcp_tools.call(tool, arguments, _NAME)
    assert "gateway" in result.text
    assert "hidden: " in result.text
    assert _KEY not in result.text


def test_recall_hides_keys_in_the_prompt(allowed: Services) -> None:
    candidates = allowed.previews.fetch("What is the token of the Heron gateway?")
    parts = candidates.draft.context(candidates.fetched).parts
    text = "".join(piece.text for part in parts for piece in part.pieces)
    assert "Heron gateway" in text
    assert _KEY not in text


def test_a_program_that_disconnects_in_the_middle_leaves_nothing_behind(allowed: Services) -> None:
    serve(io.StringIO('{"jsonrpc": "2.0", "id": 1, "meth'), io.StringIO(), allowed.mcp_tools)
    serve(io.StringIO("\x00\n[]\n{}\n"), io.StringIO(), allowed.mcp_tools)
    assert not allowed.mcp_tools.call("search", {"query": "basil"}, "Another").text.startswith("{")


def test_memory_is_served_over_http_with_its_key_alone(library: Services) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    library.mcp_access.decide(_NAME, Access.ALLOWED)
    library.settings.set("mcp_http_port", port)
    library.mcp_http.switch(is_on=True)
    until(lambda: _status(port, "wrong") == 401)
    access = library.mcp_http.access()
    assert _status(port, access.key, host="evil.example") == 421
    assert _status(port, access.key, origin="https://evil.example") == 403

    async def ask(mode: str) -> Any:
        headers = {"Authorization": f"Bearer {access.key}"}
        async with httpx2.AsyncClient(headers=headers) as http:
            transport = streamable_http_client(access.url, http_client=http)
            info = Implementation(name=_NAME, version="1")
            async with Client(transport, client_info=info, mode=mode) as client:
                return await client.call_tool("search", {"query": "basil in winter"})

    for mode in _MODES:
        assert "windowsill" in _value(anyio.run(ask, mode))["results"][0]["text"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        library.settings.set("mcp_http_port", taken.getsockname()[1])
        assert library.mcp_http.access().problem
    library.mcp_http.switch(is_on=False)
    assert library.mcp_http.access() is None
    until(lambda: _status(port, "wrong") is None)


def _status(port: int, key: str, **headers: str) -> int | None:
    """Return the status of a request, None if nobody listens."""
    try:
        return httpx2.post(
            f"http://127.0.0.1:{port}/mcp",
            headers={
                "Authorization": f"Bearer {key}",
                "Accept": "application/json, text/event-stream",
                **headers,
            },
            json={"jsonrpc": "2.0", "id": 1, "method": "ping"},
            trust_env=False,
        ).status_code
    except httpx2.ConnectError:
        return None
