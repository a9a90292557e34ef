"""Notes on the parts of long conversations, kept until the summary they are for needs them.

They are summaries of kind "part", found by the hash of what they are notes on: a part that was paid
for is not paid for again, after a crash or when the conversation has grown at its end.
"""

from app.domain.changes import Change, SpendAdded, SummaryPut
from app.domain.ids import ConversationId
from app.storage.store import Store
from app.storage.summary_work import SummaryWork
from app.storage.times import now

_KIND = "part"


class PartNotes:
    """Reads and keeps notes. Blocking: for worker threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._work = SummaryWork(store)

    def find(self, conversation_id: ConversationId, part_hash: str) -> str | None:
        """Return the notes on a part, None if there are none."""
        row = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT text FROM summary WHERE kind = ? AND source_id = ? AND source_hash = ? "
                "ORDER BY made_at DESC LIMIT 1",
                [_KIND, conversation_id, part_hash],
            ).fetchone()
        )
        return None if row is None else str(row[0])

    def keep(
        self,
        conversation_id: ConversationId,
        part_hash: str,
        text: str,
        spent: SpendAdded,
    ) -> None:
        """Store notes and what they cost in one commit; only the latter if nobody may keep them."""

        def commit() -> None:
            changes: list[Change] = [spent]
            if conversation_id in self._work.standing_conversations([conversation_id]).ids:
                put = SummaryPut(
                    _KIND, conversation_id, conversation_id, text, spent.model, part_hash, now()
                )
                changes.append(put)
            self._store.commit_now(*changes)

        self._store.on_writer(commit).result()
