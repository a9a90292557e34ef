"""Work of the knowledge extractor: exchanges to read, and existing facts to compare with.

Work is found by query: an exchange that ended, with a whole reply or not, and was never read for facts, or
had other messages then, or is to be read again (`regeneration_values`). Messages never change, so which ones
it has tells that.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter

from app.domain.conversations import Role
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.records.facts import BY_USER, Fact, FactVersion
from app.domain.turns import RECALL_MODEL
from app.storage.engine.connection import Connection, grouped
from app.storage.engine.stamps import from_db
from app.storage.engine.store import StoreReader, in_snapshot
from app.storage.tables.fact_rows import FACT_COLUMNS, fact_of, facts_in
from app.storage.tables.facts import fact_versions
from app.storage.work.queue import (
    COUNTS_BY_MAKER,
    ENDED,
    EXCHANGES,
    FACTS,
    VISIBLE,
    Tally,
    WorkItem,
    WorkQuery,
    regeneration_values,
)

_MAX_CHARS = 20_000  # of a message
_OPENING_CHARS = 2_000  # of a user's message: a role play may be announced after a long greeting
_REPLY_OPENING_CHARS = 100  # of an assistant's


@dataclass(frozen=True, slots=True)
class MessageToRead:
    """A message as it is read for facts: text of the user or an assistant. `said_at` is UTC."""

    id: MessageId
    by_user: bool
    text: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class ExchangeToRead:
    """An exchange to be read for facts: its messages.

    Recall's own answers, which quote, and what tools answered are no part of it. `openings` are the
    beginnings of every message of its conversation, oldest first.
    """

    id: ExchangeId
    conversation_id: ConversationId
    stamp: str
    messages: tuple[MessageToRead, ...]
    openings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtractionState:
    """The state of exchanges at the moment of saving, on the writer thread.

    `may_be_read` are exchanges that still exist, are finished, not private, not in the trash;
    `outdated` those of them that a later edit or another try has replaced. `replaced` are the
    exchanges that each has replaced itself.
    """

    may_be_read: Collection[int]
    outdated: Collection[int]
    replaced: Mapping[int, tuple[int, ...]]


EXTRACTIONS = WorkQuery(
    "knowledge_extractor",
    EXCHANGES,
    "i.id",
    ENDED,
    f"extraction d ON d.exchange_id = i.id AND d.source_hash = t.stamp AND {COUNTS_BY_MAKER}",
    "exchange_id",
    FACTS,
    "i.id DESC",
)


class ExtractionWork(StoreReader):
    """Reads the extractor's work. Blocking: for its thread and the command line."""

    def exchange_ids(
        self, limit: int, skipped: ConversationId | None, at: datetime
    ) -> Sequence[WorkItem]:
        """Return (id, stamp) of exchanges not read for facts in their present state, newest first.

        Left out: private conversations and those in the trash, the one `skipped`, abandoned exchanges,
        and those whose next try comes after `at` (UTC).
        """
        return self._store.read(EXTRACTIONS.next_items, limit, skipped, at, size=0)

    def exchanges(self, found: Sequence[WorkItem]) -> tuple[ExchangeToRead, ...]:
        """Return work items with their texts, in the same order; deleted ones are left out."""
        return self._store.read(exchanges_to_read, found)

    def tally(self) -> Tally:
        """Return how many exchanges should be read, how many were, and what delays the rest."""
        return self._store.read(EXTRACTIONS.tally, size=0)

    @in_snapshot
    def facts_by_other_models(self, cursor: Connection) -> int:
        """Return how many current facts were extracted from those, without the user's own."""
        statement = (
            "SELECT count(*) FROM fact f JOIN extraction d ON d.exchange_id = f.exchange_id "
            "WHERE f.valid_until IS NULL AND NOT f.pinned AND f.model <> $user "
            f"AND NOT {COUNTS_BY_MAKER}"
        )
        again = regeneration_values(cursor, FACTS, of_all=True)
        (count,) = cursor.column(statement, {"user": BY_USER, **again})
        return int(count)

    @in_snapshot
    def state(self, cursor: Connection, exchange_ids: Iterable[int]) -> ExtractionState:
        """Return which of some exchanges may have facts, and whose facts theirs replace."""
        wanted = list(exchange_ids)
        may = cursor.column(
            "SELECT i.id FROM exchange i JOIN conversation c ON c.id = i.conversation_id "
            f"WHERE i.status <> 'running' AND {VISIBLE} AND i.id IN (SELECT unnest(?))",
            [wanted],
        )
        siblings = cursor.rows(
            "SELECT a.id, b.id FROM exchange a JOIN exchange b "
            "ON b.conversation_id = a.conversation_id AND b.id <> a.id "
            "AND b.parent_id IS NOT DISTINCT FROM a.parent_id "
            "AND b.segment_number = a.segment_number AND b.status <> 'running' "
            "WHERE a.id IN (SELECT unnest(?)) ORDER BY 1, 2",
            [wanted],
        )
        replaced: dict[int, tuple[int, ...]] = {}
        for each, other in siblings:
            if other < each:
                replaced[each] = (*replaced.get(each, ()), other)
        return ExtractionState(may, {each for each, other in siblings if other > each}, replaced)

    # -- existing facts

    def like(self, terms: Iterable[str]) -> Sequence[Fact]:
        """Return the current facts that contain one of some terms (in lower case), in any script."""
        return self._facts(
            "valid_until IS NULL AND EXISTS "
            "(SELECT 1 FROM unnest(?) AS wanted(term) WHERE contains(lower(text), term)) ORDER BY id",
            [list(terms)],
        )

    def saying(self, texts: Iterable[str], subjects: Iterable[str]) -> Sequence[Fact]:
        """Return the facts with these texts (in lower case) or subjects, past ones too."""
        return self._facts(
            "lower(text) IN (SELECT unnest(?)) OR (subject <> '' AND subject IN "
            "(SELECT unnest(?))) ORDER BY said_at, id",
            [list(texts), list(subjects)],
        )

    def facts_with(self, column: str, values: Iterable[int], rest: str = "") -> Sequence[Fact]:
        """Return the facts of which a column is one of some ids, by id; `rest` are more conditions."""
        return [*facts_in(self._store, values, column, f"{rest} ORDER BY id").values()]

    def versions(self, fact_ids: Iterable[int]) -> Mapping[PassageId, Sequence[FactVersion]]:
        """Return all versions of facts, by fact, oldest first."""
        return self._store.read(fact_versions, fact_ids, "ORDER BY v.fact_id, v.made_at")

    def _facts(self, condition: str, values: list[object]) -> Sequence[Fact]:
        rows = self._store.rows(f"SELECT {FACT_COLUMNS} FROM fact WHERE {condition}", values)
        return [fact_of(row) for row in rows]


