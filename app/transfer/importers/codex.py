"""The Codex importer: rollout logs of the CLI and the app, and the app's threads in its database.

Items of a log have no ids. A message is known by all that precedes it, so that a fork, whose log begins
with a copy of its parent's, continues the parent's conversation here as a branch.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.domain.conversations import Role
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.archive import NamedStream
from app.transfer.importers.agent_logs import (
    SUBAGENT_TAG,
    blocks_of,
    call_block,
    project_tag,
    result_block,
    text_block,
    thinking_block,
    without_automatic,
)
from app.transfer.importers.building import Imported
from app.transfer.importers.formats import (
    DATABASE_ERRORS,
    Format,
    Part,
    Thread,
    UnknownPart,
    databases,
    json_of,
    lines,
)
from app.transfer.importers.values import (
    an_object,
    count,
    identity,
    moment,
    objects,
    text_of,
    title,
)

SOURCE = "codex"
_NOT_TYPED = (
    "# AGENTS.md",
    "<environment_context>",
    "<INSTRUCTIONS>",
    "<user_instructions>",
    "<skill>",
    "<recommended_plugins>",
    "<goal_context>",
    "<codex_internal_context",
)
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call")
_RESULTS = ("function_call_output", "custom_tool_call_output")
_BY_PROGRAM = ("codex_exec", "exec")
_ENDS = ("task_complete", "turn_aborted")


def read_codex(file: NamedStream) -> Imported:
    """Yield the conversation of a rollout log."""
    rollout = _Rollout(file.name)
    flaws = []
    for number, record, flaw in lines(file.stream):
        if flaw:
            flaws.append(Skipped(f"{file.name}, line {number}", flaw))
        else:
            rollout.add(record)
    yield rollout.finish(file)
    yield from flaws


class _Rollout(Thread):
    """The conversation of a rollout log."""

    def __init__(self, where: str) -> None:
        super().__init__(SOURCE, where)
        self._ids: list[str] = []
        self._header: dict[str, Any] = {}
        self._model: str | None = None
        self._at: datetime | None = None
        self._path: list[tuple[str, bool]] = []
        self._reply: list[Part] = []
        self._by: str | None = None  # the model of the reply
        self._has_ended = False

    def add(self, record: dict[str, Any]) -> None:  # type: ignore[override]
        """Read a line of the log."""
        payload = an_object(record.get("payload"))
        kind, item = text_of(record.get("type")), text_of(payload.get("type"))
        if kind == "session_meta":
            self._header = self._header or payload
            if not self._path:  # the headers of the sessions it was forked from follow its own
                self._ids.append(identity(payload.get("id")))
        elif kind == "turn_context":
            self._model = text_of(payload.get("model")) or self._model
        elif kind == "event_msg" and item == "thread_rolled_back":
            self._flush()
            self._roll_back(count(payload.get("num_turns")) or 1)
        elif kind == "event_msg" and item in _ENDS:
            self._has_ended = True
        elif kind == "response_item":
            self._has_ended = False
            at = moment(record.get("timestamp"))
            if self._reply and _role(item, payload) is not Role.ASSISTANT:
                self._flush()
            self._at = at or self._at
            self._by = self._by if self._reply else self._model
            self._item(item, payload)

    def finish(self, file: NamedStream) -> ImportedConversation | Skipped:
        """Return the conversation."""
        is_open = bool(self._reply) and not self._has_ended
        self._flush()
        if is_open and self._path:
            self.leave_open(self._path[-1][0])
        origin, own = self._header.get("source"), self._ids[0] if self._ids else ""
        first = self._ids[-1] if len(self._ids) > 1 else ""  # copied with what it begins with
        first = first or identity(self._header.get("forked_from_id")) or own
        is_subagent = isinstance(origin, dict) and "subagent" in origin and first == own
        found = self.finished(
            first,
            _titles(file.path).get(first, ""),
            self._header.get("timestamp"),
            leaf=self._path[-1][0] if self._path else None,
            tags=project_tag(self._header.get("cwd")) + ((SUBAGENT_TAG,) if is_subagent else ()),
        )
        by_program = text_of(self._header.get("originator")) in _BY_PROGRAM or origin == "exec"
        return without_automatic(found, file.name, by_program=by_program)

    def _item(self, kind: str, payload: dict[str, Any]) -> None:
        if kind == "message":
            role = text_of(payload.get("role"))
            blocks = blocks_of(payload.get("content"))
            if role == "assistant":
                self._reply += blocks
            elif role == "user":
                self._append(Role.USER, [each for each in blocks if not _is_context(each)])
        elif kind == "reasoning":
            for part in objects(payload.get("summary")):
                self._reply += thinking_block(part.get("text"))
        elif kind in _CALLS:
            name = payload.get("name") or kind.removesuffix("_call")
            arguments = payload.get("arguments", payload.get("input", payload.get("action")))
            self._reply.append(call_block(payload.get("call_id"), name, arguments))
        elif kind in _RESULTS:
            output = json_of(payload.get("output"))
            output = payload.get("output") if output is None else output
            self._append(Role.TOOL, [result_block(payload.get("call_id"), "", output)])

    def _flush(self) -> None:
        if self._reply:
            self._append(Role.ASSISTANT, self._reply, self._by)
            self._reply = []

    def _append(self, role: Role, blocks: list[Part], model: str | None = None) -> None:
        parent = self._path[-1][0] if self._path else None
        known = self.known_blocks(f"after {parent}" if parent else "1", blocks)
        if not known:
            return
        said = json.dumps([parent, role, [str(block) for block in known]])
        name = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        if name not in self.nodes:  # said again after a rollback
            kept = [each for each in blocks if not isinstance(each, UnknownPart)]
            super().add(name, parent, role, kept, self._at, model)
        self._path.append((name, role is Role.USER))

    def _roll_back(self, turns: int) -> None:
        while turns and self._path:
            turns -= self._path.pop()[1]


def _role(item: str, payload: dict[str, Any]) -> Role | None:
    if item == "message":
        return Role.ASSISTANT if text_of(payload.get("role")) == "assistant" else Role.USER
    return Role.ASSISTANT if item == "reasoning" or item in _CALLS else None


def _is_context(block: Part) -> bool:
    """Return whether a block is what the program itself says at the start of a session."""
    return getattr(block, "text", "").lstrip().startswith(_NOT_TYPED)


def _titles(path: Path | None) -> dict[str, str]:
    """Return the titles of threads by id, from the databases and the list beside the sessions."""
    for folder in path.parents if path else ():
        if folder.name in ("sessions", "archived_sessions"):
            stamp = max(
                (each.stat().st_mtime_ns for each in _title_files(folder.parent)), default=0
            )
            return _titles_in(folder.parent, stamp)
    return {}


def _title_files(home: Path) -> list[Path]:
    return [*sorted(home.glob("state_*.sqlite")), *home.glob("session_index.jsonl")]


@lru_cache(maxsize=4)
def _titles_in(home: Path, _changed_ns: int) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in _title_files(home):
        with suppress(OSError, *DATABASE_ERRORS):
            if path.suffix == ".jsonl":
                with path.open("rb") as stream:
                    for _, record, _ in lines(stream):
                        found[identity(record.get("id"))] = title(record.get("thread_name"))
            else:
                found |= dict(_database_titles(path))
    return {key: text for key, text in found.items() if key and text}


def _database_titles(path: Path) -> Iterator[tuple[str, str]]:
    with sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True) as connection:
        rows = connection.execute("SELECT * FROM threads")
        names = [each[0] for each in rows.description]
        for row in rows:
            values = dict(zip(names, row, strict=True))
            yield identity(values.get("id")), title(values.get("name") or values.get("title"))


def _threads(
    connection: sqlite3.Connection, where: str
) -> Iterable[ImportedConversation | Skipped]:
    """Yield the threads of the app's database."""
    rows = connection.execute(
        "SELECT * FROM thread_items ORDER BY thread_id, rollout_ordinal, rowid"
    )
    thread, current = Thread(SOURCE), ""
    for row in rows:
        if row["thread_id"] != current:
            if current:
                yield thread.finished(current, "")
            current = row["thread_id"]
            thread = Thread(SOURCE, f"{where}, thread {current}")
        item = an_object(json_of(row["item_json"]))
        role, blocks = _app_item(text_of(row["item_type"]), item)
        name = identity(row["item_id"])
        if role is not None and name not in thread.nodes:
            thread.append(name, role, blocks, row.get("created_at_ms"))
    if current:
        yield thread.finished(current, "")


def _app_item(kind: str, item: dict[str, Any]) -> tuple[Role | None, list[Part]]:
    content = item.get("content", item.get("text"))
    if kind == "userMessage":
        return Role.USER, [each for each in blocks_of(content) if not _is_context(each)]
    if kind == "agentMessage":
        return Role.ASSISTANT, blocks_of(content)
    if kind == "reasoning":
        return Role.ASSISTANT, thinking_block(item.get("text") or item.get("summary"))
    if kind == "commandExecution":
        result = result_block(item.get("id"), "shell", item.get("aggregatedOutput"))
        return Role.TOOL, [result] if result.text else text_block("")
    return None, []


FORMAT = Format(SOURCE, "Codex", read_codex, members=("timestamp type payload originator cwd",))
APP_FORMAT = Format(SOURCE, "Codex", databases(_threads), tables="thread_items")
