"""Sources: programs whose sessions are followed on this computer, and where they keep them.

`SOURCES` is the table of all; settings, the command line and screens are drawn from it. Locations are
those of each program's documentation or source.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

SUBAGENT_TAG = "subagent"  # of conversations of an agent with another, not with the user


class SourceName(StrEnum):
    """Names of sources in commands and JSON; also the source of their conversations.

    These have the name of their project's folder as a tag.
    """

    CLAUDE_CODE = "claude_code"
    CODEX = "codex"
    GEMINI_CLI = "gemini_cli"
    CURSOR = "cursor"
    GOOSE = "goose"
    OPENCODE = "opencode"


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """Where a source keeps sessions.

    Of `folders` the first that exists counts; `~` is the home folder. The folder that the variable `variable`
    names comes first. `patterns` select the files of sessions below it.
    """

    folders: tuple[str, ...]
    patterns: tuple[str, ...]
    variable: str = ""


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """The specification of one source.

    `setting` is the key of its switch. `deletes` says what the program deletes by itself, "" if nothing is known.
    `message` is a pattern that is found once in each message of a log, "" for databases.
    """

    title: str
    places: tuple[SourcePlace, ...]
    setting: str
    deletes: str = ""
    message: str = ""


_USER_DATA = ("~/.config/{}", "~/Library/Application Support/{}", "~/AppData/Roaming/{}")
_CURSOR = tuple(each.format("Cursor/User") for each in _USER_DATA)
_CLAUDE = tuple(each.format("Claude") for each in _USER_DATA)  # Claude Desktop's Cowork

SOURCES: Mapping[SourceName, SourceSpec] = {
    SourceName.CLAUDE_CODE: SourceSpec(
        "Claude Code",
        (
            SourcePlace(("~/.claude",), ("projects/**/*.jsonl",), "CLAUDE_CONFIG_DIR"),
            SourcePlace(_CLAUDE, ("local-agent-mode-sessions/**/.claude/projects/**/*.jsonl",)),
        ),
        "follow_claude_code",
        "Claude Code deletes sessions that were not used for 30 days, unless configured otherwise.",
        '"type": ?"(?:user|assistant)"',
    ),
    SourceName.CODEX: SourceSpec(
        "Codex",
        (
            SourcePlace(
                ("~/.codex",),
                (
                    "sessions/**/rollout-*.jsonl",
                    "sessions/**/rollout-*.jsonl.zst",
                    "archived_sessions/**/rollout-*.jsonl*",
                    "thread_history_*.sqlite",
                ),
                "CODEX_HOME",
            ),
        ),
        "follow_codex",
        message='"type": ?"message"',
    ),
    SourceName.GEMINI_CLI: SourceSpec(
        "Gemini CLI",
        (SourcePlace(("~/.gemini",), ("tmp/*/chats/**/*.json", "tmp/*/chats/**/*.jsonl")),),
        "follow_gemini_cli",
        "Gemini CLI can be configured to delete old sessions.",
        '"type": ?"(?:user|gemini)"',
    ),
    SourceName.CURSOR: SourceSpec(
        "Cursor",
        (
            SourcePlace(_CURSOR, ("globalStorage/state.vscdb",)),
            SourcePlace(
                ("~/.cursor",),
                (
                    "projects/*/agent-transcripts/**/*.jsonl",
                    "projects/*/agent-transcripts/**/*.txt",
                ),
            ),
        ),
        "follow_cursor",
    ),
    SourceName.GOOSE: SourceSpec(
        "Goose",
        (
            SourcePlace(
                ("~/.local/share/goose", "~/AppData/Roaming/Block/goose/data"),
                ("sessions/sessions.db",),
            ),
        ),
        "follow_goose",
    ),
    SourceName.OPENCODE: SourceSpec(
        "OpenCode",
        (SourcePlace(("~/.local/share/opencode",), ("opencode*.db", "storage/session/*/*.json")),),
        "follow_opencode",
    ),
}


@dataclass(frozen=True, slots=True)
class SourceState:
    """What is known of a source on this computer.

    `folder` are its folders. `files` and `size_bytes` are of the sessions that exist; `kept_only_here` counts files that were
    read and exist no longer. `read` counts those that were read as they are now. `messages` is an estimate where a
    source is suggested, 0 if there is none.
    """

    name: SourceName
    is_on: bool
    folder: str
    files: int
    size_bytes: int
    read: int
    kept_only_here: int
    messages: int = 0
