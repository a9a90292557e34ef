"""Application of changes: journal records become rows, in a live write as in a replay.

Applying a record again, or a run of them from any older position to the end, changes nothing. What
each kind of record needs is in `app.storage.tables`.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.domain import codec
from app.domain.changes import Change
from app.domain.deletions import (
    ConversationForgotten,
    CoreMemoryForgotten,
    Deletion,
    DocumentsForgotten,
    FactForgotten,
    MemoryForgotten,
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
    Fold,
    Rule,
    State,
    read_state,
)
from app.storage.engine.connection import REPLACE, Connection
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
from app.storage.tables.imports import IMPORTS
from app.storage.tables.memories import MEMORIES, delete_wordings
from app.storage.tables.passages.rows import PASSAGES
from app.storage.tables.passages.spaces import SPACES
from app.storage.tables.profile import PROFILES, drop_unsupported_lines
from app.storage.tables.projects import PRESETS, PROJECTS
from app.storage.tables.prompts import PROMPTS
from app.storage.tables.routines import ROUTINES
from app.storage.tables.settings import PROBES, SETTINGS_TABLES
from app.storage.tables.spending import SPENDING
from app.storage.tables.summaries import SUMMARIES
from app.storage.tables.topics import TOPICS, clear_topic_names

_OWE = "INSERT OR REPLACE INTO erasure VALUES (?, ?)"
AGGREGATES: Sequence[Aggregate] = (
    CONVERSATIONS, EXCHANGES, PASSAGES, ORIGINS, SETTINGS_TABLES, PRESETS, PROJECTS, SUMMARIES,
    SPENDING, FACTS, MEMORIES, PROFILES, PROMPTS, DOCUMENTS, ATTEMPTS, ROUTINES, TOPICS,
    IMPORTS, FORGOTTEN_UIDS,
)  # fmt: skip
"""In the order of writing; rows are erased in the opposite order, dependent rows first."""


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


def apply_records(
    connection: Connection, records: Records, throttle: Callable[[], None] = lambda: None
) -> Batch:
    """Write records inside the caller's transaction; `throttle` is called before each.

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
    # A thousand imported exchanges become one statement for each table, and a row that changed twice is written once.
    batch = Batch()
    for batch.position, changes in records:
        throttle()
        batch.news.append(defaultdict(set))
        for batch.place, change in enumerate(changes):
            _FOLDS[type(change)](batch, change)
    state = read_state(connection)
    for aggregate in AGGREGATES:
        if aggregate.write is not None:
            aggregate.write(connection, batch, state)
        else:
            for table in aggregate.tables:
                table.write(connection, batch.rows[table.name], state)
    if batch.deletions:
        _delete(connection, batch)
    _update_hidden(connection, batch)
    _advance(connection, batch)
    return batch


# -- deletions


def _delete(connection: Connection, batch: Batch) -> None:
    by_kind: defaultdict[type[Deletion], list[Any]] = defaultdict(list)
    for each in batch.deletions:
        by_kind[type(each)].append(each)
    # No index has words of what is private, or of core memory.
    ids = [each.conversation_id for each in by_kind[ConversationForgotten]]
    private = connection.column_in("conversation", "id", ids, rest="AND private") if ids else ()
    unindexed = len(private) + len(by_kind[CoreMemoryForgotten])
    for kind, delete in _DELETIONS.items():
        if own := by_kind[kind]:
            delete(connection, own, batch)
    keys = ["forgotten_at"]
    if unindexed < len(batch.deletions):
        keys.append("unindexed_at")
    else:
        connection.execute(
            "INSERT OR IGNORE INTO meta SELECT 'unindexed_at', "
            "coalesce((SELECT value FROM meta WHERE key = 'forgotten_at'), '0')"
        )
    rows = [(each, str(batch.position)) for each in keys]
    connection.insert_rows("meta", "key, value", rows, REPLACE)


def _deletion(batch: Batch, change: Deletion) -> None:
    batch.deletions.append(change)
    batch.mark("memory", "passages")
    batch.announce("settings", PROBES)
    match change:
        case ConversationForgotten(conversation_id=each) | MessagesForgotten(conversation_id=each):
            batch.announce("conversations", each)
            batch.announce("messages_in", each)
        case FactForgotten(text_hash=refused):
            batch.rows["fact_refused"][refused] = (refused,)
        case ValueForgotten():
            batch.announce("settings", "system_prompt", "document_folders")


def _erase_conversations(
    connection: Connection, changes: Sequence[ConversationForgotten], batch: Batch
) -> None:
    """Delete every row of conversations; `app.storage.deletion.forget` removes the bytes."""
    ids: list[int] = [each.conversation_id for each in changes]
    keep_uids_of_conversations(connection, ids)
    redact_messages(connection, conversation_deletion_set(connection, ids), batch.position)
    changed_facts = delete_facts_where(connection, OF_CONVERSATIONS, ids)
    for aggregate in reversed(AGGREGATES):
        if aggregate.erase is not None:
            aggregate.erase(connection, ids, batch.position)
        for table in aggregate.tables:
            table.erase(connection, ids)
    update_fact_passages(connection, changed_facts, batch.position)


def _erase_known(
    connection: Connection, changes: Sequence[FactForgotten | MemoryForgotten], batch: Batch
) -> None:
    """Delete facts or memories with their verdicts and quotes; their uids are kept."""
    ids: list[int] = [
        each.fact_id if isinstance(each, FactForgotten) else each.memory_id for each in changes
    ]
    table, position = "fact" if isinstance(changes[0], FactForgotten) else "memory", batch.position
    keep_uids(connection, table, ids)
    redact_messages(connection, fact_deletion_set(connection, table, ids), position)
    redact_prompts(connection, table, ids)
    connection.delete_in("feedback", "passage_id", ids)
    if table == "memory":
        connection.delete_in("memory", "id", ids)
    else:
        update_fact_passages(connection, delete_facts(connection, ids), position)
        drop_unsupported_lines(connection)


def _erase_values(connection: Connection, changes: Sequence[ValueForgotten], batch: Batch) -> None:
    for change in changes:
        conversations = erase_value(connection, change.value, batch.position)
        batch.announce("conversations", *conversations)
        batch.announce("messages_in", *conversations)


_DELETIONS: Mapping[type[Deletion], Callable[[Connection, Any, Batch], None]] = {
    CoreMemoryForgotten: lambda connection, changes, _: delete_wordings(connection, changes),
    MessagesForgotten: lambda connection, changes, batch: erase_messages(
        connection, changes, batch.position
    ),
    ValueForgotten: _erase_values,
    DocumentsForgotten: lambda connection, changes, batch: erase_documents(
        connection, [own for each in changes for own in each.document_ids], batch.position
    ),
    FactForgotten: _erase_known,
    MemoryForgotten: _erase_known,
    ConversationForgotten: _erase_conversations,
}
"""What each deletion does to the rows, in this order; those of one record and kind together."""

_FOLDS: Mapping[type, Fold] = {
    **{change: fold for aggregate in AGGREGATES for change, fold in aggregate.folds.items()},
    **dict.fromkeys(_DELETIONS, _deletion),
}


def _update_hidden(connection: Connection, batch: Batch) -> None:
    """Keep exactly the passages of current facts, and names of topics that quote nothing hidden."""
    hidden = [each for each, edits in batch.rows["edits"].items() if any(map(hides, edits))]
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
