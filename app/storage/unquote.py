"""Stored messages lose what they quote of something that is forgotten.

Messages are insert-only but for this. The words leave their rows, and the turns they stand in are
new to the text index; no vector holds them, because neither results nor Recall's answers are embedded.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from app.domain.conversations import Block, Message, Role, Text, ToolCall, ToolResult
from app.domain.turn_text import QUOTING_MODEL, is_quoting
from app.storage.database import Connection
from app.storage.leaving import Leaving
from app.storage.quotes import QUOTING_TOOLS, Host, answer_without, result_without
from app.storage.rows import MESSAGE_COLUMNS, blocks_of, message_of, message_row

_NAMED = " OR ".join(f"contains(m.blocks, '\"{name}\"')" for name in QUOTING_TOOLS)
_CANDIDATES = (
    "SELECT m.id, m.conversation_id FROM message m "
    "WHERE m.conversation_id NOT IN (SELECT unnest($1)) "
    f"AND ((m.role = 'tool' AND ({_NAMED})) OR (m.role = 'assistant' AND m.model = $2)) "
    "ORDER BY m.id"
)
_READ_TOGETHER = 200


def remove_quotes(connection: Connection, leaving: Leaving, position: int) -> None:
    """Take what leaves out of all other messages; `position` is the journal's.

    Inside the caller's transaction, while the rows of what leaves are still there. A result may
    quote a message that quotes what leaves: so again, until nothing is found.
    """
    candidates = connection.execute(
        _CANDIDATES, [list(leaving.conversations), QUOTING_MODEL]
    ).fetchall()
    if not candidates:
        return
    imported = _imported(connection, candidates)
    in_doubt: set[int] = set()
    while True:
        changed: list[Message] = []
        for message, calls in _read(connection, [each for each, _ in candidates]):
            host = Host(leaving, message.id not in imported, in_doubt)
            without = message_without(message, calls, host)
            if without != message:
                changed.append(without)
        _write(connection, changed, position)
        found = {int(each.conversation_id) for each in changed} - in_doubt
        if not found:
            return
        in_doubt |= found


def message_without(message: Message, calls: Mapping[str, str], host: Host) -> Message:
    """Return a message without its quotes of what leaves.

    `calls` are the arguments of the calls that its results answer, by their ids.
    """
    if message.role is Role.TOOL:
        blocks = tuple(_result(block, calls, host) for block in message.blocks)
    elif is_quoting(message.role, message.model):
        blocks = tuple(_answer(block, host) for block in message.blocks)
    else:
        return message
    return message if blocks == message.blocks else replace(message, blocks=blocks)


def calls_of(blocks: Iterable[Block]) -> dict[str, str]:
    """Return the arguments of the calls among blocks, by the calls' ids."""
    return {block.call_id: block.arguments for block in blocks if isinstance(block, ToolCall)}


def _result(block: Block, calls: Mapping[str, str], host: Host) -> Block:
    if not isinstance(block, ToolResult):
        return block
    return replace(block, text=result_without(block, calls.get(block.call_id, ""), host))


def _answer(block: Block, host: Host) -> Block:
    return Text(answer_without(block.text, host)) if isinstance(block, Text) else block


def _imported(connection: Connection, messages: list[tuple[int, int]]) -> set[int]:
    """Return which messages, of (id, conversation), came from elsewhere: ids in them are not ours.

    Alone, or with their conversation.
    """
    found: dict[str, set[int]] = {"message": set(), "conversation": set()}
    rows = connection.execute(
        "SELECT DISTINCT kind, local_id FROM origin "
        "WHERE (kind = 'message' AND local_id IN (SELECT unnest($1))) "
        "OR (kind = 'conversation' AND local_id IN (SELECT unnest($2)))",
        [[each for each, _ in messages], list({each for _, each in messages})],
    ).fetchall()
    for kind, local_id in rows:
        found[kind].add(local_id)
    return {
        each
        for each, conversation in messages
        if each in found["message"] or conversation in found["conversation"]
    }


def _read(connection: Connection, ids: list[int]) -> Iterator[tuple[Message, dict[str, str]]]:
    """Yield messages, each with the arguments of the calls that came before it."""
    for start in range(0, len(ids), _READ_TOGETHER):
        some = ids[start : start + _READ_TOGETHER]
        statement = f"SELECT {MESSAGE_COLUMNS} FROM message WHERE id IN (SELECT unnest(?))"
        messages = [message_of(row) for row in connection.execute(statement, [some]).fetchall()]
        rows = connection.execute(
            "SELECT id, text, blocks FROM message WHERE id IN (SELECT unnest(?))",
            [[each.parent_id for each in messages if each.role is Role.TOOL]],
        ).fetchall()
        calls = {each: calls_of(blocks_of(text, blocks)) for each, text, blocks in rows}
        for message in messages:
            yield message, calls.get(message.parent_id or 0, {})


def _write(connection: Connection, messages: list[Message], position: int) -> None:
    if not messages:
        return
    rows = [message_row(each) for each in messages]
    columns = MESSAGE_COLUMNS.split(", ")
    ids, texts, blocks = (
        [row[columns.index(name)] for row in rows] for name in ("id", "text", "blocks")
    )
    connection.execute(
        "UPDATE message SET text = changed.text, blocks = changed.blocks FROM "
        "(SELECT unnest($1::BIGINT[]) AS id, unnest($2::VARCHAR[]) AS text, "
        "unnest($3::VARCHAR[]) AS blocks) AS changed WHERE message.id = changed.id",
        [ids, texts, blocks],
    )
    connection.execute(
        "UPDATE passage SET position = greatest(position, $2) WHERE exchange_id IN "
        "(SELECT exchange_id FROM exchange_message WHERE message_id IN (SELECT unnest($1)))",
        [ids, position],
    )
