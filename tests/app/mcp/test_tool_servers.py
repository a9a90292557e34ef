"""Tools of other programs over MCP: what was accepted, permission, results, and servers that misbehave."""

import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from app.chat.tools.toolbox import Toolbox, ToolContext
from app.domain.conversations import ToolCall
from app.domain.errors import InvalidInput, NotFound
from app.mcp import tool_connections
from app.mcp.tool_connections import ServerAddress, ToolConnections, ToolServerFailed
from app.mcp.tool_servers import Permission, PermissionQuestion, ServerTool, ToolServer, ToolServers
from app.providers.http.endpoint import Network
from app.system.keys import KeyStore
from tests.fakes import tool_server
from tests.fakes.jobs import until
from tests.fakes.stored import add_conversation, made, opened


class Tools:
    """The service on a library, with the server of one mode."""

    def __init__(self, data_dir: Path, store: Any, mode: str = "good") -> None:
        from app.storage.tables.settings import Settings

        self.calls = data_dir / "calls.jsonl"
        self.connections = ToolConnections(Network)
        self.service = ToolServers(Settings(store), KeyStore({}), self.connections)
        command = (sys.executable, tool_server.__file__, mode, str(self.calls))
        self.server = ToolServer("fake", command)
        self.conversation = add_conversation(store, "What is two and three").conversation

    def accept(self, permission: Permission = Permission.ALWAYS) -> None:
        """Accept what the server offers."""
        self.service.accept(self.service.look_at(self.server))
        for tool in self.service.servers()[0].tools:
            self.service.permit("fake", tool.name, permission)

    def call(self, name: str = "mcp_fake_add", context: Any = None, **arguments: Any) -> Any:
        tools = Toolbox((), self.service.tools)
        context = context or ToolContext(self.conversation, cast(Any, 1), "recall:recall")
        return tools.run(ToolCall("c1", name, json.dumps(arguments)), context)

    @property
    def logged(self) -> list[Any]:
        """The calls that the server got."""
        text = self.calls.read_text() if self.calls.exists() else ""
        return [json.loads(line)["arguments"] for line in text.splitlines()]


@pytest.fixture
def store(data_dir: Path) -> Iterator[Any]:
    """Yield the store of an empty library."""
    made(data_dir)
    with opened(data_dir) as store:
        yield store


@pytest.fixture
def make(data_dir: Path, store: Any) -> Iterator[Any]:
    """Yield what makes `Tools` for a mode."""
    made_tools = []

    def make(mode: str = "good") -> Tools:
        made_tools.append(Tools(data_dir, store, mode))
        return made_tools[-1]

    yield make
    for each in made_tools:
        each.connections.close()


def test_an_accepted_tool_is_offered_under_its_server_and_called(make: Any) -> None:
    tools = make()
    tools.accept()
    assert [each.name for each in tools.service.tools()] == ["mcp_fake_add", "mcp_fake_shout"]
    result = tools.call(a=2, b=3)
    assert (result.is_error, result.text.splitlines()[0]) == (False, "5")
    assert tools.logged == [{"a": 2, "b": 3}]
    failed = tools.call("mcp_fake_shout")
    assert failed.is_error


