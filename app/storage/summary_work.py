"""What the summarisers have yet to do, the words they need for it, and what became of them since.

Work is found by query: an exchange or a conversation whose latest summary is missing or was made of
something else, told by a stamp that goes into `SummaryPut.source_hash`. Messages never change, so
an exchange's stamp is which ones it has; a conversation's, its completed exchanges.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.conversations import Exchange, ExchangeStatus, Role, TitleOrigin
from app.domain.ids import ConversationId, ExchangeId
from app.domain.passages import PassageKind
from app.domain.turn_text import turn_text
from app.storage.database import Connection
from app.storage.exchanges import exchanges_where, shown_path
from app.storage.rows import CONVERSATION_COLUMNS, blocks_of, conversation_of
from app.storage.store import Store
from app.storage.times import from_db, to_db


@dataclass(frozen=True, slots=True)
class Words:
    """An exchange's two sides as text, each message cut to its head and tail."""

    asked: str
    answered: str


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
class Tally:
    """How a kind of work stands. `total` counts all that should be done, `done` what is.

    Of the rest, some wait for a retry, the earliest at `next_attempt_at` (UTC), and some were set
    aside after failing too often.
    """

    done: int
    total: int
    waiting_retry: int = 0
    set_aside: int = 0
    next_attempt_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """What is still so at the moment of saving, on the writer thread.

    `ids` may be summarised: they exist, are finished, not private, not in the trash. `passages`
    holds the summary passages each has so far; `tagged` the conversations that have tags.
    """

    ids: Collection[int]
    passages: Mapping[int, tuple[int, ...]]
    tagged: Collection[int] = ()


_EXCHANGE_STAMPS = (
    "SELECT exchange_id, count(*) AS messages, count(*) || ':' || max(message_id) AS stamp "
    "FROM exchange_message GROUP BY exchange_id"
)
_EXCHANGES = (
    f"FROM exchange e JOIN conversation c ON c.id = e.conversation_id "
    f"JOIN ({_EXCHANGE_STAMPS}) t ON t.exchange_id = e.id "
    "LEFT JOIN summary s ON s.kind = 'exchange' AND s.source_id = e.id AND s.latest "
    "LEFT JOIN attempt a ON a.worker = 'exchange_summarizer' AND a.item_id = e.id "
    "WHERE e.status = 'completed' AND NOT c.private AND c.deleted_at IS NULL AND t.messages >= ? "
)
_CONVERSATION_STAMPS = (
    "SELECT conversation_id, count(*) AS exchanges, count(*) || ':' || max(position) AS stamp "
    "FROM exchange WHERE status = 'completed' GROUP BY conversation_id"
)
_CONVERSATIONS = (
    f"FROM conversation c JOIN ({_CONVERSATION_STAMPS}) t ON t.conversation_id = c.id "
    "LEFT JOIN summary s ON s.kind = 'conversation' AND s.source_id = c.id AND s.latest "
    "LEFT JOIN attempt a ON a.worker = 'conversation_summarizer' AND a.item_id = c.id "
    "WHERE NOT c.private AND c.deleted_at IS NULL AND t.exchanges >= ? "
)
_WAITS = "AND s.source_hash IS DISTINCT FROM t.stamp AND (a.item_id IS NULL OR a.next_at <= ?) "
_COUNTS = (
    "SELECT count(*) FILTER (s.source_hash = t.stamp), count(*), "
    "count(a.next_at) FILTER (s.source_hash IS DISTINCT FROM t.stamp), "
    "count(a.item_id) FILTER (s.source_hash IS DISTINCT FROM t.stamp AND a.next_at IS NULL), "
    "min(a.next_at) FILTER (s.source_hash IS DISTINCT FROM t.stamp) "
)