def exchanges_to_read(cursor: Connection, found: Sequence[WorkItem]) -> tuple[ExchangeToRead, ...]:
    """Return exchanges with their texts, in the same order; deleted ones are left out."""
    ids = [each for each, _ in found]
    conversations: dict[int, int] = dict(cursor.select_in("exchange", "id, conversation_id", ids))
    messages = _messages(cursor, ids)
    openings = _openings(cursor, set(conversations.values()))
    return tuple(
        ExchangeToRead(
            ExchangeId(each),
            ConversationId(conversations[each]),
            stamp,
            tuple(messages.get(each, ())),
            openings.get(conversations[each], ()),
        )
        for each, stamp in found
        if each in conversations
    )  # fmt: skip


def _messages(cursor: Connection, exchange_ids: Sequence[int]) -> dict[int, list[MessageToRead]]:
    rows = cursor.rows(
        "SELECT l.exchange_id, m.id, m.role, left(m.text, $2), m.created_at "
        "FROM exchange_message l JOIN message m ON m.id = l.message_id "
        "WHERE l.exchange_id IN (SELECT unnest($1)) AND m.role IN ('user', 'assistant') "
        "AND m.text <> '' AND NOT (m.role = 'assistant' AND m.model IS NOT DISTINCT FROM $3) "
        "ORDER BY l.exchange_id, l.place",
        [list(exchange_ids), _MAX_CHARS, RECALL_MODEL],
    )
    return {
        each: [
            MessageToRead(own, role == Role.USER, text, from_db(at))
            for _, own, role, text, at in found
        ]
        for each, found in grouped(rows, itemgetter(0)).items()
    }


def _openings(cursor: Connection, conversation_ids: Iterable[int]) -> dict[int, tuple[str, ...]]:
    """Return, by conversation, the beginnings of its messages, oldest first."""
    rows = cursor.rows(
        "SELECT conversation_id, list(left(text, CASE role WHEN 'user' THEN $2 ELSE $3 END) ORDER BY id) "
        "FROM message WHERE conversation_id IN (SELECT unnest($1)) AND role IN ('user', 'assistant') "
        "AND text <> '' GROUP BY conversation_id",
        [list(conversation_ids), _OPENING_CHARS, _REPLY_OPENING_CHARS],
    )
    return {each: tuple(found) for each, found in rows}
