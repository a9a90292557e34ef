"""Forgetting a value: a key, a number or a name is replaced wherever its text is stored.

Messages, titles, core memory and presets keep the rest of their text. Facts, saved texts, summaries, tags, drafts and
stored prompts with the value are deleted; what workers derived they derive again. Documents with it are removed and
not followed any more. Attached files and those of documents are not changed.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import duckdb

from app.domain.conversations import (
    FORGOTTEN,
    Attachment,
    Block,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from app.storage.deletion.deletion_set import exchanges_of
from app.storage.deletion.messages import passages_beside, renew_turns
from app.storage.engine.connection import Connection
from app.storage.tables.documents import documents_with, erase_documents
from app.storage.tables.exchanges import messages_in, rewrite_messages
from app.storage.tables.fact_rows import delete_facts
from app.storage.tables.fact_visibility import update_fact_passages
from app.storage.tables.imports import forget_edits
from app.storage.tables.passages.rows import index_again, remove_passages
from app.storage.tables.profile import drop_unsupported_lines

_REPLACE = f"replace({{}}, ${{}}, '{FORGOTTEN}')"
_NESTED = 2  # arguments of a tool call are JSON in JSON
_MESSAGE = ("text", "blocks", "raw")
_REPLACED: Mapping[str, Sequence[str]] = {
    "conversation": ("title",), "core_memory": ("text",), "attempt": ("error",),
    "preset": ("name", "system_prompt"), "prompt": ("notice",), "exchange": ("problem",),
    "project": ("name", "instructions", "folder"), "routine": ("name", "prompt"), "routine_run": ("why",),
    "topic": ("name",), "topic_choice": ("name",),
}  # fmt: skip
_DELETED: Mapping[str, Sequence[str]] = {
    "fact": ("text", "subject"), "fact_version": ("text",), "memory": ("text",),
    "tool_summary": ("text",), "summary": ("text",), "prompt_text": ("text",), "prompt": ("parts",),
    "tag": ("name",), "draft": ("text", "files"), "memory_write": ("old", "new", "outside"),
    "profile": ("lines",), "profile_review": ("lines",),
}  # fmt: skip
_EDITS = ("edits",)
_SETTINGS = ("probe_questions", "system_prompt", "import_history")


def value_counts(connection: Connection, value: str) -> Mapping[str, int]:
    """Return how many rows of each table of a database of any version contain a value."""
    found: dict[str, int] = {}
    places = [
        ("message", _MESSAGE), ("appconfig", ("value",)), ("erasure", ("changes",)),
        ("import_item", _EDITS),
    ]  # fmt: skip
    for table, columns in (*places, *_REPLACED.items(), *_DELETED.items()):
        condition, forms = _contains(columns, value)
        if table == "appconfig":
            condition = f"key IN {_SETTINGS} AND ({condition})"
        try:
            (count,) = connection.column(f"SELECT count(*) FROM {table} WHERE {condition}", forms)
        except (duckdb.CatalogException, duckdb.BinderException):
            continue  # it is older than the table or the column
        if count:
            found[table] = found.get(table, 0) + int(count)
    if documents := documents_with(connection, value):
        found["document"] = len(documents)
    return found


def erase_value(connection: Connection, value: str, position: int) -> set[int]:
    """Remove a value from all rows; return the conversations whose messages or title had it.

    `position` is the journal's. Inside the caller's transaction.
    """
    _delete_derived(connection, value, position)
    messages = _rewrite_messages(connection, value)
    turns = exchanges_of(connection, messages)
    changed_in = connection.column_in("message", "conversation_id", messages)
    titles = _ids(connection, "conversation", "id", _REPLACED["conversation"], value)
    for table, columns in _REPLACED.items():
        condition, forms = _contains(columns, value)
        changed = ", ".join(
            f"{each} = {reduce(_REPLACE.format, range(1, len(forms) + 1), each)}"
            for each in columns
        )
        connection.execute(f"UPDATE {table} SET {changed} WHERE {condition}", forms)
    for table, columns in _DELETED.items():
        condition, forms = _contains(columns, value)
        connection.execute(f"DELETE FROM {table} WHERE {condition}", forms)
    forget_edits(connection, *_contains(_EDITS, value))
    connection.execute("UPDATE topic SET name = ''")  # a name may quote it in another form
    _change_settings(connection, value)
    _remove_documents(connection, value, position)
    renew_turns(connection, turns, passages_beside(connection, turns), position)
    index_again(connection, "conversation_id", titles, position)
    return changed_in.union(titles)


def without_value(text: str, value: str) -> str:
    """Return a text, or JSON as text, without a value in any form."""
    for form in _forms(value):
        text = text.replace(form, FORGOTTEN)
    return text


def _rewrite_messages(connection: Connection, value: str) -> list[int]:
    """Replace the value in messages; return which. What a provider signed is dropped."""
    messages = messages_in(connection, _ids(connection, "message", "id", _MESSAGE, value))
    rewrite_messages(
        connection,
        [
            replace(each, blocks=tuple(_block(block, value) for block in each.blocks), raw=None)
            for each in messages.values()
        ],
    )
    return list(messages)


def _block(block: Block, value: str) -> Block:
    match block:
        case Text() | Thinking() | ToolResult():
            return replace(block, text=without_value(block.text, value))
        case ToolCall():
            return replace(block, arguments=without_value(block.arguments, value))
        case Attachment():
            name, text = (without_value(each, value) for each in (block.name, block.text))
            return replace(block, name=name, text=text)
        case Image():
            return replace(block, name=without_value(block.name, value))
        case _:
            return block


def _delete_derived(connection: Connection, value: str, position: int) -> None:
    """Delete facts, saved texts and summaries with the value, with their passages."""
    facts = {
        *_ids(connection, "fact", "id", _DELETED["fact"], value),
        *_ids(connection, "fact_version", "fact_id", ("text",), value),
    }
    gone = set(facts)
    for table in ("memory", "tool_summary"):
        gone.update(_ids(connection, table, "id", ("text",), value))
    condition, forms = _contains(("text",), value)
    summaries = connection.column(
        "SELECT p.id FROM passage p WHERE p.kind IN ('exchange_summary', 'conversation_summary') AND "
        f"(p.kind, p.source_id) IN (SELECT (kind || '_summary', source_id) FROM summary WHERE {condition})",
        forms,
    )
    remove_passages(connection, [*gone, *summaries], position)
    update_fact_passages(connection, delete_facts(connection, facts), position)
    drop_unsupported_lines(connection)


def _change_settings(connection: Connection, value: str) -> None:
    """Replace the value in the system prompt and names of imported files; drop test questions with it."""
    condition, forms = _contains(("value",), value)
    settings = connection.rows(
        f"SELECT key, value FROM appconfig WHERE key IN {_SETTINGS} AND ({condition})", forms
    )
    for key, stored in settings:
        text = json.loads(stored)
        if key == "system_prompt":
            changed = without_value(text, value)
        elif key == "import_history":
            rows = json.loads(text)
            for row in rows:
                row["names"] = [without_value(each, value) for each in row["names"]]
            changed = json.dumps(rows, ensure_ascii=False)
        else:
            kept = [
                each
                for each in json.loads(text)
                if value not in json.dumps(each, ensure_ascii=False)
            ]
            changed = without_value(json.dumps(kept, ensure_ascii=False), value)
        connection.execute(
            "UPDATE appconfig SET value = ? WHERE key = ?",
            [json.dumps(changed, ensure_ascii=False), key],
        )


def _remove_documents(connection: Connection, value: str, position: int) -> None:
    """Delete the documents with the value, and exclude their files from the folders that were added."""
    if not (documents := documents_with(connection, value)):
        return
    erase_documents(connection, list(documents), position)
    connection.execute(
        "UPDATE appconfig SET value = to_json(json_merge_patch((value->>'$')::JSON, ?::JSON)::VARCHAR) "
        "WHERE key = 'document_folders'",
        [json.dumps(dict.fromkeys(documents.values(), False), ensure_ascii=False)],
    )


def _ids(
    connection: Connection, table: str, key: str, columns: Iterable[str], value: str
) -> list[int]:
    condition, forms = _contains(columns, value)
    return connection.column(f"SELECT DISTINCT {key} FROM {table} WHERE {condition}", forms)


def _forms(value: str) -> list[str]:
    """Return a value as text and as it is written in JSON, once or twice, the longest first."""
    forms = {value}
    for ascii_only in (False, True):
        form = value
        for _ in range(_NESTED):
            form = json.dumps(form, ensure_ascii=ascii_only)[1:-1]
            forms.add(form)
    return sorted(forms, key=lambda each: (-len(each), each))


def _contains(columns: Iterable[str], value: str) -> tuple[str, list[str]]:
    """Return the condition that a column has the value in any form, and its values."""
    forms = _forms(value)
    tests = (
        f"contains({column}, ${number})"
        for column in columns
        for number in range(1, len(forms) + 1)
    )
    return " OR ".join(tests), forms
