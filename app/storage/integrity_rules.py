"""What constraints would guard, as queries: every reference, count and order between the tables.

The database has primary keys only (storage rule 1), so nothing but the code keeps the rest true.
Each rule finds the ids that break it; where what broke is derived from the rest, it can be mended.
What asks them is `app.storage.integrity`; those about what was learned are `learned_rules`.
"""

from collections.abc import Sequence

from app.domain.ids import PARTS_OF_A_PASSAGE
from app.storage import spaces
from app.storage.learned_rules import LEARNED_RULES
from app.storage.rule import Rule, belongs, orphans
from app.storage.vector_rows import bytes_of

RULES: Sequence[Rule] = (
    # -- spaces, first: whatever drops passages writes to the table of each
    Rule(
        "The embedding space {} has no table.",
        "SELECT s.name FROM space s ANTI JOIN duckdb_tables() t "
        "ON t.table_name = 'embedding_' || s.name AND t.database_name = current_database()",
        "DELETE FROM space WHERE name IN (SELECT unnest($1))",
    ),
    # -- messages
    belongs("message"),
    Rule(
        "The message {} has a parent that does not exist.",
        "SELECT m.id FROM message m ANTI JOIN message p ON p.id = m.parent_id "
        "WHERE m.parent_id IS NOT NULL",
    ),
    Rule(
        "The message {} and its parent are of two conversations.",
        "SELECT m.id FROM message m JOIN message p ON p.id = m.parent_id "
        "WHERE p.conversation_id <> m.conversation_id",
    ),
    Rule(
        "The message {} is part of no exchange.",
        "SELECT m.id FROM message m ANTI JOIN exchange_message l ON l.message_id = m.id",
    ),
    Rule(
        "The uid {} is that of two messages.",
        "SELECT uid FROM message GROUP BY uid HAVING count(*) > 1",
    ),
    # -- conversations
    Rule(
        "The uid {} is that of two conversations.",
        "SELECT uid FROM conversation GROUP BY uid HAVING count(*) > 1",
    ),
    Rule(
        "The conversation {} shows a message that is not its own.",
        "SELECT c.id FROM conversation c ANTI JOIN message m "
        "ON m.id = c.visible_leaf_id AND m.conversation_id = c.id "
        "WHERE c.visible_leaf_id IS NOT NULL OR c.id IN (SELECT conversation_id FROM message)",
        "UPDATE conversation SET visible_leaf_id = (SELECT max(m.id) FROM message m "
        "WHERE m.conversation_id = conversation.id) WHERE id IN (SELECT unnest($1))",
    ),
    # -- exchanges
    belongs("exchange"),
    Rule(
        "The exchange {} follows one that does not exist.",
        "SELECT e.id FROM exchange e ANTI JOIN exchange p ON p.id = e.parent_id "
        "WHERE e.parent_id IS NOT NULL",
    ),
    Rule(
        "The exchange {} and the one it follows are of two conversations.",
        "SELECT e.id FROM exchange e JOIN exchange p ON p.id = e.parent_id "
        "WHERE p.conversation_id <> e.conversation_id",
    ),
    Rule(
        "The exchange {} has a turn number that is not its depth.",
        "SELECT e.id FROM exchange e LEFT JOIN exchange p ON p.id = e.parent_id "
        "WHERE e.turn_number <> coalesce(p.turn_number + 1, 0) "
        "AND (e.parent_id IS NULL OR p.id IS NOT NULL)",
    ),
    Rule(
        "The exchange {} has no messages.",
        "SELECT e.id FROM exchange e ANTI JOIN exchange_message l ON l.exchange_id = e.id",
    ),
    Rule(
        "Messages are listed for the exchange {}, which does not exist.",
        "SELECT DISTINCT l.exchange_id FROM exchange_message l "
        "ANTI JOIN exchange e ON e.id = l.exchange_id",
        "DELETE FROM exchange_message WHERE exchange_id IN (SELECT unnest($1))",
    ),
    Rule(
        "The exchange {} lists a message that does not exist or is of another conversation.",
        "SELECT DISTINCT l.exchange_id FROM exchange_message l "
        "JOIN exchange e ON e.id = l.exchange_id ANTI JOIN message m "
        "ON m.id = l.message_id AND m.conversation_id = e.conversation_id",
    ),
    Rule(
        "The exchange {} has a gap in its list of messages.",
        "SELECT exchange_id FROM exchange_message GROUP BY exchange_id "
        "HAVING count(*) <> max(place) + 1 OR min(place) <> 0",
    ),
    Rule(
        "The messages of exchange {} do not follow each other.",
        "SELECT DISTINCT a.exchange_id FROM exchange_message a JOIN exchange_message b "
        "ON b.exchange_id = a.exchange_id AND b.place = a.place + 1 "
        "JOIN message m ON m.id = b.message_id WHERE m.parent_id IS DISTINCT FROM a.message_id",
    ),
    Rule(
        "The exchange {} does not begin where the one before it is.",
        "SELECT e.id FROM exchange e "
        "JOIN exchange_message l ON l.exchange_id = e.id AND l.place = 0 "
        "JOIN message m ON m.id = l.message_id LEFT JOIN exchange_message b "
        "ON b.exchange_id = e.parent_id AND b.message_id = m.parent_id "
        "WHERE (e.parent_id IS NULL) <> (m.parent_id IS NULL) "
        "OR (e.parent_id IS NOT NULL AND b.exchange_id IS NULL)",
    ),
    # -- passages
    belongs("passage", drops_passages=True),
    Rule(
        "The passage {} is of an exchange that does not exist or of another conversation.",
        "SELECT p.id FROM passage p ANTI JOIN exchange e "
        "ON e.id = p.source_id AND e.conversation_id = p.conversation_id "
        "WHERE p.kind IN ('turn', 'exchange_summary')",
        drops_passages=True,
    ),
    Rule(
        "The passage {} is of a summary that does not exist.",
        "SELECT p.id FROM passage p ANTI JOIN summary s "
        "ON s.kind || '_summary' = p.kind AND s.source_id = p.source_id AND s.latest "
        "WHERE p.kind IN ('exchange_summary', 'conversation_summary')",
        drops_passages=True,
    ),
    Rule(
        "The passage {} is of a manual page that is not kept or says something else.",
        "SELECT p.id FROM passage p ANTI JOIN man_page w "
        "ON w.id = p.source_id AND w.content_hash = p.content_hash WHERE p.kind = 'man_page'",
        drops_passages=True,
    ),
    Rule(
        "The passage {} is of a private conversation.",
        "SELECT p.id FROM passage p JOIN conversation c ON c.id = p.conversation_id "
        "WHERE c.private",
        drops_passages=True,
    ),
    Rule(
        "The passage {} says the same as a later one of its source.",
        "SELECT p.id FROM passage p JOIN passage later ON later.kind = p.kind "
        "AND later.source_id = p.source_id AND later.id > p.id "
        "WHERE p.kind IN ('turn', 'exchange_summary', 'conversation_summary', 'man_page')",
        drops_passages=True,
    ),
    Rule(
        "The passage {} is there and noted as gone.",
        "SELECT p.id FROM passage p JOIN passage_gone g ON g.id = p.id",
        "DELETE FROM passage_gone WHERE id IN (SELECT unnest($1))",
    ),
    # -- what hangs on conversations
    orphans(
        "tag", "conversation_id", "conversation", "A tag is on conversation {}, which does not exist.",
        "DELETE FROM tag WHERE conversation_id IN (SELECT unnest($1))",
    ),
    orphans(
        "draft", "conversation_id", "conversation",
        "A draft is for conversation {}, which does not exist.",
        "DELETE FROM draft WHERE conversation_id IN (SELECT unnest($1))", "AND t.conversation_id <> 0",
    ),
    orphans(
        "summary", "conversation_id", "conversation",
        "A summary is of conversation {}, which does not exist.",
        "DELETE FROM summary WHERE conversation_id IN (SELECT unnest($1))",
    ),
    Rule(
        "A summary is of exchange {}, which does not exist.",
        "SELECT DISTINCT s.source_id FROM summary s ANTI JOIN exchange e ON e.id = s.source_id "
        "WHERE s.kind = 'exchange'",
        "DELETE FROM summary WHERE kind = 'exchange' AND source_id IN (SELECT unnest($1))",
    ),
    Rule(
        "The summaries of {} have no latest one, or several.",
        "SELECT kind || ' ' || source_id FROM summary GROUP BY kind, source_id "
        "HAVING count(*) FILTER (latest) <> 1",
        "UPDATE summary SET latest = made_at = (SELECT max(s.made_at) FROM summary s "
        "WHERE s.kind = summary.kind AND s.source_id = summary.source_id) "
        "WHERE kind || ' ' || source_id IN (SELECT unnest($1))",
    ),
    Rule(
        "An import names the conversation {}, which does not exist.",
        "SELECT DISTINCT o.local_id FROM origin o ANTI JOIN conversation c ON c.id = o.local_id "
        "WHERE o.kind = 'conversation'",
        "DELETE FROM origin WHERE kind = 'conversation' AND local_id IN (SELECT unnest($1))",
    ),
    Rule(
        "An import names the message {}, which does not exist.",
        "SELECT DISTINCT o.local_id FROM origin o ANTI JOIN message m ON m.id = o.local_id "
        "WHERE o.kind = 'message'",
        "DELETE FROM origin WHERE kind = 'message' AND local_id IN (SELECT unnest($1))",
    ),
    orphans(
        "spend", "exchange_id", "exchange", "Money was spent on exchange {}, which does not exist.",
        "UPDATE spend SET exchange_id = NULL WHERE exchange_id IN (SELECT unnest($1))",
    ),
    Rule(
        "The spend of record {} is less than nothing.",
        "SELECT position FROM spend WHERE cost_usd < 0 OR input_tokens < 0 OR output_tokens < 0",
    ),
    Rule(
        "The request {} is on record as under way for over a day; the next start counts it as spend.",
        "SELECT uid FROM spend_held WHERE epoch_ms(held_at) < epoch_ms(now()) - 86_400_000",
    ),
    *LEARNED_RULES,
    # -- counters
    *(
        Rule(
            f"The counter of {table}s is behind the {table} {{}}.",
            f"SELECT max(t.id) FROM {table} t HAVING max(t.id) > (SELECT max({table}) FROM state)",
            f"UPDATE state SET {table} = greatest({table}, list_max($1))",
        )
        for table in ("conversation", "exchange", "message", "passage")
    ),
    Rule(
        "The database's position is behind the record {}, which it holds.",
        "SELECT max(p) FROM (SELECT max(position) AS p FROM exchange UNION ALL "
        "SELECT max(position) FROM passage UNION ALL SELECT max(position) FROM spend UNION ALL "
        "SELECT max(position) FROM spend_held) "
        "HAVING max(p) > (SELECT max(position) FROM state)",
    ),
    Rule("The database has {} rows of state instead of one.",
         "SELECT count(*) FROM state HAVING count(*) <> 1"),
)  # fmt: skip


