"""Queries about what answers were asked with: prompts filled in again, recalled items in place."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from app.domain import codec
from app.domain.ids import ConversationId, ExchangeId, MessageId, PassageId
from app.domain.passages import PassageKind
from app.domain.recalls import (
    KeptPrompt,
    Piece,
    PlanPart,
    PlanPartKind,
    RecalledItem,
    RecalledPlace,
    RecallLayer,
)
from app.storage.database import Connection
from app.storage.learned import NO_CONVERSATION, PROMPT_COLUMNS, RECALLED_COLUMNS
from app.storage.passages import Passages
from app.storage.rows import Row
from app.storage.runs import from_runs
from app.storage.store import Store
from app.storage.times import from_db

FORGOTTEN = "[forgotten]"

_Key = tuple[ExchangeId, object]
_Texts = Mapping[tuple[str, int], str]


class Prompts:
    """Reads what was sent and recalled. Blocking: for worker threads and the command line."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._passages = Passages(store)

    def of(self, exchange_id: ExchangeId) -> KeptPrompt | None:
        """Return what an exchange was last asked with; words that were forgotten say so.

        None for one that was imported, or answered before prompts were kept.
        """
        found = self.history(exchange_id)
        return found[0] if found else None

    def history(self, exchange_id: ExchangeId) -> tuple[KeptPrompt, ...]:
        """Return all that an exchange was asked with, newest first: one for each time it ran."""
        return self._store.read(lambda cursor: _history(cursor, exchange_id))

    def places(self, exchange_id: ExchangeId) -> tuple[RecalledPlace, ...]:
        """Return the items of an exchange's newest prompt, with what a chip says of them, in order."""
        return self.placed(self._store.read(lambda cursor: _newest_items(cursor, exchange_id)))

    def placed(self, items: Sequence[RecalledItem]) -> tuple[RecalledPlace, ...]:
        """Return items with what a chip says of them, in order."""
        shown = self._passages.shown(item.passage_id for item in items)
        found_by = {each: place.exchange_id for each, (place, _) in shown.items()}
        turns = [item.exchange_id or found_by.get(item.passage_id) for item in items]
        questions = self._passages.questions(turn for turn in turns if turn is not None)
        titles, begun = self._store.read(lambda cursor: _titles_and_turns(cursor, items, turns))
        placed = []
        for item, turn in zip(items, turns, strict=True):
            of_turn = item.kind in (PassageKind.TURN, PassageKind.EXCHANGE_SUMMARY)
            text = questions.get(turn or 0, "") if of_turn else ""
            if not text and item.passage_id in shown:
                text = " ".join(part.text for part in shown[item.passage_id][1].parts)
            title = titles.get(item.conversation_id or 0, "")
            number, said_at = begun.get(turn or 0, (None, None))
            placed.append(RecalledPlace(item, title, number, text, turn, said_at))
        return tuple(placed)

    def notices(self, exchange_ids: Iterable[ExchangeId]) -> Mapping[ExchangeId, str]:
        """Return `KeptPrompt.notice` of the newest prompt of each exchange that has one."""
        wanted = list(exchange_ids)
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT exchange_id, arg_max(notice, sent_at) FROM prompt "
                "WHERE exchange_id IN (SELECT unnest(?)) GROUP BY exchange_id",
                [wanted],
            ).fetchall()
        )
        return dict(rows)

    def last_window(self, exchange_ids: Iterable[ExchangeId]) -> tuple[MessageId | None, int]:
        """Return where the window of the newest prompt of some exchanges began, and its limit.

        (None, 0) where there is none. The limit is `KeptPrompt.limit_tokens`.
        """
        wanted = list(exchange_ids)
        row = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT parts, limit_tokens FROM prompt "
                "WHERE exchange_id IN (SELECT unnest(?)) ORDER BY sent_at DESC LIMIT 1",
                [wanted],
            ).fetchone()
        )
        if row is None:
            return None, 0
        parts: tuple[PlanPart, ...] = codec.loads(tuple[PlanPart, ...], row[0])
        sent = [
            part.message_ids[0]
            for part in parts
            if part.kind in (PlanPartKind.WINDOW, PlanPartKind.QUESTION) and part.message_ids
        ]
        return (sent[0] if sent else None), int(row[1])


