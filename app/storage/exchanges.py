"""Queries about exchanges and messages: the shown path, branches, the messages of a turn."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from app.domain.conversations import Conversation, Exchange, Message
from app.domain.errors import NotFound
from app.domain.ids import ExchangeId, MessageId
from app.storage.conversations import conversation_with
from app.storage.database import Connection
from app.storage.rows import EXCHANGE_COLUMNS, MESSAGE_COLUMNS, exchange_of, message_of
from app.storage.store import Store


class Exchanges:
    """Reads exchanges and their messages. Blocking: for worker threads and the command line."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, exchange_id: int) -> Exchange:
        """Return one exchange; raise NotFound."""
        found = self._store.read(lambda cursor: exchanges_where(cursor, "id = ?", [exchange_id]))
        if not found:
            raise NotFound(f"There is no exchange {exchange_id}")
        return found[0]

    def by_ids(self, ids: Iterable[int]) -> Mapping[ExchangeId, Exchange]:
        """Return the exchanges that exist among `ids`, by id."""
        wanted = list(ids)
        found = self._store.read(
            lambda cursor: exchanges_where(cursor, "id IN (SELECT unnest(?))", [wanted])
        )
        return {exchange.id: exchange for exchange in found}

    def not_shown(self, ids: Collection[int]) -> set[ExchangeId]:
        """Return those among `ids` that the shown path of their conversation does not hold."""
        return self._store.read(lambda cursor: not_shown(cursor, ids)) if ids else set()

    def of(self, conversation_id: int) -> tuple[Exchange, ...]:
        """Return all exchanges of a conversation, of every branch, by id."""
        return tuple(
            self._store.read(
                lambda cursor: exchanges_where(cursor, "conversation_id = ?", [conversation_id])
            )
        )

    def messages(self, ids: Iterable[int]) -> Mapping[MessageId, Message]:
        """Return the messages that exist among `ids`, by id."""
        wanted = list(ids)
        if not wanted:
            return {}
        statement = f"SELECT {MESSAGE_COLUMNS} FROM message WHERE id IN (SELECT unnest(?))"
        rows = self._store.read(lambda cursor: cursor.execute(statement, [wanted]).fetchall())
        return {message.id: message for message in map(message_of, rows)}

    def messages_in(self, conversation_id: int) -> tuple[Message, ...]:
        """Return all messages of a conversation, of every branch, parents before children."""
        statement = f"SELECT {MESSAGE_COLUMNS} FROM message WHERE conversation_id = ? ORDER BY id"
        rows = self._store.read(
            lambda cursor: cursor.execute(statement, [conversation_id]).fetchall()
        )
        return tuple(map(message_of, rows))

    def ids_by_uid(self, conversation_id: int) -> Mapping[str, MessageId]:
        """Return the ids of all messages of a conversation, by uid."""
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT uid, id FROM message WHERE conversation_id = ?", [conversation_id]
            ).fetchall()
        )
        return dict(rows)

    def text_lengths(self, conversation_id: int) -> Mapping[MessageId, int]:
        """Return the length in characters of each message's text, of a whole conversation."""
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT id, length(text) FROM message WHERE conversation_id = ?", [conversation_id]
            ).fetchall()
        )
        return dict(rows)

    def messages_of(self, exchange: Exchange) -> tuple[Message, ...]:
        """Return an exchange's messages, in path order."""
        found = self.messages(exchange.message_ids)
        return tuple(found[each] for each in exchange.message_ids if each in found)


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
    rows = cursor.execute(
        "SELECT DISTINCT conversation_id FROM (SELECT conversation_id FROM exchange WHERE "
        "conversation_id IN (SELECT conversation_id FROM exchange WHERE id IN (SELECT unnest(?))) "
        "GROUP BY conversation_id, turn_number HAVING count(*) > 1)",
        [list(ids)],
    ).fetchall()
    beside: set[ExchangeId] = set()
    for (conversation_id,) in rows:  # those that have branches
        every = exchanges_where(cursor, "conversation_id = ?", [conversation_id])
        path = shown_path(conversation_with(cursor, conversation_id), every)
        beside.update({each.id for each in every} - {each.id for each in path})
    return beside.intersection(ids)


def exchanges_where(cursor: Connection, condition: str, values: Sequence[object]) -> list[Exchange]:
    """Return the exchanges that meet a condition of ours (never the user's text), by id."""
    rows = cursor.execute(
        f"SELECT {EXCHANGE_COLUMNS} FROM exchange WHERE {condition} ORDER BY id", list(values)
    ).fetchall()
    members = cursor.execute(
        "SELECT exchange_id, list(message_id ORDER BY place) FROM exchange_message "
        f"WHERE exchange_id IN (SELECT id FROM exchange WHERE {condition}) GROUP BY exchange_id",
        list(values),
    ).fetchall()
    message_ids = dict(members)
    return [exchange_of(row, message_ids.get(row[0], ())) for row in rows]
