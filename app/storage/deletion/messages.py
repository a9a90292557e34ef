"""Forgetting the content of messages, with everything derived from the turns that contain them.

The messages keep their places (`Forgotten`). Passages of the turns are calculated again from what is
left, and those of the turns before and after, whose context they were, are embedded and indexed again.

Messages whose content was forgotten are removed where an import is undone: only those that nothing else follows, so
that trees and paths stay whole. Their origins go too: importing them again adds them again.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import chain
from operator import attrgetter

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
from app.domain.ids import ConversationId, MessageId, PassageId
from app.domain.recall import PlanPart, PlanPartKind
from app.domain.turns import is_reply, turn_passage
from app.storage.deletion.deletion_set import DeletionSet, exchanges_of, message_deletion_set
from app.storage.deletion.redaction import redact_messages, redact_prompts
from app.storage.engine.aggregate import OF_CONVERSATIONS, row_of
from app.storage.engine.connection import Connection, Row, grouped
from app.storage.tables.exchanges import exchanges_where, messages_in, rewrite_messages
from app.storage.tables.fact_rows import delete_facts_where
from app.storage.tables.fact_visibility import update_fact_passages
from app.storage.tables.imports import forget_edits
from app.storage.tables.passages.rows import index_again, remove_passages, renew_passages
from app.storage.tables.profile import drop_unsupported_lines
from app.storage.tables.prompts import delete_prompts_of_exchanges
from app.storage.tables.settings import drop_probes
from app.storage.tables.topics import clear_topic_names

_CLEARED = ("spend", "routine_run")  # rows that stay when their exchange goes


def removable(messages: Sequence[Message], wanted: AbstractSet[int]) -> set[MessageId]:
    """Return which of the wanted messages only wanted ones follow; `messages` are parents first."""
    followed: set[MessageId | None] = set()
    found: set[MessageId] = set()
    for each in reversed(messages):
        if each.id in wanted and each.id not in followed:
            found.add(each.id)
        else:
            followed.add(each.parent_id)
    return found


def _remove_messages(
    connection: Connection,
    changes: Iterable[MessagesForgotten],
    ids: Collection[int],
    position: int,
) -> None:
    """Delete the rows of messages, of turns that are nothing else, and what refers to them."""
    own = {each.conversation_id: each.shown for each in changes if each.removes}
    _show_what_is_left(connection, own, ids)
    among = "conversation_id IN (SELECT unnest(?))"
    here = grouped(exchanges_where(connection, among, [list(own)]), attrgetter("conversation_id"))
    gone: list[int] = []
    left: list[Exchange] = []
    for each in chain.from_iterable(here.values()):
        kept = tuple(one for one in each.message_ids if one not in ids)
        if kept == each.message_ids:
            continue
        if not kept or _is_part(kept, each, here[each.conversation_id], ids):
            gone.append(each.id)
        else:
            left.append(replace(each, message_ids=kept))
    _shorten(connection, left)
    for table in ("exchange_message", "message_file", "forgotten_message"):
        connection.delete_in(table, "message_id", ids)
    connection.execute(
        "DELETE FROM origin WHERE kind = 'message' AND local_id IN (SELECT unnest(?))", [list(ids)]
    )
    connection.delete_in("message", "id", ids)
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


def _shorten(connection: Connection, exchanges: Iterable[Exchange]) -> None:
    columns, rows = "id, status, completed_at", list[Row]()
    for exchange, here in _with_messages(connection, exchanges):
        is_answered = any(map(is_reply, here)) or not any(each.opens_turn for each in here)
        status = ExchangeStatus.COMPLETED if is_answered else ExchangeStatus.INTERRUPTED
        changed = replace(exchange, status=status, completed_at=here[-1].created_at)
        rows.append(row_of(changed, columns))
    connection.update_rows("exchange", columns, rows)


def _with_messages(
    connection: Connection, exchanges: Iterable[Exchange]
) -> Iterator[tuple[Exchange, list[Message]]]:
    every = list(exchanges)
    messages = messages_in(connection, chain.from_iterable(each.message_ids for each in every))
    for exchange in every:
        yield exchange, [messages[each] for each in exchange.message_ids if each in messages]


def _show_what_is_left(
    connection: Connection, shown: Mapping[ConversationId, MessageId | None], ids: Collection[int]
) -> None:
    leaves = connection.select_in("conversation", "id, visible_leaf_id", shown)
    lost = {own: leaf for own, leaf in leaves if leaf in ids}
    columns, key = "id, parent_id, conversation_id", "conversation_id"
    rows = connection.select_in("message", columns, lost, key, "ORDER BY id")
    parents = {each: parent for each, parent, _ in rows}
    children = {(own, parent): each for each, parent, own in rows if each not in ids}
    for own, leaf in lost.items():
        if shown[own] in parents:
            leaf = shown[own]  # noqa: PLW2901
        while leaf in ids:
            leaf = parents.get(leaf)  # noqa: PLW2901
        while (own, leaf) in children:  # the newest
            leaf = children[own, leaf]  # noqa: PLW2901
        lost[own] = leaf
    connection.update_rows("conversation", "id, visible_leaf_id", list(lost.items()))


_OF_TURNS = "exchange_id IN (SELECT unnest($1))"
_OF_THEM = OF_CONVERSATIONS.replace("$1", "$2")
_MADE_TITLES = (TitleOrigin.FIRST_WORDS.value, TitleOrigin.SUMMARISER.value)
_Plan = tuple[PlanPart, ...]


def erase_messages(
    connection: Connection, changes: Sequence[MessagesForgotten], position: int
) -> None:
    """Apply changes of one record or of several; `position` is the journal's. Inside the caller's transaction."""
    wanted = chain.from_iterable(each.message_ids for each in changes)
    ids = connection.column_in("message", "id", wanted)
    there = [each for each in changes if not ids.isdisjoint(each.message_ids)]
    own = {each.conversation_id: each.title for each in there}
    if not own:
        return
    removed = ids & {one for each in there if each.removes for one in each.message_ids}
    turns = exchanges_of(connection, ids)
    beside = passages_beside(connection, turns)
    deleted = message_deletion_set(connection, own, ids)
    redact_messages(connection, deleted, position)
    redact_prompts(connection, "memory", list(deleted.passages))
    _redact_own_prompts(connection, own, turns, deleted)
    if ids != removed:
        _erase_contents(connection, ids - removed, turns)
    own_facts = connection.column_in("fact", "id", turns, "exchange_id")
    own_facts |= connection.column_in("fact_version", "fact_id", turns, "exchange_id")
    redact_prompts(connection, "fact", list(own_facts))
    changed_facts = delete_facts_where(connection, _OF_TURNS, turns)
    _erase_derived(connection, own, turns, position)
    delete_prompts_of_exchanges(connection, turns, deleted.exchanges)
    drop_probes(connection, deleted.exchanges)
    update_fact_passages(connection, own_facts | changed_facts, position)
    drop_unsupported_lines(connection)
    clear_topic_names(connection, own)
    _replace_titles(connection, own, position)
    if removed:
        _remove_messages(connection, there, removed, position)
    renew_turns(connection, turns, beside, position)
    kept = [each.conversation_id for each in there if not each.removes]
    forget_edits(connection, "conversation_id IN (SELECT unnest(?))", [kept])


def _erase_contents(connection: Connection, ids: Collection[int], turns: list[int]) -> None:
    here = connection.column_in("exchange_message", "message_id", turns, "exchange_id")
    messages = messages_in(connection, here)
    calls = {
        (each.conversation_id, block.call_id)
        for each in messages.values()
        if each.id not in ids
        for block in each.blocks
        if isinstance(block, ToolCall)
    }
    rewrite_messages(
        connection, [_without_content(each, calls) for key, each in messages.items() if key in ids]
    )
    connection.delete_in("message_file", "message_id", ids)
    connection.execute(
        "INSERT OR IGNORE INTO forgotten_message SELECT l.exchange_id, m.id, m.conversation_id "
        "FROM exchange_message l JOIN message m ON m.id = l.message_id "
        "WHERE m.id IN (SELECT unnest(?))",
        [list(ids)],
    )


def _without_content(message: Message, calls: Collection[tuple[int, str]]) -> Message:
    """Return a message without content; a result whose call is left stays one."""
    if message.role is Role.TOOL and any(
        isinstance(block, ToolResult) and (message.conversation_id, block.call_id) in calls
        for block in message.blocks
    ):
        blocks = tuple(
            replace(block, text=FORGOTTEN) if isinstance(block, ToolResult) else block
            for block in message.blocks
        )
        return replace(message, blocks=blocks, raw=None)
    return replace(message, blocks=(Forgotten(),), raw=None)


def _erase_derived(
    connection: Connection, conversation_ids: Collection[int], turns: list[int], position: int
) -> None:
    """Delete summaries, saved texts, and the tags that a summarizer gave, with their passages."""
    given = [turns, list(conversation_ids)]
    passages = connection.column(
        f"SELECT id FROM passage WHERE ({_OF_TURNS} AND kind IN "
        "('exchange_summary', 'tool_summary', 'memory')) "
        f"OR ({_OF_THEM} AND kind = 'conversation_summary')",
        given,
    )
    remove_passages(connection, passages, position)
    connection.execute(
        "DELETE FROM summary WHERE (kind = 'exchange' AND source_id IN (SELECT unnest($1))) "
        f"OR (kind <> 'exchange' AND {_OF_THEM})",
        given,
    )
    for table in ("tool_summary", "memory", "memory_write", "extraction"):
        connection.delete_in(table, "exchange_id", turns)
    connection.execute(f"DELETE FROM tag WHERE {OF_CONVERSATIONS} AND automatic", given[1:])


def passages_beside(connection: Connection, turns: list[int]) -> set[int]:
    """Return the passages of the turns before and after some turns."""
    found = connection.column(
        "SELECT id FROM passage WHERE kind = 'turn' AND source_id IN (SELECT id FROM exchange "
        "WHERE parent_id IN (SELECT unnest($1)) UNION SELECT parent_id FROM exchange "
        "WHERE id IN (SELECT unnest($1)))",
        [turns],
    )
    return set(found)


def renew_turns(
    connection: Connection, turns: list[int], beside: Collection[int], position: int
) -> None:
    """Calculate the passages of turns again, and have those `beside` them indexed again."""
    known: dict[int, int] = dict(
        connection.select_in("passage", "source_id, id", turns, "source_id", "AND kind = 'turn'")
    )
    gone: list[int] = []
    changed: list[Row] = []
    exchanges = exchanges_where(connection, "id IN (SELECT unnest(?))", [[*known]])
    for exchange, here in _with_messages(connection, exchanges):
        own = known[exchange.id]
        if (passage := turn_passage(PassageId(own), exchange, here)) is None:
            gone.append(own)
        else:
            changed.append((own, passage.content_hash, passage.tokens))
    remove_passages(connection, gone, position)
    connection.update_rows("passage", "id, content_hash, tokens", changed)
    renew_passages(connection, [*{own for own, *_ in changed}.union(beside)], position)


def _redact_own_prompts(
    connection: Connection,
    conversation_ids: Collection[int],
    turns: Sequence[int],
    deleted: DeletionSet,
) -> None:
    """Delete stored prompt texts that quote the turns, and those that stood for them."""
    own = list(conversation_ids)
    owned = connection.select_in("prompt_text", "hash, text", own, "conversation_id")
    gone = {digest for digest, text in owned if any(map(deleted.text.matches, text.split("\n")))}
    passages = connection.column_in("passage", "id", turns, "exchange_id") | deleted.passages
    quoting = connection.column(
        "SELECT parts FROM prompt WHERE (exchange_id, sent_at) IN (SELECT (exchange_id, sent_at) "
        "FROM recalled WHERE passage_id IN (SELECT unnest($1)) "
        "OR source_exchange_id IN (SELECT unnest($2)))",
        [list(passages), list(turns)],
    )
    compacted = connection.column(
        f"SELECT parts FROM prompt WHERE {OF_CONVERSATIONS} AND contains(parts, $2)",
        [own, f'"{PlanPartKind.COMPACTION}"'],
    )
    for part in _parts(quoting):
        gone |= {piece.text for piece in part.pieces if piece.passage_id in passages}
    for part in _parts(compacted):
        if part.kind is PlanPartKind.COMPACTION:
            gone |= {piece.text for piece in part.pieces}
    connection.execute(
        f"DELETE FROM prompt_text WHERE {OF_CONVERSATIONS} AND hash IN (SELECT unnest($2))",
        [own, list(gone)],
    )


def _parts(plans: Iterable[str]) -> Iterable[PlanPart]:
    for parts in plans:
        plan: _Plan = codec.loads(_Plan, parts)
        yield from plan


def _replace_titles(
    connection: Connection, titles: Mapping[ConversationId, str], position: int
) -> None:
    changed = connection.column(
        "UPDATE conversation SET title = new.title, title_origin = $3 FROM "
        "(SELECT unnest($1) AS id, unnest($2) AS title) AS new WHERE conversation.id = new.id "
        "AND conversation.title <> new.title AND title_origin IN (SELECT unnest($4)) "
        "RETURNING conversation.id",
        [[*titles], [*titles.values()], TitleOrigin.FIRST_WORDS.value, [*_MADE_TITLES]],
    )
    index_again(connection, "conversation_id", changed, position)
