"""Importers of coding agents that keep their sessions in SQLite: Cursor, Goose and OpenCode."""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from app.domain.conversations import Role, Text, ToolResult
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.archive import NamedStream
from app.transfer.importers.parsing.blocks import (
    blocks_of,
    call_block,
    error_part,
    file_part,
    project_tag,
    result_block,
    result_parts,
    text_block,
    thinking_block,
    without_automatic,
)
from app.transfer.importers.parsing.building import Imported
from app.transfer.importers.parsing.formats import (
    ROLES,
    Format,
    Part,
    Thread,
    databases,
    documents,
    json_of,
    tables,
)
from app.transfer.importers.parsing.values import an_object, identity, moment, objects, text_of

_CURSOR_USER = 1
_CURSOR_ENDED = "completed"  # "aborted" is often followed by it
_NO_TITLE = re.compile(r"\A(?:New session|Child session) - \d{4}-[\dT:.-]+Z\Z")
_TABS = "workbench.panel.aichat.view.aichat.chatdata"


class _GooseThread(Thread):
    DEFAULT_TITLES = frozenset(("new chat", "cli session", "new session"))


def _goose(connection: sqlite3.Connection, where: str) -> Iterable[ImportedConversation | Skipped]:
    """Yield Goose's sessions."""
    for session in connection.execute("SELECT * FROM sessions"):
        thread = _GooseThread("goose", f"{where}, session {session['id']}")
        model = an_object(json_of(session.get("model_config_json"))).get("model_name")
        rows = connection.execute(
            "SELECT rowid AS row_number, * FROM messages WHERE session_id = ? ORDER BY rowid",
            (session["id"],),
        )
        for message in rows:
            about = an_object(json_of(message.get("metadata_json")))
            if about.get("userVisible") is False:
                continue  # what the program says to the model, such as a summary
            row, given = identity(message["row_number"]), identity(message.get("message_id"))
            name = f"{given}/{row}" if given in thread.nodes else given or row
            blocks = [
                made
                for part in objects(thread.json(name, message.get("content_json")))
                for made in _goose_part(part)
            ]
            role = ROLES.get(text_of(message.get("role")), Role.USER)
            kinds = {type(block) for block in blocks}
            if ToolResult in kinds and Text not in kinds:
                role = Role.TOOL
            at = message.get("created_timestamp") or message.get("timestamp")
            thread.append(name, role, blocks, at, model)
        is_subagent = session.get("session_type") == "sub_agent"
        found = thread.finished(
            session["id"],
            session.get("name") or session.get("description"),
            session.get("created_at"),
            session.get("updated_at"),
            archived=bool(session.get("archived_at")),
            started_by=(session.get("parent_session_id") or "") if is_subagent else None,
            tags=project_tag(session.get("working_dir")),
        )
        by_program = text_of(session.get("session_type")) in ("hidden", "scheduled")
        yield without_automatic(found, thread.where, by_program=by_program)


def _goose_part(part: dict[str, Any]) -> Iterator[Part]:
    kind = text_of(part.get("type"))
    if kind in ("toolRequest", "frontendToolRequest"):
        request = an_object(part.get("toolCall"))
        call = an_object(request.get("value"))
        yield call_block(part.get("id"), call.get("name"), call.get("arguments", ""))
        yield from error_part(request.get("error"))
    elif kind == "toolResponse":
        outcome = an_object(part.get("toolResult"))
        failed = text_of(outcome.get("status")) == "error"
        result = outcome.get("error") if failed else outcome.get("value")
        yield from result_parts(part.get("id"), "", result, is_error=failed)
    else:
        yield from blocks_of([part])


def _opencode(
    connection: sqlite3.Connection, where: str
) -> Iterable[ImportedConversation | Skipped]:
    """Yield OpenCode's sessions."""
    for session in connection.execute("SELECT * FROM session"):
        own = (session["id"],)
        parts: dict[str, list[Any]] = {}
        query = "SELECT message_id, data FROM part WHERE session_id = ? ORDER BY id"
        for each in connection.execute(query, own):
            parts.setdefault(each["message_id"], []).append(each["data"])
        query = "SELECT * FROM message WHERE session_id = ? ORDER BY id"
        messages = (
            (identity(each["id"]), each.get("data"), parts.get(each["id"], []))
            for each in connection.execute(query, own)
        )
        yield _opencode_session(session, messages, f"{where}, session {session['id']}")


