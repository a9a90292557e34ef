"""What the knowledge extractor has yet to read, and what is known that it may say again.

Work is found by query: a completed exchange that was never read for facts, or had other messages
then, or is to be read again (`remaking`). Messages never change, so which ones it has tells that.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.conversations import Role
from app.domain.facts import BY_USER, Fact, FactVersion
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.domain.turn_text import QUOTING_MODEL
from app.storage.database import Connection
from app.storage.facts import fact_of, version_of
from app.storage.learned import FACT_COLUMNS, FACT_VERSION_COLUMNS
from app.storage.passage_texts import texts_of
from app.storage.remaking import FACTS, remaking
from app.storage.store import Store
from app.storage.tally import Found, Tally
from app.storage.times import from_db, to_db

_READS_CHARS = 20_000  # of a message: nobody tells that much of themselves
_WORKER = "knowledge_extractor"


@dataclass(frozen=True, slots=True)
class SaidMessage:
    """A message as it is read for facts: text of the user or an assistant. `said_at` is UTC."""

    id: MessageId
    by_user: bool
    text: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class UnreadExchange:
    """An exchange to be read for facts: what was said, and what recall had put into its prompt.

    Recall's own answers, which quote, and what tools answered are no part of it. `openings` are the
    first 100 characters of every message of its conversation.
    """

    id: ExchangeId
    conversation_id: ConversationId
    stamp: str
    messages: tuple[SaidMessage, ...]
    recalled: tuple[str, ...]
    openings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadingState:
    """What is so at the moment of saving, on the writer thread.

    `may_be_read` are exchanges that still exist, are finished, not private, not in the trash;
    `outdated` those of them that a later edit or another try has replaced. `replaced` are the
    exchanges that each has replaced itself.
    """

    may_be_read: Collection[int]
    outdated: Collection[int]
    replaced: Mapping[int, tuple[int, ...]]


_EXCHANGES = (
    "FROM exchange i JOIN conversation c ON c.id = i.conversation_id "
    "JOIN (SELECT exchange_id, count(*) AS size, count(*) || ':' || max(message_id) AS stamp "
    "FROM exchange_message GROUP BY exchange_id) t ON t.exchange_id = i.id "
)
_BY_WHO_COUNTS = "(d.made_at >= $again OR list_contains($makers, d.model))"
_IS_READ = f"d.source_hash = t.stamp AND {_BY_WHO_COUNTS}"
_SHOULD = "WHERE i.status = 'completed' AND NOT c.private AND c.deleted_at IS NULL "


class ExtractionWork:
    """Reads what waits for the extractor. Blocking: for its thread and the command line."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def exchange_ids(
        self, limit: int, left_alone: ConversationId | None, at: datetime
    ) -> tuple[Found, ...]:
        """Return (id, stamp) of exchanges not read for facts as they are now, newest first.

        Left out: private conversations and those in the trash, the one `left_alone`, exchanges set
        aside, and those whose next try comes after `at` (UTC), unless by so much that the clock
        must have been set back.
        """
        rows = self._store.read(
            lambda cursor: cursor.execute(
                f"SELECT i.id, t.stamp {_EXCHANGES}{_SHOULD}"
                "AND NOT EXISTS (SELECT 1 FROM extraction d WHERE d.exchange_id = i.id "
                f"AND {_IS_READ}) "
                "AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.worker = $worker "
                "AND a.item_id = i.id AND (a.next_at IS NULL OR "
                "(a.next_at > $at AND a.next_at <= $at + INTERVAL 1 DAY))) "
                "AND i.conversation_id IS DISTINCT FROM $open ORDER BY i.id DESC LIMIT $limit",
                {"worker": _WORKER, "at": to_db(at), "open": left_alone, "limit": limit}
                | remaking(cursor, FACTS),
            ).fetchall()
        )
        return tuple(rows)

    def exchanges(self, found: Sequence[Found]) -> tuple[UnreadExchange, ...]:
        """Return what was found with its words, in the same order; what is gone is left out."""

        def query(cursor: Connection) -> tuple[UnreadExchange, ...]:
            ids = [each for each, _ in found]
            rows = cursor.execute(
                "SELECT id, conversation_id FROM exchange WHERE id IN (SELECT unnest(?))", [ids]
            ).fetchall()
            conversations = dict(rows)
            said = _said(cursor, ids)
            recalled = _recalled(cursor, ids)
            openings = _openings(cursor, set(conversations.values()))
            return tuple(
                UnreadExchange(
                    ExchangeId(each),
                    ConversationId(conversations[each]),
                    stamp,
                    tuple(said.get(each, ())),
                    tuple(recalled.get(each, ())),
                    openings.get(conversations[each], ()),
                )
                for each, stamp in found
                if each in conversations
            )

        return self._store.read(query)

    def tally(self) -> Tally:
        """Return how many exchanges should be read, how many were, and what keeps the rest."""
        return self._tally(of_all=False)

    def read_by_others(self) -> int:
        """Return how many exchanges were read, and not by who reads them now."""
        return self._tally(of_all=False).done - self._tally(of_all=True).done

    def learned_by_others(self) -> int:
        """Return how many facts hold that were learned in those, and are not the user's own."""
        row = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT count(*) FROM fact f JOIN extraction d ON d.exchange_id = f.exchange_id "
                "WHERE f.valid_until IS NULL AND NOT f.pinned AND f.model <> $user "
                f"AND NOT {_BY_WHO_COUNTS}",
                {"user": BY_USER} | remaking(cursor, FACTS, of_all=True),
            ).fetchone()
        )
        return int(row[0]) if row else 0

    def _tally(self, *, of_all: bool) -> Tally:
        row = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT count(d.exchange_id), count(*), count(a.next_at), "
                f"count(a.item_id) - count(a.next_at), min(a.next_at) {_EXCHANGES}"
                f"LEFT JOIN extraction d ON d.exchange_id = i.id AND {_IS_READ} "
                "LEFT JOIN attempt a ON a.worker = $worker AND a.item_id = i.id "
                f"AND d.exchange_id IS NULL {_SHOULD}",
                {"worker": _WORKER} | remaking(cursor, FACTS, of_all=of_all),
            ).fetchone()
        )
        done, total, waiting, aside, next_at = row or (0, 0, 0, 0, None)
        return Tally(done, total, waiting, aside, from_db(next_at))

    def state(self, exchange_ids: Iterable[int]) -> ReadingState:
        """Return which of some exchanges may have facts, and whose facts theirs replace."""
        wanted = list(exchange_ids)

        def query(cursor: Connection) -> ReadingState:
            may = cursor.execute(
                f"SELECT i.id FROM exchange i JOIN conversation c ON c.id = i.conversation_id "
                f"{_SHOULD}AND i.id IN (SELECT unnest(?))",
                [wanted],
            ).fetchall()
            siblings = cursor.execute(
                "SELECT a.id, b.id FROM exchange a JOIN exchange b "
                "ON b.conversation_id = a.conversation_id AND b.id <> a.id "
                "AND b.parent_id IS NOT DISTINCT FROM a.parent_id "
                "AND b.segment_number = a.segment_number AND b.status = 'completed' "
                "WHERE a.id IN (SELECT unnest(?)) ORDER BY 1, 2",
                [wanted],
            ).fetchall()
            replaced: dict[int, tuple[int, ...]] = {}
            for each, other in siblings:
                if other < each:
                    replaced[each] = (*replaced.get(each, ()), other)
            outdated = {each for each, other in siblings if other > each}
            return ReadingState({each for (each,) in may}, outdated, replaced)

        return self._store.read(query)

    # -- what is known

    def like(self, words: Iterable[str]) -> Sequence[Fact]:
        """Return the facts that hold and share a word (in small letters) with those given."""
        wanted = list(words)
        return self._facts(
            "valid_until IS NULL AND "
            "list_has_any(regexp_extract_all(lower(text), '[^\\W_]+'), ?) ORDER BY id",
            [wanted],
        )

    def saying(self, texts: Iterable[str], subjects: Iterable[str]) -> Sequence[Fact]:
        """Return the facts of these wordings (in small letters) and subjects, ended ones too."""
        return self._facts(
            "lower(text) IN (SELECT unnest(?)) OR (subject <> '' AND subject IN "
            "(SELECT unnest(?))) ORDER BY said_at, id",
            [list(texts), list(subjects)],
        )

    def learned_from(self, exchange_ids: Iterable[int]) -> Sequence[Fact]:
        """Return the facts that hold and were last learned from some exchanges."""
        return self._facts(
            "valid_until IS NULL AND exchange_id IN (SELECT unnest(?)) ORDER BY id",
            [list(exchange_ids)],
        )

    def by_id(self, fact_ids: Iterable[int]) -> Sequence[Fact]:
        """Return the facts that exist among `fact_ids`."""
        return self._facts("id IN (SELECT unnest(?)) ORDER BY id", [list(fact_ids)])

    def superseded_by(self, fact_ids: Iterable[int]) -> Sequence[Fact]:
        """Return the facts that some others took the place of."""
        return self._facts("superseded_by IN (SELECT unnest(?)) ORDER BY id", [list(fact_ids)])

    def versions(self, fact_ids: Iterable[int]) -> Mapping[int, Sequence[FactVersion]]:
        """Return every wording facts had, by fact, oldest first."""
        rows = self._store.read(
            lambda cursor: cursor.execute(
                f"SELECT {FACT_VERSION_COLUMNS} FROM fact_version "
                "WHERE fact_id IN (SELECT unnest(?)) ORDER BY fact_id, made_at",
                [list(fact_ids)],
            ).fetchall()
        )
        found: dict[int, list[FactVersion]] = {}
        for version in map(version_of, rows):
            found.setdefault(version.fact_id, []).append(version)
        return found

    def _facts(self, condition: str, values: list[object]) -> Sequence[Fact]:
        rows = self._store.read(
            lambda cursor: cursor.execute(
                f"SELECT {FACT_COLUMNS} FROM fact WHERE {condition}", values
            ).fetchall()
        )
        return [fact_of(row) for row in rows]