class SummaryWork:
    """Reads what waits for the summarisers. Blocking: for their threads and the command line."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def exchanges(
        self, limit: int, min_messages: int, left_alone: ConversationId | None, at: datetime
    ) -> tuple[WaitingExchange, ...]:
        """Return completed exchanges that lack a current summary, newest first.

        Left out: private conversations and those in the trash, the one `left_alone`, exchanges
        with fewer messages than `min_messages`, those set aside, and those whose next try comes
        after `at` (UTC).
        """

        def query(cursor: Connection) -> tuple[WaitingExchange, ...]:
            rows = cursor.execute(
                # WORKAROUND(duckdb 2.0.0): without MATERIALIZED the LIMIT is lost on the way.
                f"WITH waiting AS MATERIALIZED (SELECT e.id, e.conversation_id, t.stamp, "
                f"e.started_at {_EXCHANGES}"
                f"{_WAITS} AND e.conversation_id IS DISTINCT FROM ?) "
                "SELECT * FROM waiting ORDER BY id DESC LIMIT ?",
                [min_messages, to_db(at), left_alone, limit],
            ).fetchall()
            words = _words(cursor, [row[0] for row in rows], _EXCHANGE_READS_CHARS)
            return tuple(
                WaitingExchange(
                    row[0], row[1], row[2], from_db(row[3]), words.get(row[0], Words("", ""))
                )
                for row in rows
            )

        return self._store.read(query)

    def conversations(
        self, limit: int, min_exchanges: int, left_alone: ConversationId | None, at: datetime
    ) -> tuple[WaitingConversation, ...]:
        """Return conversations whose summary is missing or out of date, latest changed first.

        Left out as above, and conversations with fewer completed exchanges than `min_exchanges`.
        """

        def query(cursor: Connection) -> tuple[WaitingConversation, ...]:
            rows = cursor.execute(
                f"WITH waiting AS MATERIALIZED (SELECT c.id, t.stamp, s.source_id, c.updated_at "
                f"{_CONVERSATIONS}{_WAITS} AND c.id IS DISTINCT FROM ?) "
                "SELECT id, stamp, source_id IS NULL FROM waiting "
                "ORDER BY updated_at DESC, id DESC LIMIT ?",
                [min_exchanges, to_db(at), left_alone, limit],
            ).fetchall()
            return _with_words(cursor, rows)

        return self._store.read(query)

    def exchange_tally(self, min_messages: int) -> Tally:
        """Return how many exchanges should have a summary, how many do, and what keeps the rest."""
        return self._tally(_EXCHANGES, min_messages)

    def conversation_tally(self, min_exchanges: int) -> Tally:
        """Return the same of conversations; a summary out of date does not count as done."""
        return self._tally(_CONVERSATIONS, min_exchanges)

    def standing_exchanges(self, ids: Iterable[int]) -> Standing:
        """Return which of some exchanges may still be summarised."""
        wanted = list(ids)

        def query(cursor: Connection) -> Standing:
            rows = cursor.execute(
                "SELECT e.id FROM exchange e JOIN conversation c ON c.id = e.conversation_id "
                "WHERE e.id IN (SELECT unnest(?)) AND e.status = 'completed' "
                "AND NOT c.private AND c.deleted_at IS NULL",
                [wanted],
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
                "FROM conversation c WHERE c.id IN (SELECT unnest(?)) "
                "AND NOT c.private AND c.deleted_at IS NULL",
                [wanted],
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

    def _tally(self, source: str, minimum: int) -> Tally:
        row = self._store.read(
            lambda cursor: cursor.execute(f"{_COUNTS}{source}", [minimum]).fetchone()
        )
        done, total, waiting, aside, next_at = row or (0, 0, 0, 0, None)
        return Tally(done, total, waiting, aside, from_db(next_at))


# More than the extractive summariser reads; of a message of 10 MB the rest stays in the database.
_EXCHANGE_READS_CHARS = 12_000
_CONVERSATION_READS_CHARS = 3_000
_CONVERSATION_READS_TURNS = 60


def _with_words(
    cursor: Connection, waiting: Sequence[tuple[int, str, bool]]
) -> tuple[WaitingConversation, ...]:
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
    words = _words(cursor, wanted, _CONVERSATION_READS_CHARS)
    found = []
    for conversation_id, stamp, is_first in waiting:
        head = heads[ConversationId(conversation_id)]
        said = tuple(words[each] for each in turns.get(conversation_id, ()) if each in words)
        found.append(
            WaitingConversation(
                head.id, stamp, head.title, head.title_origin, head.updated_at, is_first, said
            )
        )
    return tuple(found)


def _spread(ids: Sequence[ExchangeId], most: int) -> list[ExchangeId]:
    """Return at most `most`, evenly spread, the first and the last among them."""
    if len(ids) <= most:
        return list(ids)
    return [ids[place * (len(ids) - 1) // (most - 1)] for place in range(most)]


def _words(cursor: Connection, exchange_ids: Sequence[int], limit_chars: int) -> dict[int, Words]:
    """Return both sides of exchanges; where nobody wrote text, what attachments and tools say."""
    half = limit_chars // 2
    rows = cursor.execute(
        "SELECT l.exchange_id, m.role, CASE WHEN length(m.text) <= $2 THEN m.text "
        "ELSE left(m.text, $3) || chr(10) || chr(10) || right(m.text, $3) END "
        "FROM exchange_message l JOIN message m ON m.id = l.message_id "
        "WHERE l.exchange_id IN (SELECT unnest($1)) AND m.role IN ('user', 'assistant') "
        "ORDER BY l.exchange_id, l.place",
        [list(exchange_ids), limit_chars, half],
    ).fetchall()
    sides: dict[int, tuple[list[str], list[str]]] = {}
    for exchange_id, role, text in rows:
        asked, answered = sides.setdefault(exchange_id, ([], []))
        if text:
            (asked if role == Role.USER else answered).append(text)
    words = {each: Words(*("\n\n".join(side) for side in both)) for each, both in sides.items()}
    mute = [each for each in exchange_ids if words.get(each, Words("", "")) == Words("", "")]
    return words | (_words_of_blocks(cursor, mute, limit_chars) if mute else {})


def _words_of_blocks(
    cursor: Connection, exchange_ids: list[int], limit_chars: int
) -> dict[int, Words]:
    rows = cursor.execute(
        "SELECT l.exchange_id, m.role, m.text, m.blocks FROM exchange_message l "
        "JOIN message m ON m.id = l.message_id WHERE l.exchange_id IN (SELECT unnest(?)) "
        "ORDER BY l.exchange_id, l.place",
        [exchange_ids],
    ).fetchall()
    messages: dict[int, list[tuple[Role, str, str | None]]] = {}
    for exchange_id, role, text, blocks in rows:
        messages.setdefault(exchange_id, []).append((Role(role), text, blocks))
    words = {}
    for exchange_id, own in messages.items():
        turn = turn_text((role, blocks_of(text, blocks)) for role, text, blocks in own)
        words[exchange_id] = Words(
            turn.user[:limit_chars], (turn.assistant or turn.calls)[:limit_chars]
        )
    return words


def _passages(
    cursor: Connection, kind: PassageKind, source_ids: list[int]
) -> dict[int, tuple[int, ...]]:
    rows = cursor.execute(
        "SELECT source_id, list(id) FROM passage WHERE kind = ? "
        "AND source_id IN (SELECT unnest(?)) GROUP BY source_id",
        [kind.value, source_ids],
    ).fetchall()
    return {source_id: tuple(ids) for source_id, ids in rows}