def read_opencode_storage(file: NamedStream) -> Imported:
    """Yield a session of OpenCode before 2026, whose messages and their parts are files in other folders."""
    if file.path is None or len(file.path.parents) < 3:
        yield Skipped(
            file.name, "its messages are other files; unpack the archive and import the folder"
        )
        return
    record, name = an_object(json_of(file.stream.read())), file.path.stem
    storage = file.path.parents[2]
    messages = (
        (
            each.stem,
            each.read_bytes(),
            [part.read_bytes() for part in _files(storage, "part", each.stem)],
        )
        for each in _files(storage, "message", name)
    )
    yield _opencode_session(_opencode_row(record, name), messages, file.name)


def _opencode_export(value: Any, where: str) -> Imported:
    """Yield the session that the command `opencode export` wrote."""
    record = an_object(value)
    info, messages = an_object(record.get("info")), objects(record.get("messages"))
    told = ((an_object(each.get("info")), objects(each.get("parts"))) for each in messages)
    named = ((identity(about.get("id")), about, parts) for about, parts in told)
    yield _opencode_session(_opencode_row(info, info.get("id")), named, where)


def _opencode_row(record: dict[str, Any], name: object) -> dict[str, Any]:
    """Return a session that is JSON as the row of it in the database."""
    times = an_object(record.get("time"))
    return {"id": name, "title": record.get("title"), "directory": record.get("directory"),
            "parent_id": record.get("parentID"), "time_created": times.get("created"),
            "time_updated": times.get("updated"), "time_archived": times.get("archived")}  # fmt: skip


def _files(storage: Path, *folders: str) -> list[Path]:
    return sorted(storage.joinpath(*folders).glob("*.json"))


