"""Removal of messages whose content was forgotten: undoing an import takes back what it added to conversations.

Only messages that nothing else follows are removed, so that trees and paths stay whole. Their origins go
too: importing them again adds them again.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from app.domain.conversations import Exchange, ExchangeStatus, Message
from app.domain.deletions import MessagesForgotten
from app.domain.ids import MessageId
from app.domain.turns import is_reply
from app.storage.engine.aggregate import row_of
from app.storage.engine.connection import Connection
from app.storage.tables.exchanges import exchanges_where, messages_in
from app.storage.tables.passage_rows import remove_passages

_CLEARED = ("spend", "routine_run")  # rows that stay when their exchange goes


def removable(messages: Sequence[Message], wanted: Collection[int]) -> set[MessageId]:
    """Return which of the wanted messages only wanted ones follow; `messages` are parents first."""
    followed: set[MessageId | None] = set()
    found: set[MessageId] = set()
    for each in reversed(messages):
        if each.id in wanted and each.id not in followed:
            found.add(each.id)
        else:
            followed.add(each.parent_id)
    return found


def remove_messages(
    connection: Connection, change: MessagesForgotten, ids: Collection[int], position: int
) -> None:
    """Delete the rows of messages, of turns that are nothing else, and what refers to them."""
    _show_what_is_left(connection, change, ids)
    every = exchanges_where(connection, "conversation_id = ?", [change.conversation_id])
    gone: list[int] = []
    left: dict[int, Exchange] = {}
    for each in every:
        kept = tuple(own for own in each.message_ids if own not in ids)
        if kept != each.message_ids:
            left[each.id] = replace(each, message_ids=kept)
        if not kept or (kept != each.message_ids and _is_part(kept, each, every, ids)):
            gone.append(each.id)
    for own in left.keys() - set(gone):
        _shorten(connection, left[own])
    connection.delete_in("exchange_message", "message_id", list(ids))
    for table in ("message_file", "forgotten_message"):
        connection.delete_in(table, "message_id", list(ids))
    connection.execute(
        "DELETE FROM origin WHERE kind = 'message' AND local_id IN (SELECT unnest(?))", [list(ids)]
    )
    connection.delete_in("message", "id", list(ids))
    passages = connection.column_in("passage", "id", gone, "exchange_id")
    remove_passages(connection, list(passages), position)
    for table in _CLEARED:
        connection.execute(
            f"UPDATE {table} SET exchange_id = NULL WHERE exchange_id IN (SELECT unnest(?))", [gone]
        )
    connection.delete_in("exchange_message", "exchange_id", gone)
    connection.delete_in("exchange", "id", gone)


def _is_part(
    kept: tuple[MessageId, ...], exchange: Exchange, every: Sequence[Exchange], ids: Collection[int]
) -> bool:
    """Return whether another branch has what is left of a turn; of two that are equal the first stays."""
    for other in every:
        own = tuple(each for each in other.message_ids if each not in ids)
        if other.id != exchange.id and own[: len(kept)] == kept:
            is_first = own == kept and own != other.message_ids and exchange.id < other.id
            if not is_first:
                return True
    return False


def _shorten(connection: Connection, exchange: Exchange) -> None:
    messages = messages_in(connection, exchange.message_ids)
    here = [messages[each] for each in exchange.message_ids]
    is_answered = any(map(is_reply, here)) or not any(each.opens_turn for each in here)
    changed = replace(
        exchange,
        status=ExchangeStatus.COMPLETED if is_answered else ExchangeStatus.INTERRUPTED,
        completed_at=here[-1].created_at,
    )
    columns = "status, completed_at"
    connection.execute(
        "UPDATE exchange SET status = ?, completed_at = ? WHERE id = ?",
        [*row_of(changed, columns), exchange.id],
    )


def _show_what_is_left(
    connection: Connection, change: MessagesForgotten, ids: Collection[int]
) -> None:
    conversation_id = change.conversation_id
    parents: dict[int, int | None] = dict(
        connection.select_in("message", "id, parent_id", [conversation_id], "conversation_id")
    )
    (leaf,) = connection.column(
        "SELECT visible_leaf_id FROM conversation WHERE id = ?", [conversation_id]
    )
    if leaf not in ids:
        return
    if change.shown in parents:
        leaf = change.shown
    while leaf in ids:
        leaf = parents.get(leaf)
    children = {parent: each for each, parent in sorted(parents.items()) if each not in ids}
    while leaf in children:  # the newest
        leaf = children[leaf]
    connection.execute(
        "UPDATE conversation SET visible_leaf_id = ? WHERE id = ?", [leaf, conversation_id]
    )
