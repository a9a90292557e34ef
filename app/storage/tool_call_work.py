"""Which tool calls have no line of summary yet, with what they asked and what they were answered."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.conversations import ToolCall, ToolResult
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.storage import mentions
from app.storage.database import Connection
from app.storage.rows import Row, blocks_of
from app.storage.store import Store
from app.storage.tally import Tally
from app.storage.times import from_db, to_db

CALLS_OF_A_MESSAGE = mentions.CALLS_OF_A_MESSAGE
_WORKER = "tool_summarizer"
_WAITS_MESSAGES = 50


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """A tool call that is to be summarised; `number` counts the calls of its message from 0.

    `result` is None where no answer is kept.
    """

    message_id: MessageId
    number: int
    conversation_id: ConversationId
    exchange_id: ExchangeId
    called_at: datetime
    call: ToolCall
    result: ToolResult | None

    @property
    def id(self) -> int:
        """A number for it, in the table of attempts."""
        return self.message_id * CALLS_OF_A_MESSAGE + self.number


# In a string of JSON the marks are escaped, so that what a message says is never taken for a call.
_MARK = '"_":"ToolCall"'
_MEANT = "e.status <> 'running' AND NOT c.private AND c.deleted_at IS NULL"
_CALLS = (
    "FROM (SELECT m.id AS message_id, m.conversation_id, l.exchange_id, m.created_at, unnest(range("
    f"(length(m.blocks) - length(replace(m.blocks, '{_MARK}', ''))) // {len(_MARK)})) AS number "
    "FROM message m JOIN exchange_message l ON l.message_id = m.id "
    "JOIN exchange e ON e.id = l.exchange_id JOIN conversation c ON c.id = m.conversation_id "
    f"WHERE m.role = 'assistant' AND contains(m.blocks, '{_MARK}') AND {_MEANT}) t "
)
_SUMMARY = (
    "tool_summary s ON s.message_id = t.message_id AND s.call_number = t.number "
    "AND s.exchange_id = t.exchange_id"
)
_ITEM = f"t.message_id * {CALLS_OF_A_MESSAGE} + t.number"


class ToolCallWork:
    """Reads what waits for the tool-call summariser. Blocking: for its thread."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def calls(
        self, limit: int, left_alone: ConversationId | None, at: datetime
    ) -> tuple[WaitingCall, ...]:
        """Return calls without a summary, newest first, those of a message in order.

        In the conversation `left_alone` a call waits until 50 messages came after it. Left out are
        private conversations and those in the trash, calls set aside, and those whose next try
        comes after `at` (UTC), unless by so much that the clock must have been set back.
        """

        def query(cursor: Connection) -> tuple[WaitingCall, ...]:
            rows = cursor.execute(
                f"SELECT t.message_id, t.number, t.conversation_id, t.exchange_id, t.created_at "
                f"{_CALLS}WHERE NOT EXISTS (SELECT 1 FROM {_SUMMARY.replace(' ON ', ' WHERE ')}) "
                f"AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.worker = $worker "
                f"AND a.item_id = {_ITEM} AND (a.next_at IS NULL "
                "OR (a.next_at > $at AND a.next_at <= $at + INTERVAL 1 DAY))) "
                "AND (t.conversation_id IS DISTINCT FROM $open OR (SELECT count(*) FROM message n "
                "WHERE n.conversation_id = $open AND n.id > t.message_id) >= $waits) "
                "ORDER BY t.message_id DESC, t.number LIMIT $limit",
                {
                    "worker": _WORKER, "at": to_db(at), "open": left_alone, "limit": limit,
                    "waits": _WAITS_MESSAGES,
                },
            ).fetchall()  # fmt: skip
            return _with_words(cursor, rows)

        return self._store.read(query)

    def tally(self) -> Tally:
        """Return how many calls there are, how many have a summary, and what keeps the rest."""
        row = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT count(s.id), count(*), count(a.next_at), "
                f"count(a.item_id) - count(a.next_at), min(a.next_at) {_CALLS}"
                f"LEFT JOIN {_SUMMARY} LEFT JOIN attempt a ON a.worker = $worker "
                f"AND a.item_id = {_ITEM} AND s.id IS NULL",
                {"worker": _WORKER},
            ).fetchone()
        )
        done, total, waiting, aside, next_at = row or (0, 0, 0, 0, None)
        return Tally(done, total, waiting, aside, from_db(next_at))

    def still_there(self, exchange_ids: Iterable[int]) -> frozenset[tuple[int, int]]:
        """Return (exchange, message) of those exchanges whose calls may still be summarised."""
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT l.exchange_id, l.message_id FROM exchange_message l "
                "JOIN exchange e ON e.id = l.exchange_id "
                "JOIN conversation c ON c.id = e.conversation_id "
                f"WHERE l.exchange_id IN (SELECT unnest(?)) AND {_MEANT}",
                [list(exchange_ids)],
            ).fetchall()
        )
        return frozenset(rows)

    def left_behind(self, exchange_ids: Iterable[int]) -> tuple[int, ...]:
        """Return the passages of calls that exchanges made before they were tried again."""
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT s.id FROM tool_summary s JOIN passage p ON p.id = s.id "
                "WHERE s.exchange_id IN (SELECT unnest(?)) AND NOT EXISTS (SELECT 1 FROM "
                "exchange_message l WHERE l.exchange_id = s.exchange_id "
                "AND l.message_id = s.message_id)",
                [list(exchange_ids)],
            ).fetchall()
        )
        return tuple(each for (each,) in rows)


def _with_words(cursor: Connection, found: Sequence[Row]) -> tuple[WaitingCall, ...]:
    """Return calls with what they asked and what came back."""
    rows = cursor.execute(
        "SELECT l.exchange_id, m.id, m.role, m.text, m.blocks FROM exchange_message l "
        "JOIN message m ON m.id = l.message_id WHERE l.exchange_id IN (SELECT unnest(?)) "
        "AND m.role IN ('assistant', 'tool') AND m.blocks IS NOT NULL ORDER BY ALL",
        [sorted({row[3] for row in found})],
    ).fetchall()
    calls: dict[int, list[ToolCall]] = {}  # of a message; a message is in one exchange
    results: dict[tuple[int, str], ToolResult] = {}
    for exchange_id, message_id, _, text, blocks in rows:
        for block in blocks_of(text, blocks):
            if isinstance(block, ToolCall):
                calls.setdefault(message_id, []).append(block)
            elif isinstance(block, ToolResult):
                results[exchange_id, block.call_id] = block
    made = []
    for message_id, number, conversation_id, exchange_id, called_at in found:
        of_message = calls.get(message_id, ())
        if number < len(of_message):
            call = of_message[number]
            made.append(
                WaitingCall(
                    MessageId(message_id), number, ConversationId(conversation_id),
                    ExchangeId(exchange_id), from_db(called_at), call,
                    results.get((exchange_id, call.call_id)),
                )
            )  # fmt: skip
    return tuple(made)
