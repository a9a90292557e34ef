"""Work of the summarizers: what lacks a summary, its text, and what may be summarized at saving.

An exchange or a conversation lacks a summary when the latest one is missing or was made from other
content, told by the stamp in `SummaryPut.source_hash`: of an exchange, which messages it has; of a
conversation, how many exchanges are completed and when the last one was; and of both, how many messages
were forgotten.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from app.domain.conversations import Exchange, ExchangeStatus
from app.domain.ids import ConversationId, ExchangeId
from app.domain.passages import PassageKind
from app.storage.engine.aggregate import among, select_in
from app.storage.engine.database import Connection
from app.storage.engine.store import StoreReader
from app.storage.engine.times import from_db, to_db
from app.storage.tables.conversations import CONVERSATION_COLUMNS, conversation_of
from app.storage.tables.exchanges import exchanges_where, shown_path
from app.storage.work.exchange_texts import NO_TEXT, ExchangeText, exchange_texts
from app.storage.work.queue import (
    COMPLETED,
    COUNTS_BY_MAKER,
    EXCHANGE_STAMPS,
    EXCHANGES,
    SUMMARIES,
    Tally,
    WorkItem,
    WorkQuery,
    waiting,
)


@dataclass(frozen=True, slots=True)
class WaitingExchange:
    """A completed exchange that lacks a current summary. `said_at` is when it began, UTC."""

    id: ExchangeId
    conversation_id: ConversationId
    stamp: str
    said_at: datetime
    text: ExchangeText


@dataclass(frozen=True, slots=True)
class WaitingConversation:
    """A conversation that lacks a current summary.

    `said_at` is its last change, UTC; `texts` are turns of its shown path, in order.
    """

    id: ConversationId
    stamp: str
    title: str
    said_at: datetime
    texts: tuple[ExchangeText, ...]


@dataclass(frozen=True, slots=True)
class Summarizable:
    """What may be summarized at the moment of saving, on the writer thread.

    `ids` exist, are completed, not private, not in the trash, and have got no current summary
    meanwhile, from the user for example. `passages` are the summary passages of each so far; `tagged`
    are the conversations with tags.
    """

    ids: Collection[int]
    passages: Mapping[int, tuple[int, ...]]
    tagged: Collection[int] = ()


THINKING = "<think>"
"""The beginning of a text that is no summary but a model's thinking, which was once stored as one."""
# Sentences taken from a reply may begin like thinking, and would do so again.
IS_CURRENT = (
    f"d.latest AND {COUNTS_BY_MAKER} "
    f"AND (d.model = '{SUMMARIES.without_model}' OR NOT starts_with(d.text, '{THINKING}'))"
)
"""The condition that a summary d is the latest and need not be made again."""


def _query(kind: str, items: str, wanted: str) -> WorkQuery:
    result = f"summary d ON d.kind = '{kind}' AND d.source_id = i.id AND d.source_hash = t.stamp"
    worker = f"{kind}_summarizer"
    return WorkQuery(worker, items, "i.id", wanted, f"{result} AND {IS_CURRENT}", "source_id")


CONVERSATION_STAMPS = (
    "(SELECT conversation_id, count(*) - sum(forgotten) AS size, count(*) - sum(forgotten) || ':' || "
    "coalesce(epoch_us(max(completed_at)), 0) || CASE WHEN max(forgotten) = 1 THEN ':' || "
    "sum(forgotten) ELSE '' END AS stamp FROM (SELECT conversation_id, completed_at, 0 AS forgotten "
    "FROM exchange WHERE status = 'completed' UNION ALL SELECT conversation_id, NULL, 1 "
    "FROM forgotten_message) GROUP BY conversation_id HAVING count(*) > sum(forgotten))"
)
EXCHANGE_SUMMARIES = _query("exchange", EXCHANGES, f"{COMPLETED} AND t.size >= $size")
CONVERSATION_SUMMARIES = _query(
    "conversation",
    f"FROM conversation i JOIN {CONVERSATION_STAMPS} t ON t.conversation_id = i.id",
    "WHERE NOT i.private AND i.deleted_at IS NULL AND t.size >= $size",
)
# More than the extractive summarizer reads; the rest of a message of 10 MB stays in the database.
_EXCHANGE_READS_CHARS = 12_000
_CONVERSATION_READS_CHARS = 3_000
_CONVERSATION_READS_TURNS = 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def exchange_stamp(exchange: Exchange) -> str:
    """Return the stamp of an exchange of which nothing was forgotten."""
    return f"{len(exchange.message_ids)}:{max(exchange.message_ids)}"


