"""Work of the background model: the parts of conversations that have not been read yet.

A part holds the turns of one conversation that lack a summary, were not read for facts, or came
after the conversation's summary, oldest first. What a summary covers is told by its stamp: how many
exchanges it was made from and when the last one ended.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.conversations import Conversation, Exchange
from app.domain.ids import ConversationId
from app.domain.turns import TurnMarkdown
from app.domain.workers import WorkerName
from app.storage.engine.connection import Connection
from app.storage.engine.stamps import to_db
from app.storage.engine.store import StoreReader, in_snapshot
from app.storage.tables.conversations import CONVERSATION_COLUMNS, conversation_of
from app.storage.tables.exchanges import exchanges_where
from app.storage.work.extraction_work import EXTRACTIONS, ExchangeToRead, exchanges_to_read
from app.storage.work.queue import POSTPONED, SUMMARIES, WorkQuery, regeneration_values
from app.storage.work.summary_work import (
    CONVERSATION_SUMMARIES,
    ENDED_AT,
    EXCHANGE_SUMMARIES,
    IS_CURRENT,
    NO_TEXT,
    exchange_texts,
    stamp_of,
)

_CHARS = 12_000  # of a message
_MOST_TURNS = 60


@dataclass(frozen=True, slots=True)
class WantedResults:
    """Which results are missing is asked for; None and False leave a kind out.

    The numbers are the least messages of an exchange and the least exchanges of a conversation.
    """

    lines: int | None
    summaries: int | None
    facts: bool

    @property
    def queries(self) -> Mapping[WorkQuery, int]:
        """The queries of the wanted results, and the least size of an item."""
        found = {
            CONVERSATION_SUMMARIES: self.summaries,
            EXCHANGE_SUMMARIES: self.lines,
            EXTRACTIONS: 0 if self.facts else None,
        }
        return {work: least for work, least in found.items() if least is not None}


@dataclass(frozen=True, slots=True)
class PartTurn:
    """A turn of a part. `line` is its summary where that is all that is needed of the turn.

    `covered` is the stamp of the conversation's summary once it covers this turn; "" if it does.
    """

    exchange: ExchangeToRead
    said_at: datetime
    text: TurnMarkdown
    line: str
    wants_line: bool
    wants_facts: bool
    covered: str


@dataclass(frozen=True, slots=True)
class ConversationPart:
    """The oldest unread turns of a conversation.

    `summary` is the one that covers the turns before, "" for none. `wants_tags` is False once the
    conversation had a summary or tags. `wants_summary` is whether it should get one.
    """

    conversation: Conversation
    summary: str
    wants_summary: bool
    wants_tags: bool
    turns: tuple[PartTurn, ...]


class PartWork(StoreReader):
    """Reads the unread parts of conversations. Blocking: for worker threads."""

    @in_snapshot
    def next(
        self,
        cursor: Connection,
        worker: WorkerName,
        wanted: WantedResults,
        skipped: ConversationId | None,
        at: datetime,
    ) -> ConversationPart | None:
        """Return the first part of the conversation whose unread turns are the oldest.

        Left out: private conversations and those in the trash, the one `skipped`, and those in
        which an item of `worker` was abandoned or is tried again after `at` (UTC). None for none.
        """
        left_out = cursor.column(
            "SELECT coalesce(e.conversation_id, a.item_id) FROM attempt a LEFT JOIN exchange e "
            "ON e.id = a.item_id AND a.worker <> $conversations "
            f"WHERE a.worker = $worker AND {POSTPONED}",
            {
                "worker": worker,
                "conversations": WorkerName.CONVERSATION_SUMMARIZER,
                "at": to_db(at),
            },
        )
        if skipped is not None:
            left_out.append(skipped)
        rest = "AND NOT list_contains($left_out, c.id) ORDER BY 1, 2 LIMIT 1"
        own = "c.created_at, c.id"
        oldest = [
            row
            for work, least in wanted.queries.items()
            for row in work.unmade(cursor, own, rest, size=least, left_out=left_out)
        ]
        part = _part(cursor, min(oldest)[1], wanted) if oldest else None
        return part if part is not None and part.turns else None

    @in_snapshot
    def unread(
        self, cursor: Connection, wanted: WantedResults, *, again: bool = False
    ) -> Mapping[int, int]:
        """Return how many unread turns each conversation has that has any.

        With `again`, those that would become unread if the user requested regeneration now.
        """
        found = _unread(cursor, wanted, of_all=again)
        if again:
            found -= _unread(cursor, wanted, of_all=False)
        return Counter(own for own, _ in found)


def _unread(cursor: Connection, wanted: WantedResults, *, of_all: bool) -> set[tuple[int, int]]:
    """Return the unread turns: (conversation, exchange)."""
    found: set[tuple[int, int]] = set()
    for work, least in wanted.queries.items():
        rows = work.unmade(cursor, f"c.id, {work.item}", "", of_all=of_all, size=least)
        if work is CONVERSATION_SUMMARIES:
            again = regeneration_values(cursor, SUMMARIES, of_all=of_all)
            own = [each for each, _ in rows]
            rows = cursor.rows(_NOT_COVERED, {**again, "conversations": own})
        found.update(rows)
    return found


# The turns that `_summary` does not cover.
_NOT_COVERED = (
    "WITH turn AS (SELECT conversation_id AS own, id, row_number() OVER (PARTITION BY conversation_id "
    f"ORDER BY {ENDED_AT}, id) AS place, place || ':' || epoch_us({ENDED_AT}) AS stamp "
    "FROM exchange WHERE status <> 'running'), "
    "covered AS (SELECT own, max(place) AS count FROM turn JOIN summary d "
    "ON d.kind = 'conversation' AND d.source_id = own AND d.source_hash = stamp "
    f"AND {IS_CURRENT} GROUP BY own) "
    "SELECT own, id FROM turn LEFT JOIN covered USING (own) "
    "WHERE place > coalesce(count, 0) AND own IN (SELECT unnest($conversations))"
)


def _part(cursor: Connection, conversation_id: int, wanted: WantedResults) -> ConversationPart:
    (head,) = map(
        conversation_of, cursor.select_in("conversation", CONVERSATION_COLUMNS, [conversation_id])
    )
    condition = "conversation_id = ? AND status <> 'running'"
    exchanges = exchanges_where(cursor, condition, [conversation_id])
    exchanges.sort(key=lambda each: (each.ended_at, each.id))
    missing: dict[WorkQuery, dict[int, str]] = {}
    for work, least in wanted.queries.items():
        stamps = f"{work.item}, t.stamp"
        rows = work.unmade(cursor, stamps, "AND c.id = $own", size=least, own=conversation_id)
        missing[work] = dict(rows)
    needs_summary = bool(missing.get(CONVERSATION_SUMMARIES))
    summary, count = _summary(cursor, head, exchanges)
    covered: dict[int, str] = {
        exchange.id: stamp_of(place + 1, exchange.ended_at)
        for place, exchange in enumerate(exchanges)
        if needs_summary and place >= count
    }
    (has_tags,) = cursor.column(
        "SELECT EXISTS (SELECT 1 FROM tag WHERE conversation_id = $1) OR EXISTS (SELECT 1 "
        "FROM summary WHERE kind = 'conversation' AND source_id = $1)",
        [head.id],
    )
    lines = missing.get(EXCHANGE_SUMMARIES, {})
    facts = missing.get(EXTRACTIONS, {})
    unread = [each for each in exchanges if each.id in {*covered, *lines, *facts}][:_MOST_TURNS]
    return ConversationPart(
        conversation=head,
        summary=summary,
        wants_summary=bool(covered),
        wants_tags=bool(covered) and not has_tags,
        turns=_turns(cursor, unread, covered, lines, facts),
    )


def _summary(
    cursor: Connection, head: Conversation, exchanges: Sequence[Exchange]
) -> tuple[str, int]:
    """Return the summary that new turns are added to, and how many exchanges it covers.

    None is used that is to be made again, or of which a turn was deleted or changed.
    """
    values = {**regeneration_values(cursor, SUMMARIES), "own": head.id}
    row = cursor.row(
        "SELECT text, source_hash FROM summary d WHERE kind = 'conversation' AND source_id = $own "
        f"AND {IS_CURRENT}",
        values,
    )
    text, stamp = row or ("", "0:0")
    count = int(stamp.partition(":")[0])
    is_prefix = (
        0 < count <= len(exchanges) and stamp_of(count, exchanges[count - 1].ended_at) == stamp
    )
    return (text, count) if is_prefix else ("", 0)


def _turns(
    cursor: Connection,
    unread: Sequence[Exchange],
    covered: Mapping[int, str],
    lines: Mapping[int, str],
    facts: Mapping[int, str],
) -> tuple[PartTurn, ...]:
    ids = [each.id for each in unread]
    stamps = [(each.id, facts.get(each.id) or lines.get(each.id, "")) for each in unread]
    reads = {each.id: each for each in exchanges_to_read(cursor, stamps)}
    texts = exchange_texts(cursor, ids, _CHARS)
    rest = "AND kind = 'exchange' AND latest"
    rows = cursor.select_in("summary", "source_id, text", ids, "source_id", rest)
    known: dict[int, str] = dict(rows)
    return tuple(
        PartTurn(
            exchange=reads[each.id],
            said_at=each.started_at,
            text=texts.get(each.id, NO_TEXT),
            line="" if each.id in {*lines, *facts} else known.get(each.id, ""),
            wants_line=each.id in lines,
            wants_facts=each.id in facts,
            covered=covered.get(each.id, ""),
        )
        for each in unread
    )