def _said(cursor: Connection, exchange_ids: Sequence[int]) -> dict[int, list[SaidMessage]]:
    rows = cursor.execute(
        "SELECT l.exchange_id, m.id, m.role, left(m.text, $2), m.created_at "
        "FROM exchange_message l JOIN message m ON m.id = l.message_id "
        "WHERE l.exchange_id IN (SELECT unnest($1)) AND m.role IN ('user', 'assistant') "
        "AND m.text <> '' AND NOT (m.role = 'assistant' AND m.model IS NOT DISTINCT FROM $3) "
        "ORDER BY l.exchange_id, l.place",
        [list(exchange_ids), _READS_CHARS, QUOTING_MODEL],
    ).fetchall()
    found: dict[int, list[SaidMessage]] = {}
    for exchange_id, message_id, role, text, at in rows:
        said = SaidMessage(MessageId(message_id), role == Role.USER, text, from_db(at))
        found.setdefault(exchange_id, []).append(said)
    return found


def _openings(cursor: Connection, conversation_ids: Iterable[int]) -> dict[int, tuple[str, ...]]:
    """Return, by conversation, how what was said in it begins, in no order."""
    rows = cursor.execute(
        "SELECT conversation_id, list(left(text, 100)) FROM message "
        "WHERE conversation_id IN (SELECT unnest(?)) AND role IN ('user', 'assistant') "
        "AND text <> '' GROUP BY conversation_id",
        [list(conversation_ids)],
    ).fetchall()
    return {each: tuple(found) for each, found in rows}


def _recalled(cursor: Connection, exchange_ids: Sequence[int]) -> dict[int, list[str]]:
    """Return, by exchange, the words of the passages that were put into its prompts."""
    rows = cursor.execute(
        "SELECT DISTINCT exchange_id, passage_id FROM recalled "
        "WHERE injected AND exchange_id IN (SELECT unnest(?)) ORDER BY ALL",
        [list(exchange_ids)],
    ).fetchall()
    words = {
        text.id: "\n".join(part.shown for part in text.parts)
        for text in texts_of(cursor, sorted({passage_id for _, passage_id in rows}))
    }
    found: dict[int, list[str]] = {}
    for exchange_id, passage_id in rows:
        if passage_id in words:
            found.setdefault(exchange_id, []).append(words[passage_id])
    return found
