"""Work of the summarizers: what lacks a summary, its text, and what may be summarized at saving.

An exchange or a conversation lacks a summary when the latest one is missing or was made from other
content, told by the stamp in `SummaryPut.source_hash`: of an exchange, which messages it has; of a
conversation, how many exchanges have ended and when the last one did; and of both, how many messages
were forgotten.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter

from app.domain.conversations import Exchange, ExchangeStatus, Role
from app.domain.ids import ConversationId, ExchangeId
from app.domain.passages import PassageKind
from app.domain.records.summaries import SummarySource
from app.domain.turns import RECALL_MODEL, TurnMarkdown, turn_markdown
from app.storage.engine.connection import Connection, among, grouped
from app.storage.engine.stamps import from_db
from app.storage.engine.store import StoreReader, in_snapshot
from app.storage.tables.conversations import CONVERSATION_COLUMNS, conversation_of
from app.storage.tables.exchanges import blocks_of, exchanges_where, shown_path
from app.storage.work.queue import (
    COUNTS_BY_MAKER,
    ENDED,
    EXCHANGE_STAMPS,
    EXCHANGES,
    SUMMARIES,
    VISIBLE,
    Tally,
    WorkItem,
    WorkQuery,
)

NO_TEXT = TurnMarkdown("", "")


def exchange_texts(
    cursor: Connection, exchange_ids: Sequence[int], limit_chars: int
) -> dict[int, TurnMarkdown]:
    """Return both sides of exchanges, each message cut to its head and tail.

    Without written text, it is the names of attached files and the calls of tools. What there is of
    a reply that was interrupted is cut off.
    """
    half = limit_chars // 2
    rows = cursor.rows(
        "SELECT l.exchange_id, m.role, CASE WHEN length(m.text) <= $2 THEN m.text "
        "ELSE left(m.text, $3) || chr(10) || chr(10) || right(m.text, $3) END "
        "FROM exchange_message l JOIN message m ON m.id = l.message_id "
        "WHERE l.exchange_id IN (SELECT unnest($1)) AND m.role IN ('user', 'assistant') "
        "AND NOT (m.role = 'assistant' AND m.model IS NOT DISTINCT FROM $4) "
        "ORDER BY l.exchange_id, l.place",
        [list(exchange_ids), limit_chars, half, RECALL_MODEL],
    )
    sides: dict[int, tuple[list[str], list[str]]] = {}
    for exchange_id, role, text in rows:
        user, assistant = sides.setdefault(exchange_id, ([], []))
        if text:
            (user if role == Role.USER else assistant).append(text)
    texts = {
        each: TurnMarkdown("\n\n".join(asked), "\n\n".join(answered))
        for each, (asked, answered) in sides.items()
    }
    silent = [each for each in exchange_ids if texts.get(each, NO_TEXT) == NO_TEXT]
    texts |= _texts_of_blocks(cursor, silent, limit_chars) if silent else {}
    rest = "AND status = 'interrupted'"
    for each in cursor.column_in("exchange", "id", exchange_ids, rest=rest) & texts.keys():
        if answered := texts[each].answered:
            texts[each] = replace(texts[each], answered=f"{answered} …", is_cut_off=True)
    return texts


def _texts_of_blocks(
    cursor: Connection, exchange_ids: list[int], limit_chars: int
) -> dict[int, TurnMarkdown]:
    rows = cursor.rows(
        "SELECT l.exchange_id, m.role, m.text, m.blocks FROM exchange_message l "
        "JOIN message m ON m.id = l.message_id WHERE l.exchange_id IN (SELECT unnest(?)) "
        "ORDER BY l.exchange_id, l.place",
        [exchange_ids],
    )
    messages: dict[int, list[tuple[Role, str, str | None]]] = {}
    for exchange_id, role, text, blocks in rows:
        messages.setdefault(exchange_id, []).append((Role(role), text, blocks))
    texts = {}
    for exchange_id, own in messages.items():
        turn = turn_markdown((role, blocks_of(text, blocks)) for role, text, blocks in own)
        texts[exchange_id] = TurnMarkdown(turn.asked[:limit_chars], turn.answered[:limit_chars])
    return texts


@dataclass(frozen=True, slots=True)
class Unsummarized:
    """An exchange or a conversation that lacks a current summary.

    `turns` are the exchange, or turns of the conversation's shown path, in order. `title` is the
    conversation's, "" for an exchange.
    """

    source: SummarySource
    stamp: str
    turns: Sequence[TurnMarkdown]
    title: str = ""

    @property
    def id(self) -> int:
        return self.source.id


@dataclass(frozen=True, slots=True)
class Summarizable:
    """What may be summarized at the moment of saving, on the writer thread.

    `ids` exist, have ended, are not private, not in the trash, and have got no current summary
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


