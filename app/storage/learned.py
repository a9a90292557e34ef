"""What was learned and what was recalled become rows: facts, memories, prompts, votes.

The part of `app.storage.fold` and `app.storage.apply` that is about these tables. Applying a record
again changes nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from app.domain import codec
from app.domain.changes import (
    CoreMemoryPut,
    ExtractionDone,
    FactForgotten,
    FactPut,
    FeedbackPut,
    MemoryForgotten,
    MemoryPut,
    PromptKept,
    ToolSummaryPut,
)
from app.domain.recalls import Piece, PlanPart
from app.domain.turn_text import content_hash
from app.storage import fact_leaving
from app.storage.database import Connection
from app.storage.leaving import learned_leaving
from app.storage.rows import Row, insert_rows
from app.storage.runs import as_runs
from app.storage.seen_facts import settle
from app.storage.times import to_db
from app.storage.unquote import remove_quotes

FACT_COLUMNS = (
    "id, uid, text, category, subject, conversation_id, exchange_id, message_id, said_at, model, "
    "made_at, valid_until, superseded_by, pinned"
)
FACT_VERSION_COLUMNS = (
    "fact_id, made_at, text, category, model, conversation_id, exchange_id, message_id, said_at"
)
MEMORY_COLUMNS = "id, uid, text, saved_at, conversation_id, exchange_id"
TOOL_SUMMARY_COLUMNS = (
    "id, conversation_id, exchange_id, message_id, call_number, text, model, made_at"
)
PROMPT_COLUMNS = (
    "exchange_id, sent_at, conversation_id, model, limit_tokens, result_chars, notice, parts"
)
RECALLED_COLUMNS = (
    "exchange_id, sent_at, place, asked_in, layer, kind, passage_id, conversation_id, "
    "source_exchange_id, message_id, relevance, cosine, coverage, tokens, injected, dropped_by"
)
_EXTRACTION_COLUMNS = "exchange_id, conversation_id, source_hash, model, facts, made_at"
NO_CONVERSATION = 0  # a prompt's words that quote nobody


@dataclass(slots=True)
class Learned:
    """Rows by table and key.

    Attributes:
        erased: Facts and memories that leave, by table, with the journal's position.
        unsaid: The words of those that were not written yet: kept prompts may quote them.
    """

    facts: dict[int, Row] = field(default_factory=dict)
    versions: dict[tuple[int, Any], Row] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    extractions: dict[int, Row] = field(default_factory=dict)
    memories: dict[int, Row] = field(default_factory=dict)
    core_memories: dict[Any, Row] = field(default_factory=dict)
    tool_summaries: dict[int, Row] = field(default_factory=dict)
    prompts: dict[tuple[int, Any], Row] = field(default_factory=dict)
    texts: dict[tuple[str, int], Row] = field(default_factory=dict)
    recalled: dict[tuple[int, Any, int], Row] = field(default_factory=dict)
    feedback: dict[int, Row | None] = field(default_factory=dict)
    erased: dict[str, dict[int, int]] = field(default_factory=dict)
    unsaid: set[str] = field(default_factory=set)


# -- folding


def _fact(rows: Learned, change: FactPut, _position: int) -> None:
    f = change.fact
    said_at, made_at = to_db(f.said_at), to_db(f.made_at)
    source = (f.conversation_id, f.exchange_id, f.message_id)
    rows.facts[f.id] = (
        f.id, f.uid, f.text, f.category.value, f.subject, *source, said_at, f.model, made_at,
        to_db(f.valid_until), f.superseded_by, f.pinned,
    )  # fmt: skip
    rows.versions[f.id, made_at] = (
        f.id, made_at, f.text, f.category.value, f.model, *source, said_at,
    )  # fmt: skip


def _fact_forgotten(rows: Learned, change: FactForgotten, position: int) -> None:
    rows.facts.pop(change.fact_id, None)
    for key in [key for key in rows.versions if key[0] == change.fact_id]:
        rows.unsaid.add(rows.versions.pop(key)[2])
    rows.refused.add(change.text_hash)
    rows.erased.setdefault("fact", {})[change.fact_id] = position


def _extraction(rows: Learned, change: ExtractionDone, _position: int) -> None:
    rows.extractions[change.exchange_id] = (
        change.exchange_id, change.conversation_id, change.source_hash, change.model,
        change.facts, to_db(change.made_at),
    )  # fmt: skip


def _memory(rows: Learned, change: MemoryPut, _position: int) -> None:
    m = change.memory
    rows.memories[m.id] = (
        m.id, m.uid, m.text, to_db(m.saved_at), m.conversation_id, m.exchange_id,
    )  # fmt: skip


def _memory_forgotten(rows: Learned, change: MemoryForgotten, position: int) -> None:
    if (row := rows.memories.pop(change.memory_id, None)) is not None:
        rows.unsaid.add(row[2])
    rows.erased.setdefault("memory", {})[change.memory_id] = position


def _core_memory(rows: Learned, change: CoreMemoryPut, _position: int) -> None:
    made_at = to_db(change.made_at)
    rows.core_memories[made_at] = (made_at, change.text, change.author)


def _tool_summary(rows: Learned, change: ToolSummaryPut, _position: int) -> None:
    rows.tool_summaries[change.id] = (
        change.id, change.conversation_id, change.exchange_id, change.message_id,
        change.call_number, change.text, change.model, to_db(change.made_at),
    )  # fmt: skip


def _prompt(rows: Learned, change: PromptKept, _position: int) -> None:
    p = change.prompt
    sent_at = to_db(p.sent_at)
    parts = tuple(_hashed(rows, part) for part in p.parts)
    rows.prompts[p.exchange_id, sent_at] = (
        p.exchange_id, sent_at, p.conversation_id, p.model, p.limit_tokens, p.result_chars,
        p.notice, codec.dumps(parts),
    )  # fmt: skip
    for place, item in enumerate(p.items):
        rows.recalled[p.exchange_id, sent_at, place] = (
            p.exchange_id, sent_at, place, p.conversation_id, item.layer.value, item.kind.value,
            item.passage_id, item.conversation_id, item.exchange_id, item.message_id,
            item.relevance, item.cosine, item.coverage, item.tokens, item.injected,
            item.dropped_by,
        )  # fmt: skip


def _hashed(rows: Learned, part: PlanPart) -> PlanPart:
    """Return a part as it is kept: hashes of words, which are kept apart, and runs of messages."""
    pieces = []
    for piece in part.pieces:
        owner = piece.conversation_id or NO_CONVERSATION
        digest = content_hash(piece.text)
        rows.texts[digest, owner] = (digest, owner, piece.text)
        pieces.append(Piece(digest, piece.conversation_id))
    return replace(part, pieces=tuple(pieces), message_ids=as_runs(part.message_ids))


def _feedback(rows: Learned, change: FeedbackPut, _position: int) -> None:
    passage_id, verdict = change.passage_id, change.verdict
    row = None if verdict is None else (passage_id, verdict.value, to_db(change.at))
    rows.feedback[passage_id] = row


FOLDERS: Mapping[type, Callable[[Learned, Any, int], None]] = {
    FactPut: _fact,
    FactForgotten: _fact_forgotten,
    ExtractionDone: _extraction,
    MemoryPut: _memory,
    MemoryForgotten: _memory_forgotten,
    CoreMemoryPut: _core_memory,
    ToolSummaryPut: _tool_summary,
    PromptKept: _prompt,
    FeedbackPut: _feedback,
}

_TABLES = (
    ("facts", "fact", FACT_COLUMNS),
    ("versions", "fact_version", FACT_VERSION_COLUMNS),
    ("extractions", "extraction", _EXTRACTION_COLUMNS),
    ("memories", "memory", MEMORY_COLUMNS),
    ("core_memories", "core_memory", "made_at, text, author"),
    ("tool_summaries", "tool_summary", TOOL_SUMMARY_COLUMNS),
    ("prompts", "prompt", PROMPT_COLUMNS),
    ("recalled", "recalled", RECALLED_COLUMNS),
)


# -- writing


def write(connection: Connection, rows: Learned) -> None:
    """Write the rows inside the caller's transaction."""
    for name, table, columns in _TABLES:
        values = getattr(rows, name).values()
        insert_rows(connection, table, columns, values, "INSERT OR REPLACE")
    insert_rows(
        connection, "prompt_text", "hash, conversation_id, text", rows.texts.values(),
        "INSERT OR IGNORE",
    )  # fmt: skip
    refused = [(digest,) for digest in rows.refused]
    insert_rows(connection, "fact_refused", "text_hash", refused, "INSERT OR IGNORE")
    _write_feedback(connection, rows.feedback)
    for table, erased in rows.erased.items():
        _erase_rows(connection, table, erased, rows.unsaid)


