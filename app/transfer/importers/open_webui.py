"""The Open WebUI importer: exported chats, and its database `webui.db`."""

import html
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from app.domain.conversations import Role, Text
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.archive import NamedStream
from app.transfer.importers.parsing.blocks import (
    blocks_of,
    call_block,
    counts_of,
    error_part,
    file_part,
    named_tags,
    rating_part,
    result_block,
    result_parts,
    text_block,
    thinking_block,
)
from app.transfer.importers.parsing.building import Imported
from app.transfer.importers.parsing.formats import (
    Format,
    NotKept,
    Part,
    Thread,
    columns,
    databases,
    json_of,
    remembered,
    tables,
)
from app.transfer.importers.parsing.json_events import (
    ConversationEnd,
    MessageEntry,
    Truncated,
    iter_events,
)
from app.transfer.importers.parsing.values import (
    an_object,
    identity,
    link_list,
    objects,
    strings,
    text_of,
)

SOURCE = "open_webui"
_DETAILS = re.compile(r"<details\b(?P<attributes>[^>]*)>(?P<text>.*?)</details>\s*", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_BESIDE = {"feedback": "ratings", "note": "notes", "prompt": "prompts"}
_SUMMARY = re.compile(r"<summary>.*?</summary>\s*", re.DOTALL)


def read_open_webui(file: NamedStream) -> Imported:
    """Yield the conversations of an export, one at a time in memory."""
    number = 0
    for event in iter_events(file.stream):
        if isinstance(event, ConversationEnd):
            number += 1
            where = f"{file.name}, conversation {number}"
            if event.flaw:
                yield Skipped(where, event.flaw)
            else:
                yield _exported(an_object(event.header), where)
        elif isinstance(event, Truncated):
            yield Skipped(file.name, f"the file is truncated after {event.at_byte:,} bytes")
        elif isinstance(event, MessageEntry):
            pass  # the visible messages once more; the header has all branches


def _exported(record: dict[str, Any], where: str) -> ImportedConversation | Skipped:
    chat = an_object(record.get("chat")) or record
    history = an_object(chat.get("history"))
    messages = an_object(history.get("messages"))
    return _conversation(record, chat, messages, _leaf(record, chat), where)


def _leaf(record: Mapping[str, Any], chat: dict[str, Any]) -> object:
    current = an_object(chat.get("history")).get("currentId") or chat.get("currentId")
    return current or record.get("current_message_id")


def _conversation(
    record: Mapping[str, Any],
    chat: dict[str, Any],
    messages: Mapping[str, Any],
    leaf: object,
    where: str,
) -> ImportedConversation | Skipped:
    thread, root = Thread(SOURCE, where), None
    told = text_of(an_object(chat.get("params")).get("system")) or text_of(chat.get("system"))
    if prompt := text_block(told):
        root = thread.add("system", None, Role.SYSTEM, prompt)
    of_chat = _files_of_chat(chat, messages)
    for key, value in messages.items():
        message = an_object(value)
        name = identity(message.get("id")) or identity(key)
        parent = identity(message.get("parentId")) or root
        blocks = [
            *_message_blocks(message),
            *error_part(json_of(message.get("error")) or message.get("error")),
            *rating_part(json_of(message.get("annotation"))),
        ]
        if message.get("role") == Role.USER:
            blocks += of_chat
            of_chat = []
        model = message.get("model") or message.get("model_id")
        thread.add(name, parent, message.get("role"), blocks, message.get("timestamp"), model)
    meta = an_object(json_of(record.get("meta")))
    return thread.finished(
        record.get("id"),
        record.get("title") or chat.get("title"),
        record.get("created_at") or chat.get("timestamp"),
        record.get("updated_at"),
        leaf=leaf,
        pinned=bool(record.get("pinned")),
        archived=bool(record.get("archived")),
        tags=named_tags(
            *(strings(meta.get("tags")) or strings(chat.get("tags"))), record.get("folder")
        ),
    )


def _message_blocks(message: Mapping[str, Any]) -> list[Part]:
    content = json_of(message.get("content")) if isinstance(message.get("content"), bytes) else None
    content = message.get("content") if content is None else content
    blocks = list(_output(objects(json_of(message.get("output")))))
    if any(isinstance(each, Text) for each in blocks):
        pass  # it has the text, too
    elif isinstance(content, str):
        is_reply = message.get("role") == Role.ASSISTANT
        blocks += _parts(content) if is_reply else text_block(content)
    else:
        blocks += blocks_of(content)
    for run in objects(json_of(message.get("code_executions"))):
        blocks.append(call_block(run.get("id"), "code_interpreter", run.get("code")))
        if run.get("result"):
            blocks.append(result_block(run.get("id"), "code_interpreter", run["result"]))
        blocks += _not_kept(an_object(run.get("result")), "files")
    blocks += text_block(an_object(json_of(message.get("merged"))).get("content"))  # of replies
    blocks += map(_file, objects(json_of(message.get("files"))))
    sources = objects(json_of(message.get("sources")))
    blocks += text_block(link_list(_cited(sources)))
    texts = [text for each in sources for text in strings(each.get("document"))]
    for what, members in _NOTES.items():
        if any(json_of(message.get(each)) for each in members):
            blocks.append(NotKept(f"{what} are not imported"))
    return [
        *blocks,
        *_not_kept({"texts of its sources": texts, **message}, "texts of its sources", "embeds"),
    ]


_NOTES = {
    "notes on how it was made": ("statusHistory", "status_history"),
    "follow-up questions that were suggested": ("followUps", "follow_ups"),
}


def _not_kept(record: Mapping[str, Any], *members: str) -> list[Part]:
    counts = counts_of(record, *members)
    return [NotKept(f"it has {counts} that are not imported")] if counts else []


def _files_of_chat(chat: dict[str, Any], messages: Mapping[str, Any]) -> list[Part]:
    """Return the files that a chat was given as a whole: it lists those of its messages, too."""
    listed = (objects(json_of(an_object(each).get("files"))) for each in messages.values())
    known = {identity(file.get("id")) for files in listed for file in files} - {""}
    files = objects(chat.get("files"))
    return [_file(each) for each in files if identity(each.get("id")) not in known]


def _file(file: dict[str, Any]) -> Part:
    inner = an_object(file.get("file")) or file
    name = text_of(inner.get("filename")) or text_of(file.get("name")) or "file"
    text = text_of(an_object(inner.get("data")).get("content"))
    return file_part(name, file.get("type"), file.get("url"), text)


def _cited(sources: list[dict[str, Any]]) -> Iterator[tuple[object, object]]:
    """Yield the names and addresses of sources; what a search of the web found is in their metadata."""
    for each in sources:
        source = an_object(each.get("source"))
        yield source.get("name"), source.get("url")
        for page in objects(each.get("metadata")):
            yield page.get("title") or page.get("name"), page.get("source") or page.get("url")


def _output(items: list[dict[str, Any]]) -> Iterator[Part]:
    """Yield the blocks of a reply as newer versions have it, in the form of OpenAI's API."""
    for item in items:
        kind, call = text_of(item.get("type")), item.get("call_id") or item.get("id")
        if kind == "message":
            yield from blocks_of(item.get("content"))
        elif kind == "reasoning":
            for part in objects(item.get("content")) or objects(item.get("summary")):
                yield from thinking_block(part.get("text"))
        elif kind == "function_call_output":
            yield from result_parts(call, "", item.get("output"))
        else:
            given = next(filter(None, map(item.get, ("arguments", "code", "action"))), "")
            yield call_block(call, item.get("name") or kind.rpartition(":")[2], given)
            if item.get("output") is not None:
                yield result_block(call, "", item["output"])


def _parts(text: str) -> list[Part]:
    """Return the blocks of a reply, in which reasoning and tool calls are HTML elements."""
    blocks: list[Part] = []
    at = 0
    for found in _DETAILS.finditer(text):
        attributes = {key: html.unescape(value) for key, value in _ATTRIBUTE.findall(found[1])}
        inner = _SUMMARY.sub("", found["text"])
        if attributes.get("type") == "reasoning":
            quoted = re.sub(r"^> ?", "", html.unescape(inner), flags=re.MULTILINE)
            made: list[Part] = thinking_block(quoted.strip())
        elif attributes.get("type") == "tool_calls":
            call, name = attributes.get("id", ""), attributes.get("name", "")
            given = attributes.get("arguments", "")
            inner_json = json_of(given)  # often JSON in JSON
            made = [call_block(call, name, inner_json if isinstance(inner_json, str) else given)]
            if result := attributes.get("result"):
                made.append(result_block(call, name, json_of(result) or result))
        else:
            continue
        blocks += text_block(text[at : found.start()]) + made
        at = found.end()
    return blocks + text_block(text[at:])


def _database(
    connection: sqlite3.Connection, where: str
) -> Iterable[ImportedConversation | Skipped]:
    """Yield the chats of `webui.db`; newer versions keep messages in a table of their own."""
    has_rows = "chat_message" in tables(connection)
    users = "SELECT count(DISTINCT user_id) AS users FROM chat"
    has_users = "user_id" in columns(connection, "chat")
    if has_users and connection.execute(users).fetchone()["users"] > 1:
        yield Skipped(where, "it has chats of several users; all were imported")
    counts = {
        name: connection.execute(f"SELECT 1 FROM {table}").fetchall()  # noqa: S608 - our names
        for table, name in _BESIDE.items()
        if table in tables(connection)
    }
    if text := counts_of(counts, *counts):
        yield Skipped(where, f"it has {text} that are not imported")
    if "memory" in tables(connection):
        query = "SELECT * FROM memory ORDER BY created_at"
        texts = [text_of(row.get("content")).strip() for row in connection.execute(query)]
        if any(texts):
            yield remembered(
                Thread(SOURCE, where), "memories", "Open WebUI", texts, filter(None, texts)
            )
    rows = connection.execute("SELECT * FROM folder") if "folder" in tables(connection) else ()
    folders = {row["id"]: row.get("name") for row in rows}
    for record in connection.execute("SELECT * FROM chat ORDER BY created_at"):
        record["folder"] = folders.get(record.get("folder_id"))
        chat = an_object(json_of(record.get("chat")))
        messages = an_object(an_object(chat.get("history")).get("messages"))
        if has_rows:
            messages = _rows(connection, text_of(record.get("id"))) or messages
        here = f"{where}, chat {record.get('id')}"
        yield _conversation(record, chat, messages, _leaf(record, chat), here)


def _rows(connection: sqlite3.Connection, chat: str) -> dict[str, Any]:
    messages: dict[str, Any] = {}
    rows = connection.execute(
        "SELECT * FROM chat_message WHERE chat_id = ? ORDER BY created_at", (chat,)
    )
    for message in rows:
        name = text_of(message["id"]).removeprefix(f"{chat}-")
        parent = text_of(message.get("parent_id")).removeprefix(f"{chat}-")
        content = message.get("content")
        decoded = json_of(content)
        messages[name] = message | {
            "id": name,
            "parentId": parent,
            "timestamp": message.get("created_at"),
            "content": decoded if isinstance(decoded, str | list) else content,
        }
    return messages


FORMAT = Format(SOURCE, "Open WebUI", read_open_webui, members=("history currentId childrenIds",))
DATABASE_FORMAT = Format(SOURCE, "Open WebUI", databases(_database), tables="chat user auth")
