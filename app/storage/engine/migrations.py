"""The schema, as numbered steps: step N brings a database from version N to N + 1.

A step is never edited once released. Primary keys only: no foreign keys, no secondary indexes
(storage rule 1); `app.check` verifies what constraints would. Times are naive UTC timestamps.
"""

from collections.abc import Callable, Sequence
from itertools import groupby

import duckdb

from app.domain import codec
from app.domain.conversations import Block, Role, Text
from app.domain.ids import exchange_uid, summary_uid
from app.domain.turns import RECALL_MODEL, estimate_tokens, is_statement, turn_text
from app.storage.engine.connection import Connection
from app.storage.engine.earlier_imports import add_import_items
from app.storage.engine.stamps import from_db

Step = Callable[[Connection], None]


def _script(*statements: str) -> Step:
    def run(connection: Connection) -> None:
        for statement in statements:
            connection.execute(statement)

    return run


_FIRST_SCHEMA = _script(
    "CREATE TABLE meta (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL)",
    # One row: how far the journal is applied, and the highest id ever given of each kind.
    """CREATE TABLE state (only_row INTEGER PRIMARY KEY, position BIGINT NOT NULL,
       conversation BIGINT NOT NULL, exchange BIGINT NOT NULL, message BIGINT NOT NULL,
       passage BIGINT NOT NULL)""",
    "INSERT INTO state VALUES (0, 0, 0, 0, 0, 0)",
    """CREATE TABLE conversation (id BIGINT PRIMARY KEY, uid VARCHAR NOT NULL,
       title VARCHAR NOT NULL, title_origin VARCHAR NOT NULL, source VARCHAR NOT NULL,
       created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL, visible_leaf_id BIGINT,
       pinned BOOLEAN NOT NULL, archived BOOLEAN NOT NULL, private BOOLEAN NOT NULL,
       model VARCHAR, deleted_at TIMESTAMP)""",
    # Insert-only. `blocks` is NULL where the message is just its text; `raw` is the provider's own.
    """CREATE TABLE message (id BIGINT PRIMARY KEY, uid VARCHAR NOT NULL,
       conversation_id BIGINT NOT NULL, parent_id BIGINT, role VARCHAR NOT NULL,
       text VARCHAR NOT NULL, blocks VARCHAR, created_at TIMESTAMP NOT NULL, model VARCHAR,
       raw VARCHAR)""",
    """CREATE TABLE exchange (id BIGINT PRIMARY KEY, conversation_id BIGINT NOT NULL,
       parent_id BIGINT, turn_number INTEGER NOT NULL, segment_number INTEGER NOT NULL,
       status VARCHAR NOT NULL, started_at TIMESTAMP NOT NULL, completed_at TIMESTAMP,
       model VARCHAR, usage VARCHAR, problem VARCHAR, position BIGINT NOT NULL)""",
    """CREATE TABLE exchange_message (exchange_id BIGINT, place INTEGER,
       message_id BIGINT NOT NULL, PRIMARY KEY (exchange_id, place))""",
    """CREATE TABLE passage (id BIGINT PRIMARY KEY, kind VARCHAR NOT NULL,
       source_id BIGINT NOT NULL, conversation_id BIGINT, exchange_id BIGINT,
       content_hash VARCHAR NOT NULL, created_at TIMESTAMP NOT NULL,
       tokens INTEGER NOT NULL, position BIGINT NOT NULL)""",
    # Passages removed from the indexes, until every index has passed that position.
    "CREATE TABLE passage_gone (id BIGINT PRIMARY KEY, position BIGINT NOT NULL)",
    """CREATE TABLE tag (conversation_id BIGINT, name VARCHAR, automatic BOOLEAN NOT NULL,
       PRIMARY KEY (conversation_id, name))""",
    """CREATE TABLE origin (source VARCHAR, kind VARCHAR, source_id VARCHAR,
       local_id BIGINT NOT NULL, PRIMARY KEY (source, kind, source_id))""",
    """CREATE TABLE appconfig (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL)""",
    """CREATE TABLE provider (name VARCHAR PRIMARY KEY, kind VARCHAR NOT NULL, base_url VARCHAR,
       key_env VARCHAR, allow_plain_http BOOLEAN NOT NULL)""",
    """CREATE TABLE summary (kind VARCHAR, source_id BIGINT, made_at TIMESTAMP,
       conversation_id BIGINT NOT NULL, text VARCHAR NOT NULL, model VARCHAR NOT NULL,
       source_hash VARCHAR NOT NULL, latest BOOLEAN NOT NULL,
       PRIMARY KEY (kind, source_id, made_at))""",
    """CREATE TABLE draft (conversation_id BIGINT PRIMARY KEY, text VARCHAR NOT NULL,
       saved_at TIMESTAMP NOT NULL)""",
    """CREATE TABLE spend (position BIGINT, place INTEGER, spent_at TIMESTAMP NOT NULL,
       purpose VARCHAR NOT NULL, model VARCHAR NOT NULL, input_tokens BIGINT NOT NULL,
       output_tokens BIGINT NOT NULL, cached_tokens BIGINT NOT NULL, cost_usd DOUBLE,
       exchange_id BIGINT, PRIMARY KEY (position, place))""",
    # A worker's failures: tried again at `next_at`, abandoned when that is NULL.
    """CREATE TABLE attempt (worker VARCHAR, item_id BIGINT, tries INTEGER NOT NULL,
       next_at TIMESTAMP, error VARCHAR NOT NULL, PRIMARY KEY (worker, item_id))""",
)

