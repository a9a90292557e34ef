"""Files of other chat programs in `tests/data/exports`, one for each generation of each format.

Every conversation has the question "What is the ohm?" and the answer "A unit.", in the form of the program; most
files have a damaged record. Databases are stored as SQL: `logs.db.sql` becomes `logs.db`.
"""

import json
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from backports.zstd import compress

from app.domain.conversations import Block
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.importers import read_export

QUESTION, ANSWER = "What is the ohm?", "A unit."
_DATA = Path(__file__).parents[1] / "data" / "exports"


class ExportFile(NamedTuple):
    """A file of a format: what to import, the source of its conversations, and its traits.

    Traits: title, dated, report (something damaged is named), branch, thought, project, call, pinned.
    """

    path: str
    source: str
    traits: str


_SESSION, _ROLLOUT = "projects/-home-me-heron/s1.jsonl", "sessions/2026/03/04/rollout-s1.jsonl"
_LOG_TRAITS = "title dated report thought project call"
FILES: dict[str, ExportFile] = {
    "claude_code": ExportFile(_SESSION, "claude_code", _LOG_TRAITS),
    "codex": ExportFile(_ROLLOUT, "codex", _LOG_TRAITS),
    "codex_packed": ExportFile(f"{_ROLLOUT}.zst", "codex", _LOG_TRAITS),
    "codex_app": ExportFile("thread_history_1.sqlite", "codex", "dated report thought call"),
    "gemini_cli": ExportFile("session-1.jsonl", "gemini_cli", "title dated report project call"),
    "gemini_cli_old": ExportFile("session-1.json", "gemini_cli", "dated report"),
    "open_webui": ExportFile(
        "chat-export.json", "open_webui", "title dated report branch thought pinned"
    ),
    "open_webui_old": ExportFile("chat.json", "open_webui", "title dated report branch thought"),
    "open_webui_database": ExportFile(
        "webui.db", "open_webui", "title dated report branch thought pinned"
    ),
    "open_webui_database_rows": ExportFile(
        "webui.db", "open_webui", "title dated report pinned thought call"
    ),
    "librechat": ExportFile("librechat.json", "librechat", "title dated report thought call"),
    "librechat_dump": ExportFile("messages.json", "librechat", "dated report"),
    "chatbox": ExportFile(
        "chatbox-exported-data-2026-3-4.json", "chatbox", "title dated report branch pinned"
    ),
    "deepseek": ExportFile("conversations.json", "deepseek", "title dated report thought"),
    "grok": ExportFile("prod-grok-backend.json", "grok", "title dated pinned report"),
    "jan": ExportFile("threads/c1/messages.jsonl", "jan", "title dated report call"),
    "cherry_studio": ExportFile(
        "data.json", "cherry_studio", "title dated report branch thought pinned call"
    ),
    "cherry_studio_database": ExportFile(
        "cherrystudio.sqlite", "cherry_studio", "title dated report branch thought pinned call"
    ),
    "lm_studio": ExportFile(
        "1772618400000.conversation.json", "lm_studio", "title dated report branch thought pinned"
    ),
    "llm": ExportFile("logs.db", "llm", "title dated report"),
    "llm_new": ExportFile("logs.db", "llm", "title dated report thought call"),
    "gemini_takeout": ExportFile("MyActivity.json", "gemini", "dated report"),
    "gemini_workspace": ExportFile("conversation_1.txt", "gemini", "title dated thought"),
    "gemini_studio": ExportFile("About ohms", "gemini", "title thought call report"),
    "goose": ExportFile("sessions.db", "goose", "title dated report thought project call"),
    "opencode": ExportFile("opencode.db", "opencode", "title dated report thought project call"),
    "cursor": ExportFile("state.vscdb", "cursor", "title dated report thought project call"),
    "cursor_agent": ExportFile("c1.jsonl", "cursor", "report"),
}


def write(name: str, folder: Path) -> Path:
    """Write the files of that name into a folder, and return the path to import."""
    home, path = _DATA / name.removesuffix("_packed"), folder / FILES[name].path
    for source in filter(Path.is_file, home.rglob("*")):
        target = folder / source.relative_to(home)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".sql":
            with closing(sqlite3.connect(target.with_suffix(""))) as connection, connection:
                connection.executescript(source.read_text(encoding="utf-8"))
        else:
            shutil.copyfile(source, target)
    if path.suffix == ".zst":
        path.write_bytes(compress(path.with_suffix("").read_bytes()))
    return path


def log_records(name: str) -> list[dict[str, Any]]:
    """Return the records of a session log, without the damaged ones."""
    found = []
    for line in (_DATA / name / FILES[name].path).read_text(encoding="utf-8").splitlines():
        with suppress(ValueError):
            found.append(json.loads(line))
    return found


def with_trait(trait: str) -> list[str]:
    return [name for name, file in FILES.items() if trait in file.traits.split()]


def read_parts(path: Path) -> tuple[list[ImportedConversation], list[Skipped]]:
    """Return the conversations of an export, and what was skipped."""
    found = list(read_export(path))
    return (
        [each for each in found if isinstance(each, ImportedConversation)],
        [each for each in found if isinstance(each, Skipped)],
    )


def shown_blocks(found: ImportedConversation) -> list[Block]:
    """Return the blocks of the messages on the path that is shown, in order."""
    by_id = {message.source_id: message for message in found.messages}
    name, path = found.visible_leaf, list[Block]()
    while name is not None:
        path[:0] = by_id[name].blocks
        name = by_id[name].parent
    return path
