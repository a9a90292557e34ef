"""Sources: programs whose sessions are followed on this computer, and where they keep them.

`SOURCES` is the table of all; settings, the command line and screens are drawn from it. Locations are
those of each program's documentation or source.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class SourceName(StrEnum):
    """Names of sources in commands and JSON; also the source of their conversations."""

    CLAUDE_CODE = "claude_code"
    CODEX = "codex"
    GEMINI_CLI = "gemini_cli"
    CURSOR = "cursor"
    GOOSE = "goose"
    OPENCODE = "opencode"


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """The specification of one source.

    `folders` are where it keeps sessions, the first that exists counts; `~` is the home folder. The
    folder that the variable `variable` names comes first. `patterns` select the files of sessions below
    it. `deletes` says what the program deletes by itself, "" if nothing is known. `setting` is the key
    of its switch.
    """

    title: str
    folders: tuple[str, ...]
    patterns: tuple[str, ...]
    variable: str = ""
    deletes: str = ""
    setting: str = ""


_CODE = ("~/.config/{}/User", "~/Library/Application Support/{}/User", "~/AppData/Roaming/{}/User")
_CURSOR = tuple(each.format("Cursor") for each in _CODE)

SOURCES: Mapping[SourceName, SourceSpec] = {
    SourceName.CLAUDE_CODE: SourceSpec(
        "Claude Code",
        ("~/.claude",),
        ("projects/**/*.jsonl",),
        variable="CLAUDE_CONFIG_DIR",
        deletes="It deletes sessions that were not used for 30 days, unless configured otherwise.",
        setting="follow_claude_code",
    ),
    SourceName.CODEX: SourceSpec(
        "Codex",
        ("~/.codex",),
        (
            "sessions/**/rollout-*.jsonl",
            "sessions/**/rollout-*.jsonl.zst",
            "archived_sessions/**/rollout-*.jsonl*",
            "thread_history_*.sqlite",
        ),
        variable="CODEX_HOME",
        setting="follow_codex",
    ),
    SourceName.GEMINI_CLI: SourceSpec(
        "Gemini CLI",
        ("~/.gemini",),
        ("tmp/*/chats/**/*.json", "tmp/*/chats/**/*.jsonl"),
        deletes="It can be configured to delete old sessions.",
        setting="follow_gemini_cli",
    ),
    SourceName.CURSOR: SourceSpec(
        "Cursor", _CURSOR, ("globalStorage/state.vscdb",), setting="follow_cursor"
    ),
    SourceName.GOOSE: SourceSpec(
        "Goose",
        ("~/.local/share/goose", "~/AppData/Roaming/Block/goose/data"),
        ("sessions/sessions.db",),
        setting="follow_goose",
    ),
    SourceName.OPENCODE: SourceSpec(
        "OpenCode", ("~/.local/share/opencode",), ("opencode*.db",), setting="follow_opencode"
    ),
}


@dataclass(frozen=True, slots=True)
class SourceState:
    """What is known of a source on this computer.

    `files` and `size_bytes` are of the sessions that exist; `kept_only_here` counts files that were
    read and exist no longer. `read` counts those that were read as they are now.
    """

    name: SourceName
    is_on: bool
    folder: str
    files: int
    size_bytes: int
    read: int
    kept_only_here: int