def test_a_server_sees_only_named_variables(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_TOKEN", "yes")
    monkeypatch.setenv("OTHER_TOKEN", "secret")
    tools = make()
    tools.server = replace(tools.server, variables=("TOOL_TOKEN",))
    tools.accept()
    assert tools.call(a=1, b=1).text.split() == ["2", "yes", "no", "other"]


def test_nothing_is_offered_before_it_is_accepted_when_off_or_never(make: Any) -> None:
    tools = make()
    tools.service.look_at(tools.server)
    assert tools.service.tools() == ()
    tools.accept()
    tools.service.permit("fake", "add", Permission.NEVER)
    assert [each.name for each in tools.service.tools()] == ["mcp_fake_shout"]
    tools.service.switch("fake", is_on=False)
    assert tools.service.tools() == ()
    tools.service.remove("fake")
    assert tools.service.servers() == ()


def test_all_that_a_schema_says_is_shown() -> None:
    schema = {
        "type": "object", "title": "T0", "properties": {
            "K1": {"type": "array", "items": {"description": "T1"}},
            "K2": {"enum": ["T2"], "default": "T3", "examples": [{"K3": "T4"}]},
            "K4": {"anyOf": [{"description": "T5"}], "description": f"{'x ' * 1200}T6"},
            "K5": {"patternProperties": {"^K6": {"title": "T7"}}, "additionalProperties": {"K7": {}}},
            "K8": {},
        }, "definitions": {"K9": {"description": "T8\n\N{TAG LATIN SMALL LETTER A}"}}, "required": ["T9"],
    }  # fmt: skip
    lines = ServerTool("read", "", json.dumps(schema)).arguments
    said = " ".join(lines)
    assert [each for n in range(10) for each in (f"K{n}", f"T{n}") if each not in said] == ["K0"]
    assert "    description: T8 [hidden: a]" in [line.removeprefix("    ") for line in lines]
    small = {"type": "object", "properties": {"city": {"type": "string", "description": "A city."}}}
    assert ServerTool("read", "", json.dumps(small)).arguments == (
        "city", "    type: string", "    description: A city.",
    )  # fmt: skip
    deep: dict[str, Any] = {"K0": 1}
    for _ in range(150):
        deep = {"properties": {"a": deep}}
    deep_lines = ServerTool("read", "", json.dumps(deep)).arguments
    assert len(deep_lines) == 151
    assert sum(map(len, deep_lines)) < 10_000


@pytest.mark.parametrize("allowed", [True, False])
def test_a_tool_on_ask_waits_for_the_answer(
    make: Any, monkeypatch: pytest.MonkeyPatch, allowed: bool
) -> None:
    tools = make()
    tools.accept(Permission.ASK)
    asked: list[PermissionQuestion] = []

    def ask(question: PermissionQuestion) -> None:
        asked.append(question)
        threading.Timer(0.05, lambda: question.decide(allowed=allowed)).start()
        clock.append(1_000.0)

    clock = [0.0]
    monkeypatch.setattr("app.chat.tools.toolbox.time.perf_counter", lambda: clock[-1])
    assert tools.call(a=2, b=3).is_error  # nobody can be asked
    tools.service.ask = ask
    result = tools.call(a=2, b=3)
    assert result.is_error is not allowed
    assert not allowed or result.duration_ms == 0, "the time of the user is not the tool's"
    assert json.loads(asked[0].arguments) == {"a": 2, "b": 3}
    assert tools.logged == ([{"a": 2, "b": 3}] if allowed else [])


def test_a_question_is_withdrawn_when_the_exchange_is_stopped(make: Any) -> None:
    tools = make()
    tools.accept(Permission.ASK)
    asked: list[PermissionQuestion] = []
    tools.service.ask = asked.append
    context = ToolContext(
        tools.conversation, cast(Any, 1), "recall:recall", is_over=lambda: bool(asked)
    )
    assert tools.call(context=context, a=1, b=1).is_error
    assert asked[0].answered.is_set()
    assert tools.logged == []


def test_known_permissions_stay_when_a_server_is_looked_at_again(make: Any) -> None:
    tools = make()
    tools.accept()
    tools.service.permit("fake", "add", Permission.NEVER)
    again = tools.service.look_at(tools.server)
    assert {each.name: each.permission for each in again.tools} == {
        "add": Permission.NEVER,
        "shout": Permission.ALWAYS,
    }


def test_a_tool_that_changed_after_it_was_accepted_is_not_called(make: Any) -> None:
    tools = make("changed")
    tools.accept()
    tools.calls.write_text("")
    tools.connections.disconnect("fake")
    result = tools.call(a=2, b=3)
    assert result.is_error
    assert tools.logged == []
    tools.accept()
    assert not tools.call(a=2, b=3).is_error


@pytest.mark.parametrize("what", ["tool", "command"])
def test_what_has_changed_is_asked_for_again(make: Any, what: str) -> None:
    tools = make("changed")
    tools.accept()
    tools.service.permit("fake", "shout", Permission.NEVER)
    if what == "tool":
        tools.calls.write_text("")
    else:
        tools.server = replace(tools.server, command=(*tools.server.command[:2], "good", "x"))
    again = tools.service.look_at(tools.server)
    assert {each.name: each.permission for each in again.tools} == {
        "add": Permission.ASK,
        "shout": Permission.NEVER,
    }


def test_closing_ends_a_call_that_waits(make: Any) -> None:
    tools = make("silent")
    tools.accept()
    results: list[Any] = []
    caller = threading.Thread(target=lambda: results.append(tools.call(a=2, b=3)), daemon=True)
    caller.start()
    until(lambda: bool(tools.logged))
    tools.connections.close()
    caller.join(10)
    assert [each.is_error for each in results] == [True]
    assert tools.call(a=2, b=3).is_error
    assert len(tools.logged) == 1  # nothing is started any more


@pytest.mark.parametrize("mode", ["crash", "long"])
def test_a_server_that_fails_in_a_call_is_an_error_and_restarted(make: Any, mode: str) -> None:
    tools = make(mode)
    tools.accept()
    results = [tools.call(a=2, b=3) for _ in range(2)]
    assert all(each.is_error and ": " in each.text for each in results), "the cause is said"
    assert len(tools.logged) == 2


def test_a_server_that_never_answers_is_left(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = make("silent")
    tools.accept()
    monkeypatch.setattr(tool_connections, "CALL_LIMIT_S", 1.0)
    assert tools.call(a=2, b=3).is_error


def test_a_server_that_cannot_be_started_says_so(make: Any) -> None:
    tools = make()
    with pytest.raises(ToolServerFailed):
        tools.service.look_at(ToolServer("none", ("/no/such/program",)))
    with pytest.raises(ToolServerFailed) as failed:
        tools.service.look_at(ToolServer("none", (sys.executable, "/no/such/server.py")))
    assert "No such file" in failed.value.title
    with pytest.raises(InvalidInput):
        tools.service.look_at(replace(tools.server, name="a b"))
    with pytest.raises(InvalidInput):
        tools.service.look_at(ToolServer("plain", url="http://example.com/mcp"))
    with pytest.raises(InvalidInput):
        make("crowded").service.look_at(make("crowded").server)
    with pytest.raises(NotFound):
        tools.service.remove("none")


def test_names_are_fit_for_models_and_differ() -> None:
    from app.mcp.tool_servers import _unique

    taken: dict[str, object] = {}
    for _ in range(3):
        name = _unique("mcp_fake_" + "x" * 80, taken)
        taken[name] = None
        assert len(name) <= 64
    assert len(taken) == 3


def test_a_server_at_an_address_gets_its_key_and_nobody_else_does(make: Any) -> None:
    seen: list[str] = []
    with _http_server(seen) as url:
        tools = make()
        tools.service.accept(tools.service.look_at(ToolServer("web", url=url), "sk-web"), "sk-web")
        (tool,) = tools.service.tools()
        tools.service.permit("web", "greet", Permission.ALWAYS)
        assert tools.call(tool.name, person="Ada").text == "Hello, Ada"
        assert set(seen) == {"Bearer sk-web"}
        tools.service.remove("web")
        with pytest.raises(NotFound):
            tools.service.permit("web", "greet", Permission.ALWAYS)


def test_a_server_that_refuses_the_key_is_not_called_broken(make: Any) -> None:
    with _http_server([], key="sk-web") as url, pytest.raises(ToolServerFailed) as caught:
        make().service.look_at(ToolServer("web", url=url), "sk-other")
    assert "the key (HTTP 401)" in caught.value.title


def test_a_key_that_is_revoked_is_the_reason_of_a_call_that_fails() -> None:
    refused = list[int]()
    with _http_server([], refused=refused) as url, closing(ToolConnections(Network)) as connections:
        address = ServerAddress("web", url=url)
        assert connections.call(address, "greet", {"person": "Ada"}) == ("Hello, Ada", False)
        refused.append(403)
        with pytest.raises(ToolServerFailed) as caught:
            connections.call(address, "greet", {"person": "Ada"})
    assert "the key (HTTP 403)" in caught.value.title


def test_another_refusal_is_not_the_reason_of_a_later_failure(make: Any) -> None:
    with _http_server([], refused=[500]) as url, pytest.raises(ToolServerFailed) as caught:
        make().service.look_at(ToolServer("web", url=url), "sk-web")
    assert "refuses" not in caught.value.title


@contextmanager
def _http_server(seen: list[str], key: str = "", refused: Sequence[int] = ()) -> Iterator[str]:
    """Yield the address of a server with one tool; `seen` gets the authorization of each request.

    It answers with a status of `refused`, if any, or 401 to another key than its own.
    """
    import uvicorn
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("web")

    @server.tool()
    def greet(person: str) -> str:
        return f"Hello, {person}"

    app = server.streamable_http_app()

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            seen.append(dict(scope["headers"]).get(b"authorization", b"").decode())
            status = 401 if key and seen[-1] != f"Bearer {key}" else 0
            if status := next(iter(refused), status):
                await send({"type": "http.response.start", "status": status, "headers": []})
                await send({"type": "http.response.body"})
                return
        await app(scope, receive, send)

    config = uvicorn.Config(noting, port=0, log_level="error", lifespan="on")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        until(lambda: running.started)
        port = running.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        running.should_exit = True
        thread.join()
