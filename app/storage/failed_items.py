"""What a worker has failed at and keeps in its queue, with what each item is. `attempts` writes it."""

from collections.abc import Mapping, Sequence

from app.domain.workers import FailedItem, WorkerName
from app.storage.store import Store
from app.storage.times import from_db
from app.storage.tool_call_work import CALLS_OF_A_MESSAGE

_LIVING = "NOT c.private AND c.deleted_at IS NULL"
_EXCHANGE = (
    "SELECT a.*, c.title, 'turn ' || e.turn_number AS detail FROM attempt a "
    "JOIN exchange e ON e.id = a.item_id "
    f"JOIN conversation c ON c.id = e.conversation_id AND {_LIVING}"
)
_CONVERSATION = (
    "SELECT a.*, c.title, '' AS detail FROM attempt a "
    f"JOIN conversation c ON c.id = a.item_id AND {_LIVING}"
)
_PASSAGE = (
    "SELECT a.*, coalesce(c.title, w.name || '.' || w.section, '') AS title, "
    "replace(p.kind, '_', ' ') AS detail FROM attempt a JOIN passage p ON p.id = a.item_id "
    "LEFT JOIN conversation c ON c.id = p.conversation_id "
    "LEFT JOIN man_page w ON p.kind = 'man_page' AND w.id = p.source_id "
    f"WHERE p.conversation_id IS NULL OR ({_LIVING})"
)
_CALL = (
    "SELECT a.*, c.title, 'tool call' AS detail FROM attempt a "
    f"JOIN message m ON m.id = a.item_id // {CALLS_OF_A_MESSAGE} "
    f"JOIN conversation c ON c.id = m.conversation_id AND {_LIVING}"
)
_PAGE = (
    "SELECT a.*, coalesce(w.name || '.' || w.section, 'The list of pages') AS title, "
    "'' AS detail FROM attempt a LEFT JOIN man_page w ON w.id = a.item_id"
)
_ITEMS: Mapping[WorkerName, str] = {
    WorkerName.EXCHANGE_SUMMARIZER: _EXCHANGE,
    WorkerName.KNOWLEDGE_EXTRACTOR: _EXCHANGE,
    WorkerName.CONVERSATION_SUMMARIZER: _CONVERSATION,
    WorkerName.EMBEDDING_PIPELINE: _PASSAGE,
    WorkerName.TOOL_SUMMARIZER: _CALL,
    WorkerName.MAN_INDEXER: _PAGE,
}


class FailedItems:
    """Reads the retry queue. Blocking."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, worker: WorkerName, limit: int) -> Sequence[FailedItem]:
        """Return what a worker failed at: what is tried again first, then what was set aside.

        Items that are gone, in the trash or private are left out.
        """
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT item_id, title, detail, tries, next_at, error "
                f"FROM ({_ITEMS[worker]}) WHERE worker = $worker "
                "ORDER BY next_at NULLS LAST, item_id DESC LIMIT $limit",
                {"worker": worker, "limit": limit},
            ).fetchall()
        )
        return tuple(
            FailedItem(item_id, title, detail, tries, from_db(next_at), error)
            for item_id, title, detail, tries, next_at, error in rows
        )