# The embedding spaces; each has a table of its own, made when it is first used (`spaces`).
_SPACES = _script(
    """CREATE TABLE space (name VARCHAR PRIMARY KEY, dimension INTEGER NOT NULL,
       max_tokens INTEGER NOT NULL, model VARCHAR NOT NULL, begun_at TIMESTAMP NOT NULL,
       background_mean DOUBLE, background_deviation DOUBLE)"""
)

# The system's manual, derived: `stamp` is a page as it is listed, `read_stamp` as it was read.
_MAN_PAGES = _script(
    """CREATE TABLE man_page (id BIGINT PRIMARY KEY, name VARCHAR NOT NULL,
       section VARCHAR NOT NULL, summary VARCHAR NOT NULL, stamp VARCHAR NOT NULL,
       changed_at TIMESTAMP NOT NULL, read_stamp VARCHAR, text VARCHAR, content_hash VARCHAR)"""
)

# Extracted facts, memories and tool summaries have their passage's id.
_LEARNED = _script(
    """CREATE TABLE fact (id BIGINT PRIMARY KEY, uid VARCHAR NOT NULL, text VARCHAR NOT NULL,
       category VARCHAR NOT NULL, subject VARCHAR NOT NULL, conversation_id BIGINT,
       exchange_id BIGINT, message_id BIGINT, said_at TIMESTAMP NOT NULL, model VARCHAR NOT NULL,
       made_at TIMESTAMP NOT NULL, valid_until TIMESTAMP, superseded_by BIGINT,
       pinned BOOLEAN NOT NULL)""",
    # Every version of a fact, with the turn it came from.
    """CREATE TABLE fact_version (fact_id BIGINT, made_at TIMESTAMP, text VARCHAR NOT NULL,
       category VARCHAR NOT NULL, model VARCHAR NOT NULL, conversation_id BIGINT,
       exchange_id BIGINT, message_id BIGINT, said_at TIMESTAMP NOT NULL,
       PRIMARY KEY (fact_id, made_at))""",
    "CREATE TABLE fact_refused (text_hash VARCHAR PRIMARY KEY)",
    """CREATE TABLE extraction (exchange_id BIGINT PRIMARY KEY, conversation_id BIGINT NOT NULL,
       source_hash VARCHAR NOT NULL, model VARCHAR NOT NULL, facts INTEGER NOT NULL,
       made_at TIMESTAMP NOT NULL)""",
    """CREATE TABLE memory (id BIGINT PRIMARY KEY, uid VARCHAR NOT NULL, text VARCHAR NOT NULL,
       saved_at TIMESTAMP NOT NULL, conversation_id BIGINT, exchange_id BIGINT)""",
    """CREATE TABLE core_memory (made_at TIMESTAMP PRIMARY KEY, text VARCHAR NOT NULL,
       author VARCHAR NOT NULL)""",
    """CREATE TABLE tool_summary (id BIGINT PRIMARY KEY, conversation_id BIGINT NOT NULL,
       exchange_id BIGINT NOT NULL, message_id BIGINT NOT NULL, call_number INTEGER NOT NULL,
       text VARCHAR NOT NULL, model VARCHAR NOT NULL, made_at TIMESTAMP NOT NULL)""",
)

