"""What the user thinks of recalled passages: a verdict for each, until it is taken back."""

from collections.abc import Mapping
from datetime import UTC, datetime

from app.domain.changes import FeedbackPut
from app.domain.ids import PassageId
from app.domain.recalls import Verdict
from app.storage.store import Store


class Feedback:
    """Reads and writes verdicts. Blocking."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def verdicts(self) -> Mapping[PassageId, Verdict]:
        """Return every verdict; people give few."""
        rows = self._store.read(
            lambda cursor: cursor.execute("SELECT passage_id, verdict FROM feedback").fetchall()
        )
        return {PassageId(passage): Verdict(verdict) for passage, verdict in rows}

    def give(self, passage_id: PassageId, verdict: Verdict | None) -> None:
        """Keep a verdict in place of the one before; None takes it back. Raises StorageError."""
        self._store.save(FeedbackPut(passage_id, verdict, datetime.now(UTC)))
