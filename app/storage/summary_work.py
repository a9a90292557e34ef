"""What the summarisers have yet to do, the words they need for it, and what became of them since.

Work is found by query: an exchange or a conversation whose latest summary is missing or was made of
something else, told by a stamp that goes into `SummaryPut.source_hash`. Messages never change, so
an exchange's stamp is which ones it has; a conversation's, how many exchanges it has completed and
when the last one was.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from app.domain.conversations import Exchange, ExchangeStatus, TitleOrigin
from app.domain.ids import ConversationId, ExchangeId
from app.domain.passages import PassageKind
from app.storage.database import Connection
from app.storage.exchanges import exchanges_where, shown_path
from app.storage.remaking import SUMMARIES, remaking
from app.storage.rows import CONVERSATION_COLUMNS, conversation_of
from app.storage.store import Store
from app.storage.tally import Found, Tally
from app.storage.times import from_db, to_db
from app.storage.turn_words import SILENCE, Words, words_of


@dataclass(frozen=True, slots=True)
class WaitingExchange:
    """A completed exchange that lacks a current summary. `said_at` is when it began, UTC."""

    id: ExchangeId
    conversation_id: ConversationId
    stamp: str
    said_at: datetime
    words: Words


@dataclass(frozen=True, slots=True)
class WaitingConversation:
    """A conversation that lacks a current summary.

    `said_at` is its last change, UTC; `is_first` when it never had a summary; `words` are turns of
    its shown path, in order.
    """

    id: ConversationId
    stamp: str
    title: str
    title_origin: TitleOrigin
    said_at: datetime
    is_first: bool
    words: tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """What is still so at the moment of saving, on the writer thread.

    `ids` may be summarised: they exist, are finished, not private, not in the trash, and nobody has
    given them a current summary meanwhile, such as the user. `passages`
    holds the summary passages each has so far; `tagged` the conversations that have tags.
    """

    ids: Collection[int]
    passages: Mapping[int, tuple[int, ...]]
    tagged: Collection[int] = ()


# The latest, and not one that is to be made again: see `app.storage.remaking`.
_STANDS = "s.latest AND (s.made_at >= $again OR list_contains($makers, s.model))"
_EXCHANGES = (
    "FROM exchange i JOIN conversation c ON c.id = i.conversation_id "
    "JOIN (SELECT exchange_id, count(*) AS size, count(*) || ':' || max(message_id) AS stamp "
    "FROM exchange_message GROUP BY exchange_id) t ON t.exchange_id = i.id "
)
_EXCHANGES_THAT_SHOULD = (
    "WHERE i.status = 'completed' AND NOT c.private AND c.deleted_at IS NULL AND t.size >= $size "
)
_CONVERSATIONS = (
    "FROM conversation i "
    "JOIN (SELECT conversation_id, count(*) AS size, "
    "count(*) || ':' || coalesce(epoch_us(max(completed_at)), 0) AS stamp FROM exchange "
    "WHERE status = 'completed' GROUP BY conversation_id) t "
    "ON t.conversation_id = i.id "
)
_CONVERSATIONS_THAT_SHOULD = "WHERE NOT i.private AND i.deleted_at IS NULL AND t.size >= $size "
# WORKAROUND(duckdb 2.0.0): LEFT JOINs here, and the LIMIT is lost when a table is empty.
_LACKS_IT = (
    "AND NOT EXISTS (SELECT 1 FROM summary s WHERE s.kind = $kind AND s.source_id = i.id "
    f"AND s.source_hash = t.stamp AND {_STANDS}) "
    "AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.worker = $worker AND a.item_id = i.id "
    "AND (a.next_at IS NULL OR (a.next_at > $at AND a.next_at <= $at + INTERVAL 1 DAY))) "
)
_JOINS = (
    "LEFT JOIN summary s ON s.kind = $kind AND s.source_id = i.id "
    f"AND s.source_hash = t.stamp AND {_STANDS} "
    "LEFT JOIN attempt a ON a.worker = $worker AND a.item_id = i.id AND s.source_id IS NULL "
)
_COUNTS = (
    "SELECT count(s.source_id), count(*), count(a.next_at), "
    "count(a.item_id) - count(a.next_at), min(a.next_at) "
)
_EXCHANGE = {"kind": "exchange", "worker": "exchange_summarizer"}
_CONVERSATION = {"kind": "conversation", "worker": "conversation_summarizer"}
# More than the extractive summariser reads; of a message of 10 MB the rest stays in the database.
_EXCHANGE_READS_CHARS = 12_000
_CONVERSATION_READS_CHARS = 3_000
_CONVERSATION_READS_TURNS = 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def exchange_stamp(exchange: Exchange) -> str:
    """Return the stamp of an exchange as it is to be stored."""
    return f"{len(exchange.message_ids)}:{max(exchange.message_ids)}"


def conversation_stamp(exchanges: Iterable[Exchange]) -> str:
    """Return the stamp of a conversation that has these exchanges."""
    completed = [each for each in exchanges if each.status is ExchangeStatus.COMPLETED]
    last = max((each.completed_at or _EPOCH for each in completed), default=_EPOCH)
    return f"{len(completed)}:{(last - _EPOCH) // timedelta(microseconds=1)}"


class SummaryWork:
    """Reads what waits for the summarisers. Blocking: for their threads and the command line."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def exchange_ids(
        self, limit: int, min_messages: int, left_alone: ConversationId | None, at: datetime
    ) -> tuple[Found, ...]:
        """Return (id, stamp) of completed exchanges that lack a current summary, newest first.

        Left out: private conversations and those in the trash, the one `left_alone`, exchanges
        with fewer messages than `min_messages`, those set aside, and those whose next try comes
        after `at` (UTC), unless by so much that the clock must have been set back.
        """
        values = _EXCHANGE | {"size": min_messages, "at": to_db(at), "limit": limit}
        rows = self._store.read(
            lambda cursor: cursor.execute(
                f"SELECT i.id, t.stamp {_EXCHANGES}{_EXCHANGES_THAT_SHOULD}{_LACKS_IT}"
                "AND i.conversation_id IS DISTINCT FROM $open ORDER BY i.id DESC LIMIT $limit",
                values | {"open": left_alone} | remaking(cursor, SUMMARIES),
            ).fetchall()
        )
        return tuple(rows)

    def exchanges(self, found: Sequence[Found]) -> tuple[WaitingExchange, ...]:
        """Return what was found with its words, in the same order; what is gone is left out."""

        def query(cursor: Connection) -> tuple[WaitingExchange, ...]:
            ids = [each for each, _ in found]
            rows = cursor.execute(
                "SELECT id, conversation_id, started_at FROM exchange "
                "WHERE id IN (SELECT unnest(?))",
                [ids],
            ).fetchall()
            heads = {row[0]: row for row in rows}
            words = words_of(cursor, ids, _EXCHANGE_READS_CHARS)
            return tuple(
                WaitingExchange(
                    ExchangeId(each),
                    ConversationId(heads[each][1]),
                    stamp,
                    from_db(heads[each][2]),
                    words.get(each, SILENCE),
                )
                for each, stamp in found
                if each in heads
            )

        return self._store.read(query)

    def conversations(
        self, limit: int, min_exchanges: int, left_alone: ConversationId | None, at: datetime
    ) -> tuple[WaitingConversation, ...]:
        """Return conversations whose summary is missing or out of date, latest changed first.

        Left out as above, and conversations with fewer completed exchanges than `min_exchanges`.
        """
        values = _CONVERSATION | {"size": min_exchanges, "at": to_db(at), "limit": limit}

        def query(cursor: Connection) -> tuple[WaitingConversation, ...]:
            rows = cursor.execute(
                f"SELECT i.id, t.stamp {_CONVERSATIONS}{_CONVERSATIONS_THAT_SHOULD}{_LACKS_IT}"
                "AND i.id IS DISTINCT FROM $open ORDER BY i.updated_at DESC, i.id DESC LIMIT $limit",
                values | {"open": left_alone} | remaking(cursor, SUMMARIES),
            ).fetchall()
            return _with_words(cursor, rows)

        return self._store.read(query)

    def exchange_tally(self, min_messages: int) -> Tally:
        """Return how many exchanges should have a summary, how many do, and what keeps the rest."""
        source = f"{_EXCHANGES}{_JOINS}{_EXCHANGES_THAT_SHOULD}"
        return self._tally(source, _EXCHANGE | {"size": min_messages})

    def conversation_tally(self, min_exchanges: int) -> Tally:
        """Return the same of conversations; a summary out of date does not count as done."""
        source = f"{_CONVERSATIONS}{_JOINS}{_CONVERSATIONS_THAT_SHOULD}"
        return self._tally(source, _CONVERSATION | {"size": min_exchanges})

    def standing_exchanges(self, ids: Iterable[int]) -> Standing:
        """Return which of some exchanges may still be summarised."""
        wanted = list(ids)

        def query(cursor: Connection) -> Standing:
            rows = cursor.execute(
                "SELECT e.id FROM exchange e JOIN conversation c ON c.id = e.conversation_id "
                "WHERE e.id IN (SELECT unnest($ids)) AND e.status = 'completed' "
                "AND NOT c.private AND c.deleted_at IS NULL AND NOT EXISTS "
                "(SELECT 1 FROM summary s WHERE s.kind = 'exchange' AND s.source_id = e.id "
                f"AND {_STANDS} AND s.source_hash = (SELECT count(*) || ':' || max(l.message_id) "
                "FROM exchange_message l WHERE l.exchange_id = e.id))",
                {"ids": wanted} | remaking(cursor, SUMMARIES),
            ).fetchall()
            passages = _passages(cursor, PassageKind.EXCHANGE_SUMMARY, wanted)
            return Standing({each for (each,) in rows}, passages)

        return self._store.read(query)

    def standing_conversations(self, ids: Iterable[int]) -> Standing:
        """Return which of some conversations may still be summarised, and which have tags."""
        wanted = list(ids)

        def query(cursor: Connection) -> Standing:
            rows = cursor.execute(
                "SELECT c.id, EXISTS (SELECT 1 FROM tag t WHERE t.conversation_id = c.id) "
                "FROM conversation c WHERE c.id IN (SELECT unnest($ids)) "
                "AND NOT c.private AND c.deleted_at IS NULL AND NOT EXISTS "
                "(SELECT 1 FROM summary s WHERE s.kind = 'conversation' AND s.source_id = c.id "
                f"AND {_STANDS} AND s.source_hash = (SELECT count(*) || ':' || "
                "coalesce(epoch_us(max(e.completed_at)), 0) FROM exchange e "
                "WHERE e.conversation_id = c.id AND e.status = 'completed'))",
                {"ids": wanted} | remaking(cursor, SUMMARIES),
            ).fetchall()
            passages = _passages(cursor, PassageKind.CONVERSATION_SUMMARY, wanted)
            tagged = {each for each, has_tags in rows if has_tags}
            return Standing({each for each, _ in rows}, passages, tagged)

        return self._store.read(query)

    def quiet_since(self, conversation_id: ConversationId) -> datetime | None:
        """Return when the last message of a conversation came (UTC); None while a reply runs."""
        row = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT (SELECT max(created_at) FROM message WHERE conversation_id = $1), EXISTS "
                "(SELECT 1 FROM exchange WHERE conversation_id = $1 AND status = 'running')",
                [conversation_id],
            ).fetchone()
        )
        last, runs = row or (None, False)
        return None if runs else from_db(last)

    def made_by_others(self, min_messages: int, min_exchanges: int) -> tuple[int, int]:
        """Return how many summaries that stand, of exchanges and of conversations, others made.

        Others than who makes summaries now, and than the user.
        """
        of_exchanges = f"{_EXCHANGES}{_JOINS}{_EXCHANGES_THAT_SHOULD}"
        of_conversations = f"{_CONVERSATIONS}{_JOINS}{_CONVERSATIONS_THAT_SHOULD}"
        counts = []
        for source, values in (
            (of_exchanges, _EXCHANGE | {"size": min_messages}),
            (of_conversations, _CONVERSATION | {"size": min_exchanges}),
        ):
            with_them = self._tally(source, values).done
            counts.append(with_them - self._tally(source, values, but_others=True).done)
        return counts[0], counts[1]

    def _tally(
        self, source: str, values: Mapping[str, object], *, but_others: bool = False
    ) -> Tally:
        row = self._store.read(
            lambda cursor: cursor.execute(
                f"{_COUNTS}{source}", dict(values) | remaking(cursor, SUMMARIES, of_all=but_others)
            ).fetchone()
        )
        done, total, waiting, aside, next_at = row or (0, 0, 0, 0, None)
        return Tally(done, total, waiting, aside, from_db(next_at))


