"""The importer of the logs of the command `llm`: its database of both generations."""

import base64
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath

from app.domain.conversations import Role
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.importers.parsing.blocks import (
    call_block,
    file_part,
    result_block,
    text_block,
    thinking_block,
    unknown_part,
)
from app.transfer.importers.parsing.formats import (
    ROLES,
    Format,
    Part,
    Row,
    Thread,
    databases,
    json_of,
    tables,
)
from app.transfer.importers.parsing.values import (
    an_object,
    identity,
    moment,
    objects,
    text_of,
    title,
)

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
    thread, current, told = Thread(SOURCE), None, list[Part]()
    for row in rows:
        group = row["conversation_id"] or row["id"]
        if group != current:
            if current is not None:
                yield thread.finished(current, names.get(current, ""))
            thread, current, told = Thread(SOURCE, f"{where}, conversation {group}"), group, []
        name, at = identity(row["id"]), moment(row.get("datetime_utc"))
        system = [*beside.fragments("system", row["id"]), *text_block(row.get("system"))]
        if system != told:
            thread.append(f"{name}/system", Role.SYSTEM, system, at)
            told = system or told
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
        rows = self.rows("prompt_attachments", response, '"order"')
        return [self.file(row["attachment_id"]) for row in rows]

    def file(self, attachment: object) -> Part:
        query = "SELECT * FROM attachments WHERE id = ?"
        file = self._connection.execute(query, (attachment,)).fetchone() or Row()
        kind, content = text_of(file.get("type")), file.get("content")
        name = PurePath(text_of(file.get("path") or file.get("url"))).name
        if not isinstance(content, bytes):
            return file_part(name, kind)
        return file_part(name, kind, f"data:{kind};base64,{base64.b64encode(content).decode()}")

    def text(self, pieces: object) -> str:
        """Return a text that quotes long texts which are stored once."""
        query = "SELECT content FROM fragments WHERE id = ?"
        found = [
            piece.get("literal")
            or (self._connection.execute(query, (piece.get("fragment"),)).fetchone() or {}).get(
                "content"
            )
            for piece in objects(pieces)
        ]
        return "".join(map(text_of, found))


def _threads(
    connection: sqlite3.Connection, where: str
) -> Iterator[ImportedConversation | Skipped]:
    """Yield the conversations of the newer tables, in which a message names the one before it."""
    turns = connection.execute("SELECT * FROM turns ORDER BY id").fetchall()
    of_thread: dict[object, list[Row]] = {}
    for turn in turns:
        of_thread.setdefault(turn["thread_id"], []).append(turn)
    by_tip = {turn["tip_message_hash"]: turn for turn in turns}
    beside = _Beside(connection)
    for row in connection.execute("SELECT * FROM threads"):
        thread = Thread(SOURCE, f"{where}, conversation {row['id']}")
        for turn in (*of_thread.get(row["id"], ()), row):
            for message in _chain(connection, turn["tip_message_hash"], thread.nodes):
                name = identity(message["hash"])
                parent = identity(message["parent_hash"]) or None
                role = ROLES.get(text_of(message["role"]), Role.USER)
                called = by_tip.get(name) or turn
                blocks = list(_parts(connection, name, beside))
                thread.add(
                    name, parent, role, blocks, called.get("datetime_utc"), called.get("model")
                )
        yield thread.finished(row["id"], row.get("name"), leaf=row["tip_message_hash"])


def _chain(connection: sqlite3.Connection, tip: object, known: Mapping[str, object]) -> list[Row]:
    """Return the messages up to `tip` that are not known yet, oldest first."""
    chain: dict[str, Row] = {}
    name = identity(tip)
    while name and name not in known and name not in chain:
        row = connection.execute("SELECT * FROM messages WHERE hash = ?", (name,)).fetchone()
        if row is None:
            break
        chain[name], name = row, identity(row["parent_hash"])
    return list(chain.values())[::-1]


def _parts(connection: sqlite3.Connection, message: str, beside: _Beside) -> Iterator[Part]:
    rows = connection.execute(
        "SELECT * FROM parts WHERE message_hash = ? ORDER BY position", (message,)
    )
    for row in rows:
        more = an_object(json_of(row["payload"]))
        kind, text = text_of(row["type"]), row["text"] or beside.text(more.get("text_ref"))
        call, tool = more.get("tool_call_id"), row["tool_name"]
        if kind == "reasoning":
            yield from thinking_block(text)
        elif kind == "tool_call":
            yield call_block(call, tool, more.get("arguments", ""))
        elif kind == "tool_result":
            failed = more.get("exception") is not None
            yield result_block(call, tool, text or more.get("output"), is_error=failed)
        elif kind == "text":
            yield from text_block(text)
        elif kind != "attachment":
            yield unknown_part(kind)
        for file in objects([more.get("attachment"), *(more.get("attachments") or ())]):
            yield beside.file(file.get("id"))


FORMAT = Format(SOURCE, "llm", databases(_read), tables="conversations responses")
NEW_FORMAT = Format(SOURCE, "llm", databases(_read), tables="threads turns messages parts")
