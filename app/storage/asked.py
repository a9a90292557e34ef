"""Queries about what was asked last: the questions, and the newest prompt that was kept."""

from app.domain.ids import ExchangeId
from app.storage.passages import Passages
from app.storage.store import Store

_LOOKED_AT = 3  # times as many exchanges as questions: some say the same


class LastAsked:
    """Reads it. Blocking: for worker threads and the command line."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._passages = Passages(store)

    def questions(self, limit: int) -> tuple[str, ...]:
        """Return the last questions, newest first, each once; none of private or deleted talks."""
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT e.id FROM exchange e JOIN conversation c ON c.id = e.conversation_id "
                "WHERE NOT c.private AND c.deleted_at IS NULL "
                "ORDER BY e.started_at DESC, e.id DESC LIMIT ?",
                [limit * _LOOKED_AT],
            ).fetchall()
        )
        texts = self._passages.questions(each for (each,) in rows)
        words = (" ".join(texts.get(each, "").split()) for (each,) in rows)
        return tuple(dict.fromkeys(filter(None, words)))[:limit]

    def prompted(self) -> ExchangeId | None:
        """Return the exchange whose prompt is the newest of all."""
        row = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT exchange_id FROM prompt ORDER BY sent_at DESC LIMIT 1"
            ).fetchone()
        )
        return None if row is None else ExchangeId(row[0])