def _query(kind: str, items: str, item: str, wanted: str, order: str) -> WorkQuery:
    result = f"summary d ON d.kind = '{kind}' AND d.source_id = {item} AND d.source_hash = t.stamp"
    return WorkQuery(
        f"{kind}_summarizer", items, item, wanted, f"{result} AND {IS_CURRENT}", "source_id",
        SUMMARIES, order,
    )  # fmt: skip


ENDED_AT = "coalesce(completed_at, started_at)"  # as `Exchange.ended_at`
CONVERSATION_STAMPS = (
    "(SELECT conversation_id, count(*) - sum(forgotten) AS size, count(*) - sum(forgotten) || ':' || "
    "coalesce(epoch_us(max(ended_at)), 0) || CASE WHEN max(forgotten) = 1 THEN ':' || "
    f"sum(forgotten) ELSE '' END AS stamp FROM (SELECT conversation_id, {ENDED_AT} AS ended_at, "
    "0 AS forgotten FROM exchange WHERE status <> 'running' UNION ALL SELECT conversation_id, NULL, 1 "
    "FROM forgotten_message) GROUP BY conversation_id HAVING count(*) > sum(forgotten))"
)
# A try that failed before a reply, or that another try or edit has replaced, gets no summary.
_NOT_REPLACED = (
    "AND (i.status <> 'failed' OR t.size > 1) AND i.id NOT IN (SELECT a.id FROM exchange a "
    "JOIN exchange b ON b.conversation_id = a.conversation_id AND b.segment_number = a.segment_number "
    "AND b.parent_id IS NOT DISTINCT FROM a.parent_id WHERE a.status = 'failed' "
    "AND b.status <> 'running' AND (b.id > a.id OR b.status = 'completed'))"
)
EXCHANGE_SUMMARIES = _query("exchange", EXCHANGES, "i.id", f"{ENDED} {_NOT_REPLACED}", "i.id DESC")
CONVERSATION_SUMMARIES = _query(
    "conversation",
    f"FROM conversation c JOIN {CONVERSATION_STAMPS} t ON t.conversation_id = c.id",
    "c.id",
    f"WHERE {VISIBLE} AND t.size >= $size",
    "c.updated_at DESC, c.id DESC",
)
"""The values of both bind `size`: the least messages of an exchange, or exchanges of a conversation."""
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
    ended = [each for each in exchanges if each.status is not ExchangeStatus.RUNNING]
    return stamp_of(len(ended), max((each.ended_at for each in ended), default=_EPOCH))


def stamp_of(count: int, last: datetime) -> str:
    """Return the stamp of a conversation of so many exchanges, the last of which ended then."""
    return f"{count}:{(last - _EPOCH) // timedelta(microseconds=1)}"


def present_stamp(cursor: Connection, kind: str, source_id: int) -> str:
    """Return the stamp of the present content of an "exchange" or a "conversation"."""
    stamps = EXCHANGE_STAMPS if kind == "exchange" else CONVERSATION_STAMPS
    row = cursor.row(f"SELECT stamp FROM {stamps} WHERE {kind}_id = ?", [source_id])
    return str(row[0]) if row else conversation_stamp(())