def conversation_stamp(exchanges: Iterable[Exchange]) -> str:
    """Return the stamp of a conversation that has these exchanges, of which nothing was forgotten."""
    completed = [each for each in exchanges if each.status is ExchangeStatus.COMPLETED]
    last = max((each.completed_at or _EPOCH for each in completed), default=_EPOCH)
    return f"{len(completed)}:{(last - _EPOCH) // timedelta(microseconds=1)}"


class SummaryWork(StoreReader):
    """Reads the summarizers' work. Blocking: for their threads and the command line."""

    def exchange_ids(
        self, limit: int, min_messages: int, skipped: ConversationId | None, at: datetime
    ) -> tuple[WorkItem, ...]:
        """Return (id, stamp) of completed exchanges that lack a current summary, newest first.

        Left out: private conversations and those in the trash, the one `skipped`, exchanges
        with fewer messages than `min_messages`, abandoned ones, and those whose next try comes
        after `at` (UTC), unless by so much that the clock must have been set back.
        """
        values = {"size": min_messages, "at": to_db(at), "limit": limit, "open": skipped}
        statement = EXCHANGE_SUMMARIES.missing(
            "i.id, t.stamp",
            "AND i.conversation_id IS DISTINCT FROM $open ORDER BY i.id DESC LIMIT $limit",
        )
        return tuple(self._store.read(waiting, statement, values, SUMMARIES))

    def exchanges(self, found: Sequence[WorkItem]) -> tuple[WaitingExchange, ...]:
        """Return work items with their texts, in the same order; deleted ones are left out."""

        def query(cursor: Connection) -> tuple[WaitingExchange, ...]:
            ids = [each for each, _ in found]
            columns = "id, conversation_id, started_at"
            heads = {row[0]: row for row in select_in(cursor, "exchange", columns, ids)}
            texts = exchange_texts(cursor, ids, _EXCHANGE_READS_CHARS)
            return tuple(
                WaitingExchange(
                    ExchangeId(each), ConversationId(heads[each][1]), stamp,
                    from_db(heads[each][2]), texts.get(each, NO_TEXT),
                )
                for each, stamp in found
                if each in heads
            )  # fmt: skip

        return self._store.read(query)

    def conversations(
        self, limit: int, min_exchanges: int, skipped: ConversationId | None, at: datetime
    ) -> tuple[WaitingConversation, ...]:
        """Return conversations whose summary is missing or out of date, latest changed first.

        Left out as above, and conversations with fewer completed exchanges than `min_exchanges`.
        """
        values = {"size": min_exchanges, "at": to_db(at), "limit": limit, "open": skipped}
        statement = CONVERSATION_SUMMARIES.missing(
            "i.id, t.stamp",
            "AND i.id IS DISTINCT FROM $open ORDER BY i.updated_at DESC, i.id DESC LIMIT $limit",
        )

        def query(cursor: Connection) -> tuple[WaitingConversation, ...]:
            return _with_texts(cursor, waiting(cursor, statement, values, SUMMARIES))

        return self._store.read(query)

    def stamp(self, kind: str, source_id: int) -> str:
        """Return the stamp of the present content of an "exchange" or a "conversation"."""
        stamps = EXCHANGE_STAMPS if kind == "exchange" else CONVERSATION_STAMPS
        row = self._store.row(f"SELECT stamp FROM {stamps} WHERE {kind}_id = ?", [source_id])
        return str(row[0]) if row else conversation_stamp(())

    def exchange_tally(self, min_messages: int) -> Tally:
        """Return how many exchanges should have a summary, how many do, and what delays the rest."""
        return self._tally(EXCHANGE_SUMMARIES, min_messages)

    def conversation_tally(self, min_exchanges: int) -> Tally:
        """Return the same of conversations; an outdated summary does not count as done."""
        return self._tally(CONVERSATION_SUMMARIES, min_exchanges)

    def summarizable_exchanges(self, ids: Iterable[int]) -> Summarizable:
        """Return which of some exchanges may still be summarized."""
        return self._summarizable(EXCHANGE_SUMMARIES, PassageKind.EXCHANGE_SUMMARY, list(ids))

    def summarizable_conversations(self, ids: Iterable[int]) -> Summarizable:
        """Return which of some conversations may still be summarized, and which have tags."""
        return self._summarizable(
            CONVERSATION_SUMMARIES, PassageKind.CONVERSATION_SUMMARY, list(ids)
        )

    def _summarizable(self, work: WorkQuery, kind: PassageKind, ids: list[int]) -> Summarizable:
        statement = work.unmade("i.id", "AND i.id IN (SELECT unnest($ids))")

        def query(cursor: Connection) -> Summarizable:
            rows = waiting(cursor, statement, {"ids": ids, "size": 0}, SUMMARIES)
            tagged = select_in(cursor, "tag", "conversation_id", ids, "conversation_id")
            return Summarizable(
                {each for (each,) in rows},
                _passages(cursor, kind, ids),
                {each for (each,) in tagged} if work is CONVERSATION_SUMMARIES else (),
            )

        return self._store.read(query)

    def quiet_since(self, conversation_id: ConversationId) -> datetime | None:
        """Return when the last message of a conversation came (UTC); None while a reply runs."""
        row = self._store.row(
            "SELECT (SELECT max(created_at) FROM message WHERE conversation_id = $1), EXISTS "
            "(SELECT 1 FROM exchange WHERE conversation_id = $1 AND status = 'running')",
            [conversation_id],
        )
        last, runs = row or (None, False)
        return None if runs else from_db(last)

    def count_by_other_models(self, min_messages: int, min_exchanges: int) -> tuple[int, int]:
        """Return how many current summaries, of exchanges and conversations, other models made.

        Other than the model that makes summaries now, and than the user.
        """
        exchanges, conversations = (
            self._tally(work, size).done - self._tally(work, size, of_all=True).done
            for work, size in (
                (EXCHANGE_SUMMARIES, min_messages),
                (CONVERSATION_SUMMARIES, min_exchanges),
            )
        )
        return exchanges, conversations

    def _tally(self, work: WorkQuery, size: int, *, of_all: bool = False) -> Tally:
        return self._store.read(work.tally, {"size": size}, SUMMARIES, of_all=of_all)


