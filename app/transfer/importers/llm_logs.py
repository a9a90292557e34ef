"""The importer of the logs of the command `llm`: its database of both generations."""

import base64
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from app.domain.conversations import Role
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.importers.agent_logs import (
    call_block,
    file_part,
    result_block,
    text_block,
    thinking_block,
)
from app.transfer.importers.formats import ROLES, Format, Part, Row, Thread, databases, tables
from app.transfer.importers.values import identity, moment, text_of, title

SOURCE = "llm"


def _read(connection: sqlite3.Connection, where: str) -> Iterable[ImportedConversation | Skipped]:
    known = tables(connection)
    if "responses" in known:
        yield from _responses(connection, where)
    if {"threads", "turns", "messages", "parts"} <= known:
        yield from _threads(connection, where)


def _responses(
    connection: sqlite3.Connection, where: str
) -> Iterator[ImportedConversation | Skipped]:
    """Yield the conversations of the older tables."""
    names = {
        row["id"]: title(row.get("name"))
        for row in connection.execute("SELECT * FROM conversations")
    }
    beside = _Beside(connection)
    rows = connection.execute("SELECT * FROM responses ORDER BY conversation_id, datetime_utc, id")
    thread, current = Thread(SOURCE), None
    for row in rows:
        group = row["conversation_id"] or row["id"]
        if group != current:
            if current is not None:
                yield thread.finished(current, names.get(current, ""))
            thread, current = Thread(SOURCE, f"{where}, conversation {group}"), group
        name, at = identity(row["id"]), moment(row.get("datetime_utc"))
        if thread.last is None:
            system = [*beside.fragments("system", row["id"]), *text_block(row.get("system"))]
            thread.append(f"{name}/system", Role.SYSTEM, system, at)
        results = [
            result_block(each.get("tool_call_id"), each["name"], each.get("output"))
            for each in beside.rows("tool_results", row["id"])
        ]
        thread.append(f"{name}/results", Role.TOOL, results, at)
        asked = [*beside.fragments("prompt", row["id"]), *text_block(row["prompt"])]
        thread.append(f"{name}/prompt", Role.USER, [*asked, *beside.files(row["id"])], at)
        answer = [*thinking_block(row.get("reasoning")), *text_block(row["response"])]
        answer += [
            call_block(each.get("tool_call_id"), each["name"], each.get("arguments") or "")
            for each in beside.rows("tool_calls", row["id"])
        ]
        thread.append(name, Role.ASSISTANT, answer, at, row.get("model"))
    if current is not None:
        yield thread.finished(current, names.get(current, ""))


class _Beside:
    """What newer versions keep of a response in tables of their own, which may not exist."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._tables = tables(connection)

    def rows(self, table: str, response: str, order: str = "id") -> list[Row]:
        """Return the rows of a table that belong to a response."""
        if table not in self._tables:
            return []
        query = f"SELECT * FROM {table} WHERE response_id = ? ORDER BY {order}"  # noqa: S608 - our names
        return self._connection.execute(query, (response,)).fetchall()

    def fragments(self, kind: str, response: str) -> list[Part]:
        """Return the long texts that the prompt or the system prompt of a response began with."""
        query = "SELECT content FROM fragments WHERE id = ?"
        found = [
            self._connection.execute(query, (each["fragment_id"],)).fetchone()
            for each in self.rows(f"{kind}_fragments", response, '"order"')
        ]
        return [part for each in found if each for part in text_block(each["content"])]

    def files(self, response: str) -> list[Part]:
        """Return the files that the prompt of a response had; the database has those without a path."""
        query = "SELECT * FROM attachments WHERE id = ?"
        parts: list[Part] = []
        for row in self.rows("prompt_attachments", response, '"order"'):
            file = self._connection.execute(query, (row["attachment_id"],)).fetchone() or Row()
            kind, content = text_of(file.get("type")), file.get("content")
            address = text_of(file.get("path") or file.get("url"))
            if isinstance(content, bytes):
                data = f"data:{kind};base64,{base64.b64encode(content).decode()}"
                parts.append(file_part(PurePath(address).name, kind, data))
            else:
                parts.append(file_part(PurePath(address).name, kind))
        return parts


def _threads(
    connection: sqlite3.Connection, where: str
) -> Iterator[ImportedConversation | Skipped]:
    """Yield the conversations of the newer tables, in which a message names the one before it."""
    turns = {row["tip_message_hash"]: row for row in connection.execute("SELECT * FROM turns")}
    for row in connection.execute("SELECT * FROM threads"):
        chain: list[Row] = []
        seen: set[str] = set()
        tip = row["tip_message_hash"]
        while tip and tip not in seen:
            seen.add(tip)
            message = connection.execute("SELECT * FROM messages WHERE hash = ?", (tip,)).fetchone()
            if message is None:
                break
            chain.append(message)
            tip = message["parent_hash"]
        thread = Thread(SOURCE, f"{where}, conversation {row['id']}")
        for message in reversed(chain):
            role = ROLES.get(text_of(message["role"]), Role.USER)
            values = turns.get(message["hash"], {})
            model = text_of(values.get("model")) or None
            at = moment(values.get("datetime_utc"))
            blocks = list(_parts(connection, message["hash"]))
            thread.append(identity(message["hash"]), role, blocks, at, model)
        yield thread.finished(row["id"], row.get("name"))


def _parts(connection: sqlite3.Connection, message: str) -> Iterator[Part]:
    rows = connection.execute(
        "SELECT * FROM parts WHERE message_hash = ? ORDER BY position", (message,)
    )
    for row in rows:
        kind, text = text_of(row["type"]), text_of(row["text"])
        if kind == "reasoning":
            yield from thinking_block(text)
        elif kind == "tool_call":
            yield call_block("", row["tool_name"], row["payload"] or "")
        elif kind == "tool_result":
            yield result_block("", row["tool_name"], text or row["payload"])
        else:
            yield from text_block(text)


FORMAT = Format(SOURCE, "llm", databases(_read), tables="conversations responses")
NEW_FORMAT = Format(SOURCE, "llm", databases(_read), tables="threads turns messages parts")