# What was recalled and sent. A prompt's texts are stored once, by their hash, under the conversation
# they quote (0: none), so that forgetting the conversation removes them.
_RECALLED = _script(
    """CREATE TABLE prompt (exchange_id BIGINT, sent_at TIMESTAMP, conversation_id BIGINT NOT NULL,
       model VARCHAR NOT NULL, limit_tokens BIGINT NOT NULL, result_chars BIGINT NOT NULL,
       notice VARCHAR NOT NULL, parts VARCHAR NOT NULL, PRIMARY KEY (exchange_id, sent_at))""",
    """CREATE TABLE prompt_text (hash VARCHAR, conversation_id BIGINT, text VARCHAR NOT NULL,
       PRIMARY KEY (hash, conversation_id))""",
    """CREATE TABLE recalled (exchange_id BIGINT, sent_at TIMESTAMP, place INTEGER,
       asked_in BIGINT NOT NULL, layer VARCHAR NOT NULL, kind VARCHAR NOT NULL,
       passage_id BIGINT NOT NULL, conversation_id BIGINT, source_exchange_id BIGINT,
       message_id BIGINT, relevance DOUBLE NOT NULL, cosine DOUBLE, coverage DOUBLE NOT NULL,
       tokens INTEGER NOT NULL, injected BOOLEAN NOT NULL, dropped_by VARCHAR NOT NULL,
       PRIMARY KEY (exchange_id, sent_at, place))""",
    """CREATE TABLE feedback (passage_id BIGINT PRIMARY KEY, verdict VARCHAR NOT NULL,
       given_at TIMESTAMP NOT NULL)""",
    "ALTER TABLE conversation ADD COLUMN recalls BOOLEAN DEFAULT true",
)

# Reservations of requests under way, each with its maximum cost; and whether spend is estimated.
_HELD_SPEND = _script(
    """CREATE TABLE spend_held (uid VARCHAR PRIMARY KEY, position BIGINT NOT NULL,
       held_at TIMESTAMP NOT NULL, purpose VARCHAR NOT NULL, model VARCHAR NOT NULL,
       input_tokens BIGINT NOT NULL, output_tokens BIGINT NOT NULL, cost_usd DOUBLE)""",
    "ALTER TABLE spend ADD COLUMN estimated BOOLEAN DEFAULT false",
)

# `tools` are names, separated by spaces; NULL for all.
_PRESETS = _script(
    """CREATE TABLE preset (uid VARCHAR PRIMARY KEY, name VARCHAR NOT NULL,
       system_prompt VARCHAR NOT NULL, model VARCHAR, temperature DOUBLE, reasoning_effort VARCHAR,
       max_output_tokens BIGINT, tools VARCHAR)""",
    "ALTER TABLE conversation ADD COLUMN preset VARCHAR",
)

# The attached files of messages, so that unreferenced ones are found without reading every message.
_ATTACHMENTS = _script(
    """CREATE TABLE message_file (message_id BIGINT, content_hash VARCHAR,
       PRIMARY KEY (message_id, content_hash))""",
    "ALTER TABLE draft ADD COLUMN files VARCHAR DEFAULT '[]'",
)

# What models wrote to memory, so that the user can take it back or keep what was proposed.
_MEMORY_WRITES = _script(
    """CREATE TABLE memory_write (uid VARCHAR PRIMARY KEY, conversation_id BIGINT NOT NULL,
       exchange_id BIGINT NOT NULL, model VARCHAR NOT NULL, written_at TIMESTAMP NOT NULL,
       state VARCHAR NOT NULL, memory_id BIGINT, old VARCHAR NOT NULL, new VARCHAR NOT NULL,
       outside VARCHAR NOT NULL)"""
)

