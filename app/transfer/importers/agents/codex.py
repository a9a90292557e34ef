"""The Codex importer: rollout logs of the CLI and the app, and the app's threads in its database.

Items of a log have no ids. A message is known by all that precedes it, so that a fork, whose log begins
with a copy of its parent's, continues the parent's conversation here as a branch.
"""

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from glob import escape
from itertools import chain, groupby, islice
from pathlib import Path, PurePath
from typing import Any

from app.domain.conversations import Role, Text
from app.domain.errors import KnownError
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.archive import Meter, NamedStream, open_export
from app.transfer.importers.parsing.blocks import (
    blocks_of,
    call_block,
    file_part,
    project_tag,
    result_parts,
    text_block,
    thinking_block,
    unknown_part,
    without_automatic,
)
from app.transfer.importers.parsing.building import Imported
from app.transfer.importers.parsing.formats import (
    DATABASE_ERRORS,
    Format,
    NotKept,
    Part,
    Row,
    Thread,
    database_file,
    databases,
    json_of,
    lines,
    open_database,
    tables,
    text_name,
)
from app.transfer.importers.parsing.values import (
    an_object,
    count,
    identity,
    moment,
    objects,
    strings,
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
    "<turn_aborted>",
    "<subagent_notification>",
    "<image name=",
    "</image>",
)
_REQUEST = re.compile(
    r"\A# Context from my IDE setup:.*?^## My request for Codex:\s*", re.DOTALL | re.MULTILINE
)
_CALLS = (
    "function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call",
)  # fmt: skip
_RESULTS = ("function_call_output", "custom_tool_call_output", "tool_search_output")
_SILENT = (
    "additional_tools", "compaction", "compaction_summary", "configuration_update", "context_compaction",
    "ghost_snapshot",
)  # fmt: skip
_BY_PROGRAM = ("codex_exec", "exec")
_ENDS = ("task_complete", "turn_aborted")
_REPLY = ("reasoning", "image_generation_call")
_PARTS_MAX = 100
_Beside = tuple[dict[str, str], dict[str, str]]  # both by the ids of threads
_BEFORE_ID_CHARS = len("rollout-2026-09-01T10-00-00-")


def read_codex(file: NamedStream) -> Imported:
    """Yield the conversation of a rollout log."""
    rollout = _Rollout(file.name)
    flaws = []
    for number, record, flaw in lines(file.stream):
        if flaw:
            flaws.append(Skipped(f"{file.name}, line {number}", flaw))
            continue
        rollout.add(record)
        if number == 1 and (base := _base(record)):
            try:
                continued = list(_continued(file.path, base))
            except KnownError:
                continued = []
            for each in continued:
                rollout.add(each)
            if not continued:
                flaws.append(Skipped(file.name, "the session that it continues is not beside it"))
    yield rollout.finish(file)
    yield from flaws


def _base(record: dict[str, Any]) -> dict[str, Any]:
    """Return up to where a rollout continues another one, as its first record says; empty if it does not."""
    return an_object(an_object(record.get("payload")).get("history_base"))