def _with_texts(cursor: Connection, items: Sequence[WorkItem]) -> tuple[WaitingConversation, ...]:
    if not items:
        return ()
    ids = [row[0] for row in items]
    condition, values = among(ids)
    by_conversation: dict[int, list[Exchange]] = {}
    for exchange in exchanges_where(cursor, f"conversation_id {condition}", values):
        by_conversation.setdefault(exchange.conversation_id, []).append(exchange)
    rows = select_in(cursor, "conversation", CONVERSATION_COLUMNS, ids)
    heads = {head.id: head for head in map(conversation_of, rows)}
    turns: dict[int, list[ExchangeId]] = {}
    for conversation_id, exchanges in by_conversation.items():
        path = shown_path(heads[ConversationId(conversation_id)], exchanges) or exchanges
        ended = [each.id for each in path if each.status is ExchangeStatus.COMPLETED]
        turns[conversation_id] = _spread(ended, _CONVERSATION_READS_TURNS)
    texts = exchange_texts(
        cursor,
        [each for path_ids in turns.values() for each in path_ids],
        _CONVERSATION_READS_CHARS,
    )
    found = []
    for conversation_id, stamp in items:
        head = heads[ConversationId(conversation_id)]
        own = tuple(texts[each] for each in turns.get(conversation_id, ()) if each in texts)
        found.append(WaitingConversation(head.id, stamp, head.title, head.updated_at, own))
    return tuple(found)


def _spread(ids: Sequence[ExchangeId], most: int) -> list[ExchangeId]:
    """Return at most `most`, evenly spread, the first and the last among them."""
    if len(ids) <= most:
        return list(ids)
    return [ids[place * (len(ids) - 1) // (most - 1)] for place in range(most)]


def _passages(
    cursor: Connection, kind: PassageKind, source_ids: list[int]
) -> dict[int, tuple[int, ...]]:
    rest = f"AND kind = '{kind}' GROUP BY source_id"
    rows = select_in(cursor, "passage", "source_id, list(id)", source_ids, "source_id", rest)
    return {source_id: tuple(ids) for source_id, ids in rows}