# The accepted versions of the profile; the last review with its proposal; what the user rejected.
_PROFILE = _script(
    """CREATE TABLE profile (made_at TIMESTAMP PRIMARY KEY, author VARCHAR NOT NULL,
       lines VARCHAR NOT NULL)""",
    """CREATE TABLE profile_review (only_row INTEGER PRIMARY KEY, made_at TIMESTAMP NOT NULL,
       facts_key VARCHAR NOT NULL, author VARCHAR NOT NULL, proposed_at TIMESTAMP, lines VARCHAR)""",
    "CREATE TABLE profile_rejected (text_hash VARCHAR PRIMARY KEY)",
)


def _statements(connection: Connection) -> None:
    """Count the tokens of statements without a reply: they are memory now. Others keep 0."""
    rows = connection.rows(
        "SELECT p.id, m.role, m.text, m.blocks FROM passage p JOIN exchange e ON e.id = p.source_id "
        "JOIN exchange_message o ON o.exchange_id = e.id JOIN message m ON m.id = o.message_id "
        "WHERE p.kind = 'turn' AND p.tokens = 0 AND e.status <> 'running' "
        "AND m.model IS DISTINCT FROM ? ORDER BY p.id, o.place",
        [RECALL_MODEL],
    )
    for passage_id, messages in groupby(rows, lambda row: row[0]):
        words = turn_text(
            (
                Role(role),
                (Text(text),) if blocks is None else codec.loads(tuple[Block, ...], blocks),
            )
            for _, role, text, blocks in messages
        )
        if is_statement(words):
            connection.execute(
                "UPDATE passage SET tokens = ? WHERE id = ?",
                [estimate_tokens(words.embedded), passage_id],
            )


# What was measured of a space, as one text; every space is measured again.
_SPACE_TRAITS = _script(
    "ALTER TABLE space DROP COLUMN background_mean",
    "ALTER TABLE space DROP COLUMN background_deviation",
    "ALTER TABLE space ADD COLUMN traits VARCHAR",
)

_SPACE_SCALE = _script("UPDATE space SET traits = NULL")  # measured in another unit before

# Which messages were forgotten, by exchange: rarely any.
_FORGOTTEN_MESSAGES = _script(
    """CREATE TABLE forgotten_message (exchange_id BIGINT, message_id BIGINT,
       conversation_id BIGINT NOT NULL, PRIMARY KEY (exchange_id, message_id))"""
)

_ORPHANED_PROMPT_TEXTS = _script(
    "DELETE FROM prompt_text WHERE hash NOT IN "
    "(SELECT unnest(regexp_extract_all(parts, '[0-9a-f]{32}')) FROM prompt)"
)

_UIDS = _script(
    "ALTER TABLE exchange ADD COLUMN uid VARCHAR DEFAULT ''",
    "ALTER TABLE summary ADD COLUMN uid VARCHAR DEFAULT ''",
    "CREATE TABLE forgotten_uid (uid VARCHAR PRIMARY KEY)",
)

# What was forgotten and still has bytes in the files: the changes by the journal's position, NULL from an
# earlier version, which kept only the position, '' once the backups are clean.
_ERASURE = _script(
    "CREATE TABLE erasure (position BIGINT PRIMARY KEY, changes VARCHAR)",
    """INSERT INTO erasure SELECT f.value::BIGINT, NULL FROM meta f WHERE f.key = 'forgotten_at'
       AND f.value::BIGINT > coalesce(
           (SELECT e.value::BIGINT FROM meta e WHERE e.key = 'erased_until'), 0)""",
    "DELETE FROM meta WHERE key = 'erased_until'",
)


def _fill_uids(connection: Connection) -> None:
    """Give earlier exchanges and summaries the uids that their records would get if replayed."""
    for table, key, source, time, uid_of in (
        ("exchange", "conversation_id", "id", "started_at", exchange_uid),
        ("summary", "kind", "source_id", "made_at", summary_uid),
    ):
        rows = connection.rows(f"SELECT {key}, {source}, {time} FROM {table} WHERE uid = ''")
        if rows:
            uids = [uid_of(each, number, from_db(at)) for each, number, at in rows]
            connection.execute(
                f"UPDATE {table} SET uid = new.uid FROM (SELECT unnest($1) AS a, unnest($2) AS b, "
                f"unnest($3) AS c, unnest($4) AS uid) AS new WHERE {table}.{key} = new.a "
                f"AND {table}.{source} = new.b AND {table}.{time} = new.c",
                [*(list(column) for column in zip(*rows, strict=True)), uids],
            )