def _continued(path: Path | None, base: dict[str, Any], depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the records that a rollout continues, of which each part is in a file of its own."""
    name = escape(identity(base.get("thread_id")))
    end = count(base.get("end_ordinal_exclusive")) or 0
    if path is None or not name:
        return
    beside = f"rollout-*{name}.jsonl*"
    found = chain(path.parent.glob(beside), _home(path).glob(f"*sessions/**/{beside}"))
    for other in islice(found, 1):
        for part in open_export(other, Meter(lambda: False, lambda _read, _total: None)):
            for number, record, _ in lines(part.stream) if isinstance(part, NamedStream) else ():
                if (count(record.get("ordinal")) or 0) >= end:
                    break
                yield record
                if number == 1 and depth < _PARTS_MAX:
                    yield from _continued(other, _base(record), depth + 1)


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
        if not payload and "record_type" not in record:  # logs of 2025 have items as they are
            payload, item = record, kind
            kind = "response_item" if kind else "session_meta"
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
        is_open = bool(self._reply) and not self._has_ended
        self._flush()
        if is_open and self._path:
            self.leave_open(self._path[-1][0])
        origin, own = self._header.get("source"), self._ids[0] if self._ids else ""
        first = self._ids[-1] if len(self._ids) > 1 else ""  # copied with what it begins with
        first = first or identity(self._header.get("forked_from_id")) or own
        of = an_object(origin).get("subagent") if first == own else None
        spawned = an_object(an_object(of).get("thread_spawn"))
        parent = self._header.get("parent_thread_id") or spawned.get("parent_thread_id")
        found = self.finished(
            first,
            _beside(file.path)[0].get(first, ""),
            self._header.get("timestamp"),
            leaf=self._path[-1][0] if self._path else None,
            archived="archived_sessions" in PurePath(file.path or file.name).parts,
            started_by=None if of is None else parent or "",
            other_ids=(own,) if own != first else (),
            tags=project_tag(self._header.get("cwd")),
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
                self._append(Role.USER, _typed(blocks))
        elif kind == "reasoning":
            for part in objects(payload.get("summary")) or objects(payload.get("content")):
                self._reply += thinking_block(part.get("text"))
        elif kind == "image_generation_call":
            self._reply += text_block(payload.get("revised_prompt")) + _picture(payload)
        elif kind in _CALLS:
            name = payload.get("name") or kind.removesuffix("_call")
            arguments = payload.get("arguments", payload.get("input", payload.get("action")))
            self._reply.append(call_block(payload.get("call_id"), name, arguments))
        elif kind in _RESULTS:
            given = payload.get("output", payload.get("tools"))
            output = json_of(given)
            output = given if output is None else output
            self._append(Role.TOOL, result_parts(payload.get("call_id"), "", output))
        elif kind not in _SILENT:
            self._reply.append(unknown_part(kind))

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
        name = text_name(said)
        if name not in self.nodes:  # said again after a rollback
            kept = [each for each in blocks if not isinstance(each, NotKept)]
            super().add(name, parent, role, kept, self._at, model)
        self._path.append((name, role is Role.USER))

    def _roll_back(self, turns: int) -> None:
        while turns and self._path:
            turns -= self._path.pop()[1]


def _role(item: str, payload: dict[str, Any]) -> Role | None:
    if item == "message":
        return Role.ASSISTANT if text_of(payload.get("role")) == "assistant" else Role.USER
    return Role.ASSISTANT if item in _REPLY or item in _CALLS else None


def _typed(blocks: list[Part]) -> list[Part]:
    """Return what the user typed of a message, without what the program adds to it."""
    kept = [
        each for each in blocks if not getattr(each, "text", "").lstrip().startswith(_NOT_TYPED)
    ]
    return [
        part
        for each in kept
        for part in (
            text_block(_REQUEST.sub("", each.text, count=1)) if isinstance(each, Text) else [each]
        )
    ]


def _picture(item: dict[str, Any]) -> list[Part]:
    """Return the picture that a model made, none when making it failed."""
    data = text_of(item.get("result"))
    return [file_part("image.png", "image/png", f"data:image/png;base64,{data}")] if data else []


def _home(path: Path) -> Path:
    """Return the folder of the program that a rollout is in, else its own folder."""
    folders = ("sessions", "archived_sessions")
    return next((each.parent for each in path.parents if each.name in folders), path.parent)


def _beside(path: Path | None) -> _Beside:
    """Return titles of threads, and what started them, from the databases and the list beside the sessions."""
    if path is None:
        return {}, {}
    home = _home(path)
    stamp = max((each.stat().st_mtime_ns for each in _state_files(home)), default=0)
    return _beside_in(home, stamp)


def _state_files(home: Path) -> list[Path]:
    return [*sorted(home.glob("state_*.sqlite")), *home.glob("session_index.jsonl")]


@lru_cache(maxsize=4)
def _beside_in(home: Path, _changed_ns: int) -> _Beside:
    titles: dict[str, str] = {}
    parents: dict[str, str] = {}
    for path in _state_files(home):
        with suppress(OSError, *DATABASE_ERRORS):
            if path.suffix == ".jsonl":
                with path.open("rb") as stream:
                    for _, record, _ in lines(stream):
                        titles[identity(record.get("id"))] = title(record.get("thread_name"))
                continue
            with open_database(path) as connection:
                for row in connection.execute("SELECT * FROM threads"):
                    titles[identity(row["id"])] = title(row.get("name") or row.get("title"))
                for row in connection.execute("SELECT * FROM thread_spawn_edges"):
                    child = identity(row["child_thread_id"])
                    parents[child] = identity(row["parent_thread_id"])
    return {key: text for key, text in titles.items() if key and text}, parents


def _threads(
    connection: sqlite3.Connection, where: str
) -> Iterable[ImportedConversation | Skipped]:
    """Yield the threads of the app's database; those that a rollout has are read from it."""
    path = database_file(connection)
    rollouts = {
        each.name.partition(".")[0][_BEFORE_ID_CHARS:]
        for each in path.parent.glob("*sessions/**/rollout-*")
    }
    titles, parents = _beside(path)
    turns: dict[object, Row] = {}
    if "thread_turns" in tables(connection):
        for turn in connection.execute("SELECT * FROM thread_turns"):
            turns[turn["thread_id"], turn["turn_id"]] = turn
    items = connection.execute(
        "SELECT * FROM thread_items ORDER BY thread_id, rollout_ordinal, rowid"
    )
    for name, rows in groupby(items, lambda row: identity(row["thread_id"])):
        if name in rollouts:
            continue
        thread = Thread(SOURCE, f"{where}, thread {name}")
        for row in rows:
            turn = turns.get((row["thread_id"], row["turn_id"]), Row())
            at = row.get("created_at_ms") or turn.get("started_at")
            _add_item(thread, identity(row["item_id"]), an_object(json_of(row["item_json"])), at)
            if turn.get("status") == "inProgress":
                thread.leave_open(thread.last)
        yield thread.finished(name, titles.get(name, ""), started_by=parents.get(name))


def _add_item(thread: Thread, name: str, item: dict[str, Any], at: object) -> None:
    kind = text_of(item.get("type"))
    if name in thread.nodes:
        return
    if kind == "userMessage":
        thread.append(name, Role.USER, _typed(blocks_of(item.get("content"))), at)
    elif kind in _APP_TOOLS:
        tool, given, made = _APP_TOOLS[kind]
        tool = text_of(item.get("tool")) or tool
        thread.append(f"{name}/call", Role.ASSISTANT, [call_block(name, tool, item.get(given))], at)
        result = item.get(made) or item.get("error")
        if result is not None:
            thread.append(name, Role.TOOL, result_parts(name, tool, result), at)
    else:
        thread.append(name, Role.ASSISTANT, _said(kind, item), at)


def _said(kind: str, item: dict[str, Any]) -> list[Part]:
    if kind == "reasoning":
        thoughts = strings(item.get("summary")) or strings(item.get("content"))
        return thinking_block("\n\n".join(thoughts))
    if kind in ("agentMessage", "plan"):
        return text_block(item.get("text"))
    if kind == "imageGeneration":
        return _picture(item)
    return [] if kind in _APP_SILENT else [unknown_part(kind)]


_APP_TOOLS: Mapping[str, tuple[str, str, str]] = {
    "collabAgentToolCall": ("agent", "prompt", "agentsStates"),
    "commandExecution": ("shell", "command", "aggregatedOutput"),
    "dynamicToolCall": ("tool", "arguments", "contentItems"),
    "fileChange": ("apply_patch", "changes", ""),
    "imageView": ("view_image", "path", ""),
    "mcpToolCall": ("tool", "arguments", "result"),
    "webSearch": ("web_search", "query", ""),
}
"""For each kind of tool: its name if the item has none, and the members with its arguments and result."""

_APP_SILENT = (
    "contextCompaction", "enteredReviewMode", "exitedReviewMode", "hookPrompt", "sleep", "subAgentActivity",
)  # fmt: skip

FORMAT = Format(
    SOURCE,
    "Codex",
    read_codex,
    members=("timestamp type payload originator cwd", "id timestamp instructions record_type"),
)
APP_FORMAT = Format(SOURCE, "Codex", databases(_threads), tables="thread_items")
