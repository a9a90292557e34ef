"""What recall reads of many passages at once: where each belongs, and of conversations the head."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from app.domain.ids import ConversationId, ExchangeId, PassageId
from app.domain.passages import PassageKind
from app.storage.store import Store
from app.storage.times import from_db


@dataclass(frozen=True, slots=True)
class Head:
    """A passage as recall groups it: `content_hash` is the same for the same words."""

    id: PassageId
    kind: PassageKind
    conversation_id: ConversationId | None
    exchange_id: ExchangeId | None
    content_hash: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TalkHead:
    """A conversation as recall shows it; `summary` is "" where none was made."""

    title: str
    started_at: datetime
    summary: str
    exchange_count: int


_OF_TALKS = (
    "SELECT id, title, created_at FROM conversation WHERE id IN (SELECT unnest(?))",
    """SELECT source_id, text FROM summary WHERE latest AND kind = 'conversation'
       AND source_id IN (SELECT unnest(?))""",
    """SELECT conversation_id, count(*) FROM exchange
       WHERE conversation_id IN (SELECT unnest(?)) GROUP BY conversation_id""",
)


class RecallReads:
    """Reads for recall; nothing is joined, each table is read by ids. Blocking."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def heads(self, ids: Iterable[int]) -> Mapping[PassageId, Head]:
        """Return the heads of the passages that exist among `ids`."""
        wanted = list(ids)
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT id, kind, conversation_id, exchange_id, content_hash, created_at "
                "FROM passage WHERE id IN (SELECT unnest(?))",
                [wanted],
            ).fetchall()
        )
        return {
            row[0]: Head(row[0], PassageKind(row[1]), row[2], row[3], row[4], from_db(row[5]))
            for row in rows
        }

    def talks(self, ids: Iterable[int]) -> Mapping[ConversationId, TalkHead]:
        """Return the heads of the conversations that exist among `ids`."""
        wanted = list(ids)
        talks, summaries, counts = self._store.read(
            lambda cursor: [cursor.execute(each, [wanted]).fetchall() for each in _OF_TALKS]
        )
        text_of, count_of = dict(summaries), dict(counts)
        return {
            each: TalkHead(title, from_db(begun), text_of.get(each, ""), count_of.get(each, 0))
            for each, title, begun in talks
        }

    def turns_of(self, exchange_ids: Iterable[int]) -> frozenset[PassageId]:
        """Return the passages of some exchanges' turns."""
        wanted = list(exchange_ids)
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT id FROM passage WHERE kind = 'turn' AND exchange_id IN (SELECT unnest(?))",
                [wanted],
            ).fetchall()
        )
        return frozenset(PassageId(each) for (each,) in rows)
