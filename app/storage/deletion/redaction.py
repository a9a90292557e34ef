"""Redaction: removing quotes of deleted text from stored messages and prompts.

Otherwise messages are insert-only. The turns of changed messages are indexed again; vectors do not
contain quotes, because neither tool results nor Recall's answers are embedded.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from app.domain.conversations import Block, Message, Role, Text, ToolCall, ToolResult
from app.domain.turns import RECALL_MODEL, is_recall_reply
from app.storage.deletion.deletion_set import DeletionSet
from app.storage.deletion.quotes import QUOTING_TOOLS, QuoteContext, redact_answer, redact_result
from app.storage.engine.connection import Connection
from app.storage.tables.exchanges import blocks_of, messages_in, rewrite_messages

_NAMED = " OR ".join(f"contains(m.blocks, '\"{name}\"')" for name in QUOTING_TOOLS)
_CANDIDATES = (
    "SELECT m.id, m.conversation_id FROM message m "
    "WHERE m.conversation_id NOT IN (SELECT unnest($1)) "
    f"AND ((m.role = 'tool' AND ({_NAMED})) OR (m.role = 'assistant' AND m.model = $2)) "
    "ORDER BY m.id"
)
_READ_TOGETHER = 200


def redact_messages(connection: Connection, deleted: DeletionSet, position: int) -> None:
    """Remove quotes of what is deleted from all other messages; `position` is the journal's.

    Inside the caller's transaction, while the deleted rows exist. A result may quote a message that
    quotes what is deleted, so this repeats until nothing is found.
    """
    candidates = connection.rows(_CANDIDATES, [list(deleted.conversations), RECALL_MODEL])
    if not candidates:
        return
    # Ids in what was imported, alone or with its conversation, are not ours.
    alone, whole = (
        connection.column_in("origin", "local_id", ids, "local_id", f"AND kind = '{kind}'")
        for kind, ids in zip(
            ("message", "conversation"), zip(*candidates, strict=True), strict=True
        )
    )
    imported = {each for each, own in candidates if each in alone or own in whole}
    suspect: set[int] = set(deleted.within)
    while True:
        changed: list[Message] = []
        for message, calls in _with_calls(connection, [each for each, _ in candidates]):
            host = QuoteContext(deleted, message.id not in imported, suspect)
            redacted = redact_message(message, calls, host)
            if redacted != message:
                changed.append(redacted)
        if not changed:
            return
        rewrite_messages(connection, changed)
        connection.execute(
            "UPDATE passage SET position = greatest(position, $2) WHERE exchange_id IN "
            "(SELECT exchange_id FROM exchange_message WHERE message_id IN (SELECT unnest($1)))",
            [[each.id for each in changed], position],
        )
        found = {int(each.conversation_id) for each in changed} - suspect
        if not found:
            return
        suspect |= found


def redact_message(message: Message, calls: Mapping[str, str], host: QuoteContext) -> Message:
    """Return a message without quotes of what is deleted.

    `calls` are the arguments of the tool calls that its results answer, by call id.
    """
    if message.role is Role.TOOL:
        blocks = tuple(
            replace(each, text=redact_result(each, calls.get(each.call_id, ""), host))
            if isinstance(each, ToolResult)
            else each
            for each in message.blocks
        )
    elif is_recall_reply(message.role, message.model):
        blocks = tuple(
            Text(redact_answer(each.text, host)) if isinstance(each, Text) else each
            for each in message.blocks
        )
    else:
        return message
    return message if blocks == message.blocks else replace(message, blocks=blocks)


def call_arguments(blocks: Iterable[Block]) -> dict[str, str]:
    """Return the arguments of the calls among blocks, by the calls' ids."""
    return {block.call_id: block.arguments for block in blocks if isinstance(block, ToolCall)}


def _with_calls(connection: Connection, ids: list[int]) -> Iterator[tuple[Message, dict[str, str]]]:
    """Yield messages, each with the arguments of the tool calls in its parent."""
    for start in range(0, len(ids), _READ_TOGETHER):
        messages = messages_in(connection, ids[start : start + _READ_TOGETHER]).values()
        parents = (each.parent_id for each in messages if each.role is Role.TOOL)
        rows = connection.select_in("message", "id, text, blocks", parents)
        calls = {each: call_arguments(blocks_of(text, blocks)) for each, text, blocks in rows}
        for message in messages:
            yield message, calls.get(message.parent_id or 0, {})


def redact_prompts(connection: Connection, table: str, ids: list[int]) -> None:
    """Delete stored prompt texts that quote facts or memories, which they do by line."""
    versions = "SELECT text FROM fact_version WHERE fact_id IN (SELECT unnest($1)) UNION ALL "
    connection.execute(
        "DELETE FROM prompt_text p WHERE EXISTS (SELECT 1 FROM "
        f"({versions if table == 'fact' else ''}SELECT text FROM {table} "
        "WHERE id IN (SELECT unnest($1))) AS deleted(line) "
        r"WHERE contains(regexp_replace(p.text, '\n *> ', chr(10), 'g'), "
        "chr(10) || deleted.line || chr(10)))",
        [ids],
    )
