"""Importers of coding agents that keep their sessions in SQLite: Cursor, Goose and OpenCode."""

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from app.domain.conversations import Role, ToolResult
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.importers.agent_logs import (
    SUBAGENT_TAG,
    blocks_of,
    call_block,
    file_part,
    project_tag,
    result_block,
    text_block,
    thinking_block,
)
from app.transfer.importers.formats import ROLES, Format, Part, Thread, databases, json_of, tables
from app.transfer.importers.values import an_object, identity, moment, objects, text_of

_CURSOR_USER = 1
_CURSOR_ENDS = ("completed", "aborted")
_TABS = "workbench.panel.aichat.view.aichat.chatdata"


def _goose(connection: sqlite3.Connection, where: str) -> Iterable[ImportedConversation | Skipped]:
    """Yield Goose's sessions."""
    for session in connection.execute("SELECT * FROM sessions"):
        thread = Thread("goose", f"{where}, session {session['id']}")
        rows = connection.execute(
            "SELECT rowid AS row_number, * FROM messages WHERE session_id = ? ORDER BY rowid",
            (session["id"],),
        )
        for message in rows:
            name = identity(message.get("message_id")) or identity(message["row_number"])
            blocks = [
                made
                for part in objects(json_of(message.get("content_json")))
                for made in _goose_part(part)
            ]
            role = ROLES.get(text_of(message.get("role")), Role.USER)
            if blocks and all(isinstance(block, ToolResult) for block in blocks):
                role = Role.TOOL
            if name not in thread.nodes:
                thread.append(name, role, blocks, message.get("created_timestamp"))
        yield thread.finished(
            session["id"],
            session.get("name") or session.get("description"),
            session.get("created_at"),
            session.get("updated_at"),
            tags=project_tag(session.get("working_dir")),
        )


def _goose_part(part: dict[str, Any]) -> Iterator[Part]:
    kind = text_of(part.get("type"))
    if kind == "toolRequest":
        call = an_object(an_object(part.get("toolCall")).get("value"))
        yield call_block(part.get("id"), call.get("name"), call.get("arguments", ""))
    elif kind == "toolResponse":
        outcome = an_object(part.get("toolResult"))
        failed = text_of(outcome.get("status")) == "error"
        result = outcome.get("error") if failed else outcome.get("value")
        yield result_block(part.get("id"), "", result, is_error=failed)
    else:
        yield from blocks_of([part])


def _opencode(
    connection: sqlite3.Connection, where: str
) -> Iterable[ImportedConversation | Skipped]:
    """Yield OpenCode's sessions."""
    for session in connection.execute("SELECT * FROM session"):
        parts: dict[str, list[dict[str, Any]]] = {}
        for each in connection.execute(
            "SELECT message_id, data FROM part WHERE session_id = ? ORDER BY id", (session["id"],)
        ):
            parts.setdefault(each["message_id"], []).append(an_object(json_of(each["data"])))
        thread, is_open = Thread("opencode", f"{where}, session {session['id']}"), False
        rows = connection.execute(
            "SELECT * FROM message WHERE session_id = ? ORDER BY id", (session["id"],)
        )
        for message in rows:
            content = an_object(json_of(message.get("data")))
            name = identity(message["id"])
            role = ROLES.get(text_of(content.get("role")), Role.USER)
            times = an_object(content.get("time"))
            at = moment(message.get("time_created") or times.get("created"))
            is_ended = times.get("completed") or content.get("error") or not times
            is_open = role is Role.ASSISTANT and not is_ended
            model = text_of(content.get("modelID")) or None
            calls = [made for part in parts.get(message["id"], ()) for made in _opencode_part(part)]
            thread.append(name, role, calls, at, model)
        if is_open:
            thread.leave_open(thread.last)
        yield thread.finished(
            session["id"],
            session.get("title"),
            session.get("time_created"),
            session.get("time_updated"),
            tags=project_tag(session.get("directory"))
            + ((SUBAGENT_TAG,) if session.get("parent_id") else ()),
        )


def _opencode_part(part: dict[str, Any]) -> Iterator[Part]:
    kind = text_of(part.get("type"))
    if kind == "file":
        yield file_part(part.get("filename"), part.get("mime"), part.get("url"))
    elif kind == "tool":
        state = an_object(part.get("state"))
        yield call_block(part.get("callID"), part.get("tool"), state.get("input", ""))
        failed = text_of(state.get("status")) == "error"
        result = state.get("error") if failed else state.get("output")
        if result is not None:
            yield result_block(part.get("callID"), part.get("tool"), result, is_error=failed)
    elif part.get("synthetic") is not True:
        yield from blocks_of([part])


