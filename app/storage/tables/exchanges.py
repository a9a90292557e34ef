"""Exchanges and messages: rows, the shown path, branches, the messages of a turn."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter, itemgetter

from app.domain import codec
from app.domain.attachments import hashes_of
from app.domain.changes import ExchangePut, MessagesAdded, ReplyGrew
from app.domain.conversations import (
    Block,
    Conversation,
    Exchange,
    ExchangeStatus,
    Message,
    RawReply,
    Role,
    Text,
)
from app.domain.errors import NotFound
from app.domain.ids import ExchangeId, MessageId, exchange_uid
from app.storage.engine.aggregate import (
    OF_CONVERSATIONS,
    Aggregate,
    Batch,
    Rule,
    State,
    Table,
    columns_of,
    reader,
    reference,
    row_of,
    unique_uid,
)
from app.storage.engine.connection import IGNORE, Connection, Row, among, grouped
from app.storage.engine.stamps import from_db
from app.storage.engine.store import StoreReader
from app.storage.tables.conversations import conversation_with

MESSAGE_COLUMNS = "id, uid, conversation_id, parent_id, role, text, blocks, created_at, model, raw"
_EXCHANGE_COLUMNS = columns_of(Exchange).replace(" message_ids,", "")
_MESSAGE = Table("message", MESSAGE_COLUMNS, erased=OF_CONVERSATIONS, how=IGNORE, counter="message")
_EXCHANGE = Table(
    "exchange", f"{_EXCHANGE_COLUMNS}, position", erased=OF_CONVERSATIONS, counter="exchange"
)
_MEMBER = Table(
    "exchange_message",
    "exchange_id, place, message_id",
    "exchange_id, place",
    f"exchange_id IN (SELECT id FROM exchange WHERE {OF_CONVERSATIONS})",
)
_FILE = Table(
    "message_file",
    "message_id, content_hash",
    "message_id, content_hash",
    f"message_id IN (SELECT id FROM message WHERE {OF_CONVERSATIONS})",
    how=IGNORE,
)

_FORGOTTEN = Table(
    "forgotten_message", "exchange_id, message_id, conversation_id", "exchange_id, message_id",
    OF_CONVERSATIONS, how=IGNORE,
)  # fmt: skip


# -- changes

# The text stays in the journal alone, for `app.storage.safety.interrupted`; the id is used up.
_REPLY = Table("running_message", "message_id", "message_id").puts()


def _messages(batch: Batch, change: MessagesAdded) -> None:
    for message in change.messages:
        batch.rows["message"].setdefault(message.id, message_row(message))
        for content_hash in hashes_of(message.blocks):
            key = (message.id, content_hash)
            batch.rows["message_file"][key] = key
        batch.announce("messages_in", message.conversation_id)


def _exchange(batch: Batch, change: ExchangePut) -> None:
    exchange = change.exchange
    uid = exchange.uid or exchange_uid(exchange.conversation_id, exchange.id, exchange.started_at)
    _EXCHANGE.put(batch, exchange, position=batch.position, uid=uid)
    batch.rows["exchange_message"][exchange.id] = exchange.message_ids
    batch.announce("exchanges", exchange.id)
    batch.announce("messages_in", exchange.conversation_id)
    if exchange.status is not ExchangeStatus.RUNNING:
        batch.announce("turns_ended", exchange.id)


def _write(connection: Connection, batch: Batch, state: State) -> None:
    _MESSAGE.write(connection, batch.rows["message"], state)
    _FILE.write(connection, batch.rows["message_file"])
    _EXCHANGE.write(connection, batch.rows["exchange"], state)
    known: list[int] = []
    members: list[Row] = []
    for exchange_id, message_ids in batch.rows["exchange_message"].items():
        if exchange_id <= state.exchange:
            known.append(exchange_id)
        for place, message_id in enumerate(message_ids):
            members.append((exchange_id, place, message_id))
    if known:
        # A retry may leave an exchange with fewer messages than it had.
        connection.delete_in("exchange_message", "exchange_id", known)
    connection.insert_rows("exchange_message", _MEMBER.columns, members)


EXCHANGES = Aggregate(
    (_FILE, _FORGOTTEN, _MEMBER, _MESSAGE, _EXCHANGE),
    {MessagesAdded: _messages, ExchangePut: _exchange, ReplyGrew: _REPLY},
    _write,
    rules=(
        reference("message.conversation_id", "conversation", by_row=True),
        reference("message.parent_id", "message", by_row=True),
        unique_uid("message"),
        reference("message_file.message_id", "message", "delete"),
        Rule(
            "message.parent_conversation",
            "The message {} and its parent are in two conversations.",
            "SELECT m.id FROM message m JOIN message p ON p.id = m.parent_id "
            "WHERE p.conversation_id <> m.conversation_id",
        ),
        Rule(
            "message.exchange",
            "The message {} is part of no exchange.",
            "SELECT m.id FROM message m ANTI JOIN exchange_message l ON l.message_id = m.id",
        ),
        reference("exchange.conversation_id", "conversation", by_row=True),
        unique_uid("exchange"),
        reference("exchange.parent_id", "exchange", by_row=True),
        Rule(
            "exchange.parent_conversation",
            "The exchange {} and its parent are in two conversations.",
            "SELECT e.id FROM exchange e JOIN exchange p ON p.id = e.parent_id "
            "WHERE p.conversation_id <> e.conversation_id",
        ),
        Rule(
            "exchange.turn_number",
            "The exchange {} has a turn number that is not its depth.",
            "SELECT e.id FROM exchange e LEFT JOIN exchange p ON p.id = e.parent_id "
            "WHERE e.turn_number <> coalesce(p.turn_number + 1, 0) "
            "AND (e.parent_id IS NULL OR p.id IS NOT NULL)",
        ),
        Rule(
            "exchange.messages",
            "The exchange {} has no messages.",
            "SELECT e.id FROM exchange e ANTI JOIN exchange_message l ON l.exchange_id = e.id",
        ),
        reference("exchange_message.exchange_id", "exchange", "delete"),
        Rule(
            "exchange_message.message_id",
            "The exchange {} lists a message that does not exist or is in another conversation.",
            "SELECT DISTINCT l.exchange_id FROM exchange_message l "
            "JOIN exchange e ON e.id = l.exchange_id ANTI JOIN message m "
            "ON m.id = l.message_id AND m.conversation_id = e.conversation_id",
        ),
        Rule(
            "exchange_message.place",
            "The exchange {} has a gap in its list of messages.",
            "SELECT exchange_id FROM exchange_message GROUP BY exchange_id "
            "HAVING count(*) <> max(place) + 1 OR min(place) <> 0",
        ),
        Rule(
            "exchange_message.order",
            "The messages of exchange {} do not follow each other.",
            "SELECT DISTINCT a.exchange_id FROM exchange_message a JOIN exchange_message b "
            "ON b.exchange_id = a.exchange_id AND b.place = a.place + 1 "
            "JOIN message m ON m.id = b.message_id WHERE m.parent_id IS DISTINCT FROM a.message_id",
        ),
        Rule(
            "exchange.first_message",
            "The first message of exchange {} does not follow its parent exchange.",
            "SELECT e.id FROM exchange e "
            "JOIN exchange_message l ON l.exchange_id = e.id AND l.place = 0 "
            "JOIN message m ON m.id = l.message_id LEFT JOIN exchange_message b "
            "ON b.exchange_id = e.parent_id AND b.message_id = m.parent_id "
            "WHERE (e.parent_id IS NULL) <> (m.parent_id IS NULL) "
            "OR (e.parent_id IS NOT NULL AND b.exchange_id IS NULL)",
        ),
    ),
)


# -- rows


def message_row(message: Message) -> Row:
    """Return the row of MESSAGE_COLUMNS; a message that is only its text keeps no blocks."""
    text = message.text
    blocks = None if message.blocks == (Text(text),) else message.blocks
    return row_of(message, MESSAGE_COLUMNS, text=text, blocks=blocks)


def message_of(row: Row) -> Message:
    raw = None if row[9] is None else codec.loads(RawReply, row[9])
    return Message(
        row[0], row[1], row[2], row[3], Role(row[4]), blocks_of(row[5], row[6]), from_db(row[7]),
        row[8], raw,
    )  # fmt: skip


def messages_in(cursor: Connection, ids: Iterable[int]) -> dict[MessageId, Message]:
    """Return the messages that exist among `ids`, by id."""
    rows = cursor.select_in("message", MESSAGE_COLUMNS, ids)
    return {message.id: message for message in map(message_of, rows)}


def rewrite_messages(connection: Connection, messages: Sequence[Message]) -> None:
    """Replace the content of stored messages: only deletion does that."""
    rows = [message_row(each) for each in messages]
    columns = "id, text, blocks, raw"
    kept = itemgetter(*map(MESSAGE_COLUMNS.split(", ").index, columns.split(", ")))
    connection.update_rows("message", columns, list(map(kept, rows)))


def blocks_of(text: str, blocks_json: str | None) -> tuple[Block, ...]:
    """Return a message's blocks from its two columns."""
    if blocks_json is None:
        return (Text(text),)
    return codec.loads(tuple[Block, ...], blocks_json)