_PROJECTS = _script(
    """CREATE TABLE project (uid VARCHAR PRIMARY KEY, name VARCHAR NOT NULL,
       instructions VARCHAR NOT NULL, color VARCHAR NOT NULL, folder VARCHAR,
       recall VARCHAR NOT NULL)""",
    "ALTER TABLE conversation ADD COLUMN project VARCHAR",
)

_ROUTINES = _script(
    """CREATE TABLE routine (uid VARCHAR PRIMARY KEY, name VARCHAR NOT NULL, prompt VARCHAR NOT NULL,
       cron VARCHAR NOT NULL, created_at TIMESTAMP NOT NULL, enabled_at TIMESTAMP, model VARCHAR,
       preset VARCHAR, cap_usd DOUBLE, is_private BOOLEAN NOT NULL, agreed_to VARCHAR NOT NULL)""",
    """CREATE TABLE routine_run (routine_uid VARCHAR, due_at TIMESTAMP, started_at TIMESTAMP,
       finished_at TIMESTAMP, outcome VARCHAR, why VARCHAR NOT NULL, missed INTEGER NOT NULL,
       conversation_id BIGINT, exchange_id BIGINT, is_manual BOOLEAN NOT NULL,
       PRIMARY KEY (routine_uid, due_at))""",
)

_TOPICS = _script(
    # Derived: a name is "" until it is made again.
    "CREATE TABLE topic (id BIGINT PRIMARY KEY, name VARCHAR NOT NULL, parent_id BIGINT)",
    """CREATE TABLE topic_member (conversation_id BIGINT PRIMARY KEY, topic_id BIGINT NOT NULL,
       strength FLOAT NOT NULL)""",
    # What the user decided.
    """CREATE TABLE topic_choice (id BIGINT PRIMARY KEY, name VARCHAR NOT NULL,
       is_hidden BOOLEAN NOT NULL, merged_into BIGINT)""",
)

_ROUTINE_PROJECT = _script("ALTER TABLE routine ADD COLUMN project VARCHAR")

# Files and manual pages with their chunks, derived: `stamp` is a document as it is listed, `read_stamp`
# as it was read, `why` the reason why not in full. Chunks without a hash are not searched.
_DOCUMENTS = _script(
    """CREATE TABLE document (id BIGINT PRIMARY KEY, kind VARCHAR NOT NULL, name VARCHAR NOT NULL,
       title VARCHAR NOT NULL, stamp VARCHAR NOT NULL, changed_at TIMESTAMP NOT NULL,
       read_stamp VARCHAR, why VARCHAR DEFAULT '', pages INTEGER, project VARCHAR)""",
    """CREATE TABLE document_chunk (id BIGINT PRIMARY KEY, document_id BIGINT NOT NULL,
       place INTEGER NOT NULL, start BIGINT NOT NULL, page INTEGER, heading VARCHAR NOT NULL,
       text VARCHAR NOT NULL, content_hash VARCHAR)""",
    """INSERT INTO document SELECT id, 'man_page', name || '.' || section, name || '(' || section || ')'
       || CASE summary WHEN '' THEN '' ELSE ' \N{EN DASH} ' || summary END, stamp, changed_at,
       read_stamp, '', NULL, NULL FROM man_page""",
    """INSERT INTO document_chunk SELECT id, id, 0, 0, NULL, summary, text, content_hash
       FROM man_page WHERE text IS NOT NULL""",
    "DROP TABLE man_page",
)

_TOPIC_AUTHORS = _script("ALTER TABLE topic ADD COLUMN named_by VARCHAR DEFAULT ''")

# Where passages of former versions of files were, which answers quote and link.
_FORMER_PASSAGES = _script(
    """CREATE TABLE former_passage (id BIGINT PRIMARY KEY, document_id BIGINT NOT NULL,
       start BIGINT NOT NULL, name VARCHAR NOT NULL, title VARCHAR NOT NULL, project VARCHAR)"""
)

