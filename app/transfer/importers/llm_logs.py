"""The importer of the logs of the command `llm`: its database of both generations."""

import sqlite3
from collections.abc import Iterable, Iterator

from app.domain.conversations import Block, Role
from app.domain.transfer import ImportedConversation, Skipped
from app.transfer.importers.agent_logs import call_block, result_block, text_block, thinking_block
from app.transfer.importers.formats import ROLES, Format, Row, Thread, databases, tables
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
            thread.append(f"{name}/system", Role.SYSTEM, text_block(row.get("system")), at)
        thread.append(f"{name}/prompt", Role.USER, text_block(row["prompt"]), at)
        answer = text_block(row["response"])
        thread.append(name, Role.ASSISTANT, answer, at, row.get("model"))
    if current is not None:
        yield thread.finished(current, names.get(current, ""))


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


def _parts(connection: sqlite3.Connection, message: str) -> Iterator[Block]:
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