_exchange_of = reader(Exchange)
_PLACE = 6  # of the messages


# -- queries


class Exchanges(StoreReader):
    """Reads exchanges and their messages. Blocking: for worker threads and the command line."""

    def get(self, exchange_id: int) -> Exchange:
        """Return one exchange; raise NotFound."""
        found = self._store.read(exchanges_where, "id = ?", [exchange_id])
        if not found:
            raise NotFound(f"There is no exchange {exchange_id}")
        return found[0]

    def by_ids(self, ids: Iterable[int]) -> Mapping[ExchangeId, Exchange]:
        """Return the exchanges that exist among `ids`, by id."""
        condition, values = among(ids)
        found = self._store.read(exchanges_where, f"id {condition}", values)
        return {exchange.id: exchange for exchange in found}

    def not_shown(self, ids: Collection[int]) -> set[ExchangeId]:
        """Return those among `ids` that the shown path of their conversation does not hold."""
        return self._store.read(not_shown, ids) if ids else set()

    def of(self, conversation_id: int) -> tuple[Exchange, ...]:
        """Return all exchanges of a conversation, of every branch, by id."""
        return tuple(self._store.read(exchanges_where, "conversation_id = ?", [conversation_id]))

    def of_each(self, conversation_ids: Sequence[int]) -> Mapping[int, Sequence[Exchange]]:
        """Return what `of` does for several conversations; those without any are left out."""
        condition, values = among(conversation_ids)
        found = self._store.read(exchanges_where, f"conversation_id {condition}", values)
        return grouped(found, attrgetter("conversation_id"))

    def messages(self, ids: Iterable[int]) -> Mapping[MessageId, Message]:
        """Return the messages that exist among `ids`, by id."""
        wanted = list(ids)
        return self._store.read(messages_in, wanted) if wanted else {}

    def unforgotten(self, ids: Iterable[int]) -> frozenset[MessageId]:
        """Return those among `ids` that exist and have their content."""
        rest = "AND id NOT IN (SELECT message_id FROM forgotten_message)"
        return frozenset(each for (each,) in self._store.select_in("message", "id", ids, rest=rest))

    def messages_in(self, conversation_id: int) -> tuple[Message, ...]:
        """Return all messages of a conversation, of every branch, parents before children."""
        rows = self._store.rows(
            f"SELECT {MESSAGE_COLUMNS} FROM message WHERE conversation_id = ? ORDER BY id",
            [conversation_id],
        )
        return tuple(map(message_of, rows))

    def messages_in_each(self, conversation_ids: Sequence[int]) -> Mapping[int, Sequence[Message]]:
        """Return what `messages_in` does for several conversations; those without any are left out."""
        given = ("message", MESSAGE_COLUMNS, conversation_ids, "conversation_id", "ORDER BY id")
        messages = map(message_of, self._store.select_in(*given))
        return grouped(messages, attrgetter("conversation_id"))

    def ids_by_uid(self, conversation_ids: Sequence[int]) -> Mapping[int, Mapping[str, MessageId]]:
        """Return the ids of all messages of some conversations, by conversation and uid."""
        given = ("message", "conversation_id, uid, id", conversation_ids, "conversation_id")
        rows = self._store.select_in(*given)
        found = grouped(rows, itemgetter(0))
        return {
            each: {uid: own for _, uid, own in found.get(each, ())} for each in conversation_ids
        }

    def text_lengths(self, conversation_id: int) -> Mapping[MessageId, int]:
        """Return the length in characters of each message's text, of a whole conversation."""
        given = ("message", "id, length(text)", [conversation_id], "conversation_id")
        return dict(self._store.select_in(*given))

    def messages_of(self, exchange: Exchange) -> tuple[Message, ...]:
        """Return an exchange's messages, in path order."""
        found = self.messages(exchange.message_ids)
        return tuple(filter(None, map(found.get, exchange.message_ids)))