def _write_feedback(connection: Connection, feedback: Mapping[int, Row | None]) -> None:
    kept = [row for row in feedback.values() if row is not None]
    insert_rows(connection, "feedback", "passage_id, verdict, given_at", kept, "INSERT OR REPLACE")
    if taken_back := [each for each, row in feedback.items() if row is None]:
        _delete(connection, "feedback", "passage_id", taken_back)


def _erase_rows(
    connection: Connection, table: str, erased: Mapping[int, int], unsaid: Iterable[str]
) -> None:
    ids = list(erased)
    leaving = learned_leaving(connection, table, ids, unsaid)
    remove_quotes(connection, leaving, max(erased.values()))
    _unquote(connection, table, ids, unsaid)
    if table == "fact":
        settle(connection, fact_leaving.without(connection, ids), max(erased.values()))
    else:
        _delete(connection, table, "id", ids)
    _delete(connection, "feedback", "passage_id", ids)
    # The bytes are still there until `app.storage.forget` has rewritten the file.
    last = str(max(erased.values()))
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('forgotten_at', ?)", [last])


def _unquote(connection: Connection, table: str, ids: list[int], unsaid: Iterable[str]) -> None:
    """Take the words of facts or memories that leave out of kept prompts, which quote them by line."""
    source = "SELECT text FROM fact_version WHERE fact_id IN (SELECT unnest($1)) UNION ALL "
    connection.execute(
        "DELETE FROM prompt_text p WHERE EXISTS (SELECT 1 FROM "
        f"({source if table == 'fact' else ''}SELECT text FROM {table} "
        "WHERE id IN (SELECT unnest($1)) UNION ALL SELECT unnest($2::VARCHAR[])) AS gone(words) "
        r"WHERE contains(regexp_replace(p.text, '\n *> ', chr(10), 'g'), "
        "chr(10) || gone.words || chr(10)))",
        [ids, list(unsaid)],
    )


def erase(connection: Connection, conversation_ids: list[int]) -> set[int]:
    """Delete what was learned from conversations, and what was recalled in them or out of them.

    Called before their passages go. Returns the facts that stay and are not as they were: said
    elsewhere too, or ended by what goes.
    """
    own = "conversation_id IN (SELECT unnest($1))"
    for statement in (
        f"DELETE FROM feedback WHERE passage_id IN (SELECT id FROM passage WHERE {own})",
        f"DELETE FROM recalled WHERE {own} OR asked_in IN (SELECT unnest($1))",
    ):
        connection.execute(statement, [conversation_ids])
    changed = fact_leaving.without_conversations(connection, conversation_ids)
    for table in ("extraction", "memory", "tool_summary", "prompt", "prompt_text"):
        _delete(connection, table, "conversation_id", conversation_ids)
    return changed


def _delete(connection: Connection, table: str, key: str, values: list[Any]) -> None:
    connection.execute(f"DELETE FROM {table} WHERE {key} IN (SELECT unnest(?))", [values])