def _opencode_session(
    session: Mapping[str, Any], messages: Iterable[tuple[str, object, list[Any]]], where: str
) -> ImportedConversation | Skipped:
    """Return a session; of each message there are its id, its JSON and that of its parts, read or not."""
    thread, is_open = Thread("opencode", where), False
    for name, text, parts in messages:
        content = an_object(thread.json(name, text))
        role = ROLES.get(text_of(content.get("role")), Role.USER)
        times = an_object(content.get("time"))
        is_open = role is Role.ASSISTANT and bool(times) and not times.get("completed")
        is_open = is_open and not content.get("error")
        values = [an_object(thread.json(name, part)) for part in parts]
        blocks = [made for value in values for made in _opencode_part(value)]
        blocks += error_part(content.get("error"))
        at, model = times.get("created") or session.get("time_created"), content.get("modelID")
        thread.append(name, role, blocks, at, model)
    if is_open:
        thread.leave_open(thread.last)
    return thread.finished(
        session["id"],
        _NO_TITLE.sub("", text_of(session.get("title"))),
        session.get("time_created"),
        session.get("time_updated"),
        archived=bool(session.get("time_archived")),
        started_by=session.get("parent_id") or None,
        tags=project_tag(session.get("directory")),
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
        for file in objects(state.get("attachments")):
            yield file_part(file.get("filename"), file.get("mime"), file.get("url"))
    elif kind == "subtask":
        yield from text_block(part.get("prompt"))
    elif part.get("synthetic") is not True:
        yield from blocks_of([part])


def _cursor(connection: sqlite3.Connection, where: str) -> Iterable[ImportedConversation | Skipped]:
    """Yield Cursor's conversations; keys are read by range, since these databases reach gigabytes."""
    rows = connection.execute(
        "SELECT key, value FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;'"
    )
    listed_in = _composer_headers(connection)
    for row in rows:
        record = an_object(json_of(row["value"]))
        name = identity(record.get("composerId")) or text_of(row["key"]).partition(":")[2]
        record |= {k: v for k, v in listed_in.get(name, {}).items() if v is not None}
        headers = [
            identity(each.get("bubbleId"))
            for each in objects(record.get("fullConversationHeadersOnly"))
        ]
        bubbles = _bubbles(connection, name) if headers else {}
        bubbles = an_object(record.get("conversationMap")) | bubbles
        listed = [an_object(bubbles[each]) for each in headers if each in bubbles] or objects(
            record.get("conversation")
        )
        if not listed:
            continue  # a draft
        thread = Thread("cursor", f"{where}, session {name}")
        workspace = an_object(an_object(record.get("workspaceIdentifier")).get("uri"))
        folder = workspace.get("fsPath")
        missing = (each for each in headers if not bubbles.get(each))
        thread.left_out += ((each, "its text is not in the database") for each in missing)
        for bubble in listed:
            own = identity(bubble.get("bubbleId")) or thread.generated_id()
            role = Role.USER if bubble.get("type") == _CURSOR_USER else Role.ASSISTANT
            model = text_of(an_object(bubble.get("modelInfo")).get("modelName")) or None
            timing = an_object(bubble.get("timingInfo")).get("clientStartTime")
            at = moment(bubble.get("createdAt") or bubble.get("timestamp")) or moment(timing)
            folder = bubble.get("workspaceProjectDir") or folder
            if own not in thread.nodes:
                thread.append(own, role, list(_cursor_blocks(bubble)), at, model)
        about = an_object(record.get("subagentInfo"))
        has_ended = record.get("status") == _CURSOR_ENDED and not record.get("generatingBubbleIds")
        if role is Role.ASSISTANT and not has_ended:
            thread.leave_open(thread.last)
        yield thread.finished(
            name,
            record.get("name"),
            record.get("createdAt"),
            record.get("lastUpdatedAt"),
            archived=bool(record.get("isArchived")),
            started_by=about.get("parentComposerId") or "" if about else None,
            tags=project_tag(folder),
        )
    if "ItemTable" in tables(connection):
        yield from _cursor_tabs(connection, where)


def _composer_headers(connection: sqlite3.Connection) -> dict[str, dict[str, Any]]:
    """Return what Cursor's newer versions keep of conversations in a table of its own, by id."""
    if "composerHeaders" not in tables(connection):
        return {}
    rows = connection.execute("SELECT * FROM composerHeaders")
    return {row["composerId"]: an_object(json_of(row["value"])) | row for row in rows}


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
    said = bubble.get("text") or bubble.get("rawText")
    yield from text_block(said or _rich_text(json_of(bubble.get("richText"))))
    for number, _ in enumerate(objects(bubble.get("images")), 1):
        yield file_part(f"image {number}", "image")  # its content is elsewhere
    if call := an_object(bubble.get("toolFormerData")):
        name = call.get("name")
        yield call_block(
            call.get("toolCallId"), name, call.get("rawArgs") or call.get("params") or ""
        )
        if call.get("result") is not None:
            result = call["result"]
            yield result_block(call.get("toolCallId"), name, json_of(result) or result)


def _rich_text(value: object) -> str:
    """Return the text of an editor's document, a paragraph a line."""
    node = an_object(value)
    inner = node.get("root") or node.get("children") or node.get("content")
    if not isinstance(inner, list):
        return _rich_text(inner) if inner else text_of(node.get("text"))
    texts = [_rich_text(each) for each in inner]
    return (
        "\n" if any("children" in each or "content" in each for each in objects(inner)) else ""
    ).join(texts)


CURSOR_FORMAT = Format("cursor", "Cursor", databases(_cursor), tables="cursorDiskKV")
GOOSE_FORMAT = Format("goose", "Goose", databases(_goose), tables="sessions messages")
OPENCODE_FORMAT = Format(
    "opencode", "OpenCode", databases(_opencode), tables="session message part"
)
OPENCODE_STORAGE_FORMATS = (
    Format("opencode", "OpenCode", documents(_opencode_export), ("info projectID directory",)),
    Format("opencode", "OpenCode", read_opencode_storage, ("projectID directory title time",)),
    Format(
        "opencode",
        "OpenCode",
        lambda _file: iter(()),  # read with their session
        ("sessionID role time", "messageID sessionID type"),
    ),
)