# By which they are found in a file that was moved.
_FORMER_HASHES = _script("ALTER TABLE former_passage ADD COLUMN content_hash VARCHAR")

# Stamps counted only completed exchanges; what has not changed since is not to be summarized again.
_STAMPS_OF_ENDED = _script(
    """UPDATE summary SET source_hash = turns.stamp FROM (
       SELECT conversation_id, count(*) FILTER (status = 'completed') || ':' ||
       coalesce(epoch_us(max(completed_at) FILTER (status = 'completed')), 0) || suffix AS former,
       count(*) || ':' || epoch_us(max(coalesce(completed_at, started_at))) || suffix AS stamp
       FROM (SELECT *, coalesce((SELECT ':' || count(*) FROM forgotten_message f WHERE
       f.conversation_id = e.conversation_id HAVING count(*) > 0), '') AS suffix FROM exchange e)
       WHERE status <> 'running' GROUP BY conversation_id, suffix) AS turns
       WHERE kind = 'conversation' AND source_id = turns.conversation_id
       AND source_hash = turns.former"""
)

# The sample archive was imported as any other; in each library its conversations have these uids.
_SAMPLE_SOURCE = _script(
    """UPDATE conversation SET source = 'sample' WHERE source = 'chatgpt' AND contains('
       018f8d02-c4c0-727c-9657-48fdbcb5a31b 018fc3a1-9e20-7e3e-9356-54102629bb55
       019020b6-f6a0-77a4-b56e-a1265b78b513 01907e24-3320-7362-8055-194e97ebbb66
       0190d4c6-d980-78f8-8a96-555a0013dcac 019133c6-00a0-7e99-899b-5a4409de8eb5
       0191b4a5-f220-7ee4-9d25-1aaf2dd6d9b2 019286e4-e200-7fba-9390-6493879fa592
       0193489a-6be0-7cc6-858d-4360ecf6bb1a 019437fb-3e80-7501-ab94-5308d7b1b920
       01953362-fc40-7742-b2f0-4681a2c83220 01959efb-8a80-7d56-a230-1c19e2930558
       019619ff-d9c0-7eb4-b9ef-7a54addcd3c1 0196df11-11c0-74ca-b58e-c0a6ecbf9e3e
       0197baa8-4780-738e-98fd-27483368dcc9 01984c16-32e0-78b1-b9fe-a1ea74f6c4a3
       0199496a-7e60-7a2c-8eb4-c6c49b1f8366 0199c3a9-0ca0-7b53-98a8-8a4adb312e58
       019a30ee-1260-7a31-ac1d-e4680cfdb7e8', uid)"""
)


STEPS: Sequence[Step] = (
    _FIRST_SCHEMA, _SPACES, _MAN_PAGES, _LEARNED, _RECALLED, _HELD_SPEND, _PRESETS, _ATTACHMENTS,
    _MEMORY_WRITES, _PROFILE, _statements, _SPACE_TRAITS, _SPACE_SCALE,
    _FORGOTTEN_MESSAGES, _ORPHANED_PROMPT_TEXTS, _UIDS, _fill_uids, _PROJECTS, _ERASURE,
    _ROUTINES, _TOPICS, _ROUTINE_PROJECT, _DOCUMENTS, _TOPIC_AUTHORS,
    _FORMER_PASSAGES, _FORMER_HASHES, add_import_items, _STAMPS_OF_ENDED, _SAMPLE_SOURCE,
)  # fmt: skip
CURRENT_VERSION = len(STEPS)


def version_of(connection: Connection) -> int:
    """Return the schema's version; 0 for a database without our tables."""
    try:  # to ask duckdb_tables() first would load every table: 20 ms
        row = connection.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
    except duckdb.CatalogException:
        return 0
    return int(row[0]) if row else 0


def migrate(connection: Connection) -> None:
    """Bring the schema up to date, each step in a transaction of its own.

    The caller has made a backup and refused newer versions. Raises duckdb.Error; then the steps
    before the failed one remain applied.
    """
    for number in range(version_of(connection), len(STEPS)):
        connection.execute("BEGIN")
        try:
            STEPS[number](connection)
            connection.execute(
                "INSERT OR REPLACE INTO meta VALUES ('schema_version', ?)", [str(number + 1)]
            )
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
