"""The rules about what was learned and recalled: facts, memories, tool summaries, prompts, votes.

What was learned from a conversation that is gone goes too, as when it is forgotten. Votes and what was
recalled may name passages that have been replaced since: that is no fault.
"""

from collections.abc import Sequence

from app.storage.rule import Rule, orphans
from app.storage.seen_facts import SEEN_FACTS

_GONE = "IN (SELECT unnest($1))"
_HOLDING = (
    "(SELECT id FROM fact WHERE valid_until IS NULL UNION "
    f"SELECT id FROM {SEEN_FACTS} WHERE valid_until IS NULL)"
)
_OF_KIND = (
    (_HOLDING, "fact", "fact"), ("memory", "memory", "memory"),
    ("tool_summary", "tool_summary", "tool summary"),
)  # fmt: skip
_LATER = (
    "SELECT t.id, arg_max(o.id, (o.said_at, o.id)) AS after FROM fact t JOIN fact o "
    "ON o.subject = t.subject AND (o.said_at, o.id) > (t.said_at, t.id) AND o.valid_until IS NULL "
    "WHERE t.subject <> '' AND t.valid_until IS NULL AND NOT t.pinned GROUP BY t.id"
)


def _source(table: str, key: str, of: str, says: str, target: str) -> Rule:
    """Return the rule that what a row was learned from exists; the row goes where it does not."""
    finds = (
        f"SELECT DISTINCT t.{key} FROM {table} t ANTI JOIN {of} o ON o.id = t.{target} "
        f"WHERE t.{target} IS NOT NULL"
    )
    return Rule(says, finds, f"DELETE FROM {table} WHERE {key} {_GONE}")


LEARNED_RULES: Sequence[Rule] = (
    # -- facts
    Rule(
        "The uid {} is that of two facts.",
        "SELECT uid FROM fact GROUP BY uid HAVING count(*) > 1",
    ),
    _source(
        "fact", "id", "conversation",
        "The fact {} is from a conversation that does not exist.", "conversation_id",
    ),
    _source("fact", "id", "exchange", "The fact {} is from a turn that does not exist.", "exchange_id"),
    Rule(
        "The fact {} is from a message that does not exist.",
        "SELECT t.id FROM fact t ANTI JOIN message m ON m.id = t.message_id "
        "WHERE t.message_id IS NOT NULL",
        f"UPDATE fact SET message_id = NULL WHERE id {_GONE}",
    ),
    Rule(
        "The fact {} was superseded by one that does not exist.",
        "SELECT t.id FROM fact t ANTI JOIN fact o ON o.id = t.superseded_by "
        "WHERE t.superseded_by IS NOT NULL",
        f"UPDATE fact SET superseded_by = NULL WHERE id {_GONE}",
    ),
    Rule(
        "The fact {} was superseded and has not ended.",
        "SELECT id FROM fact WHERE superseded_by IS NOT NULL AND valid_until IS NULL",
        f"UPDATE fact SET superseded_by = NULL WHERE id {_GONE}",
    ),
    Rule(
        "The fact {} holds beside a later one of its subject, which can have one value.",
        f"SELECT id FROM ({_LATER}) ORDER BY id",
        "UPDATE fact SET superseded_by = later.after, valid_until = o.said_at "
        f"FROM ({_LATER}) AS later JOIN fact o ON o.id = later.after "
        f"WHERE fact.id = later.id AND fact.id {_GONE}",
    ),
    orphans(
        "fact_version", "fact_id", "fact", "A wording is of fact {}, which does not exist.",
        f"DELETE FROM fact_version WHERE fact_id {_GONE}",
    ),
    Rule(
        "The fact {} has no version of its wording.",
        "SELECT t.id FROM fact t ANTI JOIN fact_version v "
        "ON v.fact_id = t.id AND v.made_at = t.made_at",
        "INSERT OR REPLACE INTO fact_version SELECT id, made_at, text, category, model, "
        f"conversation_id, exchange_id, message_id, said_at FROM fact WHERE id {_GONE}",
    ),
    Rule(
        "A wording of fact {} is from a turn that does not exist.",
        "SELECT DISTINCT v.fact_id FROM fact_version v ANTI JOIN exchange e "
        "ON e.id = v.exchange_id AND e.conversation_id = v.conversation_id "
        "WHERE v.exchange_id IS NOT NULL",
        f"DELETE FROM fact_version WHERE fact_id {_GONE} AND exchange_id IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM exchange e WHERE e.id = fact_version.exchange_id "
        "AND e.conversation_id = fact_version.conversation_id)",
    ),
    # -- what was read, and what is kept
    orphans(
        "extraction", "exchange_id", "exchange",
        "The turn {} was read for facts and does not exist.",
        f"DELETE FROM extraction WHERE exchange_id {_GONE}",
    ),
    _source(
        "memory", "id", "conversation",
        "The memory {} was saved in a conversation that does not exist.", "conversation_id",
    ),
    _source(
        "tool_summary", "id", "exchange",
        "The tool summary {} is of a turn that does not exist.", "exchange_id",
    ),
    _source(
        "tool_summary", "id", "message",
        "The tool summary {} is of a message that does not exist.", "message_id",
    ),
    # -- their passages
    *(
        Rule(
            f"The passage {{}} is of a {words} that does not exist or holds no more.",
            f"SELECT p.id FROM passage p ANTI JOIN {table} o ON o.id = p.id AND o.id = p.source_id "
            f"WHERE p.kind = '{kind}'",
            drops_passages=True,
        )
        for table, kind, words in _OF_KIND
    ),
    # -- prompts and votes
    orphans(
        "prompt", "exchange_id", "exchange", "A prompt is of turn {}, which does not exist.",
        f"DELETE FROM prompt WHERE exchange_id {_GONE}",
    ),
    Rule(
        "Something was recalled for turn {}, of which no prompt is kept.",
        "SELECT DISTINCT r.exchange_id FROM recalled r ANTI JOIN prompt p "
        "ON p.exchange_id = r.exchange_id AND p.sent_at = r.sent_at",
        f"DELETE FROM recalled WHERE exchange_id {_GONE} AND NOT EXISTS (SELECT 1 FROM prompt p "
        "WHERE p.exchange_id = recalled.exchange_id AND p.sent_at = recalled.sent_at)",
    ),
    orphans(
        "recalled", "conversation_id", "conversation",
        "Something was recalled from conversation {}, which does not exist.",
        f"DELETE FROM recalled WHERE conversation_id {_GONE}",
    ),
    orphans(
        "prompt_text", "conversation_id", "conversation",
        "Words of a prompt are from conversation {}, which does not exist.",
        f"DELETE FROM prompt_text WHERE conversation_id {_GONE}", "AND t.conversation_id <> 0",
    ),
)  # fmt: skip
