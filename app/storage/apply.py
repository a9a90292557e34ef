"""Application of changes: journal records become rows, in a live write as in a replay.

Applying a record again, or a run of them from any older position to the end, changes nothing. What
each kind of record needs is in `app.storage.tables`.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.domain import codec
from app.domain.changes import (
    Change,
    ConversationForgotten,
    Deletion,
    MessagesForgotten,
    ValueForgotten,
)
from app.storage.deletion.deletion_set import conversation_deletion_set, fact_deletion_set
from app.storage.deletion.messages import erase_messages
from app.storage.deletion.redaction import redact_messages, redact_prompts
from app.storage.deletion.values import erase_value
from app.storage.engine.aggregate import (
    OF_CONVERSATIONS,
    Aggregate,
    Batch,
    Rule,
    State,
    delete_where_in,
    read_state,
    select_in,
)
from app.storage.engine.database import Connection
from app.storage.tables.attempts import ATTEMPTS
from app.storage.tables.conversations import CONVERSATIONS, ORIGINS, hides
from app.storage.tables.documents import DOCUMENTS, erase_documents
from app.storage.tables.exchanges import EXCHANGES
from app.storage.tables.fact_rows import FACTS, delete_facts, delete_facts_where
from app.storage.tables.fact_visibility import (
    update_after_hiding,
    update_after_put,
    update_fact_passages,
)
from app.storage.tables.forgotten import FORGOTTEN_UIDS, keep_uids, keep_uids_of_conversations
from app.storage.tables.memories import MEMORIES, delete_wordings
from app.storage.tables.passage_rows import PASSAGES
from app.storage.tables.presets import PRESETS
from app.storage.tables.profile import PROFILES, drop_unsupported_lines
from app.storage.tables.projects import PROJECTS
from app.storage.tables.prompts import PROMPTS
from app.storage.tables.routines import ROUTINES
from app.storage.tables.settings import PROBES, SETTINGS_TABLES
from app.storage.tables.spaces import SPACES
from app.storage.tables.spending import SPENDING
from app.storage.tables.summaries import SUMMARIES
from app.storage.tables.topics import TOPICS, clear_topic_names

_KEEP_INDEX = (
    "INSERT OR IGNORE INTO meta SELECT 'unindexed_at', "
    "coalesce((SELECT value FROM meta WHERE key = 'forgotten_at'), '0')"
)
_OWE = "INSERT OR REPLACE INTO erasure VALUES (?, ?)"
AGGREGATES: Sequence[Aggregate] = (
    CONVERSATIONS, EXCHANGES, PASSAGES, ORIGINS, SETTINGS_TABLES, PRESETS, PROJECTS, SUMMARIES,
    SPENDING, FACTS, MEMORIES, PROFILES, PROMPTS, DOCUMENTS, ATTEMPTS, ROUTINES, TOPICS,
    FORGOTTEN_UIDS,
)  # fmt: skip
"""In the order of writing; rows are erased in the opposite order, dependent rows first."""


def _forgotten(batch: Batch, change: ConversationForgotten) -> None:
    batch.rows["forgotten_conversation"][change.conversation_id] = batch.position
    batch.announce("conversations", change.conversation_id)
    batch.announce("messages_in", change.conversation_id)
    batch.announce("settings", PROBES)
    batch.mark("memory", "passages")


def _messages_forgotten(batch: Batch, change: MessagesForgotten) -> None:
    batch.rows["forgotten_message_content"][batch.position, batch.place] = change
    batch.announce("conversations", change.conversation_id)
    batch.announce("messages_in", change.conversation_id)
    batch.announce("settings", PROBES)
    batch.mark("memory", "passages")


def _value_forgotten(batch: Batch, change: ValueForgotten) -> None:
    batch.rows["forgotten_value"][change.value] = batch.position
    batch.announce("settings", PROBES, "system_prompt", "document_folders")
    batch.mark("memory", "passages")


_FOLDS: Mapping[type, Callable[[Batch, Any], None]] = {
    change: fold for aggregate in AGGREGATES for change, fold in aggregate.folds.items()
} | {
    ConversationForgotten: _forgotten,
    MessagesForgotten: _messages_forgotten,
    ValueForgotten: _value_forgotten,
}

Records = list[tuple[int, tuple[Change, ...]]]
"""(position, changes) in order."""

_STATE_RULES = (
    *(
        Rule(
            f"state.{table}",
            f"The counter of {table}s is behind the {table} {{}}.",
            f"SELECT max(t.id) FROM {table} t HAVING max(t.id) > (SELECT max({table}) FROM state)",
            f"UPDATE state SET {table} = greatest({table}, list_max($1))",
        )
        for table in State._fields[1:]
    ),
    Rule(
        "state.position",
        "The position of the database is behind record {}, which it contains.",
        "SELECT max(p) FROM (SELECT max(position) AS p FROM exchange UNION ALL "
        "SELECT max(position) FROM passage UNION ALL SELECT max(position) FROM spend UNION ALL "
        "SELECT max(position) FROM spend_held) HAVING max(p) > (SELECT max(position) FROM state)",
    ),
    Rule(
        "state.rows",
        "The database has {} rows of state instead of one.",
        "SELECT count(*) FROM state HAVING count(*) <> 1",
    ),
)
RULES: Sequence[Rule] = (
    # Spaces come first: dropping passages writes to the table of each.
    *SPACES.rules,
    *(rule for aggregate in AGGREGATES for rule in aggregate.rules),
    *_STATE_RULES,
)


def fold(records: Records, throttle: Callable[[], None] = lambda: None) -> Batch:
    """Return the rows that records come to; `throttle` is called before each.

    So a thousand imported exchanges become one statement for each table, and a row that changed
    twice is written once.
    """
    batch = Batch()
    for batch.position, changes in records:
        throttle()
        batch.news.append(defaultdict(set))
        for batch.place, change in enumerate(changes):
            _FOLDS[type(change)](batch, change)
    return batch


def apply_records(
    connection: Connection, records: Records, throttle: Callable[[], None] = lambda: None
) -> Batch:
    """Write records inside the caller's transaction.

    A deletion ends a batch: it deletes what was written before it, and nothing that came later.
    """
    written = Batch()
    run: Records = []
    for record in records:
        run.append(record)
        if forgotten := tuple(each for each in record[1] if isinstance(each, Deletion)):
            written.news += _apply_together(connection, run, throttle).news
            connection.execute(_OWE, [record[0], codec.dumps(forgotten)])
            run = []
    if run or not records:
        written.news += _apply_together(connection, run, throttle).news
    return written


def _apply_together(
    connection: Connection, records: Records, throttle: Callable[[], None]
) -> Batch:
    batch = fold(records, throttle)
    state = read_state(connection)
    for aggregate in AGGREGATES:
        if aggregate.write is not None:
            aggregate.write(connection, batch, state)
        else:
            for table in aggregate.tables:
                table.write(connection, batch.rows[table.name], state)
    positions: list[int] = []
    if wordings := batch.rows["forgotten_core_memory"]:
        positions.append(max(wordings.values()))
        delete_wordings(connection, list(wordings), list(batch.rows["unwritten_texts"]))
    for change in batch.rows["forgotten_message_content"].values():
        positions.append(batch.position)
        erase_messages(connection, change, batch.position)
    for value in batch.rows["forgotten_value"]:
        positions.append(batch.position)
        conversations = erase_value(connection, value, batch.position)
        batch.announce("conversations", *conversations)
        batch.announce("messages_in", *conversations)
    if documents := batch.rows["forgotten_document"]:
        positions.append(max(documents.values()))
        erase_documents(connection, list(documents), positions[-1])
    if is_unindexed := _are_unindexed(connection, batch):
        connection.execute(_KEEP_INDEX)
    for name in ("fact", "memory", "conversation"):
        if forgotten := batch.rows[f"forgotten_{name}"]:
            positions.append(max(forgotten.values()))
            if name == "conversation":
                _erase_conversations(connection, list(forgotten), positions[-1])
            else:
                _erase_known(connection, name, batch, positions[-1])
    if positions:
        forgotten_at = [str(max(positions))]
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('forgotten_at', ?)", forgotten_at)
        if not is_unindexed:
            connection.execute(
                "INSERT OR REPLACE INTO meta VALUES ('unindexed_at', ?)", forgotten_at
            )
    _update_hidden(connection, batch)
    _advance(connection, batch)
    return batch


def _are_unindexed(connection: Connection, batch: Batch) -> bool:
    """Return whether no index has words of what is forgotten: it is private, or core memory."""
    indexed = (
        "forgotten_fact", "forgotten_memory", "forgotten_message_content", "forgotten_value",
        "forgotten_document",
    )  # fmt: skip
    if any(batch.rows[each] for each in indexed):
        return False
    if batch.rows["forgotten_core_memory"]:
        return True
    ids = list(batch.rows["forgotten_conversation"])
    if not ids:
        return False
    private = select_in(connection, "conversation", "count(*)", ids, rest="AND private")
    return private == [(len(ids),)]


def _erase_conversations(connection: Connection, ids: list[int], position: int) -> None:
    """Delete every row of conversations; `app.storage.deletion.forget` removes the bytes."""
    keep_uids_of_conversations(connection, ids)
    redact_messages(connection, conversation_deletion_set(connection, ids), position)
    changed_facts = delete_facts_where(connection, OF_CONVERSATIONS, ids)
    for aggregate in reversed(AGGREGATES):
        if aggregate.erase is not None:
            aggregate.erase(connection, ids, position)
            continue
        for table in aggregate.tables:
            if table.erased:
                connection.execute(f"DELETE FROM {table.name} WHERE {table.erased}", [ids])
    update_fact_passages(connection, changed_facts, position)


def _erase_known(connection: Connection, table: str, batch: Batch, position: int) -> None:
    """Delete facts or memories; some texts and uids that they had may never have been written."""
    ids = list(batch.rows[f"forgotten_{table}"])
    unwritten, uids = list(batch.rows["unwritten_texts"]), list(batch.rows["unwritten_uids"])
    keep_uids(connection, table, ids, uids)
    redact_messages(connection, fact_deletion_set(connection, table, ids, unwritten), position)
    redact_prompts(connection, table, ids, unwritten)
    if table == "fact":
        update_fact_passages(connection, delete_facts(connection, ids), position)
        drop_unsupported_lines(connection)
    else:
        delete_where_in(connection, table, "id", ids)
    delete_where_in(connection, "feedback", "passage_id", ids)


def _update_hidden(connection: Connection, batch: Batch) -> None:
    """Keep exactly the passages of current facts, and names of topics that quote nothing hidden."""
    hidden = [edit.conversation_id for edit in batch.rows["edits"].values() if hides(edit)]
    if hidden:
        update_after_hiding(connection, hidden, batch.position)
        clear_topic_names(connection, hidden)
    if batch.rows["fact"]:
        update_after_put(connection, batch.rows["fact"], batch.position)


def _advance(connection: Connection, batch: Batch) -> None:
    rows = batch.rows
    highest = [
        max(rows["conversation"], default=0),
        max(rows["exchange"], default=0),
        max((*rows["message"], *rows["running_message"]), default=0),
        # An id is used up by a removed passage, and by a fact that never had a passage.
        max((*rows["passage"], *rows["passage_gone"], *rows["fact"]), default=0),
    ]
    connection.execute(
        "UPDATE state SET position = greatest(position, ?), conversation = greatest(conversation, ?),"
        " exchange = greatest(exchange, ?), message = greatest(message, ?),"
        " passage = greatest(passage, ?)",
        [batch.position, *highest],
    )
