"""What settings and workers keep of conversations, and how it leaves with them."""

import json
from collections.abc import Collection

from app.storage.database import Connection
from app.storage.leaving import Leaving

CALLS_OF_A_MESSAGE = 1_000  # in the ids under which the tool-call summariser notes its failures

PROBES = "probe_questions"
_TRIES = (
    ("exchange_summarizer", "exchanges"),
    ("knowledge_extractor", "exchanges"),
    ("conversation_summarizer", "conversations"),
)
_OWN = "WHERE conversation_id IN (SELECT unnest(?))"
_OWN_PASSAGES = f"SELECT id FROM passage {_OWN}"
_OWN_MESSAGES = f"SELECT id FROM message {_OWN}"


def erase(connection: Connection, leaving: Leaving) -> None:
    """Drop probe questions about turns that leave, and what workers noted of them.

    Inside the caller's transaction, while the rows of what leaves are still there.
    """
    row = connection.execute("SELECT value FROM appconfig WHERE key = ?", [PROBES]).fetchone()
    if row is not None and (kept := probes_without(row[0], leaving.exchanges)) != row[0]:
        connection.execute("UPDATE appconfig SET value = ? WHERE key = ?", [kept, PROBES])
    for worker, name in _TRIES:
        connection.execute(
            "DELETE FROM attempt WHERE worker = ? AND item_id IN (SELECT unnest(?))",
            [worker, list(getattr(leaving, name))],
        )
    for condition in (
        f"worker = 'embedding_pipeline' AND item_id IN ({_OWN_PASSAGES})",
        f"worker = 'tool_summarizer' AND item_id // {CALLS_OF_A_MESSAGE} IN ({_OWN_MESSAGES})",
    ):
        connection.execute(f"DELETE FROM attempt WHERE {condition}", [list(leaving.conversations)])


def probes_without(value_json: str, exchange_ids: Collection[int]) -> str:
    """Return the value of the setting with the probe questions, without those about some exchanges."""
    try:
        rows = json.loads(json.loads(value_json))
    except (ValueError, TypeError, RecursionError):
        return value_json
    if not isinstance(rows, list):
        return value_json
    kept = [
        row
        for row in rows
        if not (isinstance(row, dict) and row.get("exchange_id") in exchange_ids)
    ]
    if len(kept) == len(rows):
        return value_json
    return json.dumps(json.dumps(kept, ensure_ascii=False))
