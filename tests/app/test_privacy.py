"""The list of connections is complete: it is compared with the code, and follows the settings."""

import ast
from pathlib import Path

import pytest

from app.privacy import KINDS, ConnectionState
from tests.fakes.command_line import Console
from tests.fakes.fixtures import fixture_of

pytestmark = pytest.mark.unmeasured

ROOT = Path(__file__).resolve().parents[2]
OPENS = {
    "GuardedClient", "AsyncClient", "Client", "create_server", "create_connection", "socket", "Popen",
    "stdio_client", "streamable_http_client", "openUrl", "QNetworkAccessManager", "QTcpSocket",
    "QWebSocket", "urlopen", "open_connection", "start_server", "connect_ex", "run_command", "QProcess",
}  # fmt: skip
"""What opens a connection or starts another program, by the name that is called."""

CLIENTS = {"GuardedClient", "AsyncClient"}  # also where they are only named, to be made in a thread


cli = fixture_of(Console, "data_dir", then="close")


def opens(path: Path) -> bool:
    """Return whether a module calls anything that opens a connection."""
    nodes = [*ast.walk(ast.parse(path.read_text()))]
    called = {name_of(each.func) for each in nodes if isinstance(each, ast.Call)}
    return bool(called & OPENS) or not CLIENTS.isdisjoint(map(name_of, nodes))


def name_of(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def test_every_module_that_opens_a_connection_is_in_the_list_once_and_no_other() -> None:
    found = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for folder in ("app", "ui")
        for path in (ROOT / folder).rglob("*.py")
        if opens(path)
    ]
    assert sorted(found) == sorted(module for kind in KINDS for module in kind.opened_by)


def rows(cli: Console) -> dict[str, dict[str, object]]:
    listed = cli.json("privacy")["connections"]
    return {f"{each['kind']} {each['address']}".strip(): each for each in listed}


def test_nothing_leaves_the_computer_of_a_new_user(cli: Console) -> None:
    found = rows(cli)
    assert {each["kind"] for each in found.values()} == {each.name for each in KINDS} - {
        "tool_server"
    }
    away = [each for each in found.values() if each["leaves_computer"]]
    assert away
    assert {each["state"] for each in away} <= {"off"}
    local = next(each for each in found.values() if each["kind"] == "local_servers")
    assert local["state"] == ConnectionState.ON, "the welcome page looks"
    assert "Model server" in cli.done("privacy").out


def test_a_provider_a_model_and_a_switch_are_in_the_list_as_they_are_set(cli: Console) -> None:
    cli.done(
        "provider", "add", "far", "--kind", "compatible", "--base-url", "https://far.example/v1"
    )
    cli.done(
        "provider", "add", "near", "--kind", "compatible", "--base-url", "http://127.0.0.1:9/v1"
    )
    far, near = "model_server https://far.example/v1", "model_server http://127.0.0.1:9/v1"
    found = rows(cli)
    assert found[far]["state"] == found[near]["state"] == ConnectionState.ON_REQUEST
    assert (found[far]["leaves_computer"], found[near]["leaves_computer"]) == (True, False)
    cli.done("config", "set", "default_model", "far:some")
    cli.services.settings.set("mcp_http", True)
    found = rows(cli)
    local = next(each for each in found.values() if each["kind"] == "local_servers")
    assert local["state"] == ConnectionState.ON_REQUEST
    assert found[far]["state"] == ConnectionState.ON
    assert found["memory_over_http 127.0.0.1:7316"]["state"] == ConnectionState.ON