def _with_words(cursor: Connection, waiting: Sequence[Found]) -> tuple[WaitingConversation, ...]:
    ids = [row[0] for row in waiting]
    condition = "conversation_id IN (SELECT unnest(?))"
    by_conversation: dict[int, list[Exchange]] = {}
    for exchange in exchanges_where(cursor, condition, [ids]):
        by_conversation.setdefault(exchange.conversation_id, []).append(exchange)
    rows = cursor.execute(
        f"SELECT {CONVERSATION_COLUMNS} FROM conversation WHERE id IN (SELECT unnest(?))", [ids]
    ).fetchall()
    heads = {head.id: head for head in map(conversation_of, rows)}
    turns: dict[int, list[ExchangeId]] = {}
    for conversation_id, exchanges in by_conversation.items():
        path = shown_path(heads[ConversationId(conversation_id)], exchanges) or exchanges
        ended = [each.id for each in path if each.status is ExchangeStatus.COMPLETED]
        turns[conversation_id] = _spread(ended, _CONVERSATION_READS_TURNS)
    wanted = [each for path_ids in turns.values() for each in path_ids]
    words = words_of(cursor, wanted, _CONVERSATION_READS_CHARS)
    rows = cursor.execute(
        "SELECT DISTINCT source_id FROM summary WHERE kind = 'conversation' "
        "AND source_id IN (SELECT unnest(?))",
        [ids],
    ).fetchall()
    summarised = {each for (each,) in rows}
    found = []
    for conversation_id, stamp in waiting:
        head = heads[ConversationId(conversation_id)]
        said = tuple(words[each] for each in turns.get(conversation_id, ()) if each in words)
        found.append(
            WaitingConversation(
                head.id,
                stamp,
                head.title,
                head.title_origin,
                head.updated_at,
                conversation_id not in summarised,
                said,
            )
        )
    return tuple(found)


def _spread(ids: Sequence[ExchangeId], most: int) -> list[ExchangeId]:
    """Return at most `most`, evenly spread, the first and the last among them."""
    if len(ids) <= most:
        return list(ids)
    return [ids[place * (len(ids) - 1) // (most - 1)] for place in range(most)]


def _passages(
    cursor: Connection, kind: PassageKind, source_ids: list[int]
) -> dict[int, tuple[int, ...]]:
    rows = cursor.execute(
        "SELECT source_id, list(id) FROM passage WHERE kind = ? "
        "AND source_id IN (SELECT unnest(?)) GROUP BY source_id",
        [kind.value, source_ids],
    ).fetchall()
    return {source_id: tuple(ids) for source_id, ids in rows}