def shown_path(conversation: Conversation, exchanges: Sequence[Exchange]) -> tuple[Exchange, ...]:
    """Return the exchanges of the conversation's visible path, turn 0 first.

    `exchanges` are all of the conversation. An exchange that ends with the visible leaf is
    preferred to one that only contains it.
    """
    leaf = conversation.visible_leaf_id
    ends = [each for each in exchanges if each.message_ids and each.message_ids[-1] == leaf]
    holds = ends or [each for each in exchanges if leaf in each.message_ids]
    return path_to(holds[-1], exchanges) if holds else ()


def path_to(last: Exchange, exchanges: Iterable[Exchange]) -> tuple[Exchange, ...]:
    """Return the path that ends with the exchange `last`, turn 0 first."""
    by_id = {exchange.id: exchange for exchange in exchanges}
    path: list[Exchange] = []
    step: Exchange | None = last
    while step is not None and len(path) <= len(by_id):
        path.append(step)
        step = by_id.get(step.parent_id) if step.parent_id is not None else None
    return tuple(reversed(path))


def not_shown(cursor: Connection, ids: Collection[int]) -> set[ExchangeId]:
    """Return those of some exchanges that the shown path of their conversation does not hold."""
    branched = cursor.column(
        "SELECT DISTINCT conversation_id FROM (SELECT conversation_id FROM exchange WHERE "
        "conversation_id IN (SELECT conversation_id FROM exchange WHERE id IN (SELECT unnest(?))) "
        "GROUP BY conversation_id, turn_number HAVING count(*) > 1)",
        [list(ids)],
    )
    hidden: set[ExchangeId] = set()
    for conversation_id in branched:
        every = exchanges_where(cursor, "conversation_id = ?", [conversation_id])
        path = shown_path(conversation_with(cursor, conversation_id), every)
        hidden.update({each.id for each in every} - {each.id for each in path})
    return hidden.intersection(ids)


def exchanges_where(cursor: Connection, condition: str, values: Sequence[object]) -> list[Exchange]:
    """Return the exchanges that meet a condition of ours (never the user's text), by id."""
    rows = cursor.rows(
        f"SELECT {_EXCHANGE_COLUMNS} FROM exchange WHERE {condition} ORDER BY id", list(values)
    )
    if not rows:
        return []
    ids, own = [row[0] for row in rows], "exchange_id"
    given = (f"{own}, list(message_id ORDER BY place)", ids, own, f"GROUP BY {own}")
    message_ids: dict[int, list[MessageId]] = dict(cursor.select_in("exchange_message", *given))
    return [
        _exchange_of((*row[:_PLACE], tuple(message_ids.get(row[0], ())), *row[_PLACE:]))
        for row in rows
    ]