def _history(cursor: Connection, exchange_id: int) -> tuple[KeptPrompt, ...]:
    rows = cursor.execute(
        f"SELECT {PROMPT_COLUMNS} FROM prompt WHERE exchange_id = ? ORDER BY sent_at DESC",
        [exchange_id],
    ).fetchall()
    parts: list[tuple[PlanPart, ...]] = [codec.loads(tuple[PlanPart, ...], row[7]) for row in rows]
    texts = _texts(cursor, (piece for each in parts for part in each for piece in part.pieces))
    items = _items(cursor, exchange_id)
    return tuple(
        _prompt(row, [_filled(part, texts) for part in own], items.get((row[0], row[1]), []))
        for row, own in zip(rows, parts, strict=True)
    )


def _prompt(row: Row, parts: Iterable[PlanPart], items: Iterable[RecalledItem]) -> KeptPrompt:
    return KeptPrompt(
        exchange_id=ExchangeId(row[0]), conversation_id=ConversationId(row[2]),
        sent_at=from_db(row[1]), model=row[3], limit_tokens=row[4], result_chars=row[5],
        parts=tuple(parts), items=tuple(items), notice=row[6],
    )  # fmt: skip


def _filled(part: PlanPart, texts: _Texts) -> PlanPart:
    pieces = (
        Piece(
            texts.get((piece.text, piece.conversation_id or NO_CONVERSATION), FORGOTTEN),
            piece.conversation_id,
        )
        for piece in part.pieces
    )
    return replace(part, pieces=tuple(pieces), message_ids=from_runs(part.message_ids))


def _texts(cursor: Connection, pieces: Iterable[Piece]) -> _Texts:
    wanted = list({piece.text for piece in pieces})
    rows = cursor.execute(
        "SELECT hash, conversation_id, text FROM prompt_text WHERE hash IN (SELECT unnest(?))",
        [wanted],
    ).fetchall()
    return {(row[0], row[1]): row[2] for row in rows}


def _items(cursor: Connection, exchange_id: int) -> dict[_Key, list[RecalledItem]]:
    """Return the items of an exchange by prompt, in order."""
    rows = cursor.execute(
        f"SELECT {RECALLED_COLUMNS} FROM recalled WHERE exchange_id = ? ORDER BY sent_at, place",
        [exchange_id],
    ).fetchall()
    grouped: dict[_Key, list[RecalledItem]] = {}
    for row in rows:
        grouped.setdefault((row[0], row[1]), []).append(_item(row))
    return grouped


def _newest_items(cursor: Connection, exchange_id: int) -> list[RecalledItem]:
    row = cursor.execute(
        "SELECT max(sent_at) FROM prompt WHERE exchange_id = ?", [exchange_id]
    ).fetchone()
    newest = None if row is None else row[0]
    return _items(cursor, exchange_id).get((ExchangeId(exchange_id), newest), [])


def _item(row: Row) -> RecalledItem:
    return RecalledItem(
        layer=RecallLayer(row[4]), kind=PassageKind(row[5]), passage_id=PassageId(row[6]),
        conversation_id=row[7], exchange_id=row[8], message_id=row[9], relevance=row[10],
        cosine=row[11], coverage=row[12], tokens=row[13], injected=row[14], dropped_by=row[15],
    )  # fmt: skip


def _titles_and_turns(
    cursor: Connection, items: Iterable[RecalledItem], turns: Iterable[ExchangeId | None]
) -> tuple[dict[int, str], dict[int, tuple[int, datetime]]]:
    """Return titles by conversation; turn numbers and when they began by exchange."""
    conversations = list({item.conversation_id for item in items} - {None})
    titles = cursor.execute(
        "SELECT id, title FROM conversation WHERE id IN (SELECT unnest(?))", [conversations]
    ).fetchall()
    begun = cursor.execute(
        "SELECT id, turn_number, started_at FROM exchange WHERE id IN (SELECT unnest(?))",
        [list(set(turns) - {None})],
    ).fetchall()
    return dict(titles), {each: (number, from_db(at)) for each, number, at in begun}
