"""Configurations of programs that speak MCP, with which they start the relay."""

import json
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from app.domain.translation import tr

_NAME = "commonplace"


class ClientConfiguration(NamedTuple):
    """What connects a program: text to copy, and where it belongs."""

    program: str
    place: str
    text: str


def configurations(command: Sequence[str]) -> tuple[ClientConfiguration, ...]:
    """Return the configurations of the known programs and of any other, with the relay's `command`."""
    program, *arguments = command
    server = {"command": program, "args": arguments}
    as_json = json.dumps({"mcpServers": {_NAME: server}})
    as_toml = "\n".join(
        (
            f"[mcp_servers.{_NAME}]",
            *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in server.items()),
        )
    )
    added = shlex.join(("claude", "mcp", "add", "--scope", "user", _NAME, "--", *command))
    return (
        ClientConfiguration(
            "Claude Desktop",
            tr("Settings, Developer, Edit Config: claude_desktop_config.json"),
            as_json,
        ),
        ClientConfiguration("Claude Code", tr("Run this in a terminal."), added),
        ClientConfiguration("Cursor", "~/.cursor/mcp.json", as_json),
        ClientConfiguration("Codex", "~/.codex/config.toml", as_toml),
        ClientConfiguration(
            tr("Another program"),
            tr(
                "Programs differ in where they keep it. ChatGPT takes servers on the internet only."
            ),
            as_json,
        ),
    )
