"""Work of the tool-call summarizer: calls without a summary, with arguments and results."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.conversations import ToolCall, ToolResult
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.storage.engine.connection import Connection, Row
from app.storage.engine.stamps import from_db
from app.storage.engine.store import StoreReader, in_snapshot
from app.storage.tables.attempts import CALLS_PER_MESSAGE
from app.storage.tables.exchanges import blocks_of
from app.storage.work.queue import VISIBLE, Tally, WorkQuery

_WAITS_MESSAGES = 50


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """A tool call that is to be summarized; `number` counts the calls of its message from 0.

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
        """Its item id in the table of attempts."""
        return self.message_id * CALLS_PER_MESSAGE + self.number


# Quotation marks are escaped in JSON strings, so that message text is never mistaken for a call.
_MARK = '"_":"ToolCall"'
_INCLUDED = f"e.status <> 'running' AND {VISIBLE}"
_CALLS = (
    "FROM (SELECT m.id AS message_id, m.conversation_id, l.exchange_id, m.created_at, unnest(range("
    f"(length(m.blocks) - length(replace(m.blocks, '{_MARK}', ''))) // {len(_MARK)})) AS number "
    "FROM message m JOIN exchange_message l ON l.message_id = m.id "
    "JOIN exchange e ON e.id = l.exchange_id JOIN conversation c ON c.id = m.conversation_id "
    f"WHERE m.role = 'assistant' AND contains(m.blocks, '{_MARK}') AND {_INCLUDED}) t"
)
_WORK = WorkQuery(
    "tool_summarizer",
    _CALLS,
    f"t.message_id * {CALLS_PER_MESSAGE} + t.number",
    "WHERE true",
    "tool_summary d ON d.message_id = t.message_id AND d.call_number = t.number "
    "AND d.exchange_id = t.exchange_id",
    "id",
)


class ToolCallWork(StoreReader):
    """Reads the tool-call summarizer's work. Blocking: for its thread."""

    @in_snapshot
    def calls(
        self, cursor: Connection, limit: int, skipped: ConversationId | None, at: datetime
    ) -> tuple[WaitingCall, ...]:
        """Return calls without a summary, newest first, those of a message in order.

        In the conversation `skipped` a call waits until 50 messages came after it. Left out are
        private conversations and those in the trash, abandoned calls, and those whose next try
        comes after `at` (UTC).
        """
        found = _WORK.missing(
            cursor,
            "t.message_id, t.number, t.conversation_id, t.exchange_id, t.created_at",
            "AND (t.conversation_id IS DISTINCT FROM $open OR (SELECT count(*) FROM message n "
            "WHERE n.conversation_id = $open AND n.id > t.message_id) >= $waits) "
            "ORDER BY t.message_id DESC, t.number LIMIT $limit",
            at,
            open=skipped,
            limit=limit,
            waits=_WAITS_MESSAGES,
        )
        return _with_texts(cursor, found)

    def tally(self) -> Tally:
        """Return how many calls there are, how many have a summary, and what delays the rest."""
        return self._store.read(_WORK.tally)

    def existing_calls(self, exchange_ids: Iterable[int]) -> frozenset[tuple[int, int]]:
        """Return (exchange, message) of those exchanges whose calls may still be summarized."""
        rows = self._store.rows(
            "SELECT l.exchange_id, l.message_id FROM exchange_message l "
            "JOIN exchange e ON e.id = l.exchange_id "
            "JOIN conversation c ON c.id = e.conversation_id "
            f"WHERE l.exchange_id IN (SELECT unnest(?)) AND {_INCLUDED}",
            [list(exchange_ids)],
        )
        return frozenset(rows)

    def orphaned_summaries(self, exchange_ids: Iterable[int]) -> tuple[int, ...]:
        """Return the passages of calls that exchanges made before they were retried."""
        ids = self._store.column(
            "SELECT s.id FROM tool_summary s JOIN passage p ON p.id = s.id "
            "WHERE s.exchange_id IN (SELECT unnest(?)) AND NOT EXISTS (SELECT 1 FROM "
            "exchange_message l WHERE l.exchange_id = s.exchange_id "
            "AND l.message_id = s.message_id)",
            [list(exchange_ids)],
        )
        return tuple(ids)


def _with_texts(cursor: Connection, found: Sequence[Row]) -> tuple[WaitingCall, ...]:
    """Return calls with their arguments and results."""
    rows = cursor.rows(
        "SELECT l.exchange_id, m.id, m.role, m.text, m.blocks FROM exchange_message l "
        "JOIN message m ON m.id = l.message_id WHERE l.exchange_id IN (SELECT unnest(?)) "
        "AND m.role IN ('assistant', 'tool') AND m.blocks IS NOT NULL ORDER BY ALL",
        [sorted({row[3] for row in found})],
    )
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
