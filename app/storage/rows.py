"""Values to rows and back, for the tables whose rows are values of the domain."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from app.domain import codec
from app.domain.conversations import (
    Block,
    Conversation,
    Exchange,
    ExchangeStatus,
    Message,
    Problem,
    RawReply,
    Role,
    Text,
    TitleOrigin,
)
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.passages import Passage
from app.domain.usage import Usage
from app.storage.database import Connection
from app.storage.times import from_db, to_db

Row = tuple[Any, ...]

_ROWS_AT_ONCE = 1_000

CONVERSATION_COLUMNS = (
    "id, uid, title, title_origin, source, created_at, updated_at, visible_leaf_id, pinned, "
    "archived, private, model, deleted_at, recalls"
)
MESSAGE_COLUMNS = "id, uid, conversation_id, parent_id, role, text, blocks, created_at, model, raw"
EXCHANGE_COLUMNS = (
    "id, conversation_id, parent_id, turn_number, segment_number, status, started_at, "
    "completed_at, model, usage, problem"
)
PASSAGE_COLUMNS = (
    "id, kind, source_id, conversation_id, exchange_id, content_hash, created_at, tokens"
)


def conversation_row(conversation: Conversation) -> Row:
    """Return the row of CONVERSATION_COLUMNS."""
    c = conversation
    return (
        c.id, c.uid, c.title, c.title_origin.value, c.source, to_db(c.created_at),
        to_db(c.updated_at), c.visible_leaf_id, c.pinned, c.archived, c.private, c.model,
        to_db(c.deleted_at), c.recalls,
    )  # fmt: skip


def conversation_of(row: Row) -> Conversation:
    """Return the conversation of a row of CONVERSATION_COLUMNS."""
    return Conversation(
        id=ConversationId(row[0]), uid=row[1], title=row[2], title_origin=TitleOrigin(row[3]),
        source=row[4], created_at=from_db(row[5]), updated_at=from_db(row[6]),
        visible_leaf_id=row[7], pinned=row[8], archived=row[9], private=row[10], model=row[11],
        deleted_at=from_db(row[12]), recalls=row[13],
    )  # fmt: skip


def message_row(message: Message) -> Row:
    """Return the row of MESSAGE_COLUMNS; a message that is only its text keeps no blocks."""
    m = message
    text = m.text
    plain = len(m.blocks) == 1 and m.blocks[0] == Text(text)
    return (
        m.id, m.uid, m.conversation_id, m.parent_id, m.role.value, text,
        None if plain else codec.dumps(m.blocks), to_db(m.created_at), m.model,
        None if m.raw is None else codec.dumps(m.raw),
    )  # fmt: skip


def message_of(row: Row) -> Message:
    """Return the message of a row of MESSAGE_COLUMNS."""
    return Message(
        id=MessageId(row[0]), uid=row[1], conversation_id=ConversationId(row[2]),
        parent_id=row[3], role=Role(row[4]), blocks=blocks_of(row[5], row[6]),
        created_at=from_db(row[7]), model=row[8],
        raw=None if row[9] is None else codec.loads(RawReply, row[9]),
    )  # fmt: skip


def blocks_of(text: str, blocks_json: str | None) -> tuple[Block, ...]:
    """Return a message's blocks from its two columns."""
    if blocks_json is None:
        return (Text(text),)
    return codec.loads(tuple[Block, ...], blocks_json)


def exchange_row(exchange: Exchange, position: int) -> Row:
    """Return the row of EXCHANGE_COLUMNS and the journal's position."""
    e = exchange
    return (
        e.id, e.conversation_id, e.parent_id, e.turn_number, e.segment_number, e.status.value,
        to_db(e.started_at), to_db(e.completed_at), e.model,
        None if e.usage is None else codec.dumps(e.usage),
        None if e.problem is None else codec.dumps(e.problem), position,
    )  # fmt: skip


def exchange_of(row: Row, message_ids: Sequence[int]) -> Exchange:
    """Return the exchange of a row of EXCHANGE_COLUMNS with its messages, in path order."""
    return Exchange(
        id=ExchangeId(row[0]), conversation_id=ConversationId(row[1]), parent_id=row[2],
        turn_number=row[3], segment_number=row[4], status=ExchangeStatus(row[5]),
        message_ids=tuple(MessageId(each) for each in message_ids), started_at=from_db(row[6]),
        completed_at=from_db(row[7]), model=row[8],
        usage=None if row[9] is None else codec.loads(Usage, row[9]),
        problem=None if row[10] is None else codec.loads(Problem, row[10]),
    )  # fmt: skip


def passage_row(passage: Passage, position: int) -> Row:
    """Return the row of PASSAGE_COLUMNS and the journal's position."""
    p = passage
    return (
        p.id, p.kind.value, p.source_id, p.conversation_id, p.exchange_id, p.content_hash,
        to_db(p.created_at), p.tokens, position,
    )  # fmt: skip


def insert_rows(
    connection: Connection, table: str, columns: str, rows: Iterable[Row], how: str = "INSERT"
) -> None:
    """Insert rows, a list bound to each column: one statement for a thousand of them.

    `how` is the verb, such as "INSERT OR REPLACE". Measured: 0.017 ms a row this way, 0.9 with an
    execute for each in one transaction. DuckDB keeps the interpreter's lock while it reads the
    lists: 78 ms for the 10,000 exchanges of a long conversation at once.
    """
    left = iter(rows)
    while some := list(islice(left, _ROWS_AT_ONCE)):
        lists = [list(column) for column in zip(*some, strict=True)]
        values = ", ".join(f"unnest(${number})" for number in range(1, len(lists) + 1))
        connection.execute(f"{how} INTO {table} ({columns}) SELECT {values}", lists)