def rules_of_space(name: str, dimension: int) -> tuple[Rule, ...]:
    """Return what must hold of a space's vectors; those that are dropped are made again."""
    table = spaces.table_of(name)
    mends = f"DELETE FROM {table} WHERE passage_id IN (SELECT unnest($1))"
    return (
        Rule(
            f"The space {name} has vectors of passage {{}}, which does not exist.",
            f"SELECT DISTINCT e.passage_id FROM {table} e ANTI JOIN passage p ON p.id = e.passage_id",
            mends,
        ),
        Rule(
            f"The space {name} has vectors of passage {{}} that are not of {dimension} numbers.",
            f"SELECT DISTINCT passage_id FROM {table} "
            f"WHERE octet_length(vector) <> {bytes_of(dimension)}",
            mends,
        ),
        Rule(
            f"The space {name} lacks some of the vectors of passage {{}}.",
            f"SELECT passage_id FROM {table} GROUP BY passage_id "
            "HAVING count(*) <> max(chunk_number) + 1 OR min(chunk_number) <> 0 "
            "OR (count(vector) <> count(*) AND count(*) > 1)",
            mends,
        ),
        Rule(
            f"The space {name} gives vectors of passage {{}} to parts of another.",
            f"SELECT DISTINCT passage_id FROM {table} "
            f"WHERE part // {PARTS_OF_A_PASSAGE} <> passage_id",
            mends,
        ),
    )
