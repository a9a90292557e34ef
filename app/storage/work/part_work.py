"""Work of the background model: the parts of conversations that have not been read yet.

A part holds the turns of one conversation that lack a summary, were not read for facts, or came
after the conversation's summary, oldest first. What a summary covers is told by its stamp: how many
exchanges it was made from and when the last one was completed.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from app.domain.conversations import Conversation, Exchange
from app.domain.ids import ConversationId
from app.domain.workers import WorkerName
from app.storage.engine.aggregate import select_in
from app.storage.engine.database import Connection
from app.storage.engine.store import StoreReader
from app.storage.engine.times import to_db
from app.storage.tables.conversations import CONVERSATION_COLUMNS, conversation_of
from app.storage.tables.exchanges import exchanges_where
from app.storage.work.exchange_texts import ExchangeText, exchange_texts
from app.storage.work.extraction_work import EXTRACTIONS, ExchangeToRead, exchanges_to_read
from app.storage.work.queue import FACTS, POSTPONED, SUMMARIES, WorkQuery, regeneration_values
from app.storage.work.summary_work import CONVERSATION_SUMMARIES, EXCHANGE_SUMMARIES, IS_CURRENT

_CHARS = 12_000  # of a message
_MOST_TURNS = 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
        found = {}
        if self.summaries is not None:
            found[CONVERSATION_SUMMARIES] = self.summaries
        if self.lines is not None:
            found[EXCHANGE_SUMMARIES] = self.lines
        if self.facts:
            found[EXTRACTIONS] = 0
        return found


@dataclass(frozen=True, slots=True)
class PartTurn:
    """A turn of a part. `line` is its summary where that is all that is needed of the turn.

    `covered` is the stamp of the conversation's summary once it covers this turn; "" if it does.
    """

    exchange: ExchangeToRead
    said_at: datetime
    text: ExchangeText
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

    def next(
        self,
        worker: WorkerName,
        wanted: WantedResults,
        skipped: ConversationId | None,
        at: datetime,
    ) -> ConversationPart | None:
        """Return the first part of the conversation whose unread turns are the oldest.

        Left out: private conversations and those in the trash, the one `skipped`, and those in
        which an item of `worker` was abandoned or is tried again after `at` (UTC). None for none.
        """

        def query(cursor: Connection) -> ConversationPart | None:
            left_out = _postponed(cursor, worker, at)
            if skipped is not None:
                left_out.add(skipped)
            found = _oldest(cursor, wanted, left_out)
            part = None if found is None else _part(cursor, found, wanted)
            return part if part is not None and part.turns else None

        return self._store.read(query)

    def unread(self, wanted: WantedResults, *, again: bool = False) -> Mapping[int, int]:
        """Return how many unread turns each conversation has that has any.

        With `again`, those that would become unread if the user requested regeneration now.
        """

        def query(cursor: Connection) -> Mapping[int, int]:
            found = _unread(cursor, wanted, of_all=again)
            if again:
                found -= _unread(cursor, wanted, of_all=False)
            return Counter(own for own, _ in found)

        return self._store.read(query)


def _unread(cursor: Connection, wanted: WantedResults, *, of_all: bool) -> set[tuple[int, int]]:
    """Return the unread turns: (conversation, exchange)."""
    found: set[tuple[int, int]] = set()
    for work, least in wanted.queries.items():
        of_conversations = work is CONVERSATION_SUMMARIES
        columns = "i.id" if of_conversations else "i.conversation_id, i.id"
        statement = work.unmade(columns, "")
        if of_conversations:
            statement = _NOT_COVERED.format(conversations=statement)
        rows = cursor.execute(statement, _values(cursor, work, least, of_all=of_all))
        found.update(rows.fetchall())
    return found


# The turns that `_summary` does not cover.
_NOT_COVERED = (
    "WITH turn AS (SELECT conversation_id AS own, id, row_number() OVER (PARTITION BY conversation_id "
    "ORDER BY coalesce(epoch_us(completed_at), 0), id) AS place, "
    "place || ':' || coalesce(epoch_us(completed_at), 0) AS stamp "
    "FROM exchange WHERE status = 'completed'), "
    "covered AS (SELECT own, max(place) AS count FROM turn JOIN summary d "
    "ON d.kind = 'conversation' AND d.source_id = own AND d.source_hash = stamp "
    f"AND {IS_CURRENT} GROUP BY own) "
    "SELECT own, id FROM turn LEFT JOIN covered USING (own) "
    "WHERE place > coalesce(count, 0) AND own IN ({conversations})"
)


def _postponed(cursor: Connection, worker: WorkerName, at: datetime) -> set[int]:
    """Return the conversations of items that failed and are not to be tried now."""
    rows = cursor.execute(
        "SELECT coalesce(e.conversation_id, a.item_id) FROM attempt a LEFT JOIN exchange e "
        "ON e.id = a.item_id AND a.worker <> $conversations "
        f"WHERE a.worker = $worker AND {POSTPONED}",
        {"worker": worker, "conversations": WorkerName.CONVERSATION_SUMMARIZER, "at": to_db(at)},
    ).fetchall()
    return {each for (each,) in rows}


def _oldest(cursor: Connection, wanted: WantedResults, left_out: Collection[int]) -> int | None:
    found: list[tuple[datetime, int]] = []
    for work, least in wanted.queries.items():
        of_conversations = work is CONVERSATION_SUMMARIES
        own, at = ("i.id", "i.created_at") if of_conversations else ("c.id", "c.created_at")
        statement = work.unmade(
            f"{at}, {own}", f"AND NOT list_contains($left_out, {own}) ORDER BY 1, 2 LIMIT 1"
        )
        values = {**_values(cursor, work, least), "left_out": [*left_out]}
        found += cursor.execute(statement, values).fetchall()
    return min(found)[1] if found else None


def _values(
    cursor: Connection, work: WorkQuery, least: int, *, of_all: bool = False
) -> dict[str, object]:
    kind = FACTS if work is EXTRACTIONS else SUMMARIES
    again = regeneration_values(cursor, kind, of_all=of_all)
    return again if work is EXTRACTIONS else {**again, "size": least}


def _part(cursor: Connection, conversation_id: int, wanted: WantedResults) -> ConversationPart:
    (head,) = map(
        conversation_of, select_in(cursor, "conversation", CONVERSATION_COLUMNS, [conversation_id])
    )
    condition = "conversation_id = ? AND status = 'completed'"
    exchanges = exchanges_where(cursor, condition, [conversation_id])
    exchanges.sort(key=lambda each: (each.completed_at or _EPOCH, each.id))
    missing = {
        work: _missing(cursor, work, least, conversation_id)
        for work, least in wanted.queries.items()
    }
    needs_summary = bool(missing.get(CONVERSATION_SUMMARIES))
    summary, count = _summary(cursor, head, exchanges)
    covered: dict[int, str] = {
        exchange.id: _stamp(place, exchange)
        for place, exchange in enumerate(exchanges)
        if needs_summary and place >= count
    }
    lines = missing.get(EXCHANGE_SUMMARIES, {})
    facts = missing.get(EXTRACTIONS, {})
    unread = [each for each in exchanges if each.id in {*covered, *lines, *facts}][:_MOST_TURNS]
    return ConversationPart(
        conversation=head,
        summary=summary,
        wants_summary=bool(covered),
        wants_tags=bool(covered) and _has_no_tags(cursor, head),
        turns=_turns(cursor, unread, covered, lines, facts),
    )


def _missing(
    cursor: Connection, work: WorkQuery, least: int, conversation_id: int
) -> Mapping[int, str]:
    """Return the items of a conversation that lack a result, with their stamps."""
    own = "i.id" if work is CONVERSATION_SUMMARIES else "i.conversation_id"
    statement = work.unmade("i.id, t.stamp", f"AND {own} = $own")
    values = {**_values(cursor, work, least), "own": conversation_id}
    return dict(cursor.execute(statement, values).fetchall())


def _summary(
    cursor: Connection, head: Conversation, exchanges: Sequence[Exchange]
) -> tuple[str, int]:
    """Return the summary that new turns are added to, and how many exchanges it covers.

    None is used that is to be made again, or of which a turn was deleted or changed.
    """
    values = {**regeneration_values(cursor, SUMMARIES), "own": head.id}
    row = cursor.execute(
        "SELECT text, source_hash FROM summary d WHERE kind = 'conversation' AND source_id = $own "
        f"AND {IS_CURRENT}",
        values,
    ).fetchone()
    text, stamp = row or ("", "0:0")
    count = int(stamp.partition(":")[0])
    is_prefix = 0 < count <= len(exchanges) and _stamp(count - 1, exchanges[count - 1]) == stamp
    return (text, count) if is_prefix else ("", 0)


def _stamp(place: int, exchange: Exchange) -> str:
    at = exchange.completed_at or _EPOCH
    return f"{place + 1}:{(at - _EPOCH) // timedelta(microseconds=1)}"


def _has_no_tags(cursor: Connection, head: Conversation) -> bool:
    row = cursor.execute(
        "SELECT (SELECT count(*) FROM tag WHERE conversation_id = $1), (SELECT count(*) "
        "FROM summary WHERE kind = 'conversation' AND source_id = $1)",
        [head.id],
    ).fetchone()
    return row == (0, 0)


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
    rows = select_in(cursor, "summary", "source_id, text", ids, "source_id", rest)
    known: dict[int, str] = dict(rows)
    return tuple(
        PartTurn(
            exchange=reads[each.id],
            said_at=each.started_at,
            text=texts.get(each.id, ExchangeText("", "")),
            line="" if each.id in {*lines, *facts} else known.get(each.id, ""),
            wants_line=each.id in lines,
            wants_facts=each.id in facts,
            covered=covered.get(each.id, ""),
        )
        for each in unread
    )
