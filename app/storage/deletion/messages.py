"""Forgetting the content of messages, with everything derived from the turns that contain them.

The messages keep their places (`Forgotten`). Passages of the turns are calculated again from what is
left, and those of the turns before and after, whose context they were, are embedded and indexed again.

Messages whose content was forgotten are removed where an import is undone: only those that nothing else follows, so
that trees and paths stay whole. Their origins go too: importing them again adds them again.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from app.domain import codec
from app.domain.conversations import (
    FORGOTTEN,
    Exchange,
    ExchangeStatus,
    Forgotten,
    Message,
    Role,
    TitleOrigin,
    ToolCall,
    ToolResult,
)
from app.domain.deletions import MessagesForgotten
from app.domain.ids import MessageId, PassageId
from app.domain.recall import PlanPart, PlanPartKind
from app.domain.turns import is_reply, turn_passage
from app.storage.deletion.deletion_set import DeletionSet, exchanges_of, message_deletion_set
from app.storage.deletion.redaction import redact_messages, redact_prompts
from app.storage.engine.aggregate import row_of
from app.storage.engine.connection import Connection
from app.storage.tables.exchanges import exchanges_where, messages_in, rewrite_messages
from app.storage.tables.fact_rows import delete_facts_where
from app.storage.tables.fact_visibility import update_fact_passages
from app.storage.tables.imports import forget_edits
from app.storage.tables.passages.rows import remove_passages, renew_passages
from app.storage.tables.profile import drop_unsupported_lines
from app.storage.tables.prompts import delete_prompts_of_exchanges
from app.storage.tables.settings import drop_probes
from app.storage.tables.topics import clear_topic_names

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


_OF_TURNS = "exchange_id IN (SELECT unnest($1))"
_MADE_TITLES = (TitleOrigin.FIRST_WORDS.value, TitleOrigin.SUMMARISER.value)
_Plan = tuple[PlanPart, ...]


def erase_messages(
    connection: Connection, changes: Iterable[MessagesForgotten], position: int
) -> None:
    """Apply changes; `position` is the journal's. Inside the caller's transaction."""
    for change in changes:
        _erase_messages(connection, change, position)


def _erase_messages(connection: Connection, change: MessagesForgotten, position: int) -> None:
    ids = list(connection.column_in("message", "id", change.message_ids))
    if not ids:
        return
    turns = exchanges_of(connection, ids)
    deleted = message_deletion_set(connection, change.conversation_id, ids)
    redact_messages(connection, deleted, position)
    redact_prompts(connection, "memory", list(deleted.passages))
    _redact_own_prompts(connection, change.conversation_id, turns, deleted)
    _erase_contents(connection, change.conversation_id, ids, turns)
    own_facts = connection.column_in("fact", "id", turns, "exchange_id")
    own_facts |= connection.column_in("fact_version", "fact_id", turns, "exchange_id")
    redact_prompts(connection, "fact", list(own_facts))
    changed_facts = delete_facts_where(connection, _OF_TURNS, turns)
    _erase_derived(connection, change.conversation_id, turns, position)
    delete_prompts_of_exchanges(connection, turns, deleted.exchanges)
    drop_probes(connection, deleted.exchanges)
    renew_turns(connection, turns, position)
    update_fact_passages(connection, own_facts | changed_facts, position)
    drop_unsupported_lines(connection)
    clear_topic_names(connection, [change.conversation_id])
    _replace_title(connection, change, position)
    if change.removes:
        remove_messages(connection, change, ids, position)
        renew_turns(connection, turns, position)
    else:
        forget_edits(connection, "conversation_id = ?", [change.conversation_id])


def _erase_contents(
    connection: Connection, conversation_id: int, ids: list[int], turns: list[int]
) -> None:
    here = connection.column_in("exchange_message", "message_id", turns, "exchange_id")
    messages = messages_in(connection, here)
    forgotten = set(ids)
    calls = {
        block.call_id
        for each in messages.values()
        if each.id not in forgotten
        for block in each.blocks
        if isinstance(block, ToolCall)
    }
    rewrite_messages(
        connection,
        [_without_content(each, calls) for key, each in messages.items() if key in forgotten],
    )
    connection.delete_in("message_file", "message_id", ids)
    connection.execute(
        "INSERT OR IGNORE INTO forgotten_message SELECT exchange_id, message_id, $2 "
        "FROM exchange_message WHERE message_id IN (SELECT unnest($1))",
        [ids, conversation_id],
    )


def _without_content(message: Message, calls: Collection[str]) -> Message:
    """Return a message without content; a result whose call is left stays one."""
    if message.role is Role.TOOL and any(
        isinstance(block, ToolResult) and block.call_id in calls for block in message.blocks
    ):
        blocks = tuple(
            replace(block, text=FORGOTTEN) if isinstance(block, ToolResult) else block
            for block in message.blocks
        )
        return replace(message, blocks=blocks, raw=None)
    return replace(message, blocks=(Forgotten(),), raw=None)


def _erase_derived(
    connection: Connection, conversation_id: int, turns: list[int], position: int
) -> None:
    """Delete summaries, saved texts, and the tags that a summarizer gave, with their passages."""
    passages = connection.column(
        f"SELECT id FROM passage WHERE ({_OF_TURNS} AND kind IN "
        "('exchange_summary', 'tool_summary', 'memory')) "
        "OR (conversation_id = $2 AND kind = 'conversation_summary')",
        [turns, conversation_id],
    )
    remove_passages(connection, passages, position)
    connection.execute(
        "DELETE FROM summary WHERE (kind = 'exchange' AND source_id IN (SELECT unnest($1))) "
        "OR (kind <> 'exchange' AND conversation_id = $2)",
        [turns, conversation_id],
    )
    for table in ("tool_summary", "memory", "memory_write", "extraction"):
        connection.delete_in(table, "exchange_id", turns)
    connection.execute("DELETE FROM tag WHERE conversation_id = ? AND automatic", [conversation_id])


def renew_turns(connection: Connection, turns: list[int], position: int) -> None:
    """Calculate the passages of turns again, and have those beside them indexed again."""
    known: dict[int, int] = dict(
        connection.select_in("passage", "source_id, id", turns, "source_id", "AND kind = 'turn'")
    )
    gone: list[int] = []
    changed: list[tuple[int, str, int]] = []
    for exchange in exchanges_where(connection, "id IN (SELECT unnest(?))", [turns]):
        if (own := known.get(exchange.id)) is None:
            continue
        messages = messages_in(connection, exchange.message_ids)
        here = [messages[each] for each in exchange.message_ids if each in messages]
        if (passage := turn_passage(PassageId(own), exchange, here)) is None:
            gone.append(own)
        else:
            changed.append((own, passage.content_hash, passage.tokens))
    remove_passages(connection, gone, position)
    for own, content_hash, tokens in changed:
        connection.execute(
            "UPDATE passage SET content_hash = ?, tokens = ? WHERE id = ?",
            [content_hash, tokens, own],
        )
    beside = connection.column(
        "SELECT id FROM passage WHERE kind = 'turn' AND source_id IN (SELECT id FROM exchange "
        "WHERE parent_id IN (SELECT unnest($1)) UNION SELECT parent_id FROM exchange "
        "WHERE id IN (SELECT unnest($1)))",
        [turns],
    )
    renewed = {own for own, *_ in changed}.union(beside)
    renew_passages(connection, list(renewed), position)


def _redact_own_prompts(
    connection: Connection, conversation_id: int, turns: Sequence[int], deleted: DeletionSet
) -> None:
    """Delete stored prompt texts that quote the turns, and those that stood for them."""
    owned = connection.select_in("prompt_text", "hash, text", [conversation_id], "conversation_id")
    gone = {digest for digest, text in owned if any(map(deleted.text.matches, text.split("\n")))}
    passages = connection.column_in("passage", "id", turns, "exchange_id") | deleted.passages
    quoting = connection.column(
        "SELECT parts FROM prompt WHERE (exchange_id, sent_at) IN (SELECT (exchange_id, sent_at) "
        "FROM recalled WHERE passage_id IN (SELECT unnest($1)) "
        "OR source_exchange_id IN (SELECT unnest($2)))",
        [list(passages), list(turns)],
    )
    compacted = connection.column(
        "SELECT parts FROM prompt WHERE conversation_id = ? AND contains(parts, ?)",
        [conversation_id, f'"{PlanPartKind.COMPACTION}"'],
    )
    for part in _parts(quoting):
        gone |= {piece.text for piece in part.pieces if piece.passage_id in passages}
    for part in _parts(compacted):
        if part.kind is PlanPartKind.COMPACTION:
            gone |= {piece.text for piece in part.pieces}
    connection.execute(
        "DELETE FROM prompt_text WHERE conversation_id = ? AND hash IN (SELECT unnest(?))",
        [conversation_id, list(gone)],
    )


def _parts(plans: Iterable[str]) -> Iterable[PlanPart]:
    for parts in plans:
        plan: _Plan = codec.loads(_Plan, parts)
        yield from plan


def _replace_title(connection: Connection, change: MessagesForgotten, position: int) -> None:
    changed = connection.rows(
        "UPDATE conversation SET title = $2, title_origin = $3 WHERE id = $1 AND title <> $2 "
        "AND title_origin IN (SELECT unnest($4)) RETURNING id",
        [change.conversation_id, change.title, TitleOrigin.FIRST_WORDS.value, list(_MADE_TITLES)],
    )
    if changed:  # the text index holds the title with each passage
        connection.execute(
            "UPDATE passage SET position = greatest(position, ?) WHERE conversation_id = ?",
            [position, change.conversation_id],
        )