class SummaryWork(StoreReader):
    """Reads the summarizers' work, of exchanges or of conversations, as the first argument says. Blocking."""

    @in_snapshot
    def missing(
        self,
        cursor: Connection,
        work: WorkQuery,
        limit: int,
        size: int,
        skipped: ConversationId | None,
        at: datetime,
    ) -> Sequence[WorkItem]:
        """Return (id, stamp) of what lacks a current summary, the newest exchange or last change first.

        Left out: private conversations and those in the trash, the one `skipped`, what is smaller than
        `size`, what was abandoned, and what is tried again after `at` (UTC).
        """
        return work.next_items(cursor, limit, skipped, at, size=size)

    @in_snapshot
    def with_turns(
        self, cursor: Connection, work: WorkQuery, found: Sequence[WorkItem]
    ) -> Sequence[Unsummarized]:
        """Return work items with their texts, in the same order; deleted ones are left out."""
        of_conversations = work is CONVERSATION_SUMMARIES
        heads = (_conversations if of_conversations else _exchanges)(cursor, [i for i, _ in found])
        chars = _CONVERSATION_READS_CHARS if of_conversations else _EXCHANGE_READS_CHARS
        ids = [each for _, _, turns in heads.values() for each in turns]
        texts = exchange_texts(cursor, ids, chars)
        unsummarized = []
        for each, stamp in found:
            if each in heads:
                source, title, turns = heads[each]
                own = [texts.get(turn, NO_TEXT) for turn in turns]
                unsummarized.append(Unsummarized(source, stamp, own, title))
        return unsummarized

    def stamp(self, kind: str, source_id: int) -> str:
        """Return the stamp of the present content of an "exchange" or a "conversation"."""
        return self._store.read(present_stamp, kind, source_id)

    def tally(self, work: WorkQuery, size: int) -> Tally:
        """Return how many should have a summary, how many do, and what delays the rest.

        An outdated summary does not count as done.
        """
        return self._store.read(work.tally, size=size)

    @in_snapshot
    def summarizable(self, cursor: Connection, work: WorkQuery, ids: Iterable[int]) -> Summarizable:
        """Return which of some exchanges or conversations may still be summarized."""
        given = list(ids)
        rows = work.unmade(
            cursor, work.item, f"AND {work.item} IN (SELECT unnest($ids))", ids=given, size=0
        )
        of_conversations = work is CONVERSATION_SUMMARIES
        kind = (
            PassageKind.CONVERSATION_SUMMARY if of_conversations else PassageKind.EXCHANGE_SUMMARY
        )
        rest = f"AND kind = '{kind}' GROUP BY source_id"
        passages = cursor.select_in("passage", "source_id, list(id)", given, "source_id", rest)
        return Summarizable(
            {each for (each,) in rows},
            {source_id: tuple(own) for source_id, own in passages},
            cursor.column_in("tag", "conversation_id", given, "conversation_id")
            if of_conversations
            else (),
        )

    def quiet_since(self, conversation_id: ConversationId) -> datetime | None:
        """Return when the last message of a conversation came (UTC); None while a reply runs."""
        row = self._store.row(
            "SELECT (SELECT max(created_at) FROM message WHERE conversation_id = $1), EXISTS "
            "(SELECT 1 FROM exchange WHERE conversation_id = $1 AND status = 'running')",
            [conversation_id],
        )
        last, runs = row or (None, False)
        return None if runs else from_db(last)

    @in_snapshot
    def count_by_other_models(self, cursor: Connection, work: WorkQuery, size: int) -> int:
        """Return how many current summaries others made than the model that makes them now and the user."""
        current, own = (work.tally(cursor, of_all=each, size=size) for each in (False, True))
        return current.done - own.done


_Heads = Mapping[int, tuple[SummarySource, str, Sequence[ExchangeId]]]
"""The source, the title and the turns to read, by id."""


def _exchanges(cursor: Connection, ids: list[int]) -> _Heads:
    rows = cursor.select_in("exchange", "id, conversation_id, started_at", ids)
    return {
        each: (SummarySource(conversation_id, each, from_db(at)), "", [each])
        for each, conversation_id, at in rows
    }


def _conversations(cursor: Connection, ids: list[int]) -> _Heads:
    condition, values = among(ids)
    found = exchanges_where(cursor, f"conversation_id {condition}", values)
    exchanges = grouped(found, attrgetter("conversation_id"))
    heads: dict[int, tuple[SummarySource, str, Sequence[ExchangeId]]] = {}
    for head in map(conversation_of, cursor.select_in("conversation", CONVERSATION_COLUMNS, ids)):
        every = exchanges.get(head.id, ())
        path = shown_path(head, every) or every
        ended = [each.id for each in path if each.status is not ExchangeStatus.RUNNING]
        source = SummarySource(head.id, None, head.updated_at)
        last, most = len(ended) - 1, min(len(ended), _CONVERSATION_READS_TURNS)
        # Evenly spread, the first and the last among them.
        turns = [ended[place * last // max(1, most - 1)] for place in range(most)]
        heads[head.id] = (source, head.title, turns)
    return heads