def _cursor(connection: sqlite3.Connection, where: str) -> Iterable[ImportedConversation | Skipped]:
    """Yield Cursor's conversations; keys are read by range, since these databases reach gigabytes."""
    rows = connection.execute(
        "SELECT key, value FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;'"
    )
    for row in rows:
        record = an_object(json_of(row["value"]))
        name = identity(record.get("composerId")) or text_of(row["key"]).partition(":")[2]
        headers = [
            identity(each.get("bubbleId"))
            for each in objects(record.get("fullConversationHeadersOnly"))
        ]
        bubbles = _bubbles(connection, name) if headers else {}
        listed = [bubbles[each] for each in headers if each in bubbles] or objects(
            record.get("conversation")
        )
        if not listed:
            continue  # a draft
        thread = Thread("cursor", f"{where}, session {name}")
        folder: object = None
        for bubble in listed:
            own = identity(bubble.get("bubbleId")) or thread.generated_id()
            role = Role.USER if bubble.get("type") == _CURSOR_USER else Role.ASSISTANT
            model = text_of(an_object(bubble.get("modelInfo")).get("modelName")) or None
            at = moment(bubble.get("createdAt") or bubble.get("timestamp"))
            folder = bubble.get("workspaceProjectDir") or folder
            if own not in thread.nodes:
                thread.append(own, role, list(_cursor_blocks(bubble)), at, model)
        if role is Role.ASSISTANT and text_of(record.get("status")) not in _CURSOR_ENDS:
            thread.leave_open(thread.last)
        yield thread.finished(
            name,
            record.get("name"),
            record.get("createdAt"),
            record.get("lastUpdatedAt"),
            tags=project_tag(folder),
        )
    if "ItemTable" in tables(connection):
        yield from _cursor_tabs(connection, where)


def _cursor_tabs(
    connection: sqlite3.Connection, where: str
) -> Iterable[ImportedConversation | Skipped]:
    """Yield the conversations of Cursor's first versions, which one value of a workspace lists."""
    row = connection.execute("SELECT value FROM ItemTable WHERE key = ?", (_TABS,)).fetchone()
    for tab in objects(an_object(json_of(row["value"] if row else None)).get("tabs")):
        name = identity(tab.get("tabId"))
        thread = Thread("cursor", f"{where}, tab {name}")
        for number, bubble in enumerate(objects(tab.get("bubbles"))):
            role = Role.USER if bubble.get("type") == "user" else Role.ASSISTANT
            model = text_of(bubble.get("modelType")) or None
            thread.append(f"{number}", role, list(_cursor_blocks(bubble)), None, model)
        at = moment(tab.get("timestamp") or tab.get("lastSendTime"))
        if thread.nodes:
            yield thread.finished(name, tab.get("chatTitle"), at, at)


def _bubbles(connection: sqlite3.Connection, name: str) -> dict[str, dict[str, Any]]:
    prefix = f"bubbleId:{name}"
    rows = connection.execute(
        "SELECT key, value FROM cursorDiskKV WHERE key >= ? AND key < ?",
        (f"{prefix}:", f"{prefix};"),
    )
    return {
        text_of(row["key"]).rpartition(":")[2]: an_object(json_of(row["value"])) for row in rows
    }


def _cursor_blocks(bubble: dict[str, Any]) -> Iterator[Part]:
    yield from thinking_block(an_object(bubble.get("thinking")).get("text"))
    yield from text_block(bubble.get("text") or bubble.get("rawText"))
    if call := an_object(bubble.get("toolFormerData")):
        name = call.get("name")
        yield call_block(
            call.get("toolCallId"), name, call.get("rawArgs") or call.get("params") or ""
        )
        if call.get("result") is not None:
            result = call["result"]
            yield result_block(call.get("toolCallId"), name, json_of(result) or result)


CURSOR_FORMAT = Format("cursor", "Cursor", databases(_cursor), tables="cursorDiskKV")
GOOSE_FORMAT = Format("goose", "Goose", databases(_goose), tables="sessions messages")
OPENCODE_FORMAT = Format(
    "opencode", "OpenCode", databases(_opencode), tables="session message part"
)
